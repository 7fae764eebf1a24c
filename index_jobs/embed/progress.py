"""How far an embedding is: share, rows, rate, and the remaining time."""

from __future__ import annotations

import sys
from typing import Protocol, TextIO

from arag_search.system.progress import PLAIN_INTERVAL_S, PlainLines, TerminalBar, duration
from index_jobs.build.progress import Pace, share_columns


class EmbedProgress(Protocol):
    """Is told how far an embedding is."""

    def begin(self, total: int) -> None:
        """The work starts: so many sentences and passages, at most, are to be seen to."""
        ...

    def update(self, done: int, encoded: int) -> None:
        """So many are seen to, and so many rows encoded in this run."""
        ...

    def stage(self, name: str, done: int, total: int) -> None:
        """So many steps are done of a stage of publishing."""
        ...

    def note(self, text: str) -> None:
        """Something that the user should know."""
        ...

    def end(self) -> None:
        """No more comes. May be called again."""
        ...


class SilentEmbedProgress:
    """Shows nothing."""

    def begin(self, total: int) -> None:
        pass

    def update(self, done: int, encoded: int) -> None:
        pass

    def stage(self, name: str, done: int, total: int) -> None:
        pass

    def note(self, text: str) -> None:
        pass

    def end(self) -> None:
        pass


class _EmbedPace(Pace):
    def figures(self, encoded: int) -> str:
        return f"{encoded:,} rows encoded  {encoded / self.seconds():,.0f}/s"

    def to_go(self, done: int, encoded: int) -> str:
        """The remaining time in words, if all that is left must be encoded."""
        left = max(0, self._total - done)
        return duration(left * self.seconds() / encoded) if encoded else "?"


class PlainEmbedProgress(PlainLines):
    """A line every ``interval_s`` seconds, and one for each stage. See EmbedProgress."""

    def __init__(self, stream: TextIO, interval_s: float = PLAIN_INTERVAL_S) -> None:
        super().__init__(stream, interval_s)
        self._pace = _EmbedPace()
        self._stage = ""

    def begin(self, total: int) -> None:
        """See EmbedProgress."""
        self._pace.begin(total, 0)
        self.is_due()

    def update(self, done: int, encoded: int) -> None:
        """See EmbedProgress."""
        if self.is_due():
            pace = self._pace
            figures = pace.figures(encoded)
            self.note(f"{pace.share(done):4.0%}  {figures}  {pace.to_go(done, encoded)} left")

    def stage(self, name: str, done: int, total: int) -> None:
        """See EmbedProgress."""
        is_new = name != self._stage and self._pace.seconds() >= self._interval_s
        if self.is_due() or is_new:  # short work ends without a word
            self._stage = name
            self.note(_stage(name, done, total))


class TerminalEmbedProgress(TerminalBar):
    """A bar with the same figures. See EmbedProgress."""

    def __init__(self) -> None:
        super().__init__()
        self._pace = _EmbedPace()
        self._total = 1

    def begin(self, total: int) -> None:
        """See EmbedProgress."""
        self._pace.begin(total, 0)
        self._total = max(1, total)
        self.open(share_columns(), self._total)

    def update(self, done: int, encoded: int) -> None:
        """See EmbedProgress."""
        self.show(done, self._pace.figures(encoded), self._pace.to_go(done, encoded))

    def stage(self, name: str, done: int, total: int) -> None:
        """See EmbedProgress."""
        self.show(self._total, _stage(name, done, total), "?")


def _stage(name: str, done: int, total: int) -> str:
    return f"{name}: {done:,} of {total:,}"


def open_embed_progress() -> EmbedProgress:
    """What suits stderr: a bar on a terminal, else plain lines."""
    return TerminalEmbedProgress() if sys.stderr.isatty() else PlainEmbedProgress(sys.stderr)
