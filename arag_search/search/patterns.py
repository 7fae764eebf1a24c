"""The regular expressions of a query, verified on stored text before an engine answers it.

An engine has no patterns. It lists what the query lets match with every pattern taken as true, also
one under a NOT; these texts are read and matched; and each pattern of the query becomes the list of
those that match it. So hits, scores, totals and counts are exact, and the same on every engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from arag_search.corpus import chunk_ordinal
from arag_search.engines.base import Deadline, Granularity, SearchEngine
from arag_search.query.matching import matches_regex
from arag_search.query.problems import (
    SLOW_PATTERN,
    TOO_MANY_FOR_PATTERN,
    Problem,
    QueryError,
    shortened,
)
from arag_search.query.regexes import MAX_QUERY_S, SlowPatternError, Stopwatch, certain_words
from arag_search.query.tree import (
    EXACT_MARK,
    And,
    Leaf,
    Node,
    Or,
    Phrase,
    Regex,
    Scope,
    all_of,
    any_of,
    has_patterns,
    leaves,
    unweighted,
    with_leaves,
)

MAX_VERIFIED = 20_000
"""The number of passages or sentences, within the scope, whose texts are read for a query."""
_BATCH = 1_000


def with_matches(
    query: Node,
    engine: SearchEngine,
    granularity: Granularity = "chunk",
    scope: Scope | None = None,
    deadline: Deadline | None = None,
) -> Node:
    """Return the query with the matches of its patterns, which engines can then search; the same
    one if it has none.

    Raises QueryError if more than MAX_VERIFIED texts might match, or a pattern takes too long, and
    QueryTimeoutError.
    """
    patterns = [leaf for leaf in leaves(query) if isinstance(leaf, Regex)]
    if not patterns:
        return query
    within = candidates(query)
    narrowed = scope
    if within is not None:
        include, exclude = ((), ()) if scope is None else (scope.include, scope.exclude)
        narrowed = Scope((*include, within), exclude)
    listed = engine.ordinals(narrowed, deadline, granularity=granularity)
    ordinals = list(islice(listed, MAX_VERIFIED + 1))
    if len(ordinals) > MAX_VERIFIED:
        unit = "sentences" if granularity == "sentence" else "passages"
        message = TOO_MANY_FOR_PATTERN.format(limit=MAX_VERIFIED, unit=unit)
        raise _refused(query, patterns[0], message)
    matched: dict[Regex, list[int]] = {pattern: [] for pattern in patterns}
    watch = Stopwatch(MAX_QUERY_S)
    for ordinal, title, content in _texts(engine, ordinals, granularity, scope):
        if deadline is not None:
            deadline.check()
        for pattern, members in matched.items():
            try:
                if matches_regex(pattern, title, content, watch):
                    members.append(ordinal)
            except SlowPatternError:
                raise _refused(query, pattern, SLOW_PATTERN) from None
    known = {pattern: frozenset(members) for pattern, members in matched.items()}

    def verified(leaf: Leaf) -> Leaf:
        return replace(leaf, matches=known[leaf]) if isinstance(leaf, Regex) else leaf

    return with_leaves(query, verified)


def scope_with_matches(
    scope: Scope, engine: SearchEngine, deadline: Deadline | None = None
) -> Scope:
    """Return a scope whose last condition has the matches of its patterns. Raises the errors of
    ``with_matches``."""
    *others, condition = scope.include
    rest = Scope(tuple(others), scope.exclude)
    known = with_matches(condition, engine, scope=rest, deadline=deadline)
    return Scope((*others, known), scope.exclude)


def candidates(node: Node) -> Node | None:
    """Return a condition that everything meets that a query may match; None if that is everything.

    A pattern is replaced by the words that each of its matches has, or taken as true.
    """
    match node:
        case Regex():
            words = certain_words(node.pattern, node.ignore_case)
            exact = [Phrase(EXACT_MARK + word, field=node.field) for word in words]
            return all_of(*exact) if exact else None
        case And():
            kept = [part for child in node.positive if (part := candidates(child)) is not None]
            excluded = [child for child in node.excluded if not has_patterns(child.child)]
            return all_of(*kept, *excluded) if kept else None
        case Or():
            parts = [candidates(child) for child in node.children]
            return None if None in parts else any_of(*(part for part in parts if part is not None))
        case _:
            return unweighted(node)


def _texts(
    engine: SearchEngine, ordinals: list[int], granularity: Granularity, scope: Scope | None
) -> Iterator[tuple[int, str, str]]:
    """Yield ordinal, title and content of each passage or sentence that is still there."""
    by_chunk: dict[int, list[int]] = {}
    for ordinal in ordinals:
        by_chunk.setdefault(chunk_ordinal(ordinal), []).append(ordinal)
    chunks = list(by_chunk)
    for at in range(0, len(chunks), _BATCH):
        for chunk in engine.chunks_at(chunks[at : at + _BATCH], scope):
            if chunk is None:
                continue
            if granularity == "chunk":
                yield chunk.ordinal, chunk.title, chunk.content
                continue
            sentences = chunk.sentences()
            for ordinal in by_chunk[chunk.ordinal]:
                yield ordinal, chunk.title, sentences[ordinal - chunk.ordinal]


def _refused(query: Node, pattern: Regex, message: str) -> QueryError:
    """Return the error for a pattern whose matches cannot be found."""
    problem = Problem(pattern.start + 1, shortened(str(pattern)), message)
    return QueryError(str(query), (problem,), None)
