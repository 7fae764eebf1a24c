"""Estimates of the size and time of a build, from a sample: nothing is written, and no
OpenSearch server is contacted.

The size is computed from the bytes of the sampled documents, with costs measured on four corpora
(2Wiki, HotpotQA and MuSiQue with short passages, a medical book with long ones). The estimate is
right to within a third for these, and less accurate for text in other scripts. The time is the time
that the sample took to read and pack on this machine, plus the time for writing measured on the
same corpora with two cores.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from arag_search.corpus import Chunk
from arag_search.engines.lucene import schema as lucene_schema
from arag_search.engines.lucene.schema import ChunkPacker
from arag_search.engines.opensearch import schema as opensearch_schema
from arag_search.engines.opensearch.address import is_address
from arag_search.engines.opensearch.packing import BulkPacker
from arag_search.engines.write import Packer
from arag_search.errors import SourceError
from arag_search.system.progress import counted, duration
from index_jobs.build.corpus import NO_DOCUMENTS
from index_jobs.build.language import spread
from index_jobs.build.options import BuildOptions, check_location
from index_jobs.build.report import BuildState, Report
from index_jobs.cutting.chunking import pack
from index_jobs.sources.files import FileSource
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.opening import open_sources
from index_jobs.sources.reading import SHOWN_EXAMPLES, CorpusReader, SeenIds, Source
from index_jobs.workers.cluster import Cluster
from index_jobs.workers.pool import default_workers

SAMPLE_DOCUMENTS = 4_000
SAMPLE_S = 10.0
"""The bounds of a sample: the number of documents read from some sources together, and roughly the
time for reading them."""


class SampleBudget:
    """The limits of a sample: a number of items, and roughly a number of seconds."""

    def __init__(self, items: float, seconds: float = SAMPLE_S) -> None:
        self._items = items
        self._seconds = seconds
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """The seconds since the sample began."""
        return time.monotonic() - self._began

    def is_spent(self, items: int) -> bool:
        """Return whether the sample has reached a limit with this number of items."""
        return items >= self._items or self.seconds >= self._seconds


def dry_run_lines(outcome: str, sample: str, disk: str, duration_text: str) -> list[str]:
    """Return the lines that a dry run prints: the outcome, the sample, and the disk space and time
    needed."""
    return [
        f"Nothing was written. {outcome}",
        f"sample: {sample}",
        f"disk: about {disk}",
        f"time: about {duration_text}",
    ]


@dataclass(frozen=True, slots=True)
class _Cost:
    """Bytes on disk and seconds of writing, by engine. Text and titles are in UTF-8; a sentence
    index has the title with each sentence."""

    chunk_bytes: float
    text_share: float
    exact_share: float
    sentence_share: float
    chunk_write_s: float
    sentence_write_s: float


_FORMS_SHARE = 0.45
"""What normal forms add to the bytes of a text on disk, in either index and engine."""

_FORMS_TIME = 1.4
"""How much longer writing takes with normal forms."""

_COSTS = {
    lucene_schema.ENGINE: _Cost(190, 1.0, 0.0, 0.6, 150e-6, 55e-6),
    opensearch_schema.ENGINE: _Cost(190, 1.0, 0.55, 1.55, 200e-6, 80e-6),
}


@dataclass(frozen=True, slots=True)
class Estimate(Report):
    """The expected size and time of a build, and the sample that they come from.

    ``is_exact`` is true if the sample was the whole corpus, for counts. ``seconds`` are of all
    workers together, ``read_bytes`` on disk.
    """

    location: str
    engine: str
    sources: int
    source_bytes: int
    sampled_sources: int
    sampled_documents: int
    sampled_bytes: int
    is_exact: bool
    bad_records: int
    bad_examples: tuple[str, ...]
    bad_files: int
    bad_file_examples: tuple[str, ...]
    documents: int
    chunks: int
    sentences: int
    tokens: int
    index_bytes: int
    workers: int
    seconds: float

    def to_text(self) -> str:
        """Return the estimate in words."""
        about = "" if self.is_exact else "about "
        sample = (
            f"all of {counted(self.sources, 'source')}"
            if self.is_exact
            else f"{counted(self.sampled_documents, 'document')} of"
            f" {self.sampled_sources:,} of {counted(self.sources, 'source')}"
        )
        lines = dry_run_lines(
            f"{self.location} would hold {about}{counted(self.documents, 'document')} in"
            f" {counted(self.chunks, 'chunk')}, {counted(self.sentences, 'sentence')},"
            f" {counted(self.tokens, 'token')}.",
            f"{sample}, {self.sampled_bytes / 1e6:,.1f} of {self.source_bytes / 1e6:,.1f} MB",
            f"{self.index_bytes / 1e6:,.0f} MB ({self.engine}, one copy; twice that while it"
            " merges or replaces an earlier one)",
            f"{duration(self.seconds)} with {counted(self.workers, 'worker')}",
        )
        if self.bad_records:
            lines.append(f"in the sample: {counted(self.bad_records, 'bad record')}")
            lines += [f"  {example}" for example in self.bad_examples]
        if self.bad_files:
            lines.append(f"in the sample: {counted(self.bad_files, 'bad file')}")
            lines += [f"  {example}" for example in self.bad_file_examples]
        return "\n".join(lines)


def estimate(names: Sequence[str], location: str | Path, options: BuildOptions) -> Estimate:
    """Estimate the size and time of building an index from these sources at this location.

    Raises what ``build_index`` raises for sources and options that it rejects, and for a Ray
    cluster, whose workers are counted; and SourceError if the sample has no document.
    """
    check_location(location, options)
    metadata = MetadataReader(options.metadata)
    sources = open_sources(names, options.format, options.fields, metadata, options.files)
    chosen = spread(sources)
    is_served = is_address(str(location))
    packer = (
        BulkPacker("a" * 60, "s" * 60, metadata.fields)
        if is_served
        else ChunkPacker(metadata.fields)
    )
    samples = [_Sample(source, metadata, packer, options, len(chosen)) for source in chosen]
    if not any(sample.counts.documents for sample in samples):
        raise SourceError(
            "The sample holds no document.",
            where=", ".join(source.name for source in chosen[:SHOWN_EXAMPLES]),
            do=NO_DOCUMENTS,
        )
    size = sum(source.size for source in sources)
    workers = default_workers(size) if options.workers is None else options.workers
    if options.ray is not None:
        with Cluster(options.ray) as cluster:
            workers = cluster.workers(options.workers)
    engine = opensearch_schema.ENGINE if is_served else lucene_schema.ENGINE
    unseen = size / max(1, sum(source.size for source in chosen))

    def total(of_sample: Callable[[_Sample], float]) -> float:
        return unseen * sum(sample.times * of_sample(sample) for sample in samples)

    sampled_bytes = sum(sample.read_bytes for sample in samples)
    examples = [example for sample in samples for example in sample.counts.skipped_examples]
    bad_files = [name for sample in samples for name in sample.counts.skipped_file_examples]
    seconds = total(lambda sample: sample.seconds / max(1, workers) + sample.write_s(engine))
    return Estimate(
        location=str(location),
        engine=engine,
        sources=len(sources),
        source_bytes=size,
        sampled_sources=len(chosen),
        sampled_documents=sum(sample.counts.documents for sample in samples),
        sampled_bytes=sampled_bytes,
        is_exact=sampled_bytes == size,
        bad_records=sum(sample.counts.skipped for sample in samples),
        bad_examples=tuple(examples[:SHOWN_EXAMPLES]),
        bad_files=sum(sample.counts.skipped_files for sample in samples),
        bad_file_examples=tuple(bad_files[:SHOWN_EXAMPLES]),
        documents=round(total(lambda sample: sample.counts.documents)),
        chunks=round(total(lambda sample: sample.counts.chunks)),
        sentences=round(total(lambda sample: sample.counts.sentences)),
        tokens=round(total(lambda sample: sample.counts.tokens)),
        index_bytes=round(total(lambda sample: sample.index_bytes(engine))),
        workers=workers,
        seconds=round(seconds, 1),
    )


class _Sample:
    """The beginning of a source, or files spread over it, read and packed to measure its size and
    time."""

    def __init__(
        self,
        source: Source,
        metadata: MetadataReader,
        packer: Packer,
        options: BuildOptions,
        samples: int,
    ) -> None:
        """Read and pack the sample; ``samples`` is the number of samples that share the bounds."""
        self.counts = BuildState()
        self.read_bytes = 0
        self._packer = packer
        self._without = options.without
        self._text_bytes = 0
        self._sentence_text_bytes = 0
        budget = SampleBudget(SAMPLE_DOCUMENTS / samples, SAMPLE_S / samples)
        start = self.counts.position
        reader = CorpusReader(
            [source.spread() if isinstance(source, FileSource) else source],
            metadata,
            start,
            SeenIds(),
            lambda _: True,
            skip_bad_lines=True,
            skip_bad_files=True,
        )
        for batch in reader.batches():
            packed = pack(batch.documents, self._pack, options.chunk_tokens)
            self.counts.take(packed.counts, batch.position)
            self.read_bytes = batch.read_bytes
            if budget.is_spent(self.counts.documents):
                break
        self.seconds = budget.seconds
        self.times = source.size / self.read_bytes if self.read_bytes else 1.0
        """The size of the source divided by the size of the sample."""

    def _pack(self, chunks: Sequence[Chunk]) -> object:
        for chunk in chunks:
            content, title = len(chunk.content.encode()), len(chunk.title.encode())
            self._text_bytes += content + title
            self._sentence_text_bytes += content + title * len(chunk.sentence_ends)
        return self._packer(chunks)

    def index_bytes(self, engine: str) -> float:
        """Return the estimated bytes of the sample on disk."""
        cost, without = _COSTS[engine], self._without
        share = cost.text_share + (0 if "exact" in without else cost.exact_share)
        total = cost.chunk_bytes * self.counts.chunks + share * self._text_bytes
        forms = 0.0 if "forms" in without else _FORMS_SHARE
        total += forms * self._text_bytes
        if "sentences" not in without:
            total += (cost.sentence_share + forms) * self._sentence_text_bytes
        return total

    def write_s(self, engine: str) -> float:
        """Return the estimated seconds for writing the sample."""
        cost = _COSTS[engine]
        sentences = 0 if "sentences" in self._without else self.counts.sentences
        times = 1.0 if "forms" in self._without else _FORMS_TIME
        return times * (cost.chunk_write_s * self.counts.chunks + cost.sentence_write_s * sentences)
