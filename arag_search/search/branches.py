"""The results of each part of a query alone: counts, and the best passage of a branch of an OR that
has no passage on the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from arag_search.engines.base import (
    MAX_TOTAL,
    Deadline,
    Granularity,
    Page,
    SearchEngine,
    SearchRequest,
)
from arag_search.errors import QueryTimeoutError
from arag_search.manifest import Manifest
from arag_search.query import analysis
from arag_search.query.fields import TITLE
from arag_search.query.tree import (
    And,
    Leaf,
    Node,
    Or,
    Phrase,
    Scope,
    Term,
    TextLeaf,
    positive_leaves,
)
from arag_search.search.feedback import ClauseCount
from arag_search.search.judging import meeting
from arag_search.search.results import BranchHit, hit_of
from arag_search.search.snippets import Snippets

MAX_COUNTED = 8


class Branches:
    """The parts of a query that are worth a count of their own, and the searches for them. These
    parts are the alternatives of an OR that are more than plain words and, elsewhere, phrases and
    clauses on titles; at most MAX_COUNTED, and none if there is only one. Each search is for one
    passage, so that count and best passage take no further request.
    """

    def __init__(self, request: SearchRequest) -> None:
        query = request.query
        branches = (
            [child for child in query.children if _says_more(child)]
            if isinstance(query, Or)
            else []
        )
        named = [leaf for leaf in positive_leaves(query) if _names(leaf)]
        parts = list(dict.fromkeys([*branches, *named]))[:MAX_COUNTED]
        self._parts: list[Node] = parts if len(parts) > 1 else []
        self._branches = [part for part in self._parts if part in branches]
        self.requests = [
            replace(
                request,
                query=part,
                top_k=1,
                offset=0,
                with_text=request.with_text and part in branches,
                sort=None,
                per_document=None,
            )
            for part in self._parts
        ]

    def counts(self, pages: Sequence[Page]) -> tuple[ClauseCount, ...]:
        """Return how many passages each part matches alone; ``pages`` are those of the requests."""
        return tuple(
            ClauseCount(str(part), min(page.count, MAX_TOTAL + 1), isinstance(part, Leaf))
            for part, page in zip(self._parts, pages, strict=True)
        )

    def unrepresented(
        self, shown: Page, pages: Sequence[Page], manifest: Manifest
    ) -> tuple[BranchHit, ...]:
        """Return the best passage of each branch that has none among the passages shown."""
        ids = {hit.id for hit in shown.hits}
        candidates = [
            (part, page.hits[0])
            for part, page in zip(self._parts, pages, strict=True)
            if part in self._branches and page.hits and page.hits[0].id not in ids
        ]
        heard = meeting([part for part, _ in candidates], shown.hits, manifest.metadata)
        return tuple(
            BranchHit(hit_of(best, Snippets(part).choose(best), None), str(part))
            for (part, best), met in zip(candidates, heard, strict=True)
            if not met
        )


def keyword_counts(
    engine: SearchEngine, keywords: Sequence[str], scope: Scope | None, deadline: Deadline | None
) -> tuple[ClauseCount, ...]:
    """Return how many passages have each keyword, of the first MAX_COUNTED; none if there is only
    one, or no time left."""
    phrases = [Phrase(keyword) for keyword in dict.fromkeys(keywords) if analysis.terms(keyword)]
    if len(phrases) < 2:
        return ()
    queries: list[tuple[Node, Granularity]] = [
        (phrase, "chunk") for phrase in phrases[:MAX_COUNTED]
    ]
    try:
        counts = engine.counts(queries, scope, deadline)
    except QueryTimeoutError:
        return ()
    return tuple(
        ClauseCount(str(phrase), count, leaf=True)
        for (phrase, _), count in zip(queries, counts, strict=True)
    )


def _names(leaf: Leaf) -> bool:
    """Return whether a leaf is a phrase or a clause on titles."""
    return isinstance(leaf, TextLeaf) and (isinstance(leaf, Phrase) or leaf.field == TITLE)


def _says_more(child: Node) -> bool:
    """Return whether an alternative is more than a plain word."""
    if isinstance(child, And):
        return True
    return isinstance(child, TextLeaf) and (not isinstance(child, Term) or _names(child))
