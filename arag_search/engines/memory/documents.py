"""Documents in memory, all chunks or all sentences, on which trees are matched and scored.

A document is a number from 0 in corpus order. Matching and scoring are separate: ``matches``
returns the documents that a node matches, ``scores`` the scores of a plan. To match nodes alone,
fields need no statistics, and the texts of a few documents are read without an inverted index.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from math import prod
from typing import Protocol, assert_never

from arag_search.corpus import Chunk
from arag_search.engines.deadline import Deadline
from arag_search.engines.memory.field import TextField, float32
from arag_search.engines.memory.plan import (
    AllOf,
    AnyOf,
    Best,
    Boosted,
    Demoted,
    Filter,
    Plan,
    alternatives,
)
from arag_search.query.fields import DOC_ID, MetadataType, typed
from arag_search.query.matching import Pattern
from arag_search.query.tree import (
    And,
    DateRange,
    KeywordEquals,
    Node,
    NumberRange,
    Or,
    Scope,
    TextLeaf,
)

Columns = Mapping[str, Mapping[str | float, set[int]]]


class MatchedField(Protocol):
    """A text field of documents."""

    def matching(self, pattern: Pattern) -> Collection[int]:
        """Return the documents that match a pattern of one spelling."""
        ...


class Documents:
    """Documents on which nodes are matched."""

    def __init__(
        self,
        owners: Sequence[Chunk],
        fields: Mapping[str, MatchedField],
        metadata: Mapping[str, MetadataType],
    ) -> None:
        """Take the text fields of documents, by name, and index their metadata.

        ``owners`` holds for each document the chunk that it is, or is a sentence of. Raises
        ArgumentError for a value not of its field's type.
        """
        self.size = len(owners)
        self._types: dict[str, MetadataType] = {DOC_ID: "keyword", **metadata}
        self._columns = _columns(owners, self._types)
        self._matched: Mapping[str, MatchedField] = fields

    def matches(self, node: Node) -> set[int]:
        """Return the documents that a node matches."""
        if isinstance(node, TextLeaf):
            matched: set[int] = set()
            for field, pattern in alternatives(node):
                matched.update(self._matched[field].matching(pattern))
            return matched
        match node:
            case KeywordEquals():
                return self._values(node.field, "keyword").get(node.value, set())
            case NumberRange():
                return self._with_values(node.field, "number", lambda value: _within(node, value))
            case DateRange():
                return self._with_values(node.field, "date", lambda value: _during(node, value))
            case And():
                return self._all(node.positive, [child.child for child in node.excluded])
            case Or():
                return set[int]().union(*(self.matches(child) for child in node.children))
            case _:
                assert_never(node)

    def within(self, scope: Scope | None) -> set[int] | None:
        """Return the documents that a scope admits; None for all."""
        if scope is None or not (scope.include or scope.exclude):
            return None
        if scope.include:
            return self._all(scope.include, scope.exclude)
        return set(range(self.size)).difference(*map(self.matches, scope.exclude))

    def column(self, field: str) -> Mapping[str | float, set[int]]:
        """Return the documents of each value of a metadata field or ``doc_id``."""
        return self._columns[field]

    def _all(self, included: Iterable[Node], excluded: Iterable[Node]) -> set[int]:
        matched = set[int].intersection(*(self.matches(node) for node in included))
        return matched.difference(*(self.matches(node) for node in excluded))

    def _values(self, field: str, kind: MetadataType) -> Mapping[str | float, set[int]]:
        return self._columns[field] if self._types.get(field) == kind else {}

    def _with_values(
        self, field: str, kind: MetadataType, holds: Callable[[str | float], bool]
    ) -> set[int]:
        values = self._values(field, kind)
        return set[int]().union(*(values[value] for value in values if holds(value)))


class ScoredDocuments(Documents):
    """An inverted index over documents, on which plans are scored."""

    def __init__(
        self,
        owners: Sequence[Chunk],
        fields: Mapping[str, TextField],
        metadata: Mapping[str, MetadataType],
    ) -> None:
        """See Documents."""
        super().__init__(owners, fields, metadata)
        self._fields = fields

    def until(self, deadline: Deadline | None) -> ScoredDocuments:
        """Return a copy whose evaluation raises QueryTimeoutError after a deadline."""
        if deadline is None:
            return self
        limited = copy(self)
        limited._fields = {name: field.until(deadline) for name, field in self._fields.items()}
        limited._matched = limited._fields
        return limited

    def scores(self, plan: Plan, boost: float = 1.0) -> dict[int, float]:
        """Return the score of each document that a plan matches, times ``boost``."""
        match plan:
            case Best():
                best: dict[int, float] = {}
                for field, pattern in plan.alternatives:
                    for document, score in self._fields[field].scores(pattern, boost).items():
                        if score >= best.get(document, 0.0):
                            best[document] = score
                return best
            case Filter():
                return dict.fromkeys(self.matches(plan.node), 0.0)
            case Boosted():
                return self.scores(plan.plan, float32(plan.boost * boost))
            case AnyOf():
                return _sums([self.scores(part, boost) for part in plan.parts])
            case AllOf():
                parts = [self.scores(part, boost) for part in plan.parts]
                required = [*map(set, parts), *map(self.matches, plan.filters)]
                held = min(required, key=len).intersection(*required)
                held.difference_update(*map(self.matches, plan.excluded))
                sums = {document: float32(sum(p[document] for p in parts)) for document in held}
                if plan.optional is not None:
                    for document, score in self.scores(plan.optional, boost).items():
                        if document in sums:
                            sums[document] = float32(sums[document] + score)
                return sums
            case Demoted():
                lowered = [(self.matches(node), factor) for node, factor in plan.demoted]
                return {
                    document: float32(
                        score * prod(factor for held, factor in lowered if document in held)
                    )
                    for document, score in self.scores(plan.plan, boost).items()
                }
            case _:
                assert_never(plan)

    def leaf_scores(self, leaf: TextLeaf, boost: float) -> dict[str, dict[int, float]]:
        """Return, by field, the score of each document that a leaf matches, without its weight."""
        by_field: dict[str, dict[int, float]] = {}
        for alternative in alternatives(leaf):
            scores = by_field.setdefault(alternative[0], {})
            for document, score in self.scores(Best((alternative,)), boost).items():
                scores[document] = max(score, scores.get(document, 0.0))
        return by_field

    def with_words(self, field: str) -> set[int]:
        """Return the documents with a word in a text field."""
        return self._fields[field].documents()

    def occurrences(self, terms: tuple[str, ...]) -> dict[int, float]:
        """Return how often a term or phrase occurs in title and content, by document."""
        counts: dict[int, float] = {}
        for field in self._fields.values():
            for document, count in field.frequencies(Pattern((terms,))).items():
                counts[document] = counts.get(document, 0) + count
        return counts


def _sums(parts: Sequence[Mapping[int, float]]) -> dict[int, float]:
    sums: dict[int, float] = {}
    for part in parts:
        for document, score in part.items():
            sums[document] = sums.get(document, 0.0) + score
    return {document: float32(score) for document, score in sums.items()}


def _columns(owners: Sequence[Chunk], types: Mapping[str, MetadataType]) -> Columns:
    """Return the documents by field and value; the value of a date is its first millisecond."""
    columns: dict[str, dict[str | float, set[int]]] = {name: {} for name in types}
    for document, chunk in enumerate(owners):
        columns[DOC_ID].setdefault(chunk.doc_id, set()).add(document)
        for name, value in chunk.metadata.items():
            if name in types and name != DOC_ID:
                for single in value if isinstance(value, tuple) else (value,):
                    held = typed(single, types[name], f"chunk {chunk.id}, field {name}")
                    columns[name].setdefault(held, set()).add(document)
    return columns


def _within(node: NumberRange, value: str | float) -> bool:
    number = float(value)
    low = node.lower is None or (
        number >= node.lower if node.include_lower else number > node.lower
    )
    return low and (
        node.upper is None or (number <= node.upper if node.include_upper else number < node.upper)
    )


def _during(node: DateRange, value: str | float) -> bool:
    first, end = node.first_ms, node.end_ms
    moment = float(value)
    return (first is None or moment >= first) and (end is None or moment < end)
