"""Documents, all chunks or all sentences, on which trees are matched and scored.

A document is a number from 0 in corpus order. Matching and scoring are separate: ``matches``
returns the documents that a node matches, ``scores`` the scores of a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from copy import copy
from math import prod
from typing import assert_never

import regex

from arag_search.corpus import Chunk
from arag_search.plan.clauses import ResolvedPlan, leaf_clauses
from arag_search.plan.matching import Pattern
from arag_search.query.field_types import FIELD_TYPES, MOMENTS, MetadataType, columns, moment_ms
from arag_search.query.fields import DOC_ID, NAMES, TEXT_FIELDS, Schema
from arag_search.query.names import names_of
from arag_search.query.operators import NOT
from arag_search.query.reading import parse
from arag_search.query.tree import And, KeywordEquals, Node, Or, Range, Regex, TextLeaf
from tests.support.oracle.field import TextField, float32
from tests.support.oracle.plan import (
    AllOf,
    AnyOf,
    Best,
    Boosted,
    Demoted,
    Filter,
    Plan,
    alternatives,
    having,
    positive,
)


class Documents:
    """Documents with their text fields, and the values of their metadata."""

    def __init__(
        self,
        owners: Sequence[Chunk],
        contents: Sequence[str],
        fields: Mapping[str, TextField],
        metadata: Mapping[str, MetadataType],
    ) -> None:
        """Take the text fields of documents, by name, and index their metadata.

        ``owners`` holds for each document the chunk that it is, or is a sentence of, and
        ``contents`` its text.
        """
        self.size = len(owners)
        self.language = ""
        self._texts = [(chunk.title, text) for chunk, text in zip(owners, contents, strict=True)]
        self._types: dict[str, MetadataType] = {DOC_ID: "keyword", **metadata}
        self._fields = fields
        self._names = [
            names_of(chunk.title, chunk.doc_id) if chunk.part == 1 else [] for chunk in owners
        ]
        self._columns: dict[str, dict[str | float, set[int]]] = {
            name: {} for name in columns(self._types)
        }
        for document, chunk in enumerate(owners):
            values = {**chunk.metadata, DOC_ID: chunk.doc_id}
            for name, (field, kind) in columns(self._types).items():
                value = values.get(field, ())
                for single in value if isinstance(value, tuple) else (value,):
                    compared = kind.compared(single, f"passage {chunk.id}, field {name}")
                    self._columns[name].setdefault(compared, set()).add(document)

    def reading(self, language: str) -> Documents:
        """Return the documents for queries whose words match in their normal forms in a language
        or, if that is empty, as they are written."""
        documents = copy(self)
        documents.language = language
        return documents

    def matches(self, node: Node) -> set[int]:
        """Return the documents that a node matches."""
        match node:
            case KeywordEquals():
                return self._with_values(
                    node.field, ("keyword", "boolean"), lambda value: value == node.value
                )
            case Range():
                return self._with_values(
                    node.column, (node.kind,), lambda value: _within(node, value)
                )
            case And():
                return self._all(positive(node), [child.child for child in having(node, NOT)])
            case Or():
                return set[int]().union(*map(self.matches, node.children))
            case Regex():
                return self._with_pattern(node)
            case _:
                return set[int]().union(
                    *(
                        self._fields[name].frequencies(way)
                        for name, way in alternatives(node, self.language)
                    )
                )

    def read(self, plan: ResolvedPlan) -> tuple[Node, str]:
        """Return the query that a plan comes from, read from its text, and the language of its
        words."""
        languages = (leaf.language for leaf in leaf_clauses(plan.root) if leaf.language)
        # A value of any text is asked for, as engines are asked.
        types = {
            name: "keyword" if FIELD_TYPES[type].storage == "term" else type
            for name, type in self._types.items()
            if name != DOC_ID
        }
        schema = Schema(types, True)
        return parse(plan.root.text, schema, limits=False).tree, next(languages, "")

    def with_names(self, plan: ResolvedPlan) -> set[int] | None:
        """Return the documents that have the names of a plan; no query asks for names."""
        field, values = plan.root.values or ("", ())
        if field != NAMES:
            return None
        wanted = set(values)
        return {at for at, names in enumerate(self._names) if not wanted.isdisjoint(names)}

    def matching(self, plan: ResolvedPlan) -> set[int]:
        """Return the documents that the query of a plan matches."""
        tree, language = self.read(plan)
        return self.reading(language).matches(tree)

    def within(self, scope: ResolvedPlan | None) -> set[int]:
        """Return the documents that a scope admits, which may consist of exclusions alone."""
        root = None if scope is None else scope.root
        if root is None or not root.parts or root.having("wanted"):
            return set(range(self.size)) if scope is None else self.matching(scope)
        excluded = (self.matching(ResolvedPlan(part)) for part in root.parts)
        return set(range(self.size)).difference(*excluded)

    def column(self, field: str) -> Mapping[str | float, set[int]]:
        """Return the documents of each value of a metadata field or ``doc_id``."""
        return self._columns[field]

    def scores(self, plan: Plan, boost: float = 1.0) -> dict[int, float]:
        """Return the score of each document that a plan matches, times ``boost``."""
        match plan:
            case Best():
                best: dict[int, float] = {}
                for name, pattern in plan.alternatives:
                    for document, score in self._fields[name].scores(pattern, boost).items():
                        best[document] = max(score, best.get(document, 0.0))
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
                held = set[int].intersection(*required)
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
        for alternative in alternatives(leaf, self.language):
            scores = by_field.setdefault(alternative[0].removesuffix("_forms"), {})
            for document, score in self.scores(Best((alternative,)), boost).items():
                scores[document] = max(score, scores.get(document, 0.0))
        return by_field

    def with_words(self, field: str) -> set[int]:
        """Return the documents with a word in a text field."""
        return self._fields[field].documents()

    def occurrences(self, terms: tuple[str, ...]) -> dict[int, float]:
        """Return how often a term or phrase occurs in title and content, by document."""
        counts: dict[int, float] = {}
        for field in (self._fields[name] for name in TEXT_FIELDS):
            for document, count in field.frequencies(Pattern((terms,))).items():
                counts[document] = counts.get(document, 0) + count
        return counts

    def _all(self, included: Iterable[Node], excluded: Iterable[Node]) -> set[int]:
        matched = set(range(self.size)).intersection(*map(self.matches, included))
        return matched.difference(*map(self.matches, excluded))

    def _with_pattern(self, node: Regex) -> set[int]:
        pattern = regex.compile(node.pattern, regex.IGNORECASE if node.ignore_case else 0)
        return {
            document
            for document, texts in enumerate(self._texts)
            for name, text in zip(TEXT_FIELDS, texts, strict=True)
            if node.field in (None, name) and pattern.search(text)
        }

    def _with_values(
        self, field: str, kinds: Container[MetadataType], holds: Callable[[str | float], bool]
    ) -> set[int]:
        is_one = self._types.get(field.removesuffix(MOMENTS)) in kinds
        values = self._columns[field] if is_one else {}
        return set[int]().union(*(values[value] for value in values if holds(value)))


def _sums(parts: Sequence[Mapping[int, float]]) -> dict[int, float]:
    sums: dict[int, float] = {}
    for part in parts:
        for document, score in part.items():
            sums[document] = sums.get(document, 0.0) + score
    return {document: float32(score) for document, score in sums.items()}


def _within(node: Range, value: str | float) -> bool:
    """Return whether a value, which is stored, is between the periods of the bounds."""
    kind = FIELD_TYPES[node.kind]
    ends, stored = kind.ends if node.column == node.field else moment_ms, float(value)
    if node.lower is not None:
        first, last = ends(node.lower)
        if stored < first or (not node.include_lower and stored <= last):
            return False
    if node.upper is not None:
        first, last = ends(node.upper)
        if stored > last or (not node.include_upper and stored >= first):
            return False
    return True
