"""The options of updates, and which of them the index must already have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from arag_search.errors import ArgumentError, SourceError
from arag_search.manifest import Manifest
from arag_search.query.fields import MetadataType
from arag_search.system.options import option, options_of, values_of
from arag_search.vectors.base import Encoder
from index_jobs.build.options import KEPT_READING, ReadingOptions
from index_jobs.build.report import SHOWN_EXAMPLES
from index_jobs.sources.folders.selection import STDIN
from index_jobs.sources.lines.files import Fields
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.registry import PRE_CHUNKED
from index_jobs.sources.source import Source


@dataclass(frozen=True, slots=True)
class Followed:
    """The knowledge of a watcher of folders, for one of the synchronisations by which an index
    follows them.

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
    """The options of an addition, each said at its field.

    ``encoder``: the encoder of new texts, open or by name. None: by the name that the vectors have.
    """

    dry_run: bool = option(False, "Show which documents would change, and change nothing.")
    vectors: Path | str | None = option(
        None,
        "The folder that arag-search embed wrote vectors to.  [default: ARAG_VECTORS, else"
        " INDEX/vectors]",
        "DIR",
    )
    embed: bool = option(
        True, "Encode new texts for the vectors of the index, by the encoder that made them."
    )
    encoder: Encoder | str | None = None


@dataclass(frozen=True, slots=True)
class SyncOptions(AddOptions):
    """The options of a synchronisation, and of the addition in it.

    ``followed``: the watcher's knowledge, if the synchronisation is one of its own.
    """

    allow_deletes: bool = option(
        False, "Delete more than half of the documents of a source, and all of one that is gone."
    )
    followed: Followed | None = None


def as_built(manifest: Manifest, options: SyncOptions, where: str) -> tuple[list[str], SyncOptions]:
    """Return the sources that an index was built from, and the options to read them as they were
    read then. Raises ArgumentError if that is not known, or if the options say it too."""
    built = dict(manifest.reading)
    names: list[str] = list(built.pop("sources", ()))
    given, usual = values_of(options), values_of(SyncOptions())
    problem = ""
    if said := [f"`{name}`" for name in KEPT_READING if given[name] != usual[name]]:
        problem = f"Sources are read as at the build, without {', '.join(said)}."
    elif STDIN in names:
        problem = "The index was built from standard input."
    elif not names:
        problem = "The index was built from the records of a program."
    if problem:
        do = f"Name the sources: arag-search sync {where} SOURCE"
        raise ArgumentError(problem, where=where, do=do)
    fields = Fields(**{name: built.pop(name) for name in options_of(Fields)})
    for name in ("include", "exclude"):
        built[name] = tuple(cast(list[str], built[name]))
    format = built.pop("format")
    files = replace(options.files, **built)
    return names, replace(options, format=format, fields=fields, files=files)


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
