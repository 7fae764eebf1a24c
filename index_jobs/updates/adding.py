"""Adding documents to an index that is there; one whose id is in it is replaced."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from arag_search.corpus import SHARD_BITS, Chunk, Document
from arag_search.engines.update_record import UpdateRecord
from arag_search.errors import ArgumentError, BuildError, SourceError
from arag_search.manifest import Manifest
from arag_search.query.fields import MetadataType
from arag_search.system.interrupts import Interrupts
from arag_search.system.progress import Progress, SilentProgress, duration
from index_jobs.build.options import DEFAULT_FIELDS, BuildOptions
from index_jobs.build.report import SHOWN_EXAMPLES, counted, left_out_lines, source_lines
from index_jobs.cutting.chunking import cut
from index_jobs.sources.formats import SKIP, Fields, Format
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.opening import Source, open_sources
from index_jobs.updates.deleting import (
    Tally,
    digest_of,
    existing_chunks,
    held,
    settle,
    with_placement,
)
from index_jobs.updates.targets import IndexUpdate, open_update

_BATCH_CHUNKS = 64
_BATCH_CHARACTERS = 1 << 18
_BATCH_RECORDS = 4096


@dataclass(frozen=True, slots=True)
class AddOptions:
    """How to read the sources, as in BuildOptions; and what the caller says of the index, None
    where nothing: it must be so already. ``bm25`` is k1 and b."""

    format: Format | None = None
    fields: Fields = DEFAULT_FIELDS
    skip_bad_lines: bool = False
    chunk_tokens: int | None = None
    bm25: tuple[float, float] | None = None
    metadata: Mapping[str, MetadataType] | None = None
    without: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class AddReport:
    """What was added and replaced, from what, and what the index holds after it.

    ``finished_before``: the same command had done it before it was stopped.
    """

    location: str
    sources: tuple[tuple[str, str], ...]
    added: int
    replaced: int
    finished_before: bool
    documents: int
    chunks: int
    sentences: int
    tokens: int
    fingerprint: str
    update: int
    seconds: float
    documents_per_second: float
    skipped_lines: int
    skipped_examples: tuple[str, ...]
    left_out: Mapping[str, int]
    undeclared_metadata: Mapping[str, int]

    def to_json(self) -> str:
        """The report as one line of JSON."""
        found: dict[str, Any] = dataclasses.asdict(self)
        found["sources"] = [{"name": name, "format": kind} for name, kind in self.sources]
        return json.dumps(found, ensure_ascii=False)

    def to_text(self) -> str:
        """The report in words, one line for each thing."""
        lines = [
            f"Updated {self.location}: {counted(self.added, 'document')} added,"
            f" {self.replaced:,} replaced; it holds {counted(self.documents, 'document')} in"
            f" {counted(self.chunks, 'chunk')}; {duration(self.seconds)},"
            f" {self.documents_per_second:,.0f} documents/s."
        ]
        lines += source_lines(self.sources)
        if self.finished_before:
            lines.append("The same command had done so before it was stopped.")
        if self.replaced:
            lines.append(f"scores change a little until: arag-search compact {self.location}")
        return "\n".join([*lines, *self.warnings()])

    def warnings(self) -> list[str]:
        """What was left out, one line for each."""
        return left_out_lines(self, "not declared when the index was built")


def add_documents(
    sources: Sequence[str],
    location: str | Path,
    options: AddOptions | None = None,
    progress: Progress | None = None,
) -> AddReport:
    """Add the documents of ``sources`` to the index at ``location``.

    They are cut and kept as the index was built; a document with an id that is there is replaced.
    Readers see all of it or nothing. Raises IndexNotFoundError, IndexLockedError where a build or
    another update is at work, SourceError, ArgumentError for options that are not the index's,
    BuildError, EngineError; after a KeyboardInterrupt what was begun is undone.
    """
    shown = progress or SilentProgress()
    with open_update(location) as target:
        try:
            return _Addition(list(sources), location, options or AddOptions(), shown, target).run()
        finally:
            shown.end()


class _Addition:
    """One run of an addition."""

    def __init__(
        self,
        names: list[str],
        location: str | Path,
        options: AddOptions,
        progress: Progress,
        target: IndexUpdate,
    ) -> None:
        self._began = time.monotonic()
        self._where = str(location)
        self._options = options
        self._progress = progress
        self._target = target
        _check_options(target.manifest, options, self._where)
        self._metadata = MetadataReader(target.manifest.metadata)
        self._sources = open_sources(names, options.format, options.fields, self._metadata)
        _check_formats(target.manifest, self._sources, self._where)
        self._signature = self._source_signatures()
        self._ids: set[str] = set()
        self._replaced = self._taken = self._skipped = 0
        self._examples: list[str] = []
        self._chunks: list[Chunk] = []
        self._batch_ids: list[str] = []
        self._characters = 0

    def run(self) -> AddReport:
        with Interrupts() as self._interrupts:
            for source in self._sources[:SHOWN_EXAMPLES]:
                if source.recognised:
                    self._progress.note(f"{source.name}: recognised as {source.format}")
            record, done = settle(self._target, self._record(), self._progress)
            if done:
                return self._report(record, self._target.manifest, finished=True)
            self._before = with_placement(self._target)
            self._tally = Tally(self._before)
            record = replace(record, update=self._before.update + 1)
            return self._add(record)

    def _add(self, record: UpdateRecord) -> AddReport:
        first = self._target.first_shard()
        if first + len(self._sources) > 1 << SHARD_BITS:
            raise BuildError(
                f"The index has had {first:,} sources, and cannot take more.",
                where=self._where,
                allowed=f"{1 << SHARD_BITS:,} sources, those of all updates counted",
                do="Build it anew from all of its sources with --overwrite.",
            )
        self._target.begin(record)
        try:
            self._read_all(first)
            after = self._after()
            added = self._taken - self._replaced
            record = replace(record, added=added, replaced=self._replaced)
            self._target.publish(after, record)
        except BaseException:
            self._target.give_up()
            raise
        return self._report(record, after)

    def _record(self) -> UpdateRecord:
        options = self._options
        how = [options.format, dataclasses.astuple(options.fields), options.skip_bad_lines]
        command = f"arag-search index {' '.join(source.name for source in self._sources)} --add"
        return UpdateRecord(
            digest_of("add", self._signature, how, BuildOptions().signature()["the program"]),
            f"{command} --to {self._where}",
            self._target.manifest.update + 1,
        )

    # Reading

    def _read_all(self, first_shard: int) -> None:
        self._progress.begin("documents", sum(source.size for source in self._sources), 0)
        done = 0
        for shard, source in enumerate(self._sources, first_shard):
            documents = 0
            for number, entry in source.documents():
                if isinstance(entry, SourceError):
                    self._skip(entry)
                elif (problem := self._take(shard, documents, entry)) is not None:
                    self._skip(problem)
                else:
                    documents += 1
                if self._is_full() or number % _BATCH_RECORDS == 0:
                    self._write()
                    self._progress.update(done + source.bytes_read, self._taken)
                    self._interrupts.check()
            done += source.size
        self._write()
        self._interrupts.check()

    def _take(self, shard: int, number: int, document: Document) -> SourceError | None:
        """Cut and count a document, or say why it cannot be taken."""
        if document.id in self._ids:
            return SourceError(
                f'The id "{document.id}" was there before.', where=document.where, do=SKIP
            )
        chunks, tokens = cut(
            document, shard=shard, number=number, chunk_tokens=self._before.chunk_tokens
        )
        self._ids.add(document.id)
        self._batch_ids.append(document.id)
        self._tally.add(chunks, tokens)
        self._chunks += chunks
        self._characters += len(document.text)
        self._taken += 1
        return None

    def _skip(self, problem: SourceError) -> None:
        if not self._options.skip_bad_lines:
            raise problem
        self._skipped += 1
        if len(self._examples) < SHOWN_EXAMPLES:
            self._examples.append(f"{problem.where}: {problem.what}")

    def _is_full(self) -> bool:
        return len(self._chunks) >= _BATCH_CHUNKS or self._characters >= _BATCH_CHARACTERS

    def _write(self) -> None:
        """Write the batch, and delete what it replaces."""
        replaced: dict[str, None] = {}
        for chunk in existing_chunks(self._target, self._batch_ids):
            replaced[chunk.doc_id] = None
            self._tally.remove(chunk)
        self._replaced += len(replaced)
        self._target.remove(list(replaced))
        self._target.add(self._chunks)
        self._chunks, self._batch_ids, self._characters = [], [], 0

    # Finishing

    def _after(self) -> Manifest:
        """The manifest after the update, if it may be published."""
        if not self._taken:
            skipped = f"; bad records skipped: {self._skipped:,}" if self._skipped else ""
            raise SourceError(
                f"There is nothing to add: no document was found{skipped}.",
                where=", ".join(source.name for source in self._sources[:SHOWN_EXAMPLES]),
                do="Name a folder with .txt or .md files, or files of records.",
            )
        if self._source_signatures() != self._signature:
            raise SourceError(
                "A source was changed while it was read.",
                where=", ".join(source.name for source in self._sources[:SHOWN_EXAMPLES]),
                do="Run the same command again when nothing writes to it.",
            )
        before = self._before
        names = (*before.sources, *(source.name for source in self._sources))
        formats = {*before.source_format.split(", "), *(each.format for each in self._sources)}
        undeclared = dict(before.undeclared_metadata)
        for key, count in self._metadata.undeclared.items():
            undeclared[key] = undeclared.get(key, 0) + count
        return replace(
            self._tally.manifest(before),
            sources=tuple(dict.fromkeys(names)),
            source_format=", ".join(sorted(filter(None, formats))),
            undeclared_metadata=undeclared,
            skipped_lines=before.skipped_lines + self._skipped,
        )

    def _source_signatures(self) -> list[dict[str, object]]:
        return [source.signature() for source in self._sources]

    def _report(
        self, record: UpdateRecord, after: Manifest, *, finished: bool = False
    ) -> AddReport:
        seconds = time.monotonic() - self._began
        left_out: dict[str, int] = {}
        for source in self._sources:
            for ending, count in source.left_out.items():
                left_out[ending] = left_out.get(ending, 0) + count
        return AddReport(
            location=self._where,
            sources=tuple((source.name, source.format) for source in self._sources),
            added=record.added,
            replaced=record.replaced,
            finished_before=finished,
            seconds=round(seconds, 3),
            documents_per_second=round(self._taken / seconds, 1),
            skipped_lines=self._skipped,
            skipped_examples=tuple(self._examples),
            left_out=left_out,
            undeclared_metadata=self._metadata.undeclared,
            **held(after),
        )


def _check_formats(manifest: Manifest, sources: Sequence[Source], where: str) -> None:
    wrong = [
        source
        for source in sources
        if (source.format == "arag-chunks") is not manifest.already_chunked
    ]
    if wrong:
        held_kind = "chunks that came cut" if manifest.already_chunked else "documents"
        raise SourceError(
            f"The index holds {held_kind}, and these sources do not: "
            + ", ".join(f"{source.name} ({source.format})" for source in wrong[:SHOWN_EXAMPLES])
            + ".",
            where=where,
            allowed="arag-chunks" if manifest.already_chunked else "every format but arag-chunks",
            do="Build an index of their own for them.",
        )


def _check_options(manifest: Manifest, options: AddOptions, where: str) -> None:
    """Raise ArgumentError naming every option that is not as the index was built."""
    checks: tuple[tuple[str, object, object, Callable[[Any], str]], ...] = (
        ("--chunk-tokens", options.chunk_tokens, manifest.chunk_tokens, lambda n: f"{n:,}"),
        (
            "--bm25",
            options.bm25,
            (manifest.k1, manifest.b),
            lambda pair: ",".join(f"{each:g}" for each in pair),
        ),
        (
            "--metadata",
            None if options.metadata is None else dict(options.metadata),
            manifest.metadata,
            lambda fields: ",".join(f"{n}:{kind}" for n, kind in fields.items()) or "none",
        ),
        (
            "--without",
            None if options.without is None else tuple(sorted(set(options.without))),
            tuple(sorted(manifest.without)),
            lambda names: ",".join(names) or "none",
        ),
    )
    wrong = [
        f"{name} {show(given)} (the index has {show(has)})"
        for name, given, has, show in checks
        if given is not None and given != has
    ]
    if wrong:
        raise ArgumentError(
            f"The index was built with other options: {'; '.join(wrong)}.",
            where=where,
            allowed="with --add, the options of the index; they hold without being given",
            do="Leave them out, or build the index anew with --overwrite.",
        )
