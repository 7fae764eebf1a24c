"""The report of an embedding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from arag_search.system.progress import duration
from arag_search.system.wording import counted
from arag_search.vectors.base import EncoderIdentity, VectorUnit
from index_jobs.build.report import Report


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
    ray: bool
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
