"""Trees into Lucene queries.

A text leaf is the best of its fields and spellings (a dis_max without tie breaker), so that a match
in title and content scores the better of the two; a prefix scores its weight; metadata filter.
"""

from __future__ import annotations

import functools
import struct
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from arag_search.corpus import nfc
from arag_search.engines.lucene.jvm import java, java_array, java_float, java_string
from arag_search.engines.lucene.schema import ID, ORDINAL, lucene_field
from arag_search.errors import ArgumentError
from arag_search.query.fields import TEXT_FIELDS
from arag_search.query.tree import (
    And,
    DateRange,
    KeywordEquals,
    Node,
    Not,
    NumberRange,
    Or,
    Phrase,
    Prefix,
    Scope,
    Term,
    TextLeaf,
    render,
)

_SEARCH = "org.apache.lucene.search"
_DOCUMENT = "org.apache.lucene.document"
_LAST_MS = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class LeafQuery:
    """One positive text leaf in one field, its weight multiplied along its path.

    ``held`` are the groups around it, all of which a document must match for the leaf to count.
    """

    leaf: str
    field: str
    query: Any
    held: tuple[Any, ...]


class _Pair(threading.local):
    """A Java list of two that is filled again for every leaf, one a thread. Lucene copies it; a
    list made anew takes longer than the query made of it."""

    def __init__(self) -> None:
        self.array = java_array(f"{_SEARCH}.Query", [None, None])
        self.list = java("java.util.Arrays").asList(self.array)


Compiled = tuple[Any, bool]
"""A Lucene query, and whether its matches have a score."""


