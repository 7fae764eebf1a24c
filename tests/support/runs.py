"""Runs of a scripted model over questions about operas, and their records and progress."""

from dataclasses import replace
from typing import Any

from arag_search.corpus import Chunk, ordinal_of
from arag_search.questions.files import Question
from arag_search.search.index import Index
from arag_search.system.progress import Progress
from tests.support.oracle.engine import MemoryEngine

TEXTS = ("Griselda is an opera by Vivaldi.", "Artaserse is an opera by Hasse.")


def index_of(*texts: str) -> Index:
    chunks = [
        Chunk(f"c{at}.1", f"c{at}", f"Title {at}", text, 1, 1, ordinal_of(0, at, 0),
              (len(text),), {})
        for at, text in enumerate(texts)
    ]  # fmt: skip
    return Index(MemoryEngine(chunks), "memory")


def questions(count: int) -> list[Question]:
    return [
        Question(f"q{at}", f"Who wrote opera {at}?", (f"composer {at}",)) for at in range(count)
    ]


def without_times(records: dict[str, Any]) -> dict[str, Any]:
    """Return records by id, without their times."""
    return {
        name: replace(
            record,
            seconds=0.0,
            trajectory=tuple(replace(step, seconds=0.0) for step in record.trajectory),
        )
        for name, record in records.items()
    }


class RecordingProgress(Progress):
    """A progress that records its updates and notes."""

    def __init__(self) -> None:
        self.recorded: list[int] = []
        self.notes: list[str] = []
        self.ended = 0

    def update(self, done: int, count: int, details: str = "") -> None:
        self.recorded.append(done)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def end(self) -> None:
        self.ended += 1
