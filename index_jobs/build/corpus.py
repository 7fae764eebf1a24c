"""The sources of a job as a whole: their names, formats and size, and whether they have changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, islice

from arag_search.errors import SourceError
from index_jobs.build.report import left_out_words
from index_jobs.sources.files.folder import SHOWN_LARGE_FILES
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.reading import SHOWN_EXAMPLES
from index_jobs.sources.source import Source
from index_jobs.workers.pool import default_workers

NO_DOCUMENTS = "Name a folder with files that can be read, or files of records; see --include."
"""What to do if a corpus has no document."""


class Corpus:
    """The sources of a build or an update, as they were when they were opened.

    ``signature`` changes when a source does. ``size`` is in bytes on disk.
    """

    def __init__(self, sources: Sequence[Source], metadata: MetadataReader) -> None:
        """``metadata`` is the reader with which the sources were opened."""
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
        return summed(source.left_out for source in self.sources)

    def large_files(self) -> tuple[str, ...]:
        """Return the first files that are left out because they are too large."""
        return first_large(source.large_files for source in self.sources)

    def workers(self, wanted: int | None) -> int:
        """Return the number of worker processes; ``wanted`` None chooses by the size."""
        return default_workers(self.size) if wanted is None else wanted

    def note_formats(self, note: Callable[[str], None]) -> None:
        """Report the first formats that were detected."""
        for source in self.sources[:SHOWN_EXAMPLES]:
            if source.recognised:
                note(recognition(source))

    def check_unchanged(self) -> None:
        """Raise SourceError if a source has changed since it was opened."""
        if self._signatures() != self.signature:
            raise SourceError(
                "A source changed while it was being read.",
                where=self.shown_names,
                do="Run the same command again once nothing is writing to it.",
            )

    def no_documents(self, what: str, skipped: int, skipped_files: int = 0) -> SourceError:
        """Return the error for a corpus without a document; ``what`` begins its message."""
        left_out = left_out_words(self.left_out())
        details = f"; left out: {left_out}" if left_out else ""
        if skipped:
            details += f"; bad records skipped: {skipped:,}"
        if skipped_files:
            details += f"; bad files skipped: {skipped_files:,}"
        return SourceError(
            f"{what}: no document was found{details}.",
            where=self.shown_names,
            do=NO_DOCUMENTS,
        )

    def _signatures(self) -> list[dict[str, object]]:
        return [source.signature() for source in self.sources]


def first_large(names: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Return the first names of large files of several sources."""
    return tuple(islice(chain.from_iterable(names), SHOWN_LARGE_FILES))


def recognition(source: Source) -> str:
    """Return the sentence that reports the format that was detected for a source."""
    return f"{source.name}: recognised as {source.format}"


def summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Add up counts by name, in the order in which the names first occur."""
    total: Counter[str] = Counter()
    for part in counts:
        total.update(part)
    return dict(total)
