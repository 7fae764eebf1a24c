"""The options of a build, and their bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from arag_search.engines.opensearch.address import is_address, parse_address
from arag_search.engines.write import DEFAULT_B, DEFAULT_K1, TargetOptions
from arag_search.errors import ArgumentError
from arag_search.manifest import FOLD_CHARACTERS
from arag_search.query.fields import MetadataType
from arag_search.query.lemmas import NONE, languages
from index_jobs.build.language import AUTO
from index_jobs.cutting.chunking import (
    DEFAULT_CHUNK_TOKENS,
    MAX_CHUNK_TOKENS,
    MIN_CHUNK_TOKENS,
    program_version,
)
from index_jobs.sources.metadata import check_metadata
from index_jobs.sources.records import Fields
from index_jobs.sources.registry import FORMATS, Format
from index_jobs.sources.selection import USUAL_FILES, FileSelection

MAX_K1 = 100.0
CHECKPOINT_S = 15.0
DEFAULT_FIELDS = Fields()
MAX_SHARDS = 1024
MAX_WORKERS = 64
MAX_KEPT = 100
MAX_NODE_WAIT_S = 86_400
FOLD_OPTION = "--fold-characters"
MIN_FOLD, MAX_FOLD = 20, 100_000
LEAVABLE = ("sentences", "exact", "forms")
"""The parts that a build can leave out; the index then does not support what needs them.
keyword_search needs ``exact`` on a server; in a folder, ``exact`` takes no space."""


@dataclass(frozen=True, slots=True)
class BuildOptions(TargetOptions):
    """The options of a build.

    If ``format`` is None, the format of every source is detected from its beginning. ``fields``
    names the fields of records. A chunk has at most ``chunk_tokens`` o200k tokens. Where the lines
    of documents are numbered, lines longer than ``fold_characters`` are folded (0: none). ``k1``
    and ``b`` are the parameters of BM25. ``language`` is that of the lemmas of words: AUTO detects
    it, NONE uses none. ``metadata`` declares fields and types. ``without`` names
    the parts to leave out. With ``skip_bad_lines``, records that cannot be read are counted and
    skipped, and so are values of others that do not fit their fields. ``files`` says which files
    are read, and whether bad ones are skipped. A checkpoint is
    written every ``checkpoint_s`` seconds. ``workers`` is the number of processes that cut and
    pack: 0 for none, None for a number that suits the corpus. ``ray`` is the address of a Ray
    cluster that reads, cuts and writes (see ``Cluster``; None: this machine does); ``workers`` then
    work there (None: one for each of its cores). The other options are for an index on
    a server: ``shards`` is its number of shards (default: one); ``node_wait_s`` is the time to wait
    for a lost node (None: NODE_WAIT_S); ``keep`` is the number of earlier finished indexes to keep
    (None: KEPT). Raises ArgumentError for a value that is not allowed.
    """

    format: Format | None = None
    fields: Fields = DEFAULT_FIELDS
    chunk_tokens: int = DEFAULT_CHUNK_TOKENS
    fold_characters: int = FOLD_CHARACTERS
    metadata: Mapping[str, MetadataType] = field(default_factory=dict[str, MetadataType])
    skip_bad_lines: bool = False
    files: FileSelection = USUAL_FILES
    language: str = AUTO
    checkpoint_s: float = CHECKPOINT_S
    workers: int | None = None
    ray: str | None = None

    def __post_init__(self) -> None:
        if self.format is not None and self.format not in FORMATS:
            raise ArgumentError(
                f'--format: "{self.format}" is not known.', allowed=f"auto, {', '.join(FORMATS)}"
            )
        for option, name in (
            ("--id-field", self.fields.id),
            ("--title-field", self.fields.title),
            ("--text-field", self.fields.text),
        ):
            if name == "":
                raise ArgumentError(f"{option}: the name is empty.", allowed="a key of the records")
        if not MIN_CHUNK_TOKENS <= self.chunk_tokens <= MAX_CHUNK_TOKENS:
            raise ArgumentError(
                f"--chunk-tokens: {self.chunk_tokens:,} is out of range.",
                allowed=f"{MIN_CHUNK_TOKENS} to {MAX_CHUNK_TOKENS:,}",
            )
        if self.fold_characters and not MIN_FOLD <= self.fold_characters <= MAX_FOLD:
            raise ArgumentError(
                f"{FOLD_OPTION}: {self.fold_characters:,} is out of range.",
                allowed=f"{MIN_FOLD} to {MAX_FOLD:,}, or 0 to fold no line",
            )
        if not 0 <= self.k1 <= MAX_K1 or not 0 <= self.b <= 1:  # false for NaN too
            raise ArgumentError(
                f"--bm25: k1 = {self.k1:g}, b = {self.b:g} is out of range.",
                allowed=f"k1 from 0 to {MAX_K1:g}, b from 0 to 1",
            )
        for name in self.without:
            if name not in LEAVABLE:
                raise ArgumentError(
                    f'--without: "{name}" is not known.', allowed=", ".join(LEAVABLE)
                )
        if self.language not in (AUTO, NONE) and self.language not in languages():
            raise ArgumentError(
                f'--language: "{self.language}" is not known.',
                allowed=f"{AUTO}, {NONE}, {', '.join(languages())}",
            )
        for option, value, least, most in (
            ("--shards", self.shards, 1, MAX_SHARDS),
            ("keep", self.keep, 0, MAX_KEPT),
            ("--workers", self.workers, 0, MAX_WORKERS),
        ):
            if value is not None and not least <= value <= most:
                raise ArgumentError(
                    f"{option}: {value:,} is out of range.", allowed=f"{least} to {most:,}"
                )
        if self.node_wait_s is not None and not 0 <= self.node_wait_s <= MAX_NODE_WAIT_S:
            raise ArgumentError(
                f"node_wait_s: {self.node_wait_s:g} is out of range.",
                allowed=f"seconds, 0 to {MAX_NODE_WAIT_S:,}",
            )
        if not math.isfinite(self.checkpoint_s) or self.checkpoint_s < 0:
            raise ArgumentError(
                f"checkpoint_s is {self.checkpoint_s}.", allowed="seconds, 0 or more"
            )
        check_metadata(self.metadata)

    def signature(self) -> dict[str, Any]:
        """Return the options that must be unchanged for an interrupted build to be resumed."""
        return {
            "--format": self.format,
            "--id-field": self.fields.id,
            "--title-field": self.fields.title,
            "--text-field": self.fields.text,
            "--chunk-tokens": self.chunk_tokens,
            "--bm25": [self.k1, self.b],
            "--metadata": list(self.metadata.items()),
            "--without": sorted(self.without),
            "--language": self.language,
            "--shards": self.shards,
            FOLD_OPTION: self.fold_characters,
            **self.files.signature(),
            "the program": program_version(),
        }


def parse_bm25(text: str) -> tuple[float, float]:
    """Parse k1 and b, such as ``1.2,0.75``. Raises ArgumentError."""
    pieces = text.split(",")
    try:
        k1, b = (float(piece) for piece in pieces)
    except ValueError:
        raise ArgumentError(
            f'--bm25: "{text}" is not two numbers.',
            allowed=f"k1,b such as {DEFAULT_K1:g},{DEFAULT_B:g}",
        ) from None
    return k1, b


def parse_names(text: str) -> tuple[str, ...]:
    """Parse names such as ``a,b``; an empty text has none."""
    return tuple(filter(None, (name.strip() for name in text.split(","))))


def check_location(location: str | Path, options: BuildOptions) -> None:
    """Raise ArgumentError for an invalid address, and for options that do not apply to this kind of
    location."""
    name = str(location)
    if isinstance(location, str) and is_address(name):
        parse_address(name)
        return
    for option, value, why in (
        ("--shards", options.shards, "has none"),
        ("node_wait_s", options.node_wait_s, "has no nodes"),
        ("keep", options.keep, "keeps no previous index"),
    ):
        if value is not None:
            raise server_only(option, why, name)
    if "exact" in options.without:
        raise ArgumentError(
            "--without: exact takes no space in a folder.",
            where=name,
            allowed="sentences",
            do="Leave it out.",
        )


def server_only(option: str, why: str, location: str) -> ArgumentError:
    """Return the error for an option that applies only to a server but was used with a folder."""
    return ArgumentError(
        f"{option}: an index in a folder {why}.",
        where=location,
        allowed="an index on a server",
        do="Leave it out.",
    )
