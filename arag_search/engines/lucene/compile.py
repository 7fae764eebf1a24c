"""The compiler of clauses to Lucene queries, in a text form that ``java/Queries.java`` reads.

The text is a list of words in prefix order, each terminated by U+0000, so that queries are composed
by concatenating texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from arag_search.corpus import is_unicode, nfc
from arag_search.engines.lucene.schema import escaped, lucene_field
from arag_search.engines.stored import ID, ORDINAL
from arag_search.plan.clauses import Clause, Way
from arag_search.query.analysis import spellings_of
from arag_search.query.fields import DOC_ID, TEXT_FIELDS

EVERYTHING = "*\0"
"""The query that matches every document."""

LAST_ORDINAL = (1 << 63) - 1

_Compiled = tuple[str, bool]
"""A query, and whether its matches have a score."""


def compiled(clause: Clause) -> _Compiled:
    """Return the query of a clause with its weight, not its role, and whether matches have a
    score."""
    query, scored = _unweighted(clause)
    return (query if clause.weight == 1 else _boosted(query, clause.weight)), scored


def _unweighted(clause: Clause) -> _Compiled:
    if values := clause.values:
        return _values(lucene_field(values[0]), values[1]), False
    match clause.kind:
        case "word" | "phrase":
            return _best(clause.ways, clause.slop), True
        case "all":
            return _all(clause)
        case "any":
            return _any(clause)
        case "prefix" | "fuzzy":
            queries = [f"x\0{name}\0{word}\0{clause.edits}\0" for name, (word,) in clause.ways]
            return f"c\0{any_query(queries)}", True
        case "wildcard":
            return any_query(f"w\0{name}\0{word}\0" for name, (word,) in clause.ways), False
        case _:
            return _condition(clause), False


def _condition(clause: Clause) -> str:
    if clause.known is not None:
        return ordinals(clause.known)
    if clause.interval is None:
        raise ValueError(f"what {clause.text} matches is not known")
    column, _, lower, upper = clause.interval
    kind = "l" if clause.interval.storage == "long" else "n"
    return f"{kind}\0{lucene_field(column)}\0{lower}\0{upper}\0"


def filtered(query: str | None, *filters: str | None) -> str:
    """Restrict a query by filters. A filter of None is none; a query of None matches everything."""
    clauses = [f"#\0{text}" for text in filters if text is not None]
    if not clauses:
        return EVERYTHING if query is None else query
    if query is not None:
        clauses.insert(0, f"+\0{query}")
    return _bool(clauses)


def keywords_query(keywords: Iterable[str]) -> str | None:
    """Return Eq. 1 for a similarity that scores boost x frequency; None if no keyword has a token.

    Every keyword counts in every field and every spelling.
    """
    clauses = [
        f"?\0{_boosted(_way(field, spelling, 0), len(keyword))}"
        for keyword in map(nfc, keywords)
        for spelling in spellings_of(keyword)
        for field in TEXT_FIELDS
    ]
    return _bool(clauses) if clauses else None


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


def any_query(queries: Iterable[str]) -> str:
    """Match the documents that any of the queries matches."""
    return _bool([f"?\0{query}" for query in queries])


# Groups


def _all(clause: Clause) -> _Compiled:
    wanted = list(map(compiled, clause.having("wanted")))
    optional = [f"?\0{compiled(part)[0]}" for part in clause.having("preferred")]
    clauses = [f"{'+' if scored else '#'}\0{query}" for query, scored in wanted]
    clauses.sort(key=lambda text: text[0] == "#")
    clauses = clauses or [f"#\0{EVERYTHING}"]
    clauses += [f"-\0{compiled(part)[0]}" for part in clause.having("excluded")]
    clauses += optional
    scored = bool(optional) or any(has_score for _, has_score in wanted)
    query = wanted[0][0] if scored and len(clauses) == 1 else _bool(clauses)
    demoted = [f"{part.factor}\0{compiled(part)[0]}" for part in clause.having("demoted")]
    if demoted and scored:
        query = f"~\0{query}{len(demoted)}\0{''.join(demoted)}"
    return query, scored


def _any(clause: Clause) -> _Compiled:
    queries = list(map(compiled, clause.parts))
    scored = True in [is_scored for _, is_scored in queries]
    unscored = "?\0" + _boosted("c\0", 0) if scored else "?\0"
    return _bool([("?\0" if has_score else unscored) + text for text, has_score in queries]), scored


def _bool(clauses: Sequence[str]) -> str:
    """Combine clauses, which begin with a sign: + must, - must not, # filter, ? should."""
    return f"b\0{len(clauses)}\0" + "".join(clauses)


# Leaves


def _best(ways: Sequence[Way], slop: int) -> str:
    queries = [_way(name, terms, slop) for name, terms in ways]
    return queries[0] if len(queries) == 1 else f"d\0{len(queries)}\0{''.join(queries)}"


def _way(field: str, terms: tuple[str, ...], slop: int) -> str:
    """Return the query for a word or phrase in a field."""
    if len(terms) == 1:
        return f"t\0{field}\0{terms[0]}\0"
    words = "\0".join(terms)
    return f"p\0{field}\0{slop}\0{len(terms)}\0{words}\0"


def _values(field: str, values: Sequence[str]) -> str:
    if len(values) == 1:
        return f"t\0{field}\0{escaped(values[0])}\0"
    return f"s\0{field}\0{len(values)}\0" + "".join(f"{escaped(value)}\0" for value in values)


def _boosted(query: str, weight: float) -> str:
    return f"^\0{float(weight)}\0{query}"
