"""The sources of a job, and what is said of a job that ended early."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any

from arag_search.errors import BuildError, EngineError, SourceError, WorkerLostError
from arag_search.system.durable import FULL_DISK
from index_jobs.build.report import left_out_kinds, unread_lines
from index_jobs.sources.folders.selection import SHOWN_LARGE_FILES
from index_jobs.sources.lines.records import RAISED
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.source import SHOWN_EXAMPLES, Batch, Position, Source
from index_jobs.workers.executor import Executor
from index_jobs.workers.pool import default_workers


class Corpus:
    """The sources of a build or an update, as they were when they were opened.

    ``signature`` changes when a source does. ``size`` is in bytes on disk.
    """

    def __init__(
        self, sources: Sequence[Source], metadata: MetadataReader, chunk_tokens: int
    ) -> None:
        """``metadata`` is the reader with which the sources were opened. It gets the fields for
        their front matter. Long texts are cut into passages of ``chunk_tokens``."""
        for source in sources:
            source.chunk_tokens = chunk_tokens
        metadata.expect_front_matter(
            matter for source in sources for matter in source.front_matter()
        )
        self.sources = sources
        self.metadata = metadata
        self.signature = self._signatures()
        self.size = sum(source.size for source in sources)

    @property
    def formats(self) -> tuple[tuple[str, str], ...]:
        """The name and the format of each source."""
        return tuple((source.name, source.format) for source in self.sources)

    @property
    def identities(self) -> tuple[str, ...]:
        """The real path of each source, by which later updates recognise it."""
        return tuple(str(signature["source"]) for signature in self.signature)

    @property
    def shown_names(self) -> str:
        """The names of the first sources, for messages."""
        names = [source.name for source in self.sources[:SHOWN_EXAMPLES]]
        return ", ".join(names) + (", ..." if len(self.sources) > SHOWN_EXAMPLES else "")

    def left_out(self) -> dict[str, int]:
        """Return what all sources leave out together. See Source."""
        return dict(sum((Counter(source.left_out) for source in self.sources), Counter[str]()))

    def notes(self) -> Iterator[str]:
        """Yield what looks unintended in sources as a whole."""
        code = sum((Counter(source.code) for source in self.sources), Counter[str]())
        if 2 * code.total() > self.size:
            (ending, _), *_ = code.most_common(1)
            yield (
                f"more than half is code: search the rest with NOT type:{ending[1:]}, or leave it"
                f" out with `exclude` '*{ending}'"
            )

    def reading(self, position: Position) -> dict[str, Any]:
        """Return the fields of a SourcesReport."""
        large_files = chain.from_iterable(source.large_files for source in self.sources)
        return {
            "left_out": self.left_out(),
            "undeclared_metadata": position.undeclared,
            "skipped_lines": position.skipped,
            "skipped_examples": tuple(position.skipped_examples),
            "skipped_files": position.skipped_files,
            "skipped_file_examples": tuple(position.skipped_file_examples),
            "large_files": tuple(islice(large_files, SHOWN_LARGE_FILES)),
            "unread": position.unread,
            "front_fields": self.metadata.new_fields,
        }

    def workers(self, wanted: int | None) -> int:
        """Return the number of worker processes; ``wanted`` None chooses by the size. As many
        processes convert files, and at least one."""
        count = default_workers(self.size) if wanted is None else wanted
        for source in self.sources:
            source.at_once = max(1, count)
        return count

    def note_formats(self, note: Callable[[str], None]) -> None:
        """Report the first formats that were detected."""
        for source in self.sources[:SHOWN_EXAMPLES]:
            if source.recognised:
                note(f"{source.name}: recognised as {source.format}")

    def check_unchanged(self) -> None:
        """Raise SourceError if a source has changed since it was opened."""
        if self._signatures() != self.signature:
            raise SourceError(
                "A source changed while it was being read.",
                where=self.shown_names,
                do="Run the same command again once nothing is writing to it.",
            )

    def no_documents(self, what: str, position: Position) -> SourceError:
        """Return the error for a corpus without a document; ``what`` begins its message."""
        left_out = "; ".join(left_out_kinds(self.left_out()))
        details = f"; left out: {left_out}" if left_out else ""
        details += "".join(f"; {line}" for line in unread_lines(position.unread))
        if position.skipped:
            details += f"; bad records skipped: {position.skipped:,}"
        if position.skipped_files:
            details += f"; bad files skipped: {position.skipped_files:,}"
        return SourceError(
            f"{what}: no document was found{details}.",
            where=self.shown_names,
            do="Name a folder with files that can be read, or files of records; see `include`.",
        )

    def _signatures(self) -> list[dict[str, object]]:
        return [source.signature() for source in self.sources]


def is_being_packed(executor: Executor[Batch, Any], doc_id: str) -> bool:
    """Return whether a document with this id has been read, and is not yet written."""
    return any(batch.holds(doc_id) for batch in executor.under_way)


_FULL_REASONS = ("No space left", "File too large", "quota exceeded")


@contextmanager
def explained_stops(
    where: str, next_run: Callable[[], str], note: Callable[[str], None], what: str = "index"
) -> Generator[None]:
    """Say how to resume after Ctrl-C and after the loss of a worker. Turn a full disk, a quota or a
    file-size limit into a BuildError.

    ``next_run`` says what running the same command again does, such as "it starts over"; ``what``
    names the files that are written.
    """
    try:
        yield
    except KeyboardInterrupt:
        note(f"Stopped. Run the same command again: {next_run()}.")
        raise
    except WorkerLostError as error:
        error.do += f" Run the same command again: {next_run()}."
        raise
    except (OSError, BuildError, EngineError) as error:
        if any(note.startswith(RAISED) for note in getattr(error, "__notes__", ())):
            raise
        if isinstance(error, OSError):
            reason = error.strerror if error.errno in FULL_DISK else None
        else:
            reason = next((reason for reason in _FULL_REASONS if reason in str(error)), None)
        if reason is not None:
            raise BuildError(
                f"There is no space left to write the {what} ({reason}).",
                where=where,
                do=f"Free some space and run the same command again: {next_run()}.",
            ) from error
        if isinstance(error, OSError):
            raise BuildError(f"The {what} cannot be written ({error}).", where=where) from error
        raise
