"""Estimates of the size and time of an embedding, from a sample: nothing is written."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from arag_search.corpus import Chunk
from arag_search.errors import SourceError
from arag_search.manifest import Manifest
from arag_search.search.index import open_index
from arag_search.system.progress import counted, duration
from arag_search.vectors.base import EncoderIdentity, VectorUnit, rows_of
from arag_search.vectors.encoders.choose import DEFAULT_ENCODER
from arag_search.vectors.storage.folders import vectors_root
from index_jobs.build.estimate import SampleBudget, dry_run_lines
from index_jobs.build.report import Report
from index_jobs.embedding.job import work_folder
from index_jobs.embedding.making import EncoderChoice, EncodingWork
from index_jobs.embedding.plan import EmbedOptions, of_units
from index_jobs.embedding.reuse import Existing

SAMPLE_CHUNKS = 1_000
"""The largest number of passages, from the beginning of the index, that are encoded; sampling also
ends after about SAMPLE_S seconds."""

_BLOCK_CHUNKS = 50
_BYTES_A_ROW = 48  # its key (stored twice), its ordinal, and the row of its text
_BYTES_A_CHUNK = 70  # ordinal, ends, doc_id and some metadata


@dataclass(frozen=True, slots=True)
class EmbedEstimate(Report):
    """The expected size and time of an embedding, and the sample that they come from.

    ``is_exact`` is true if the sample was the whole index: ``rows`` is then exact. ``seconds``
    holds for this machine with one encoder, without training.
    """

    location: str
    vectors: str
    encoder: EncoderIdentity
    sampled_chunks: int
    sampled_rows: int
    is_exact: bool
    chunks: int
    rows: dict[VectorUnit, int]
    dtype: str
    bytes: int
    rows_per_second: float
    seconds: float

    def to_text(self) -> str:
        """Return the estimate in words."""
        about = "" if self.is_exact else "about "
        lines = dry_run_lines(
            f"{self.location} would get {about}{of_units(self.rows)}.",
            f"the first {counted(self.sampled_chunks, 'passage')} of {self.chunks:,},"
            f" {counted(self.sampled_rows, 'row')}, {self.rows_per_second:,.0f}/s",
            f"{self.bytes / 1e6:,.1f} MB in {self.vectors} ({self.dtype})",
            f"{duration(self.seconds)} here, with one process",
        )
        encoder = f"encoder: {self.encoder.name}, {self.encoder.dimension:,} dimensions"
        return "\n".join([lines[0], encoder, *lines[1:]])


def estimate_embedding(location: str, encoder: str | None, options: EmbedOptions) -> EmbedEstimate:
    """Estimate the vectors of an index. Raises what ``embed_index`` raises for an index, an encoder
    or options that it rejects."""
    root = vectors_root(location, options.vectors)
    with open_index(location, search_timeout_s=None) as index:
        work = work_folder(root, location)
        existing = Existing(root, work, index.manifest.placement)
        chosen = encoder or existing.encoder() or DEFAULT_ENCODER
        encoding = EncodingWork(EncoderChoice.of(chosen, options.device, options.batch_size))
        try:
            identity = encoding(()).identity
            plan = existing.plan(identity, options)
            sample = _Sample(options.units, plan.sentence_titles)
            chunks = index.scan()
            while sample.is_unfinished and (block := list(itertools.islice(chunks, _BLOCK_CHUNKS))):
                sample.add(block, encoding)
        finally:
            encoding.close()
        return _estimate(location, root, identity, sample, index.manifest, options)


class _Sample:
    """The passages that were encoded to make an estimate, counted and timed."""

    def __init__(self, units: Sequence[VectorUnit], sentence_titles: bool) -> None:
        self._sentence_titles = sentence_titles
        self.rows: dict[VectorUnit, int] = dict.fromkeys(units, 0)
        self.chunks = 0
        self.sentences = 0
        self.seconds = 0.0
        self._budget = SampleBudget(SAMPLE_CHUNKS)

    @property
    def is_unfinished(self) -> bool:
        return not self._budget.is_spent(self.chunks)

    def add(self, chunks: Sequence[Chunk], work: EncodingWork) -> None:
        began = time.monotonic()
        for unit in self.rows:
            texts = [
                text
                for chunk in chunks
                for _, text in rows_of(chunk, unit, sentence_titles=self._sentence_titles)
            ]
            if texts:
                work(texts)
            self.rows[unit] += len(texts)
        self.seconds += time.monotonic() - began
        self.chunks += len(chunks)
        self.sentences += sum(len(chunk.sentence_ends) for chunk in chunks)


def _estimate(
    location: str,
    root: Path,
    identity: EncoderIdentity,
    sample: _Sample,
    manifest: Manifest,
    options: EmbedOptions,
) -> EmbedEstimate:
    sampled_rows = sum(sample.rows.values())
    if not sampled_rows:
        raise SourceError(
            "The sample holds no text to embed.",
            where=location,
            allowed="passages with a letter or a digit",
        )
    times: dict[VectorUnit, float] = {
        "sentence": manifest.sentences / max(1, sample.sentences),
        "passage": manifest.chunks / sample.chunks,
    }
    rows: dict[VectorUnit, int] = {
        unit: round(count * times[unit]) for unit, count in sample.rows.items()
    }
    total = sum(rows.values())
    value_bytes = 2 if options.dtype == "float16" else 4
    speed = sampled_rows / max(sample.seconds, 1e-6)
    return EmbedEstimate(
        location=location,
        vectors=str(root),
        encoder=identity,
        sampled_chunks=sample.chunks,
        sampled_rows=sampled_rows,
        is_exact=sample.chunks == manifest.chunks,
        chunks=manifest.chunks,
        rows=rows,
        dtype=options.dtype,
        bytes=total * (identity.dimension * value_bytes + _BYTES_A_ROW)
        + manifest.chunks * _BYTES_A_CHUNK,
        rows_per_second=round(speed, 1),
        seconds=round(total / speed, 1),
    )
