"""The clauses of a query: what engines compile, and all that advice, snippets, marks and
explanations ask of a query.

Clauses form one tree, as the query was typed. New combinations, such as a query without one of its
conditions, are made with ``all_clauses`` and ``any_clause``.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import is_
from typing import Literal, NamedTuple

from arag_search.plan.lookup import RegexLookup
from arag_search.query.analysis import MAX_UNITS, Spellings
from arag_search.query.field_types import FIELD_TYPES, MetadataType, Storage
from arag_search.query.fields import CONTENT, FORM_FIELDS, TITLE, index_field, searched_fields
from arag_search.query.forms import folded
from arag_search.query.limits import DEFAULT_FACTOR
from arag_search.query.operators import DEMOTE, NOT, PREFER, OperatorWord
from arag_search.query.printing import keyword_text, operator_text, weight_text
from arag_search.query.regexes import Runs, sure_runs
from arag_search.query.tree import TextField
from arag_search.system.value_class import value

ClauseKind = Literal[
    "word", "phrase", "prefix", "fuzzy", "lookup", "wildcard", "value", "range", "all", "any"
]
Role = Literal["wanted", "excluded", "preferred", "demoted"]
"""The role of a clause in its group; "preferred" adds to the score, "demoted" lowers it."""

_OPERATORS: dict[Role, OperatorWord] = {"excluded": NOT, "preferred": PREFER, "demoted": DEMOTE}
ROLES = {operator.word: role for role, operator in _OPERATORS.items()}

Way = tuple[str, tuple[str, ...]]
"""A field of the index, and the terms that stand in it side by side."""


class Interval(NamedTuple):
    """The values of a column from ``lower`` to ``upper``, both included. They are doubles or 64-bit
    integers, as the ordered type ``kind`` stores them."""

    column: str
    kind: MetadataType
    lower: float
    upper: float

    @property
    def storage(self) -> Storage:
        """What values are stored as."""
        return FIELD_TYPES[self.kind].storage


@value
class Clause:
    """A clause of a query: a node, lowered. Clauses are equal if text, role and language are.

    ``text``: canonical, without the role.
    ``kind``: "all" and "any" are groups of ``parts``, all others are leaves.
    ``field``: the name of the field of a leaf; None for title and content.
    ``typed``: the text of a leaf, without signs.
    ``words``: the terms of its spellings: normal forms in ``language`` or, if that is empty, and in
    prefixes and fuzzy words, words as written.
    ``slop``, ``edits``, ``factor``, ``interval``: for a phrase, fuzzy word, demotion and range.
    ``lookup``: what must be looked up before an engine runs it.
    ``known``: the ordinals that the lookup matches; None before.

    Example: ``Clause("vivaldi", "word", typed="vivaldi", words=(("vivaldi",),), language="en")``
    """

    text: str
    kind: ClauseKind
    role: Role = "wanted"
    field: str | None = dataclasses.field(default=None, compare=False)
    typed: str = dataclasses.field(default="", compare=False)
    words: Spellings = dataclasses.field(default=(), compare=False)
    language: str = ""
    weight: float = dataclasses.field(default=1.0, compare=False)
    slop: int = dataclasses.field(default=0, compare=False)
    edits: int = dataclasses.field(default=0, compare=False)
    factor: float = dataclasses.field(default=DEFAULT_FACTOR, compare=False)
    interval: Interval | None = dataclasses.field(default=None, compare=False)
    lookup: RegexLookup | None = dataclasses.field(default=None, compare=False)
    known: tuple[int, ...] | None = dataclasses.field(default=None, compare=False)
    parts: tuple[Clause, ...] = dataclasses.field(default=(), compare=False)

    def __str__(self) -> str:
        operator = _OPERATORS.get(self.role)
        return f"{operator_text(operator, self.factor)} {self.text}" if operator else self.text

    @property
    def text_field(self) -> TextField:
        """The field of a leaf on text; None for title and content."""
        return "title" if self.field == TITLE else CONTENT if self.field == CONTENT else None

    @property
    def is_text(self) -> bool:
        """Whether it is a word, phrase, prefix or fuzzy word."""
        return self.kind in ("word", "phrase", "prefix", "fuzzy")

    @property
    def is_name(self) -> bool:
        """Whether it is a phrase or a clause on titles."""
        return self.kind == "phrase" or (self.is_text and self.field == TITLE)

    @property
    def is_metadata(self) -> bool:
        """Whether it is a clause on metadata."""
        return self.kind in ("value", "range")

    @property
    def is_counted(self) -> bool:
        """Whether its matches are counted exactly, however many there are: a single clause but for
        a phrase, which an engine must look into documents for."""
        return not self.parts and all(len(terms) == 1 for terms in self.words)

    @property
    def ways(self) -> list[Way]:
        """The fields and terms of a word or phrase: the best score over them counts, not the sum.
        For a prefix or fuzzy word, they are the terms that terms of the index must be like."""
        names = searched_fields(self.field)
        if self.kind in ("word", "phrase"):
            fields = [index_field(name, self.language) for name in names]
            return [(name, terms) for name in fields for terms in self.words]
        ways: list[Way] = [(name, terms) for name in names for terms in self.words]
        if self.language:  # words match whose written or normal form is like this one
            ways += [(FORM_FIELDS[name], (folded(self.typed),)) for name in names]
        return ways

    @property
    def values(self) -> tuple[str, tuple[str, ...]] | None:
        """The field and the values of a clause on terms of metadata, or of alternatives that are
        values of one field; None for another clause."""
        leaves = self.parts if self.kind == "any" else (self,)
        of_one = {(leaf.kind, leaf.field) for leaf in leaves} == {("value", leaves[0].field)}
        return (leaves[0].field or "", tuple([leaf.typed for leaf in leaves])) if of_one else None

    def having(self, role: Role) -> tuple[Clause, ...]:
        """Return the parts with a role."""
        return tuple([part for part in self.parts if part.role == role])


@value
class ResolvedPlan:
    """A clause that engines can run: nothing in it must be looked up first.

    Example: ``ResolvedPlan(lower(parse("vivaldi AND venice").tree))``
    """

    root: Clause

    def __str__(self) -> str:
        root = self.root
        is_open = root.kind == "all" and root.weight == 1
        return " AND ".join(map(str, root.parts)) if is_open else root.text


def leaf_clauses(clause: Clause) -> list[Clause]:
    """Return all leaves of a clause, excluded ones too, from left to right."""
    if not clause.parts:
        return [clause]
    all_leaves: list[Clause] = []
    for part in clause.parts:
        all_leaves += leaf_clauses(part) if part.parts else (part,)
    return all_leaves


def wanted_leaves(clause: Clause) -> list[Clause]:
    """Return the leaves that are neither excluded nor demoted, from left to right and without their
    roles."""
    if not clause.parts:
        return [wanted(clause)]
    return [
        leaf
        for part in clause.parts
        if part.role in ("wanted", "preferred")
        for leaf in wanted_leaves(part)
    ]


def has_lookups(clause: Clause) -> bool:
    """Return whether a leaf of a clause must be looked up first."""
    return any(leaf.lookup is not None for leaf in leaf_clauses(clause))


def wanted(clause: Clause) -> Clause:
    """Return a clause without the role in its group."""
    return clause if clause.role == "wanted" else replace(clause, role="wanted")


def all_clauses(parts: Sequence[Clause], weight: float = 1.0) -> Clause:
    """Return the clause that all parts make together, each in its role: flattened, or the only
    one if there is only one, which is wanted. Its score is multiplied by ``weight``."""
    flat: list[Clause] = []
    for part in parts:
        is_flat = part.kind == "all" and part.role == "wanted" and part.weight == 1
        flat += part.parts if is_flat else (part,)
    if len(flat) == 1 and flat[0].role == "wanted":
        return _boosted(flat[0], weight)
    flat.sort(key=lambda part: _PLACES[part.role])
    text = str(flat[0])
    for part in flat[1:]:
        text += f"{' ' if part.role in _BESIDE else ' AND '}{part}"
    return _boosted(Clause(f"({text})", "all", parts=tuple(flat)), weight)


def any_clause(parts: Sequence[Clause], weight: float = 1.0) -> Clause:
    """Return the clause that matches where one of the parts does: flattened, or the only one. Its
    score is multiplied by ``weight``."""
    flat: list[Clause] = []
    for part in parts:
        flat += part.parts if part.kind == "any" and part.weight == 1 else (part,)
    if len(flat) == 1:
        return _boosted(flat[0], weight)
    text = " OR ".join([part.text for part in flat])
    return _boosted(Clause(f"({text})", "any", parts=tuple(flat)), weight)


def _boosted(clause: Clause, weight: float) -> Clause:
    """Return a clause with its weight multiplied; the same clause if nothing in it has a score."""
    if weight == 1 or not any(leaf.is_text for leaf in wanted_leaves(clause)):
        return clause
    product = clause.weight * weight
    text = clause.text.removesuffix(weight_text(clause.weight)) + weight_text(product)
    return replace(clause, text=text, weight=product)


_PLACES: dict[Role, int] = {"wanted": 0, "excluded": 1, "preferred": 2, "demoted": 3}
_BESIDE = ("preferred", "demoted")


def joined(first: ResolvedPlan | None, second: ResolvedPlan | None) -> ResolvedPlan | None:
    """Return the plan for what both match; None matches everything."""
    if first is None or second is None:
        return first or second
    return ResolvedPlan(all_clauses([first.root, second.root]))


def unranked(clause: Clause) -> Clause:
    """Return what a clause matches: without preferences and demotions."""
    if clause.kind == "any":
        return with_parts(clause, [unranked(part) for part in clause.parts])
    kept = [unranked(part) for part in clause.parts if part.role not in _BESIDE]
    return with_parts(clause, kept)


def resolved(clause: Clause, ordinals: Sequence[Sequence[int]]) -> Clause:
    """Return a clause whose lookups match these ordinals, by their number, ascending."""
    if clause.lookup is not None:
        return replace(clause, known=tuple(ordinals[clause.lookup.number]))
    return with_parts(clause, [resolved(part, ordinals) for part in clause.parts])


def superset_condition(clause: Clause, by_runs: bool) -> Clause | None:
    """Return a condition that all matches of a clause meet, without its lookups; None for no
    restriction. A wanted lookup counts as true or, ``by_runs``, as the runs of letters that are
    sure; a NOT that contains one is left out."""
    if clause.lookup is not None:
        return _with_runs(clause.lookup) if by_runs else None
    if clause.kind == "any":
        parts = [superset_condition(part, by_runs) for part in clause.parts]
        return None if None in parts else any_clause([part for part in parts if part is not None])
    if clause.kind != "all":
        return wanted(clause)
    parts = [superset_condition(part, by_runs) for part in clause.having("wanted")]
    kept = [part for part in parts if part is not None]
    excluded = [part for part in clause.having("excluded") if not has_lookups(part)]
    return all_clauses([*kept, *excluded]) if kept else None


def _with_runs(lookup: RegexLookup) -> Clause | None:
    """Return the condition that a text has the runs that are sure, or a word that may have been cut
    within one. The result is None if no run is sure."""
    in_field = f"{lookup.field}:" if lookup.field else ""

    def having(runs: Runs) -> Clause:
        text = "|".join(runs).replace("*", "").replace("?", r"\w")
        words = tuple([(run,) for run in runs])
        return Clause(f"{in_field}/{text}/i", "wildcard", field=lookup.field, words=words)

    sure = [having(runs) for runs in sure_runs(lookup.pattern, lookup.ignore_case)]
    cut = having(("?" * (MAX_UNITS // 4) + "*",))
    return any_clause([all_clauses(sure), cut]) if sure else None


def with_values(clause: Clause, values: Mapping[str, str]) -> Clause:
    """Return a clause with other values of keyword fields, by the texts of their clauses."""
    if clause.kind == "value" and clause.text in values:
        other = value_of(clause.field or "", values[clause.text])
        return replace(other, role=clause.role, factor=clause.factor)
    return with_parts(clause, [with_values(part, values) for part in clause.parts])


def with_parts(clause: Clause, parts: Sequence[Clause]) -> Clause:
    """Return a group with other parts, and its weight; the same clause if they are the same."""
    if all(map(is_, parts, clause.parts)) and len(parts) == len(clause.parts):
        return clause
    group = (
        all_clauses(parts, clause.weight)
        if clause.kind == "all"
        else any_clause(parts, clause.weight)
    )
    return replace(group, role=clause.role, factor=clause.factor)


def values_of(field: str, values: Iterable[str]) -> ResolvedPlan:
    """Return the plan for the passages that have any of one or more values of a keyword field."""
    return ResolvedPlan(any_clause([value_of(field, value) for value in values]))


def value_of(field: str, value: str) -> Clause:
    """Return the clause for a value of a keyword field."""
    text = f"{field}:{keyword_text(value)}"
    return Clause(text, "value", field=field, typed=value)


# Scores


def float32(number: float) -> float:
    """Round to the nearest 32-bit float, Lucene's type for scores and weights."""
    return struct.unpack("<f", struct.pack("<f", number))[0]


