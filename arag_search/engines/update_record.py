"""What is known of an update: which command it is of, and what it does. Kept by the index."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class UpdateRecord:
    """``digest`` tells commands apart, ``command`` names this one to people. ``update`` is the
    number that the index has after it. The counts are of documents, and known at its end."""

    digest: str
    command: str
    update: int
    added: int = 0
    replaced: int = 0
    deleted: int = 0

    def same(self, other: UpdateRecord | None) -> bool:
        """Whether both are of the same command, on the same state of the index."""
        return other is not None and (self.digest, self.update) == (other.digest, other.update)

    def to_json(self) -> dict[str, Any]:
        """The record as JSON holds it."""
        return dataclasses.asdict(self)

    @staticmethod
    def from_json(loaded: Any) -> UpdateRecord | None:
        """The record in what JSON gave, or None where that is none."""
        try:
            return UpdateRecord(**loaded)
        except TypeError:
            return None


@dataclass(frozen=True, slots=True)
class Recovery:
    """What was found of an update that was stopped: ``note`` says it in words (empty where there
    was none); ``done`` is its record where it was this very command, and is finished."""

    note: str = ""
    done: UpdateRecord | None = None
