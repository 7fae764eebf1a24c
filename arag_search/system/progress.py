"""The progress of long work: a bar on a terminal, plain lines elsewhere, always on stderr.

A job counts units of work and things. It knows the number of units, such as bytes of the sources or
questions. It names the things that a reader wants to see counted, such as documents. Shares and
times left come from the units, rates from the count.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from arag_search.system.terminal import drawing_stream, visible

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

PLAIN_INTERVAL_S = 5.0


class Progress:
    """A display of the progress of long work, used from one thread; notes may come from others.
    This one shows nothing; others override what they show."""

    def begin(
        self, counted: str, total: int | None, done: int = 0, count: int | None = None
    ) -> None:
        """Begin work of ``total`` units (None: unknown), ``done`` of which an earlier run has done.

        ``counted`` names what ``update`` counts ("documents"). An earlier run has counted ``count``
        of them; if it is None, the first update gives this number.
        """

    def update(self, done: int, count: int, details: str = "") -> None:
        """Show that ``done`` units are done and ``count`` things counted, including earlier runs.
        ``details`` are more figures in words."""

    def read(self, read_bytes: int, count: int, details: str = "") -> None:
        """Show how much of the sources is read, where the units are their bytes."""
        figures = f"{read_bytes / 1e6:,.1f} MB"
        self.update(read_bytes, count, f"{figures}  {details}" if details else figures)

    def stage(self, name: str, done: int, total: int) -> None:
        """Show how many steps of a stage, such as ``training sentence``, are done."""

    def note(self, text: str) -> None:
        """Show a line that the user should know, at once."""

    def end(self) -> None:
        """End the display. May be called again."""


class _Pace:
    """Share, rate and remaining time of work, from its units, its count and the clock."""

    def __init__(
        self, counted: str = "", total: int | None = 0, done: int = 0, count: int | None = None
    ) -> None:
        self._counted = counted
        self._total = total
        self._first_done = done
        self._first_count = count
        self._began = time.monotonic()

    def seconds(self) -> float:
        """Return the seconds since the work began."""
        return max(1e-3, time.monotonic() - self._began)

    def share(self, done: int) -> str:
        """Return the share that is done in percent; empty if the total is unknown."""
        if self._total is None:
            return ""
        return f"{min(1.0, done / self._total) if self._total else 1.0:4.0%}"

    def left(self, done: int) -> str:
        """Return the remaining time in words; ``?`` if it is unknown."""
        if self._total is None:
            return "?"
        speed = (done - self._first_done) / self.seconds()
        return duration(max(0, self._total - done) / speed) if speed > 0 else "?"

    def figures(self, count: int, details: str) -> str:
        """Return the count, its rate and the details in words."""
        if self._first_count is None:
            self._first_count = count
        rate = (count - self._first_count) / self.seconds()
        per = f"{rate:,.0f}/s" if rate >= 1 or not rate else f"{rate * 60:,.1f}/min"
        return "  ".join(filter(None, (f"{count:,} {self._counted}", per, details)))


class PlainProgress(Progress):
    """A line every ``interval_s`` seconds, and one for each stage."""

    def __init__(self, stream: TextIO, interval_s: float = PLAIN_INTERVAL_S) -> None:
        self._stream = stream
        self._interval_s = interval_s
        self._shown = time.monotonic()
        self._pace = _Pace()
        self._stage = ""

    def begin(
        self, counted: str, total: int | None, done: int = 0, count: int | None = None
    ) -> None:
        self._pace = _Pace(counted, total, done, count)
        self._is_due()

    def update(self, done: int, count: int, details: str = "") -> None:
        figures = self._pace.figures(count, details)
        if self._is_due():
            share, left = self._pace.share(done), self._pace.left(done)
            self.note(f"{share}  {figures}  {left} left" if share else figures)

    def stage(self, name: str, done: int, total: int) -> None:
        is_new = name != self._stage and self._pace.seconds() >= self._interval_s
        if self._is_due() or is_new:  # short work ends without a line
            self._stage = name
            self.note(_steps(name, done, total))

    def note(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()

    def _is_due(self) -> bool:
        """Tell whether a line is due now; if so, the next is due ``interval_s`` later."""
        now = time.monotonic()
        if now - self._shown < self._interval_s:
            return False
        self._shown = now
        return True


class TerminalProgress(Progress):
    """A bar on stderr with the same figures beside it, and notes above it."""

    def __init__(self) -> None:
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None
        self._pace = _Pace()

    def begin(
        self, counted: str, total: int | None, done: int = 0, count: int | None = None
    ) -> None:
        self._pace = _Pace(counted, total, done, count)
        if self._bar is None:
            self._open()
        self._show(done, total, "", "?")

    def update(self, done: int, count: int, details: str = "") -> None:
        self._show(done, None, self._pace.figures(count, details), self._pace.left(done))

    def stage(self, name: str, done: int, total: int) -> None:
        self._show(done, total, _steps(name, done, total), "?")

    def note(self, text: str) -> None:
        shown = visible(text)
        if self._bar is not None:
            self._bar.console.print(shown, markup=False, highlight=False, soft_wrap=True)
        else:
            sys.stderr.write(shown + "\n")

    def end(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = self._task = None

    def _show(self, done: int, total: int | None, figures: str, left: str) -> None:
        """Move the bar, which appears with the first total."""
        if self._bar is None and total is not None:
            self._open()
        if self._bar is not None and self._task is not None:
            most = None if total is None else max(1, total)
            self._bar.update(self._task, completed=done, total=most, figures=figures, left=left)

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._bar = Progress(
            TextColumn("{task.percentage:3.0f}%"),
            BarColumn(),
            TextColumn("{task.fields[figures]}"),
            TextColumn("{task.fields[left]} left"),
            console=Console(file=drawing_stream()),
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._bar.add_task("", total=None, figures="", left="?")
        self._bar.start()


@dataclass(frozen=True, slots=True)
class ProgressEvent:
    """What happened in long work.

    ``done`` of ``total`` units are done (bytes of the sources, or steps of the stage ``name``).
    ``count`` things of the kind ``name`` are counted ("documents"). ``text`` is a note, or more
    figures in words. All but one are empty for a note; ``total`` is None if it is not known.
    """

    name: str = ""
    done: int = 0
    total: int | None = None
    count: int = 0
    text: str = ""


class CallbackProgress(Progress):
    """A progress that calls a function with each ProgressEvent, often several times a second."""

    def __init__(self, callback: Callable[[ProgressEvent], object]) -> None:
        self._call = callback
        self._name = ""
        self._total: int | None = None

    def begin(
        self, counted: str, total: int | None, done: int = 0, count: int | None = None
    ) -> None:
        self._name, self._total = counted, total
        self._call(ProgressEvent(counted, done, total, count or 0))

    def update(self, done: int, count: int, details: str = "") -> None:
        self._call(ProgressEvent(self._name, done, self._total, count, details))

    def stage(self, name: str, done: int, total: int) -> None:
        self._call(ProgressEvent(name, done, total))

    def note(self, text: str) -> None:
        self._call(ProgressEvent(text=text))


def open_progress() -> Progress:
    """Open the display that suits stderr: a bar on a terminal, else plain lines."""
    return TerminalProgress() if sys.stderr.isatty() else PlainProgress(sys.stderr)


def counted(count: int, noun: str, plural: str = "") -> str:
    """Format a count with its noun: ``1 chunk``, ``2,000 chunks``. The plural has an s, unless it
    is given."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {plural or f'{noun}s'}"


def duration(seconds: float) -> str:
    """Return a time in words: ``45 s``, ``3 min 20 s``, ``2 h 5 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _steps(name: str, done: int, total: int) -> str:
    return f"{name}: {done:,} of {total:,}"
