"""Showing how far a run is: answered and failed, tokens, cost, remaining time."""

from __future__ import annotations

import sys

from arag_search.runs.run import RunProgress, Tally
from arag_search.system.progress import PlainLines, TerminalBar, duration


def tally_text(tally: Tally) -> str:
    """What was answered and failed, tokens, and cost where it is known."""
    tokens = tally.prompt_tokens + tally.completion_tokens
    cost = "" if tally.cost_usd is None else f", ${tally.cost_usd:.4f}"
    return f"{tally.answered:,} answered, {tally.failed:,} failed, {tokens:,} tokens{cost}"


def _remaining(tally: Tally) -> str:
    return "?" if tally.remaining_s is None else duration(tally.remaining_s)


class PlainRunProgress(PlainLines):
    """A line every ``interval_s`` seconds."""

    def update(self, tally: Tally) -> None:
        """See RunProgress."""
        if self.is_due():
            done = tally.total - tally.left
            self.note(f"{done:,} of {tally.total:,}: {tally_text(tally)}, {_remaining(tally)} left")


class TerminalRunProgress(TerminalBar):
    """One bar, with the same figures."""

    def update(self, tally: Tally) -> None:
        """See RunProgress."""
        if not self.is_shown:
            self._open(tally.total)
        self.show(tally.total - tally.left, tally_text(tally), _remaining(tally))

    def _open(self, total: int) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn

        figures, left = TextColumn("{task.fields[figures]}"), TextColumn("{task.fields[left]} left")
        self.open([MofNCompleteColumn(), BarColumn(), figures, left], total)


def open_run_progress() -> RunProgress:
    """What suits stderr: a bar on a terminal, else plain lines."""
    return TerminalRunProgress() if sys.stderr.isatty() else PlainRunProgress(sys.stderr)
