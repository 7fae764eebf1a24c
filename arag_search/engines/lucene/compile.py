"""The compiler of trees to Lucene queries, in a text form that ``java/Queries.java`` reads.

A text leaf is the best of its fields and spellings (a dis_max without tie breaker), so that a match
in title and content scores the better of the two; a prefix scores its weight; metadata filter.

The text is a list of words in prefix order, each terminated by U+0000, so that queries are composed
by concatenating texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

from arag_search.corpus import is_unicode, nfc
from arag_search.engines import compiling
from arag_search.engines.compiling import (
    Leaves,
    date_bounds,
    index_field,
    searched_fields,
    shared_keyword_field,
)
from arag_search.engines.lucene.schema import DOC_ID, ID, ORDINAL, lucene_field
from arag_search.query.analysis import spellings_of
from arag_search.query.fields import TEXT_FIELDS
from arag_search.query.matching import patterns_of
from arag_search.query.tree import (
    And,
    DateRange,
    Demote,
    Fuzzy,
    KeywordEquals,
    Node,
    Not,
    NumberRange,
    Or,
    Phrase,
    Prefer,
    Prefix,
    Regex,
    Scope,
    Term,
    TextLeaf,
)

EVERYTHING = "*\0"
"""The query that matches every document."""

LAST_ORDINAL = (1 << 63) - 1

Compiled = tuple[str, bool]
"""A query, and whether its matches have a score."""


def compiled(node: Node) -> Compiled:
    """Return the query of a node, and whether its matches have a score."""
    match node:
        case Term() | Phrase():
            return _weighted(_text_leaf(node, searched_fields(node)), node.weight), True
        case And():
            return _and(node)
        case Or():
            return _or(node)
        case Prefix() | Fuzzy():
            return _weighted(_expanded(node, searched_fields(node)), node.weight), True
        case KeywordEquals() | NumberRange() | DateRange():
            return _metadata_leaf(node), False
        case Regex():
            return ordinals(compiling.known_matches(node)), False
        case _:
            assert_never(node)


def filtered(query: str | None, *filters: str | None) -> str:
    """Restrict a query by filters. A filter of None is none; a query of None matches everything."""
    clauses = [f"#\0{text}" for text in filters if text is not None]
    if not clauses:
        return EVERYTHING if query is None else query
    if query is not None:
        clauses.insert(0, f"+\0{query}")
    return _bool(clauses)


def scope_query(scope: Scope) -> str:
    """Return the filter of a scope, which may consist of exclusions only."""
    clauses = [f"#\0{compiled(node)[0]}" for node in scope.include] or [f"#\0{EVERYTHING}"]
    clauses += [f"-\0{compiled(node)[0]}" for node in scope.exclude]
    return _bool(clauses)


def keywords_query(keywords: Iterable[str]) -> str | None:
    """Return Eq. 1 for a similarity that scores boost x frequency; None if no keyword has a token.

    Every keyword counts in every field and every spelling.
    """
    clauses = [
        f"?\0{_boosted(_in(field, *_spelling(spelling, 0)), len(keyword))}"
        for keyword in map(nfc, keywords)
        for spelling in spellings_of(keyword)
        for field in TEXT_FIELDS
    ]
    return _bool(clauses) if clauses else None


def leaf_queries(node: Node) -> Leaves[str]:
    """Return the positive text leaves from left to right: the text, and a query per field."""
    return compiling.leaf_queries(node, compiled, _in_field)


def chunk_ids(ids: Iterable[str]) -> str:
    """Match the chunks with these ids. An id that is not Unicode matches nothing."""
    return _values(ID, [chunk_id for chunk_id in ids if is_unicode(chunk_id)])


def document_ids(ids: Iterable[str]) -> str:
    """Match the chunks of the documents with these ids."""
    return _values(DOC_ID, list(ids))


def ordinals(values: Sequence[int]) -> str:
    """Match the documents with these ordinals."""
    return f"o\0{ORDINAL}\0{len(values)}\0" + "".join(f"{ordinal}\0" for ordinal in values)


def between(first: int, last: int) -> str:
    """Match the documents with an ordinal from ``first`` to ``last``, inclusive."""
    return f"l\0{ORDINAL}\0{first}\0{last}\0"


def any_of(queries: Iterable[str]) -> str:
    """Match the documents that any of the queries matches."""
    return _bool([f"?\0{query}" for query in queries])


# Groups


def _and(node: And) -> Compiled:
    clauses: list[str] = []
    demoted: list[str] = []
    scored = False
    for child in node.children:  # in the order of their kinds
        match child:
            case Not():
                clauses.append(f"-\0{compiled(child.child)[0]}")
            case Prefer():
                clauses.append(f"?\0{compiled(child.child)[0]}")
                scored = True
            case Demote():
                demoted.append(f"{_double(child.factor)}\0{compiled(child.child)[0]}")
            case _:
                query, child_scores = compiled(child)
                clauses.append(f"{'+' if child_scores else '#'}\0{query}")
                scored = scored or child_scores
    query = clauses[0][2:] if scored and len(clauses) == 1 else _bool(clauses)
    if scored and demoted:
        query = f"~\0{query}{len(demoted)}\0{''.join(demoted)}"
    return _weighted(query, node.weight), scored


def _or(node: Or) -> Compiled:
    field = shared_keyword_field(node)
    if field is not None:
        values = [child.value for child in node.children if isinstance(child, KeywordEquals)]
        return _values(lucene_field(field), values), False
    children = [compiled(child) for child in node.children]
    scored = any(child_scores for _, child_scores in children)
    unscored = "?\0" + _boosted("c\0", 0) if scored else "?\0"
    clauses = [("?\0" if child_scores else unscored) + query for query, child_scores in children]
    return _weighted(_bool(clauses), node.weight), scored


def _bool(clauses: Sequence[str]) -> str:
    """Combine clauses, which begin with a sign: + must, - must not, # filter, ? should."""
    return f"b\0{len(clauses)}\0" + "".join(clauses)


