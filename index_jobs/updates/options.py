"""What an update may ask for, and what of it the index must already have."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from arag_search.errors import ArgumentError, SourceError
from arag_search.manifest import Manifest
from arag_search.query.fields import MetadataType
from arag_search.vectors.base import Encoder
from index_jobs.build.language import AUTO
from index_jobs.build.options import ReadingOptions
from index_jobs.build.report import SHOWN_EXAMPLES
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.registry import PRE_CHUNKED
from index_jobs.sources.source import Source

_Property = int | str | tuple[float, float] | tuple[str, ...] | Mapping[str, MetadataType]


@dataclass(frozen=True, slots=True)
class Followed:
    """What a watcher of folders knows, for one of the synchronisations by which an index follows
    them.

    ``paths`` are absolute paths: only documents of these files, and of those below them, can have
    changed; None if any can. ``peak`` is the largest number of documents that the index
    had of late, because a folder may vanish in several steps. With ``keeps_vanished`` nothing is
    deleted. Sources may change while they are read, because the watcher will hear of it. All
    conversions together may take ``within_s`` seconds; files for which there is no time stay as
    they are in the index. ``coming`` counts the new files that later updates read.
    """

    paths: frozenset[str] | None = None
    peak: int = 0
    keeps_vanished: bool = False
    within_s: float = math.inf
    coming: int = 0


@dataclass(frozen=True, slots=True)
class AddOptions(ReadingOptions):
    """The options of an addition or a synchronisation.

    Properties of the index are None or the value that the index already has; ``bm25`` is k1 and b.
    With ``allow_deletes``, a synchronisation may delete more than half of the documents of a
    source. With ``dry_run`` nothing is written, and the report has the ids. Vectors in the folder
    ``vectors`` (see ``vectors_root``) that fit the index fit it afterwards too: new texts are
    encoded by the encoder that made them, unless ``embed`` is False: ``encoder``, open or by name
    (None: by the name that the vectors have). A synchronisation by a watcher has what it
    ``followed``.
    """

    chunk_tokens: int | None = None
    bm25: tuple[float, float] | None = None
    metadata: Mapping[str, MetadataType] | None = None
    without: tuple[str, ...] | None = None
    language: str | None = None
    allow_deletes: bool = False
    dry_run: bool = False
    vectors: Path | str | None = None
    embed: bool = True
    encoder: Encoder | str | None = None
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
    """Raise ArgumentError for properties that the index does not have."""
    without = None if options.without is None else tuple(sorted(set(options.without)))
    language = None if options.language == AUTO else options.language
    properties: tuple[tuple[str, _Property | None, _Property], ...] = (
        ("--chunk-tokens", options.chunk_tokens, manifest.chunk_tokens),
        ("--bm25", options.bm25, (manifest.k1, manifest.b)),
        ("--metadata", options.metadata, metadata_reader(manifest).declared),
        ("--without", without, tuple(sorted(manifest.without))),
        ("--language", language, manifest.language),
    )
    wrong = [
        f"{option} {_written(value)} (the index has {_written(built)})"
        for option, value, built in properties
        if value is not None and value != built
    ]
    if wrong:
        raise ArgumentError(
            f"The index was built with other options: {'; '.join(wrong)}.",
            where=where,
            allowed="with --add, the options of the index, which need not be given",
            do="Leave them out, or build the index again with --overwrite.",
        )


def _written(value: _Property) -> str:
    """Return a value as its option is written."""
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        value = tuple(f"{name}:{kind}" for name, kind in value.items())
    if isinstance(value, tuple):
        value = ",".join(part if isinstance(part, str) else f"{part:g}" for part in value)
    return value or "none"
