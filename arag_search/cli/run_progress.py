"""Showing how far a run is: a bar on a terminal, plain lines elsewhere, always on stderr."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, TextIO

from arag_search.agent.run import RunProgress, Tally
from index_jobs.progress import PLAIN_INTERVAL_S, duration

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID


def tally_text(tally: Tally) -> str:
    """What was answered and failed, tokens, and cost where it is known."""
    tokens = tally.prompt_tokens + tally.completion_tokens
    cost = "" if tally.cost_usd is None else f", ${tally.cost_usd:.4f}"
    return f"{tally.answered:,} answered, {tally.failed:,} failed, {tokens:,} tokens{cost}"


def _remaining(tally: Tally) -> str:
    return "?" if tally.remaining_s is None else duration(tally.remaining_s)


class PlainRunProgress:
    """A line every ``interval_s`` seconds: answered and failed, tokens, cost, remaining time."""

    def __init__(self, stream: TextIO, interval_s: float = PLAIN_INTERVAL_S) -> None:
        self._stream = stream
        self._interval_s = interval_s
        self._shown = time.monotonic()

    def update(self, tally: Tally) -> None:
        now = time.monotonic()
        if now - self._shown < self._interval_s:
            return
        self._shown = now
        done = tally.total - tally.left
        self.note(f"{done:,} of {tally.total:,}: {tally_text(tally)}, {_remaining(tally)} left")

    def note(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()

    def end(self) -> None:
        pass


class TerminalRunProgress:
    """One bar, with the same figures."""

    def __init__(self) -> None:
        self._progress: RichProgress | None = None
        self._task: TaskID | None = None

    def update(self, tally: Tally) -> None:
        if self._progress is None:
            self._progress, self._task = _bar(tally.total)
        if self._task is not None:
            self._progress.update(
                self._task,
                completed=tally.total - tally.left,
                figures=tally_text(tally),
                left=_remaining(tally),
            )

    def note(self, text: str) -> None:
        if self._progress is not None:
            self._progress.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            sys.stderr.write(text + "\n")

    def end(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


def _bar(total: int) -> tuple[RichProgress, TaskID]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    progress = Progress(
        MofNCompleteColumn(),
        BarColumn(),
        TextColumn("{task.fields[figures]}"),
        TextColumn("{task.fields[left]} left"),
        console=Console(stderr=True),
        transient=True,
    )
    task = progress.add_task("", total=total, figures="", left="?")
    progress.start()
    return progress, task


def open_run_progress() -> RunProgress:
    """What suits stderr: a bar on a terminal, else plain lines."""
    return TerminalRunProgress() if sys.stderr.isatty() else PlainRunProgress(sys.stderr)
