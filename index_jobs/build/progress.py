"""How far a build is: share, documents, rate, what the server rejected, and the remaining time."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Protocol, TextIO

from arag_search.engines.write import BulkCounts
from arag_search.system.progress import PLAIN_INTERVAL_S, PlainLines, TerminalBar, duration

if TYPE_CHECKING:
    from rich.progress import ProgressColumn


class Progress(Protocol):
    """Is told how far a build is."""

    def begin(self, total_bytes: int, done_bytes: int) -> None:
        """The build starts; ``done_bytes`` were read in an earlier run."""
        ...

    def sent(self, counts: BulkCounts) -> None:
        """What was sent to a server so far; told before ``update``."""
        ...

    def update(self, read_bytes: int, documents: int) -> None:
        """So many bytes of the sources have been read and documents written, altogether."""
        ...

    def note(self, text: str) -> None:
        """Something that the user should know."""
        ...

    def end(self) -> None:
        """No more comes. May be called again."""
        ...


class SilentProgress:
    """Shows nothing."""

    def begin(self, total_bytes: int, done_bytes: int) -> None:
        pass

    def sent(self, counts: BulkCounts) -> None:
        pass

    def update(self, read_bytes: int, documents: int) -> None:
        pass

    def note(self, text: str) -> None:
        pass

    def end(self) -> None:
        pass


class Pace:
    """What can be said of work from how much is done, of how much, and the clock."""

    def __init__(self) -> None:
        self.begin(0, 0)

    def begin(self, total: int, done: int) -> None:
        """Work starts; ``done`` of it was done in an earlier run."""
        self._total, self._done = total, done
        self._began = time.monotonic()

    def share(self, done: int) -> float:
        """0 to 1."""
        return min(1.0, done / self._total) if self._total else 1.0

    def left(self, done: int) -> str:
        """The remaining time in words."""
        speed = (done - self._done) / self.seconds()
        return duration(max(0, self._total - done) / speed) if speed > 0 else "?"

    def seconds(self) -> float:
        """Since the work began."""
        return max(1e-3, time.monotonic() - self._began)


class _Rate(Pace):
    """What can be said of a build from bytes, documents and the clock."""

    def __init__(self) -> None:
        super().__init__()
        self._sent = BulkCounts()

    def begin(self, total: int, done: int) -> None:
        super().begin(total, done)
        self._first: int | None = None

    def sent(self, counts: BulkCounts) -> None:
        self._sent = counts

    def figures(self, read_bytes: int, documents: int) -> str:
        """Documents, megabytes and rate; what was sent again, if anything was."""
        if self._first is None:
            self._first = documents
        rate = (documents - self._first) / self.seconds()
        text = f"{documents:,} documents  {read_bytes / 1e6:,.1f} MB  {rate:,.0f}/s"
        if self._sent.rejected or self._sent.retries:
            text += f"  {self._sent.rejected:,} rejected, {self._sent.retries:,} retries"
        return text


class PlainProgress(PlainLines):
    """A line every ``interval_s`` seconds. See Progress."""

    def __init__(self, stream: TextIO, interval_s: float = PLAIN_INTERVAL_S) -> None:
        super().__init__(stream, interval_s)
        self._rate = _Rate()

    def begin(self, total_bytes: int, done_bytes: int) -> None:
        """See Progress."""
        self._rate.begin(total_bytes, done_bytes)
        self.is_due()

    def sent(self, counts: BulkCounts) -> None:
        """See Progress."""
        self._rate.sent(counts)

    def update(self, read_bytes: int, documents: int) -> None:
        """See Progress."""
        figures = self._rate.figures(read_bytes, documents)
        if self.is_due():
            share, left = self._rate.share(read_bytes), self._rate.left(read_bytes)
            self.note(f"{share:4.0%}  {figures}  {left} left")


class TerminalProgress(TerminalBar):
    """A bar with the same figures. See Progress."""

    def __init__(self) -> None:
        super().__init__()
        self._rate = _Rate()

    def begin(self, total_bytes: int, done_bytes: int) -> None:
        """See Progress."""
        self._rate.begin(total_bytes, done_bytes)
        self.open(share_columns(), max(1, total_bytes), done_bytes)

    def sent(self, counts: BulkCounts) -> None:
        """See Progress."""
        self._rate.sent(counts)

    def update(self, read_bytes: int, documents: int) -> None:
        """See Progress."""
        figures = self._rate.figures(read_bytes, documents)
        self.show(read_bytes, figures, self._rate.left(read_bytes))


def share_columns() -> list[ProgressColumn]:
    """The columns of a bar: share, bar, figures, time left."""
    from rich.progress import BarColumn, TextColumn

    share, figures, left = map(
        TextColumn,
        ("{task.percentage:3.0f}%", "{task.fields[figures]}", "{task.fields[left]} left"),
    )
    return [share, BarColumn(), figures, left]


def open_progress() -> Progress:
    """What suits stderr: a bar on a terminal, else plain lines."""
    return TerminalProgress() if sys.stderr.isatty() else PlainProgress(sys.stderr)
