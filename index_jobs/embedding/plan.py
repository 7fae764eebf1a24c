"""The options of an embedding, and the plan that decides which vectors it may reuse."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import orjson

from arag_search.errors import ArgumentError, VectorsError
from arag_search.system.durable import write_atomically
from arag_search.system.progress import counted, duration
from arag_search.vectors.base import VECTOR_UNITS, EncoderIdentity, VectorUnit
from arag_search.vectors.encoders.sentence_transformer import DEFAULT_BATCH_SIZE
from arag_search.vectors.storage.files import VECTORS_VERSION, read_record
from arag_search.vectors.storage.manifest import VectorManifest
from arag_search.vectors.storage.shards import StoredType, shard_numbers
from index_jobs.build.options import MAX_WORKERS
from index_jobs.build.report import Report

DEFAULT_SHARD_ROWS = 50_000
MAX_SHARD_ROWS = 10_000_000
MAX_BATCH_SIZE = 8_192
BATCHES_A_PIECE = 32
"""How many encoder batches are encoded at once: enough that sorting the texts by length is
worthwhile, few enough that the workers finish at about the same time."""

PLAN = "plan.json"


@dataclass(frozen=True, slots=True)
class EmbedOptions:
    """The options of an embedding.

    ``vectors`` is the folder of the sidecars (None: see ``vectors_root``). ``index`` is "auto",
    "flat" or a FAISS factory. A shard has at most ``shard_rows`` rows of both units together, and
    never splits a passage. ``workers`` is the number of encoding processes; 0 encodes in this
    process. With ``ray``, the address of a Ray cluster (see ``Cluster``), they work there (None:
    one for each GPU, or else for each machine).
    If ``device``, ``batch_size``, ``query_prefix`` or ``document_prefix`` is None, the encoder
    chooses it. With ``sentence_titles``,
    sentences are encoded below the title of their passage (None: as in existing vectors, else yes).
    Existing vectors with the same encoder and dtype are reused. ``overwrite`` makes all vectors
    again; it also replaces existing vectors and an interrupted embedding with another plan. Raises
    ArgumentError.
    """

    vectors: Path | str | None = None
    units: tuple[VectorUnit, ...] = VECTOR_UNITS
    index: str = "auto"
    shard_rows: int = DEFAULT_SHARD_ROWS
    dtype: StoredType = "float32"
    workers: int | None = None
    batch_size: int | None = None
    device: str | None = None
    query_prefix: str | None = None
    document_prefix: str | None = None
    sentence_titles: bool | None = None
    overwrite: bool = False
    ray: str | None = None

    @property
    def piece_rows(self) -> int:
        """How many rows are encoded at once."""
        return (self.batch_size or DEFAULT_BATCH_SIZE) * BATCHES_A_PIECE

    def __post_init__(self) -> None:
        for option, value, low, high in (
            ("shard_rows", self.shard_rows, 1, MAX_SHARD_ROWS),
            ("batch_size", 1 if self.batch_size is None else self.batch_size, 1, MAX_BATCH_SIZE),
            ("--workers", self.workers or 0, 0, MAX_WORKERS),
        ):
            if not low <= value <= high:
                raise ArgumentError(
                    f"{option}: {value:,} is out of range.",
                    allowed=f"{low} to {high:,}",
                )
        if self.dtype not in get_args(StoredType):
            raise ArgumentError(
                f'--dtype: "{self.dtype}" is not known.', allowed=", ".join(get_args(StoredType))
            )
        if not self.units or set(self.units) - set(VECTOR_UNITS):
            raise ArgumentError(
                f"--unit: {', '.join(self.units) or 'none'} is not known.",
                allowed="both, sentence, passage",
            )
        if not self.index.strip():
            raise ArgumentError(
                "--index: the description is empty.", allowed="auto, flat, or a FAISS factory"
            )


@dataclass(frozen=True, slots=True)
class Plan:
    """The properties that vectors must share to be published together. It does not list texts: each
    shard does."""

    encoder: EncoderIdentity
    units: tuple[VectorUnit, ...]
    dtype: StoredType
    sentence_titles: bool
    format_version: int = VECTORS_VERSION

    @staticmethod
    def of(manifest: VectorManifest) -> Plan:
        """Return the plan of existing vectors."""
        return Plan(manifest.encoder, manifest.units, manifest.dtype, manifest.sentence_titles)

    def changes(self, now: Plan) -> str:
        """Describe how another plan differs from this one, by the names of options; return an empty
        text if it does not."""
        pairs = (
            ("--unit", _unit_names(self.units), _unit_names(now.units)),
            ("--dtype", self.dtype, now.dtype),
            ("--sentence-titles", self._is_titled, now._is_titled),
        )
        changed = [f"{name} was {was}, is {value}" for name, was, value in pairs if was != value]
        if self.encoder != now.encoder:
            changed.insert(0, f"--encoder was {_shown(self.encoder)}, is {_shown(now.encoder)}")
        return "; ".join(changed)

    @property
    def _is_titled(self) -> bool:
        return self.sentence_titles and "sentence" in self.units


def begin(work: Path, plan: Plan, *, overwrite: bool) -> str:
    """Prepare the folder ``work`` for a plan; keep its shards if they were made with the same plan.

    Returns a note on the shards that were there. Raises ArgumentError if the folder holds shards of
    another plan, unless ``overwrite`` allows removing them; OSError.
    """
    note = ""
    if work.exists():
        before = read_plan(work)
        changed = "its plan cannot be read" if before is None else before.changes(plan)
        if not changed:
            return "Resuming: verifying the finished shards."
        if shard_numbers(work):
            why = f"n interrupted embedding is there, with other settings: {changed}"
            if not overwrite:
                raise ArgumentError(
                    f"A{why}.",
                    where=str(work),
                    allowed="the same options as before",
                    do="Give them to finish it, or --overwrite to start over.",
                )
            note = f"Starting over: a{why}."
        shutil.rmtree(work)
    work.mkdir(parents=True)
    write_atomically(work / PLAN, orjson.dumps(plan))
    return note


def read_plan(work: Path) -> Plan | None:
    """Return the plan of an interrupted embedding, or None if there is none that can be read."""
    try:
        return read_record(Plan, (work / PLAN).read_bytes(), str(work), "")
    except (FileNotFoundError, VectorsError):
        return None


def _shown(encoder: EncoderIdentity) -> str:
    return f"{encoder.name} (revision {encoder.revision[:12] or 'unknown'})"


def _unit_names(units: Sequence[VectorUnit]) -> str:
    return "both" if len(units) > 1 else units[0]


# The report of an embedding


@dataclass(frozen=True, slots=True)
class EmbedReport(Report):
    """The vectors of an index, and what this run did for them.

    ``sidecar`` is their folder. ``rows`` counts the rows that are searched, by unit; ``dead_rows``
    counts the rows in the shards whose text is no longer in the index. This run encoded
    ``encoded_rows`` in ``encode_seconds``; ``reused_rows`` had vectors in earlier sidecars.
    ``continued_shards`` were made by an interrupted run, ``remade_shards`` were found damaged.
    ``bytes`` is the size on disk. ``peak_bytes`` is the peak resident memory, summed over
    ``processes``. ``up_to_date`` is true if the vectors existed and nothing was done.
    """

    location: str
    sidecar: str
    encoder: EncoderIdentity
    index: Mapping[VectorUnit, str]
    dtype: str
    rows: Mapping[VectorUnit, int]
    dead_rows: Mapping[VectorUnit, int]
    chunks: int
    shards: int
    bytes: int
    fingerprint: str
    placement: str
    up_to_date: bool
    encoded_rows: int
    reused_rows: int
    encode_seconds: float
    rows_per_second: float
    publish_seconds: float
    seconds: float
    continued_shards: int
    remade_shards: int
    workers: int
    ray: str | None
    processes: int
    peak_bytes: int
    notes: tuple[str, ...]

    def to_text(self) -> str:
        """Return the report in words, one line for each item."""
        rows = of_units(self.rows)
        kinds = ", ".join(dict.fromkeys(self.index.values()))
        verb = "Nothing to do for" if self.up_to_date else "Embedded"
        lines = [
            f"{verb} {self.location}: {rows} in {counted(self.shards, 'shard')},"
            f" {self.bytes / 1e6:,.1f} MB in {self.sidecar}.",
            f"encoder: {self.encoder.name}, {self.encoder.dimension:,} dimensions; {self.dtype};"
            f" index {kinds}",
        ]
        if not self.up_to_date:
            lines.append(
                f"encoded: {counted(self.encoded_rows, 'row')} in {duration(self.encode_seconds)},"
                f" {self.rows_per_second:,.0f}/s; published in {duration(self.publish_seconds)}"
            )
        if self.reused_rows:
            lines.append(f"reused: {counted(self.reused_rows, 'row')} of earlier vectors")
        lines.append(
            f"peak memory: {self.peak_bytes / 1e6:,.0f} MB, summed over"
            f" {counted(self.processes, 'process', 'processes')}"
        )
        return "\n".join([*lines, *self.notes])


def of_units(rows: Mapping[VectorUnit, int]) -> str:
    """Return ``vectors of 393 sentences and 63 passages``."""
    return "vectors of " + " and ".join(counted(count, unit) for unit, count in rows.items())
