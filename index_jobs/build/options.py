"""The options of a build, and their bounds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from arag_search.engines.opensearch.address import is_address, parse_address
from arag_search.engines.write import DEFAULT_B, DEFAULT_K1, TargetOptions
from arag_search.errors import ArgumentError
from arag_search.query.fields import MetadataType
from arag_search.query.lemmas import NONE, languages
from index_jobs.build.language import AUTO
from index_jobs.cutting.chunking import DEFAULT_CHUNK_TOKENS, program_version
from index_jobs.sources.folders.selection import USUAL_FILES, FileSelection
from index_jobs.sources.lines.files import Fields
from index_jobs.sources.metadata import check_metadata
from index_jobs.sources.registry import FORMATS, Format

DEFAULT_FIELDS = Fields()
MAX_WORKERS = 64
LEAVABLE = ("sentences", "exact", "forms")
"""The parts that a build can leave out; the index then does not support what needs them.
keyword_search needs ``exact`` on a server; in a folder, ``exact`` takes no space."""


@dataclass(frozen=True)
class ReadingOptions:
    """How the sources of a build or an update are read.

    If ``format`` is None, the format of every source is detected from its beginning. ``fields``
    names the fields of records. With ``skip_bad_lines``, records that cannot be read are counted
    and skipped, and so are values of others that do not fit their fields. ``files`` says which
    files are read, and whether bad ones are skipped. ``workers`` is the number of processes that
    cut and pack: 0 for none, None for a number that suits the corpus. Raises ArgumentError for a
    value that is not allowed.
    """

    format: Format | None = None
    fields: Fields = DEFAULT_FIELDS
    skip_bad_lines: bool = False
    files: FileSelection = USUAL_FILES
    workers: int | None = None

    def __post_init__(self) -> None:
        check_known("--format", () if self.format is None else (self.format,), FORMATS)
        for option, name in (
            ("--id-field", self.fields.id),
            ("--title-field", self.fields.title),
            ("--text-field", self.fields.text),
        ):
            if name == "":
                raise ArgumentError(f"{option}: the name is empty.", allowed="a key of the records")
        check_range("--workers", self.workers, 0, MAX_WORKERS)


@dataclass(frozen=True, slots=True)
class BuildOptions(ReadingOptions, TargetOptions):
    """The options of a build.

    ``chunk_tokens``: the most o200k tokens of a chunk.
    ``k1``, ``b``: the parameters of BM25.
    ``language``: that of the lemmas of words. AUTO: it is detected. NONE: there are no lemmas.
    ``metadata``: the declared fields and their types.
    ``without``: the parts to leave out.
    ``ray``: the address of a Ray cluster that reads, cuts and writes (see ``Cluster``), on which
    ``workers`` work (None: one for each core). None: this machine does it.

    For an index on a server only:
    ``shards``: the number of shards. None: one.
    ``node_wait_s``: the seconds to wait for a lost node. None: NODE_WAIT_S.
    ``keep``: the number of earlier finished indexes to keep. None: KEPT.

    Raises ArgumentError for a value that is not allowed.
    """

    chunk_tokens: int = DEFAULT_CHUNK_TOKENS
    metadata: Mapping[str, MetadataType] = field(default_factory=dict[str, MetadataType])
    language: str = AUTO
    ray: str | None = None

    def __post_init__(self) -> None:
        ReadingOptions.__post_init__(self)
        check_known("--without", self.without, LEAVABLE)
        check_known("--language", (self.language,), (AUTO, NONE, *languages()))
        check_range("--chunk-tokens", self.chunk_tokens, 16, 100_000)
        check_range("--shards", self.shards, 1, 1024)
        check_range("keep", self.keep, 0, 100)
        check_range("node_wait_s", self.node_wait_s, 0, 86_400)
        if not 0 <= self.k1 <= 100 or not 0 <= self.b <= 1:  # false for NaN too
            raise ArgumentError(
                f"--bm25: k1 = {self.k1:g}, b = {self.b:g} is out of range.",
                allowed="k1 from 0 to 100, b from 0 to 1",
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
            **self.files.signature(),
            "the program": program_version(),
        }


def check_known(option: str, names: Iterable[str], known: Collection[str]) -> None:
    """Raise ArgumentError for a name that is not known."""
    for name in names:
        if name not in known:
            raise ArgumentError(f'{option}: "{name}" is not known.', allowed=", ".join(known))


def check_range(option: str, value: float | None, least: int, most: int) -> None:
    """Raise ArgumentError for a value out of bounds; None is in them."""
    if value is not None and not least <= value <= most:
        raise ArgumentError(
            f"{option}: {value:,} is out of range.", allowed=f"{least:,} to {most:,}"
        )


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
            raise ArgumentError(
                f"{option}: an index in a folder {why}.",
                where=name,
                allowed="an index on a server",
                do="Leave it out.",
            )
    if "exact" in options.without:
        raise ArgumentError(
            "--without: exact takes no space in a folder.",
            where=name,
            allowed="sentences",
            do="Leave it out.",
        )
