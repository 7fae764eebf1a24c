"""The record that an index keeps of an update: its command and what it changed."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class UpdateRecord:
    """An update: ``digest`` identifies its command, ``command`` is the command in words, ``update``
    the number of the index after it. The counts are of documents and are known at its end."""

    digest: str
    command: str
    update: int
    added: int = 0
    replaced: int = 0
    deleted: int = 0

    def same(self, other: UpdateRecord | None) -> bool:
        """Return whether both records are of the same command on the same state of the index."""
        return other is not None and (self.digest, self.update) == (other.digest, other.update)

    def to_json(self) -> dict[str, Any]:
        """Return the record as a JSON object."""
        return dataclasses.asdict(self)

    @staticmethod
    def from_json(loaded: Any) -> UpdateRecord | None:
        """Return the record in a JSON value, or None if the value is not a record."""
        try:
            return UpdateRecord(**loaded)
        except TypeError:
            return None


@dataclass(frozen=True, slots=True)
class Recovery:
    """The recovery from an interrupted update: ``note`` describes it (empty if there was none);
    ``done`` is its record if it was this very command and is now finished."""

    note: str = ""
    done: UpdateRecord | None = None
