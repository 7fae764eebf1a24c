"""Showing how far a build is: a bar on a terminal, plain lines elsewhere, always on stderr."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Protocol, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

PLAIN_INTERVAL_S = 5.0


class Progress(Protocol):
    """Is told how far a build is."""

    def begin(self, total_bytes: int, done_bytes: int) -> None:
        """The build starts; ``done_bytes`` were read in an earlier run."""
        ...

    def update(self, read_bytes: int, documents: int) -> None:
        """So many bytes of the sources have been read and documents taken, altogether."""
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

    def update(self, read_bytes: int, documents: int) -> None:
        pass

    def note(self, text: str) -> None:
        pass

    def end(self) -> None:
        pass


class PlainProgress:
    """A line every ``interval_s`` seconds: share, documents, rate and remaining time."""

    def __init__(self, stream: TextIO, interval_s: float = PLAIN_INTERVAL_S) -> None:
        self._stream = stream
        self._interval_s = interval_s
        self._total = 0
        self._done = 0
        self._began = self._shown = time.monotonic()
        self._first: int | None = None

    def begin(self, total_bytes: int, done_bytes: int) -> None:
        self._total, self._done = total_bytes, done_bytes
        self._began = self._shown = time.monotonic()

    def update(self, read_bytes: int, documents: int) -> None:
        now = time.monotonic()
        if self._first is None:
            self._first = documents
        if now - self._shown < self._interval_s:
            return
        self._shown = now
        seconds = now - self._began
        rate = (documents - self._first) / seconds
        share = min(1.0, read_bytes / self._total) if self._total else 1.0
        self.note(
            f"{share:4.0%}  {documents:,} documents  {rate:,.0f}/s"
            f"  {self._remaining(read_bytes, seconds)} left"
        )

    def _remaining(self, read_bytes: int, seconds: float) -> str:
        speed = (read_bytes - self._done) / seconds
        return duration((self._total - read_bytes) / speed) if speed > 0 else "?"

    def note(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()

    def end(self) -> None:
        pass


class TerminalProgress:
    """A bar with the rate and the remaining time."""

    def __init__(self) -> None:
        self._progress: RichProgress | None = None
        self._task: TaskID | None = None

    def begin(self, total_bytes: int, done_bytes: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._progress = Progress(
            TextColumn("{task.percentage:3.0f}%"),
            BarColumn(),
            TextColumn("{task.fields[documents]:,} documents"),
            TextColumn("{task.fields[rate]:,.0f}/s"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._progress.add_task(
            "", total=max(1, total_bytes), completed=done_bytes, documents=0, rate=0.0
        )
        self._progress.start()
        self._began = time.monotonic()
        self._first: int | None = None

    def update(self, read_bytes: int, documents: int) -> None:
        if self._progress is None or self._task is None:
            return
        if self._first is None:
            self._first = documents
        seconds = max(1e-3, time.monotonic() - self._began)
        rate = (documents - self._first) / seconds
        self._progress.update(self._task, completed=read_bytes, documents=documents, rate=rate)

    def note(self, text: str) -> None:
        if self._progress is not None:
            self._progress.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            sys.stderr.write(text + "\n")

    def end(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


def open_progress() -> Progress:
    """What suits stderr: a bar on a terminal, else plain lines."""
    return TerminalProgress() if sys.stderr.isatty() else PlainProgress(sys.stderr)


def duration(seconds: float) -> str:
    """A time in words: ``45 s``, ``3 min 20 s``, ``2 h 5 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
