"""Showing how far long work is: a bar on a terminal, plain lines elsewhere, always on stderr."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, TextIO

from arag_search.system.terminal import drawing_stream, visible

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import ProgressColumn, TaskID

PLAIN_INTERVAL_S = 5.0


class PlainLines:
    """A line every ``interval_s`` seconds, and notes at once."""

    def __init__(self, stream: TextIO, interval_s: float = PLAIN_INTERVAL_S) -> None:
        self._stream = stream
        self._interval_s = interval_s
        self._shown = time.monotonic()

    def is_due(self) -> bool:
        """Whether a line should be shown now; if so, the next is due ``interval_s`` later."""
        now = time.monotonic()
        if now - self._shown < self._interval_s:
            return False
        self._shown = now
        return True

    def note(self, text: str) -> None:
        """A line at once."""
        self._stream.write(text + "\n")
        self._stream.flush()

    def end(self) -> None:
        """No more comes. May be called again."""


class TerminalBar:
    """One bar with figures beside it, and notes above it."""

    def __init__(self) -> None:
        self._progress: RichProgress | None = None
        self._task: TaskID | None = None

    @property
    def is_shown(self) -> bool:
        """Whether there is a bar."""
        return self._progress is not None

    def open(self, columns: list[ProgressColumn], total: int, done: int = 0) -> None:
        """Show a bar; columns may name ``task.fields[figures]`` and ``task.fields[left]``."""
        from rich.console import Console
        from rich.progress import Progress

        self._progress = Progress(
            *columns,
            console=Console(file=drawing_stream()),
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._progress.add_task("", total=total, completed=done, figures="", left="?")
        self._progress.start()

    def show(self, done: int, figures: str, left: str) -> None:
        """Move the bar, if there is one."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=done, figures=figures, left=left)

    def note(self, text: str) -> None:
        """A line above the bar."""
        shown = visible(text)
        if self._progress is not None:
            self._progress.console.print(shown, markup=False, highlight=False, soft_wrap=True)
        else:
            sys.stderr.write(shown + "\n")

    def end(self) -> None:
        """Take the bar away. May be called again."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


def duration(seconds: float) -> str:
    """A time in words: ``45 s``, ``3 min 20 s``, ``2 h 5 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