# Leaves


def _text_leaf(leaf: Term | Phrase, names: Sequence[str]) -> str:
    slop = leaf.slop if isinstance(leaf, Phrase) else 0
    spellings = [_spelling(terms, slop) for terms in leaf.spellings]
    queries: list[str] = []
    for name in names:
        field = index_field(name, leaf.language)
        queries += [f"{kind}\0{field}\0{words}\0" for kind, words in spellings]
    return queries[0] if len(queries) == 1 else f"d\0{len(queries)}\0{''.join(queries)}"


def _spelling(terms: tuple[str, ...], slop: int) -> tuple[str, str]:
    """Return the kind of the query for a word or phrase, and what comes after its field."""
    if len(terms) == 1:
        return "t", terms[0]
    return "p", "\0".join((str(slop), str(len(terms)), *terms))


def _in(field: str, kind: str, words: str) -> str:
    return f"{kind}\0{field}\0{words}\0"


def _expanded(leaf: Prefix | Fuzzy, names: Sequence[str]) -> str:
    queries = [
        f"x\0{index_field(name, pattern.language)}\0{word}\0{pattern.edits}\0"
        for pattern in patterns_of(leaf)
        for name in names
        for (word,) in pattern.spellings
    ]
    return "c\0" + (queries[0] if len(queries) == 1 else any_of(queries))


def _in_field(leaf: TextLeaf, name: str, weight: float) -> str:
    if isinstance(leaf, Prefix | Fuzzy):
        return _weighted(_expanded(leaf, (name,)), weight)
    return _weighted(_text_leaf(leaf, (name,)), weight)


def _metadata_leaf(node: KeywordEquals | NumberRange | DateRange) -> str:
    field = lucene_field(node.field)
    match node:
        case KeywordEquals():
            return f"t\0{field}\0{_escaped(node.value)}\0"
        case NumberRange():
            lower = float("-inf") if node.lower is None else node.lower
            upper = float("inf") if node.upper is None else node.upper
            ends = f"{_double(lower)}\0{node.include_lower:d}\0"
            return f"n\0{field}\0{ends}{_double(upper)}\0{node.include_upper:d}\0"
        case DateRange():
            first, last = date_bounds(node)
            return f"l\0{field}\0{first}\0{last}\0"


def _values(field: str, values: Sequence[str]) -> str:
    return f"s\0{field}\0{len(values)}\0" + "".join(f"{_escaped(value)}\0" for value in values)


def _weighted(query: str, weight: float) -> str:
    return query if weight == 1 else _boosted(query, weight)


def _boosted(query: str, weight: float) -> str:
    return f"^\0{_double(weight)}\0{query}"


def _double(number: float) -> str:
    text = repr(float(number))
    return text.replace("inf", "Infinity") if "inf" in text else text


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\0", "\\0")
