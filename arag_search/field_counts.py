"""The values of metadata fields, counted while passages are written. From them an index tells of
its fields without a search."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from arag_search.corpus import Chunk
from arag_search.query.field_types import FIELD_TYPES, MetadataType

KEPT_VALUES = 20
"""The most frequent values of a keyword field that a manifest has."""
MAX_COUNTED_VALUES = 1_000
"""The values of a field that a build counts at once; the rarest of more are forgotten."""
MAX_VALUE_CHARACTERS = 60
"""A longer value is not counted: it is no value that a query repeats."""


@dataclass(slots=True)
class FieldCounts:
    """The values of a metadata field.

    ``passages`` counts passages with a value, exactly. ``values`` maps the values of a keyword
    field to their passages; they are all of at most MAX_VALUE_CHARACTERS if ``is_complete``, else
    the most frequent. ``least`` and ``greatest`` are the bounds of a number or, in milliseconds
    since 1970, of a date; None if there is no value. If ``is_exact`` is False, another value may be
    more frequent than these, or the range may be too wide: some value was forgotten or deleted.
    """

    passages: int = 0
    values: dict[str, int] = field(default_factory=dict[str, int])
    least: float | None = None
    greatest: float | None = None
    is_complete: bool = True
    is_exact: bool = True

    def add(self, values: Iterable[str | float]) -> None:
        """Count a passage with these values, at least one."""
        self.passages += 1
        for value in set(values):
            if not isinstance(value, str):
                self._widen(value, value)
            elif len(value) <= MAX_VALUE_CHARACTERS:
                self.values[value] = self.values.get(value, 0) + 1

    def remove(self, values: Iterable[str | float]) -> None:
        """Subtract a passage with these values."""
        self.passages -= 1
        if not self.passages:
            self.values, self.least, self.greatest = {}, None, None
            self.is_complete = self.is_exact = True
            return
        for value in set(values):
            if not isinstance(value, str):
                self.is_exact = self.is_exact and value not in (self.least, self.greatest)
            elif value in self.values:
                self.is_exact = self.is_exact and self.is_complete
                self.values[value] -= 1
                if self.values[value] <= 0:
                    del self.values[value]

    def include(self, other: FieldCounts) -> None:
        """Count the passages of other counts. O(number of their values)."""
        self.passages += other.passages
        if other.values and not self.is_complete:
            self.is_exact = False
        if not other.is_complete:
            self.is_complete = self.is_exact = False
        for value, passages in other.values.items():
            self.values[value] = self.values.get(value, 0) + passages
        if other.least is not None and other.greatest is not None:
            self._widen(other.least, other.greatest)
        if len(self.values) > 2 * MAX_COUNTED_VALUES:
            self.values = _most_frequent(self.values, MAX_COUNTED_VALUES)
            self.is_complete = self.is_exact = False

    def kept(self) -> FieldCounts:
        """Return a copy with the KEPT_VALUES most frequent values, most frequent first."""
        values = _most_frequent(self.values, KEPT_VALUES)
        complete = self.is_complete and len(values) == len(self.values)
        return replace(self, values=values, is_complete=complete)

    def _widen(self, least: float, greatest: float) -> None:
        self.least = least if self.least is None else min(least, self.least)
        self.greatest = greatest if self.greatest is None else max(greatest, self.greatest)

    @staticmethod
    def from_json(loaded: Mapping[str, Any]) -> FieldCounts:
        """Read what JSON makes of the counts, whose values a server may have put in another order.
        Raises TypeError for other keys."""
        counts = FieldCounts(**loaded)
        return replace(counts, values=_most_frequent(counts.values, len(counts.values)))


Fields = dict[str, FieldCounts]
"""The counts of the fields of an index, by their names."""


def no_counts(metadata: Mapping[str, MetadataType]) -> Fields:
    """Return the counts of fields without a value."""
    return {name: FieldCounts() for name in metadata}


def counts_of_fields(chunks: Iterable[Chunk], metadata: Mapping[str, MetadataType]) -> Fields:
    """Count the values of fields in chunks. O(number of values)."""
    counts = no_counts(metadata)
    for chunk in chunks:
        for name, values in _values_of(chunk, metadata):
            counts[name].add(values)
    return counts


def include_counts(counts: Fields, others: Fields) -> None:
    """Add the counts of other passages."""
    for name, field_counts in counts.items():
        field_counts.include(others[name])


def remove_counts(counts: Fields, chunk: Chunk, metadata: Mapping[str, MetadataType]) -> None:
    """Subtract a chunk."""
    for name, values in _values_of(chunk, metadata):
        if name in counts:
            counts[name].remove(values)


def kept_counts(counts: Fields) -> Fields:
    """Return the counts that a manifest has."""
    return {name: field_counts.kept() for name, field_counts in counts.items()}


def _values_of(
    chunk: Chunk, metadata: Mapping[str, MetadataType]
) -> Iterable[tuple[str, list[str | float]]]:
    """Yield the declared fields of a chunk with their values, as an engine compares them."""
    for name, value in chunk.metadata.items():
        kind = metadata.get(name)
        values = value if isinstance(value, tuple | list) else (value,)
        if kind is not None and values:
            where = f"passage {chunk.id}, field {name}"
            yield name, [FIELD_TYPES[kind].compared(item, where) for item in values]


def _most_frequent(values: Mapping[str, int], most: int) -> dict[str, int]:
    """Return the most frequent values; equal counts are in order of code points."""
    return dict(sorted(values.items(), key=lambda pair: (-pair[1], pair[0]))[:most])
