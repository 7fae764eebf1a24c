"""The options of a build, and their bounds."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arag_search.engines.opensearch.address import is_address, parse_address
from arag_search.engines.write import TargetOptions
from arag_search.errors import ArgumentError
from arag_search.query.field_types import FIELD_TYPES
from arag_search.query.fields import MetadataType
from arag_search.query.lemmas import NONE, languages
from arag_search.system.options import check, check_known, option, options_of, values_of
from index_jobs.build.language import AUTO
from index_jobs.cutting.chunking import DEFAULT_CHUNK_TOKENS, program_version
from index_jobs.sources.folders.selection import STDIN, USUAL_FILES, FileSelection
from index_jobs.sources.lines.files import Fields
from index_jobs.sources.metadata import check_metadata, parse_metadata
from index_jobs.sources.registry import FORMATS, Format

DEFAULT_FIELDS = Fields()
MAX_WORKERS = 64
RAY_HELP = "Work on a Ray cluster with the same folders: auto, HOST:PORT, local (starts one here)."
_SAME_INDEX = frozenset(
    (
        *("overwrite", "node_wait_s", "keep", "workers", "ray"),
        *("skip_bad_lines", "skip_bad_files", "file_limits"),
    )
)
"""The options with which the same documents are indexed in the same way."""
KEPT_READING = (
    *("format", *options_of(Fields)),
    *("include", "exclude", "no_ignore", "max_file_size", "root"),
)
"""The options of reading that an index keeps."""


@dataclass(frozen=True)
class ReadingOptions:
    """The options of reading the sources of a build or an update, each said at its field.

    ``fields``: the names of the fields of records.
    ``files``: which files are read, and whether bad ones are skipped.
    Raises ArgumentError for a value that is not allowed.
    """

    format: Format | None = option(
        None,
        "Format of the sources; index --formats lists them.  [default: detected]",
        "NAME",
        known=tuple(FORMATS),
    )
    fields: Fields = DEFAULT_FIELDS
    skip_bad_lines: bool = option(False, "Skip and count bad records and values.")
    files: FileSelection = USUAL_FILES
    workers: int | None = option(
        None,
        "Processes that cut and pack, 0 to 64; 0 uses this one. As many convert, at least one.  "
        "[default: by size; with --ray all cores]",
        "N",
        0,
        MAX_WORKERS,
    )

    def __post_init__(self) -> None:
        check(self)

    def in_manifest(self, names: Sequence[str], root: str | None) -> dict[str, Any]:
        """Return what a manifest keeps of sources, so that they can be read in the same way again.
        It has their absolute paths, how they are read, and the ``root`` of all."""
        values = values_of(self)
        paths = [name if name == STDIN else os.path.abspath(name) for name in names]
        kept = {name: values[name] for name in KEPT_READING}
        return {"sources": paths, **kept, "root": root}


@dataclass(frozen=True, slots=True)
class BuildOptions(TargetOptions, ReadingOptions):
    """The options of a build, each said at its field. For an index on a server there are also:

    ``node_wait_s``: the seconds to wait for a lost node. None: NODE_WAIT_S.
    ``keep``: the number of earlier finished indexes to keep. None: KEPT.
    Raises ArgumentError for a value that is not allowed.
    """

    chunk_tokens: int = option(
        DEFAULT_CHUNK_TOKENS, "Most o200k tokens of a passage.", "N", 16, 100_000
    )
    metadata: Mapping[str, MetadataType] = option(
        dict,
        f"Fields of records to keep, with commas between; TYPE is {', '.join(FIELD_TYPES)}.",
        "NAME:TYPE",
        read=parse_metadata,
    )
    language: str = option(
        AUTO,
        "Language of the texts, whose words match their forms (film, films): en, de, ..., auto"
        " (detected) or none.",
        "LANGUAGE",
    )
    ray: str | None = option(None, RAY_HELP, "ADDRESS")

    def __post_init__(self) -> None:
        check(self)
        self.bm25.check()
        check_known("language", (self.language,), (AUTO, NONE, *languages()))
        check_metadata(self.metadata)

    def signature(self) -> dict[str, Any]:
        """Return the options that must be unchanged for an interrupted build to be resumed."""
        values = {name: value for name, value in values_of(self).items() if name not in _SAME_INDEX}
        values |= {"metadata": [*self.metadata.items()], "without": sorted(self.without)}
        values["bm25"] = str(self.bm25)
        marked = {f"`{name}`": value for name, value in values.items()}
        return {**marked, "the program": program_version()}


def check_location(location: str | Path, options: BuildOptions) -> None:
    """Raise ArgumentError for an invalid address, and for options that do not apply to this kind of
    location."""
    name = str(location)
    if isinstance(location, str) and is_address(name):
        parse_address(name)
        return
    for field, value, why in (
        ("shards", options.shards, "has none"),
        ("node_wait_s", options.node_wait_s, "has no nodes"),
        ("keep", options.keep, "keeps no previous index"),
    ):
        if value is not None:
            raise ArgumentError(
                f"`{field}`: an index in a folder {why}.",
                where=name,
                allowed="an index on a server",
                do="Leave it out.",
            )
    if "exact" in options.without:
        raise ArgumentError(
            "`without`: exact takes no space in a folder.",
            where=name,
            allowed="sentences",
            do="Leave it out.",
        )
