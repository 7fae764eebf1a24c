"""What an update may ask for, and what of it the index must already have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arag_search.errors import ArgumentError, SourceError
from arag_search.manifest import Manifest
from arag_search.query.fields import MetadataType
from index_jobs.build.language import AUTO
from index_jobs.build.options import DEFAULT_FIELDS
from index_jobs.build.report import SHOWN_EXAMPLES
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.reading import Source
from index_jobs.sources.records import Fields
from index_jobs.sources.registry import PRE_CHUNKED, Format
from index_jobs.sources.selection import USUAL_FILES, FileSelection


@dataclass(frozen=True, slots=True)
class Followed:
    """What a watcher of folders knows, for one of the synchronisations by which an index follows
    them.

    ``paths`` are absolute paths: only documents of these files, and of those below them, can have
    changed; None if any can. ``peak`` is the largest number of documents that the index
    had of late, because a folder may vanish in several steps. With ``keeps_vanished`` nothing is
    deleted. Sources may change while they are read, because the watcher will hear of it.
    """

    paths: frozenset[str] | None = None
    peak: int = 0
    keeps_vanished: bool = False


@dataclass(frozen=True, slots=True)
class AddOptions:
    """The options of an addition or a synchronisation.

    ``format``, ``fields``, ``skip_bad_lines``, ``files`` and ``workers`` are as in BuildOptions.
    The others are properties of the index: each is None or the value that the index already has.
    ``bm25`` is k1 and b. With ``allow_deletes``, a synchronisation may delete more than half of the
    documents of a source. With ``dry_run`` nothing is written, and the report has the ids.
    Vectors in the folder ``vectors`` (see ``vectors_root``) that fit the index fit it afterwards
    too: new texts are encoded by the encoder that made them, unless ``embed`` is False. A
    synchronisation by a watcher has what it ``followed``.
    """

    format: Format | None = None
    fields: Fields = DEFAULT_FIELDS
    skip_bad_lines: bool = False
    files: FileSelection = USUAL_FILES
    chunk_tokens: int | None = None
    bm25: tuple[float, float] | None = None
    metadata: Mapping[str, MetadataType] | None = None
    without: tuple[str, ...] | None = None
    language: str | None = None
    workers: int | None = None
    allow_deletes: bool = False
    dry_run: bool = False
    vectors: Path | str | None = None
    embed: bool = True
    followed: Followed | None = None


def metadata_reader(manifest: Manifest) -> MetadataReader:
    """Return the reader of metadata for documents that join an index."""
    declared: dict[str, MetadataType] = {}
    automatic: dict[str, MetadataType] = {}
    for name, kind in manifest.metadata.items():
        (automatic if name in manifest.file_metadata else declared)[name] = kind
    return MetadataReader(declared, automatic)


def check_formats(manifest: Manifest, sources: Sequence[Source], where: str) -> None:
    wrong = [
        source
        for source in sources
        if (source.format in PRE_CHUNKED) is not manifest.already_chunked
    ]
    if wrong:
        kind = "pre-chunked passages" if manifest.already_chunked else "documents"
        formats = ", ".join(sorted(PRE_CHUNKED))
        raise SourceError(
            f"The index holds {kind}, but these sources do not: "
            + ", ".join(f"{source.name} ({source.format})" for source in wrong[:SHOWN_EXAMPLES])
            + ".",
            where=where,
            allowed=formats if manifest.already_chunked else f"every format but {formats}",
            do="Build a separate index for them.",
        )


def check_options(manifest: Manifest, options: AddOptions, where: str) -> None:
    checks: tuple[tuple[str, object, object, Callable[[Any], str]], ...] = (
        ("--chunk-tokens", options.chunk_tokens, manifest.chunk_tokens, lambda n: f"{n:,}"),
        (
            "--bm25",
            options.bm25,
            (manifest.k1, manifest.b),
            lambda pair: ",".join(f"{value:g}" for value in pair),
        ),
        (
            "--metadata",
            None if options.metadata is None else dict(options.metadata),
            metadata_reader(manifest).declared,
            lambda fields: ",".join(f"{n}:{kind}" for n, kind in fields.items()) or "none",
        ),
        (
            "--without",
            None if options.without is None else tuple(sorted(set(options.without))),
            tuple(sorted(manifest.without)),
            lambda names: ",".join(names) or "none",
        ),
        (
            "--language",
            None if options.language == AUTO else options.language,
            manifest.language,
            lambda language: language or "words as they are written",
        ),
    )
    wrong = [
        f"{name} {show(value)} (the index has {show(built)})"
        for name, value, built, show in checks
        if value is not None and value != built
    ]
    if wrong:
        raise ArgumentError(
            f"The index was built with other options: {'; '.join(wrong)}.",
            where=where,
            allowed="with --add, the options of the index, which need not be given",
            do="Leave them out, or build the index again with --overwrite.",
        )
