"""Building an index: sources are read, cut, counted and written, with checkpoints on the way."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from arag_search.errors import (
    AragError,
    BuildError,
    EngineError,
    IndexDamagedError,
    SourceError,
    UnavailableError,
    WorkerLostError,
)
from arag_search.manifest import Manifest
from arag_search.system.durable import FULL_DISK
from arag_search.system.interrupts import Interrupts
from arag_search.system.progress import Progress, SilentProgress
from index_jobs.build.options import BuildOptions
from index_jobs.build.report import CHECKPOINT_VERSION, BuildReport, BuildState, left_out_words
from index_jobs.build.targets import BuildTarget, IndexWriter, open_target
from index_jobs.cutting.packing import pack
from index_jobs.sources.duplicates import SeenIds
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.opening import Source, are_already_chunked, open_sources
from index_jobs.sources.reading import SHOWN_EXAMPLES, CorpusReader
from index_jobs.workers.pool import default_workers, open_packing

_STATE = "build"
_FULL_REASONS = ("No space left", "File too large", "quota exceeded")
_SHARE_OF_CHECKPOINTS = 20  # a checkpoint takes at most a twentieth of the time


def build_index(
    sources: Sequence[str],
    location: str | Path,
    options: BuildOptions,
    progress: Progress | None = None,
) -> BuildReport:
    """Build an index from ``sources`` (folders and files) at ``location``, a folder or an address.

    The index appears, or replaces the one there, when it is finished. A build that was stopped by
    whatever goes on from its last checkpoint where sources and options are the same; else it begins
    anew. Raises IndexExistsError, IndexLockedError, SourceError, BuildError, EngineError,
    ArgumentError for an address that is none or options that are not for this location; after a
    KeyboardInterrupt a checkpoint is written and the interrupt raised again.
    """

    def opened(metadata: MetadataReader) -> list[Source]:
        return open_sources(list(sources), options.format, options.fields, metadata)

    return build_from(opened, location, options, progress)


def build_from(
    opened: Callable[[MetadataReader], list[Source]],
    location: str | Path,
    options: BuildOptions,
    progress: Progress | None = None,
) -> BuildReport:
    """Build an index from the sources that ``opened`` gives; see ``build_index``."""
    shown = progress or SilentProgress()
    with open_target(location, options, shown.note) as target:
        try:
            return _Build(opened, location, options, shown, target).run()
        finally:
            shown.end()


class _Build:
    """One run of a build. Between batches, ``_state`` is what the writer has."""

    def __init__(
        self,
        opened: Callable[[MetadataReader], list[Source]],
        location: str | Path,
        options: BuildOptions,
        progress: Progress,
        target: BuildTarget,
    ) -> None:
        self._began = time.monotonic()
        self._location = location
        self._options = options
        self._progress = progress
        self._target = target
        self._metadata = MetadataReader(options.metadata)
        self._sources = opened(self._metadata)
        self._already_chunked = are_already_chunked(self._sources)
        self._workers = (
            default_workers(sum(source.size for source in self._sources))
            if options.workers is None
            else options.workers
        )
        self._signature = {
            **options.signature(),
            "the checkpoint format": CHECKPOINT_VERSION,
            "the sources": self._source_signatures(),
        }
        self._state = BuildState()
        self._ids = SeenIds()
        self._seconds_before = 0.0
        self._continued = 0
        self._kept = 0

    def run(self) -> BuildReport:
        with Interrupts() as self._interrupts, room(str(self._location), self._outlook):
            self._open()
            try:
                self._write_all()
                self._finish_writing()
            except KeyboardInterrupt:
                self._interrupted()
                raise
            except WorkerLostError as error:
                self._stop_here()
                error.do += f" Run the same command again: {self._outlook()}."
                raise
            except BaseException:
                self._give_up()
                raise
            self._target.publish(self._generation)
        return self._report()

    # Opening

    def _open(self) -> None:
        """Find the checkpoint to go on from, or begin."""
        for source in self._sources[:SHOWN_EXAMPLES]:
            if source.recognised:
                self._progress.note(f"{source.name}: recognised as {source.format}")
        generation, resumed, why = self._target.begin(self._signature)
        if resumed:
            try:
                self._writer = self._target.open_writer(generation, resume=True)
            except IndexDamagedError:
                self._target.discard(generation)
                generation, resumed, _ = self._target.begin(self._signature)
                why = "what there was of it is damaged"
        if not resumed:
            self._writer = self._new_writer(generation)
        elif _STATE in self._writer.checkpoint:
            why = self._go_on(self._writer.checkpoint[_STATE], why)
        else:
            resumed, why = False, "it was stopped before its first checkpoint"
        self._generation, self._why = generation, why
        if why:
            self._progress.note(f"{'Continuing' if resumed else 'Beginning anew'}: {why}.")
        done = sum(source.size for source in self._sources[: self._state.shard])
        self._progress.begin("documents", sum(source.size for source in self._sources), done)

    def _new_writer(self, generation: str) -> IndexWriter:
        try:
            return self._target.open_writer(generation, resume=False)
        except BaseException:
            self._target.discard(generation)
            raise

    def _go_on(self, state: str, why: str) -> str:
        """Take up what an earlier run has counted; why, in words."""
        self._state = BuildState.from_json(state)
        for identifier in self._writer.document_ids():
            self._ids.add(identifier)
        self._seconds_before = self._state.seconds
        self._continued = self._kept = self._state.documents
        return f"after {self._continued:,} documents, {why}"

    def _source_signatures(self) -> list[dict[str, object]]:
        return [source.signature() for source in self._sources]

    # Writing

    def _write_all(self) -> None:
        """Read, pack and write the corpus."""
        self._next_checkpoint = time.monotonic() + self._options.checkpoint_s
        work = partial(pack, packer=self._target.packer, chunk_tokens=self._options.chunk_tokens)
        with open_packing(self._workers, work) as self._packing:
            reader = CorpusReader(
                self._sources,
                self._metadata,
                self._state.position,
                self._ids,
                self._is_taken,
                skip_bad_lines=self._options.skip_bad_lines,
            )
            try:
                for batch in reader.batches():
                    self._packing.submit(batch)
                    while self._packing.is_ready:
                        self._write_next()
            except SourceError:
                self._write_rest()  # what is wrong with a document before that record comes first
                raise
            self._write_rest()

    def _is_taken(self, doc_id: str) -> bool:
        """Whether a document of this id is being packed or was written."""
        under_way = any(batch.holds(doc_id) for batch in self._packing.under_way)
        return under_way or self._writer.has_document(doc_id)

    def _write_rest(self) -> None:
        while self._packing.under_way:
            self._write_next()

    def _write_next(self) -> None:
        """Write the next batch. Before and after it, the state is what the writer has."""
        batch, packed = self._packing.take()
        self._target.add(packed.packed)
        self._state.take(packed.counts, batch.position)
        details = f"{batch.read_bytes / 1e6:,.1f} MB"
        if (sent := self._target.sent).rejected or sent.retries:
            details += f"  {sent.rejected:,} rejected, {sent.retries:,} retries"
        self._progress.update(batch.read_bytes, self._state.documents, details)
        self._interrupts.check()
        if time.monotonic() >= self._next_checkpoint:
            self._checkpoint()

    def _checkpoint(self) -> None:
        began = time.monotonic()
        self._commit()
        now = time.monotonic()
        wait_s = max(self._options.checkpoint_s, (now - began) * _SHARE_OF_CHECKPOINTS)
        self._next_checkpoint = now + (wait_s if self._options.checkpoint_s else 0)

    def _commit(self) -> None:
        self._writer.commit(self._checkpoint_data())
        self._kept = self._state.documents

    def _checkpoint_data(self) -> dict[str, str]:
        self._state.seconds = self._seconds_before + time.monotonic() - self._began
        return {_STATE: self._state.to_json()}

    def _finish_writing(self) -> None:
        if not self._state.documents:
            raise self._empty()
        if self._source_signatures() != self._signature["the sources"]:
            raise SourceError(
                "A source was changed while it was read.",
                where=self._names(),
                do="Run the same command again when nothing writes to it.",
            )
        self._target.finish(self._manifest(), self._checkpoint_data())
        self._kept = self._state.documents
        self._verify()

    def _verify(self) -> None:
        """Compare counts with those of what was built, before anybody else can see it."""
        chunks, found = self._target.counts(self._generation)
        sentences = self._state.sentences if found is None else found
        if (chunks, sentences) != (self._state.chunks, self._state.sentences):
            self._kept = 0
            raise BuildError(
                f"The index holds {chunks:,} chunks and {sentences:,} sentences, but"
                f" {self._state.chunks:,} and {self._state.sentences:,} were written.",
                where=str(self._location),
                do="Run the same command again: it begins anew.",
            )

    def _empty(self) -> SourceError:
        left_out = self._left_out()
        found = f"; left out: {left_out_words(left_out)}" if left_out else ""
        if self._state.skipped:
            found += f"; bad records skipped: {self._state.skipped:,}"
        return SourceError(
            f"The corpus is empty: no document was found{found}.",
            where=self._names(),
            do="Name a folder with .txt or .md files, or files of records.",
        )

    def _names(self) -> str:
        names = [source.name for source in self._sources[:SHOWN_EXAMPLES]]
        return ", ".join(names) + (", ..." if len(self._sources) > SHOWN_EXAMPLES else "")

    def _left_out(self) -> dict[str, int]:
        left_out: dict[str, int] = {}
        for source in self._sources:
            for ending, count in source.left_out.items():
                left_out[ending] = left_out.get(ending, 0) + count
        return left_out

    def _manifest(self) -> Manifest:
        state, options = self._state, self._options
        return Manifest(
            engine=self._target.engine,
            engine_version=self._target.engine_version,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            sources=tuple(source.name for source in self._sources),
            source_format=", ".join(sorted({source.format for source in self._sources})),
            documents=state.documents,
            chunks=state.chunks,
            sentences=state.sentences,
            tokens=state.tokens,
            title_characters=state.title_characters,
            chunk_tokens=options.chunk_tokens,
            already_chunked=self._already_chunked,
            k1=options.k1,
            b=options.b,
            metadata=dict(options.metadata),
            undeclared_metadata=state.undeclared,
            without=tuple(options.without),
            skipped_lines=state.skipped,
            fingerprint=state.fingerprint,
            placement=state.placement,
        )

    # Stopping

    def _outlook(self) -> str:
        if self._kept:
            return f"it continues after {self._kept:,} documents"
        return "it begins anew"

    def _interrupted(self) -> None:
        """Write a checkpoint, if that is possible, and say how to go on."""
        if self._interrupts.between_batches:
            self._stop_here()
        else:
            self._give_up()
        self._progress.note(f"Stopped. Run the same command again: {self._outlook()}.")

    def _stop_here(self) -> None:
        """Write a checkpoint and close; the state must be what the writer has."""
        try:
            self._commit()
        except AragError as error:
            self._progress.note(f"No checkpoint could be written: {error.what}")
        finally:
            self._give_up()

    def _give_up(self) -> None:
        self._writer.abort()
        if not self._kept:
            try:
                self._target.discard(self._generation)
            except UnavailableError as error:  # what stopped the build is to be told, not this
                self._progress.note(f"What was begun is still there: {error.what}")

    # Reporting

    def _report(self) -> BuildReport:
        state, sent = self._state, self._target.sent
        seconds = time.monotonic() - self._began
        return BuildReport(
            location=str(self._location),
            generation=self._generation,
            sources=tuple((source.name, source.format) for source in self._sources),
            documents=state.documents,
            chunks=state.chunks,
            sentences=state.sentences,
            tokens=state.tokens,
            fingerprint=state.fingerprint,
            seconds=round(self._seconds_before + seconds, 3),
            run_seconds=round(seconds, 3),
            documents_per_second=round((state.documents - self._continued) / seconds, 1),
            continued=self._continued,
            why=self._why,
            skipped_lines=state.skipped,
            skipped_examples=tuple(state.skipped_examples),
            left_out=self._left_out(),
            undeclared_metadata=state.undeclared,
            workers=self._workers,
            rejected=sent.rejected,
            retries=sent.retries,
            bulk_bytes=sent.bytes,
            notes=self._notes(),
        )

    def _notes(self) -> tuple[str, ...]:
        return tuple(
            f"declared with --metadata, but in no record: {name}"
            for name in self._options.metadata
            if name not in self._state.seen
        )


@contextmanager
def room(where: str, outlook: Callable[[], str], what: str = "index") -> Generator[None]:
    """Turn a full disk, a quota or a file-size limit into a BuildError; ``what`` is written."""
    try:
        yield
    except (OSError, BuildError, EngineError) as error:
        reason = _full_reason(error)
        if reason is None and not isinstance(error, OSError):
            raise
        if reason is None:
            raise BuildError(f"The {what} cannot be written ({error}).", where=where) from error
        raise BuildError(
            f"There is no room to write the {what} ({reason}).",
            where=where,
            do=f"Make room and run the same command again: {outlook()}.",
        ) from error


def _full_reason(error: Exception) -> str | None:
    if isinstance(error, OSError):
        return error.strerror if error.errno in FULL_DISK else None
    return next((reason for reason in _FULL_REASONS if reason in str(error)), None)