class Compiler:
    """Makes Lucene queries. Holds nothing that calls share, so threads may share it."""

    def __init__(self) -> None:
        # Found once: looking a class up costs more than calling it.
        self._term = java("org.apache.lucene.index.Term")
        self._term_query = java(f"{_SEARCH}.TermQuery")
        self._phrase_query = java(f"{_SEARCH}.PhraseQuery")
        self._dis_max = java(f"{_SEARCH}.DisjunctionMaxQuery")
        self._boost = java(f"{_SEARCH}.BoostQuery")
        self._constant = java(f"{_SEARCH}.ConstantScoreQuery")
        self._builder = java(f"{_SEARCH}.BooleanQuery$Builder")
        occur = java(f"{_SEARCH}.BooleanClause$Occur")
        self._must, self._filter = occur.MUST, occur.FILTER
        self._should, self._must_not = occur.SHOULD, occur.MUST_NOT
        self._as_list = java("java.util.Arrays").asList
        self._pair = _Pair()
        self._no_tie_breaker = java_float(0.0)
        self._fields = {name: java_string(name) for name in TEXT_FIELDS}
        # Scopes and keyword lists may be of any length; queries are limited by the parser.
        java(f"{_SEARCH}.IndexSearcher").setMaxClauseCount((1 << 31) - 1)

    def query(self, node: Node | Not, made: dict[int, Compiled] | None = None) -> Compiled:
        """The Lucene query of a node, and whether its matches have a score.

        A Not is compiled as its child: what it excludes. Nodes that several queries share are
        compiled once where they are given the same ``made``, while the nodes live.
        """
        if made is None:
            return self._query(node, None)
        found = made.get(id(node))
        if found is None:
            found = made[id(node)] = self._query(node, made)
        return found

    def _query(self, node: Node | Not, made: dict[int, Compiled] | None) -> Compiled:
        match node:
            case Term() | Phrase():
                names = TEXT_FIELDS if node.field is None else (node.field,)
                return self._weighted(self._text_leaf(node, names), node.weight), True
            case And():
                return self._and(node, made)
            case Or():
                return self._or(node, made)
            case Prefix():
                names = TEXT_FIELDS if node.field is None else (node.field,)
                return self._weighted(self._prefix(node, names), node.weight), True
            case KeywordEquals() | NumberRange() | DateRange():
                return self._metadata_leaf(node), False
            case Not():
                return self.query(node.child, made)
            case _:
                assert_never(node)

    def filtered(self, query: Any, *filters: Any) -> Any:
        """The query within the filters; None among them is no filter; a None query is anything."""
        given = [each for each in filters if each is not None]
        if query is not None and not given:
            return query
        builder = self._builder()
        if query is not None:
            builder.add(query, self._must)
        for each in given:
            builder.add(each, self._filter)
        return builder.build() if query is not None or given else self.everything()

    def everything(self) -> Any:
        """The query that every document matches."""
        return java(f"{_SEARCH}.MatchAllDocsQuery")()

    def scope(self, scope: Scope) -> Any:
        """The filter of a scope, which may consist of exclusions alone."""
        builder = self._builder()
        for node in scope.include:
            builder.add(self.query(node)[0], self._filter)
        for node in scope.exclude:
            builder.add(self.query(node)[0], self._must_not)
        if not scope.include:
            builder.add(self.everything(), self._filter)
        return builder.build()

    def keywords(self, keywords: Iterable[str]) -> Any | None:
        """Eq. 1 for a similarity that scores boost x frequency; None where no keyword has a token.

        Every keyword counts in each field and each of its spellings.
        """
        builder = self._builder()
        empty = True
        for keyword in map(nfc, keywords):
            for spelling in _keyword_spellings(keyword):
                for field in TEXT_FIELDS:
                    found = self._spelling(field, spelling, 0)
                    builder.add(self._boost(found, float(len(keyword))), self._should)
                    empty = False
        return None if empty else builder.build()

    def leaf_queries(self, node: Node | Not) -> list[tuple[str, list[LeafQuery]]]:
        """The positive text leaves from left to right, each as text and as a query per field."""
        found: list[tuple[str, list[LeafQuery]]] = []
        self._add_leaf_queries(node, 1.0, (), found)
        return found

    def _add_leaf_queries(
        self,
        node: Node | Not,
        weight: float,
        held: tuple[Any, ...],
        found: list[tuple[str, list[LeafQuery]]],
    ) -> None:
        match node:
            case Term() | Phrase() | Prefix():
                text = render(node)
                # As Lucene multiplies: each step in 32 bits.
                weight = _float32(weight * _float32(node.weight))
                queries = [
                    LeafQuery(text, name, self._weighted(self._in_field(node, name), weight), held)
                    for name in (TEXT_FIELDS if node.field is None else (node.field,))
                ]
                found.append((text, queries))
            case And() | Or():
                weight = _float32(weight * _float32(node.weight))
                held = (*held, self.query(node)[0])
                for child in node.children:
                    self._add_leaf_queries(child, weight, held, found)
            case _:
                pass  # a Not and metadata add nothing to a score

    # Metadata and places

    def ids(self, field: str, values: Iterable[str]) -> Any:
        """The documents whose exact field has one of the values."""
        bytes_ref = java("org.apache.lucene.util.BytesRef")
        terms = java("java.util.ArrayList")()
        for value in values:
            terms.add(bytes_ref(value))
        return java(f"{_SEARCH}.TermInSetQuery")(field, terms)

    def chunk_ids(self, ids: Iterable[str]) -> Any:
        """The chunks with these ids. An id that is not Unicode is that of none."""
        return self.ids(ID, [each for each in ids if _is_unicode(each)])

    def ordinals(self, ordinals: Sequence[int]) -> Any:
        """The documents with these ordinals."""
        return java(f"{_DOCUMENT}.LongPoint").newSetQuery(ORDINAL, java_array("long", ordinals))

    def between(self, first: int, last: int) -> Any:
        """The documents with an ordinal from ``first`` to ``last``."""
        return java(f"{_DOCUMENT}.LongPoint").newRangeQuery(ORDINAL, first, last)

    def any_of(self, queries: Iterable[Any]) -> Any:
        """What any of the queries matches."""
        builder = self._builder()
        for query in queries:
            builder.add(query, self._should)
        return builder.build()

    def _metadata_leaf(self, node: KeywordEquals | NumberRange | DateRange) -> Any:
        field = lucene_field(node.field)
        match node:
            case KeywordEquals():
                return self._term_query(self._term(field, node.value))
            case NumberRange():
                return _number_range(field, node)
            case DateRange():
                first = -_LAST_MS if node.first_ms is None else node.first_ms
                last = _LAST_MS if node.end_ms is None else node.end_ms - 1
                return java(f"{_DOCUMENT}.LongPoint").newRangeQuery(field, first, last)

    # Groups

    def _and(self, node: And, made: dict[int, Compiled] | None) -> Compiled:
        builder = self._builder()
        scored = False
        for child in node.children:
            query, child_scores = self.query(child, made)
            if isinstance(child, Not):
                builder.add(query, self._must_not)
            elif child_scores:
                builder.add(query, self._must)
                scored = True
            else:
                builder.add(query, self._filter)
        return self._weighted(builder.build(), node.weight), scored

    def _or(self, node: Or, made: dict[int, Compiled] | None) -> Compiled:
        field = _common_keyword_field(node)
        if field is not None:
            values = (child.value for child in node.children if isinstance(child, KeywordEquals))
            return self.ids(lucene_field(field), values), False
        compiled = [self.query(child, made) for child in node.children]
        scored = any(child_scores for _, child_scores in compiled)
        builder = self._builder()
        for query, child_scores in compiled:
            if scored and not child_scores:
                query = self._boost(self._constant(query), 0.0)
            builder.add(query, self._should)
        return self._weighted(builder.build(), node.weight), scored

    # Text leaves

    def _text_leaf(self, leaf: Term | Phrase, names: Sequence[str]) -> Any:
        slop = leaf.slop if isinstance(leaf, Phrase) else 0
        found = [self._spelling(name, each, slop) for name in names for each in leaf.spellings]
        if len(found) == 1:
            return found[0]
        if len(found) == 2:
            pair = self._pair
            pair.array[0], pair.array[1] = found
            return self._dis_max(pair.list, self._no_tie_breaker)
        alternatives = self._as_list(java_array(f"{_SEARCH}.Query", found))
        return self._dis_max(alternatives, self._no_tie_breaker)

    def _spelling(self, name: str, terms: tuple[str, ...], slop: int) -> Any:
        field = self._fields[name]
        if len(terms) == 1:
            return self._term_query(self._term(field, terms[0]))
        return self._phrase_query(slop, field, *terms)

    def _prefix(self, leaf: Prefix, names: Sequence[str]) -> Any:
        prefix_query = java(f"{_SEARCH}.PrefixQuery")
        found = [
            prefix_query(self._term(self._fields[name], spelling[0]))
            for name in names
            for spelling in leaf.spellings
        ]
        return self._constant(found[0] if len(found) == 1 else self.any_of(found))

    def _in_field(self, leaf: TextLeaf, name: str) -> Any:
        return (
            self._prefix(leaf, (name,))
            if isinstance(leaf, Prefix)
            else self._text_leaf(leaf, (name,))
        )

    def _weighted(self, query: Any, weight: float) -> Any:
        return query if weight == 1 else self._boost(query, float(weight))


@functools.cache
def compiler() -> Compiler:
    """The one compiler of this process; starts Java."""
    return Compiler()


def _keyword_spellings(keyword: str) -> tuple[tuple[str, ...], ...]:
    try:
        return Phrase(keyword).spellings
    except ArgumentError:
        return ()  # a keyword without a token counts nowhere


def _common_keyword_field(node: Or) -> str | None:
    """The field, where all alternatives are values of one: long lists are one query then."""
    fields = {child.field if isinstance(child, KeywordEquals) else None for child in node.children}
    return fields.pop() if len(fields) == 1 else None


def _number_range(field: str, node: NumberRange) -> Any:
    point = java(f"{_DOCUMENT}.DoublePoint")
    lower = float("-inf") if node.lower is None else node.lower
    upper = float("inf") if node.upper is None else node.upper
    if not node.include_lower:
        lower = point.nextUp(lower)
    if not node.include_upper:
        upper = point.nextDown(upper)
    return point.newRangeQuery(field, lower, upper)


def _is_unicode(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= each <= "\udfff" for each in text)


def _float32(number: float) -> float:
    return struct.unpack("<f", struct.pack("<f", number))[0]
