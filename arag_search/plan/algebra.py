"""What engines run: nine operations, without any sugar of the query language.

``Best`` scores by BM25, ``Spread`` by a constant; ``Values``, ``Interval`` and ``Known`` only
match; ``AllOf``, ``AnyOf``, ``Boost`` and ``Lowered`` combine.

Fields of text are those of the index: ``title`` and ``content`` hold words as they are written,
``title_forms`` and ``content_forms`` their normal forms.
"""

from __future__ import annotations

import struct

from arag_search.query.field_types import FIELD_TYPES, MetadataType, Storage
from arag_search.system.values import value

Way = tuple[str, tuple[str, ...]]
"""A field of the index, and the terms that stand in it side by side."""
SpreadWay = tuple[str, str, int]
"""A field of the index, a word, and the edits in which terms may differ from it (1 or 2); 0 is for
the terms that begin with it."""


@value
class Best:
    """The best score over one or more ways, which differ in field or spelling: the maximum, and
    not the sum, of their BM25. The terms of a way may be moved by ``slop`` positions in all."""

    ways: tuple[Way, ...]
    slop: int = 0


@value
class Spread:
    """A score of 1 wherever a term of the index is like the word of one of the ways."""

    ways: tuple[SpreadWay, ...]


@value
class Values:
    """The match of a metadata field whose values are terms, with any of these."""

    field: str
    values: tuple[str, ...]


@value
class Interval:
    """The match of a column of a field of an ordered type, ``kind``, from ``lower`` to ``upper``,
    both included: doubles or 64-bit integers, as the type stores its values."""

    field: str
    kind: MetadataType
    lower: float
    upper: float

    @property
    def storage(self) -> Storage:
        """What values are stored as."""
        return FIELD_TYPES[self.kind].storage


@value
class Known:
    """The match of the passages, or sentences, with these ordinals, which ascend: at most as many
    as ``search.resolve`` verifies."""

    ordinals: tuple[int, ...]


@value
class AllOf:
    """The match of all that is ``scored``, whose scores are added, of all ``filters`` and of
    nothing ``excluded``. What of ``optional`` matches too is added to the score. Without anything
    scored or filtered, all passages match that are not excluded."""

    scored: tuple[Operation, ...] = ()
    filters: tuple[Operation, ...] = ()
    excluded: tuple[Operation, ...] = ()
    optional: tuple[Operation, ...] = ()


@value
class AnyOf:
    """The match of at least one operation; the scores of those that match are added."""

    operations: tuple[Operation, ...]


@value
class Boost:
    """An operation whose score is multiplied."""

    operation: Operation
    factor: float


@value
class Lowered:
    """An operation whose score is multiplied by the factor, more than 0 and less than 1, of each
    demotion that matches too."""

    operation: Operation
    demotions: tuple[tuple[Operation, float], ...]


@value
class Unknown:
    """The match of what must be looked up first: not an operation of engines. ``search.resolve``
    makes it a Known. ``number`` counts the lookups of a query from 0, in the order typed."""

    number: int


Operation = Best | Spread | Values | Interval | Known | AllOf | AnyOf | Boost | Lowered | Unknown


def is_scored(operation: Operation) -> bool:
    """Return whether the matches of an operation have a score."""
    match operation:
        case Best() | Spread():
            return True
        case AllOf():
            return bool(operation.optional or operation.scored)
        case AnyOf():
            return any(map(is_scored, operation.operations))
        case Boost() | Lowered():
            return is_scored(operation.operation)
        case _:
            return False


def is_counted(operation: Operation) -> bool:
    """Return whether the matches of an operation are counted exactly, however many there are.

    That is so for a single clause, except for a phrase, which an engine must look into documents
    for.
    """
    match operation:
        case Best():
            return all(len(terms) == 1 for _, terms in operation.ways)
        case Boost():
            return is_counted(operation.operation)
        case Values():
            return len(operation.values) == 1
        case _:
            return isinstance(operation, Spread | Interval | Known)


def float32(number: float) -> float:
    """Round to the nearest 32-bit float, Lucene's type for scores and weights."""
    return struct.unpack("<f", struct.pack("<f", number))[0]