def scored_ways(clause: Clause) -> Iterator[Way]:
    """Yield the ways of a clause that BM25 scores."""
    if clause.kind in ("word", "phrase"):
        yield from clause.ways
    for part in clause.parts:
        if part.role in ("wanted", "preferred"):
            yield from scored_ways(part)


class ScoredLeaf(NamedTuple):
    """A leaf that adds to the score, in one of its fields, with the product of the weights along
    its path. It counts if all ``conditions`` match, which are the groups around it."""

    field: str
    clause: Clause
    conditions: tuple[Clause, ...]


def scored_leaves(clause: Clause) -> list[tuple[str, list[ScoredLeaf]]]:
    """Return the wanted and preferred leaves on text from left to right: each with its text, and as
    it counts in each field."""
    scored: list[tuple[str, list[ScoredLeaf]]] = []

    def add(part: Clause, weight: float, conditions: tuple[Clause, ...]) -> None:
        weight = float32(weight * float32(part.weight))  # Lucene rounds at each step
        if part.parts:
            conditions = (*conditions, part)
            for inner in part.parts:
                if inner.role in ("wanted", "preferred"):
                    add(inner, weight, conditions)
        elif part.is_text:
            alone = replace(part, role="wanted", weight=weight)
            names = searched_fields(part.field)
            in_fields = [ScoredLeaf(name, in_field(alone, name), conditions) for name in names]
            scored.append((part.text, in_fields))

    add(clause, 1.0, ())
    return scored


def in_field(clause: Clause, name: str) -> Clause:
    """Return a leaf on title and content in one of these fields."""
    return replace(clause, text=f"{name}:{clause.text}", field=name)
