"""The results of each part of a query alone: counts, and the best passage of a branch of an OR that
has no passage on the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from arag_search.engines.base import (
    MAX_TOTAL,
    Deadline,
    Granularity,
    Hit,
    Page,
    SearchEngine,
    SearchRequest,
)
from arag_search.errors import QueryTimeoutError
from arag_search.manifest import Manifest
from arag_search.plan.clauses import (
    Clause,
    ResolvedPlan,
    all_of,
    has_patterns,
    wanted_leaves,
)
from arag_search.plan.lower import words_clause
from arag_search.query import analysis
from arag_search.query.fields import TITLE
from arag_search.search.feedback import ClauseCount, exclusion_note, without_exclusions
from arag_search.search.hits import BranchHit, hit_of
from arag_search.search.judging import meeting
from arag_search.search.snippets import Snippets

MAX_COUNTED = 8
"""The most parts of each kind: alternatives, names, conditions."""
MAX_TITLES = 3
"""The most passages elsewhere of a condition that are named."""
_NEXT_TO_NOTHING = 3
_MAX_READ = 6


class Branches:
    """The parts of a query that are worth a count of their own, and what is asked for them together
    with the query: ``queries`` are only counted, ``requests`` are searches for one passage.

    Parts are the alternatives of an OR, phrases and clauses on titles, and the conditions of an
    AND, at the top or in the OR, that finds at most one passage. The alternatives of an OR in an
    AND have a search, but no count; those of an OR of plain words have a count, but no search.
    Without ``operators``, each space is an OR, and plain words beside a phrase are no parts. With
    ``exclusions``, the rest of a query with NOTs is counted too.
    """

    def __init__(
        self, request: SearchRequest, manifest: Manifest, *, exclusions: bool, operators: bool
    ) -> None:
        query = request.query.root
        self._manifest = manifest
        self._request = replace(request, top_k=1, offset=0, sort=None, per_document=None)
        branches = [part for part in _alternatives(query) if operators or _says_more(part)][
            :MAX_COUNTED
        ]
        self._branches = [(part, part) for part in branches]
        self._words = _plain_words(query)[:MAX_COUNTED]
        self._inner = _inner_alternatives(query)[:MAX_COUNTED]
        self._conjunctions = [
            part for part in (query, *branches) if part.kind == "all" and part.having("wanted")[1:]
        ]
        named = list(dict.fromkeys(filter(_is_name, wanted_leaves(query))))
        self._names = named[:MAX_COUNTED] if branches or named[1:] else []
        conditions = dict.fromkeys(
            part
            for group in self._conjunctions
            for part in group.having("wanted")
            if not has_patterns(part)  # whose matches elsewhere are not known
        )
        counted = dict.fromkeys([*self._words, *self._names, *list(conditions)[:MAX_COUNTED]])
        self._counted = [part for part in counted if part not in branches]
        rest = without_exclusions(query) if exclusions else None
        self._counts_rest = rest is not None
        asked = [*self._counted, *([] if rest is None else [rest])]
        self.queries: list[tuple[ResolvedPlan, Granularity]] = [
            (ResolvedPlan(part), "chunk") for part in asked
        ]
        self.requests = [
            replace(self._request, query=ResolvedPlan(searched))
            for _, searched in (*self._branches, *self._inner)
        ]

    def told(
        self, shown: Page, counted: Sequence[int], pages: Sequence[Page], engine: SearchEngine
    ) -> tuple[tuple[ClauseCount, ...], tuple[BranchHit, ...]]:
        """Return the counts of the parts, and their best passages that the page lacks, given the
        page of the query and the answers to ``queries`` and ``requests``.

        Alternatives are not counted if the page shows all of their passages. What else the
        conditions of an AND find, if it finds next to nothing, takes a request more.
        """
        query = self._request.query.root
        counts = dict(zip(self._counted, counted, strict=False))
        for (part, _), page in zip(self._branches, pages, strict=False):
            counts[part] = min(page.count, MAX_TOTAL + 1)
        is_all_shown = shown.count <= len(shown.hits)
        totals = {**counts, query: shown.count if is_all_shown else MAX_TOTAL}
        scarce = [part for part in self._conjunctions if totals[part] <= _NEXT_TO_NOTHING]
        conditions = dict.fromkeys(
            part for group in scarce for part in _rare_conditions(group, counts)
        )
        others = self._others([p for p in conditions if counts[p] <= _MAX_READ], shown, engine)
        alternatives = [part for part, _ in self._branches]
        listed = [part for part in alternatives if not (is_all_shown and counts[part])]
        listed += [] if is_all_shown else self._words
        listed += [part for part in (*self._names, *conditions) if part not in alternatives]
        best = self._unrepresented(shown, pages)
        if query in scarce and shown.count == 1:
            named = [part for part, hits in others.items() if hits and _is_name(part)]
            best += [(part, part, others[part][0]) for part in named]
        passages: dict[str, BranchHit] = {}
        for part, searched, hit in best:
            chooser = Snippets(searched)
            chosen = hit_of(hit, chooser.choose(hit), None, is_named=chooser.names(hit))
            passages.setdefault(hit.id, BranchHit(chosen, part.text))
        titles = {
            part: tuple(
                hit.title
                for hit in sorted(hits, key=lambda hit: hit.ordinal)
                if hit.title and hit.id not in passages
            )
            for part, hits in others.items()
        }
        counted_parts = tuple(
            ClauseCount(part.text, counts[part], not part.parts, titles=titles.get(part, ()))
            for part in dict.fromkeys(listed)
        )
        return counted_parts, tuple(passages.values())

    def exclusion_note(self, shown: Page, counted: Sequence[int]) -> str:
        """Return the note on NOTs that remove more than half, given the page of the query and the
        answers to ``queries``; empty if they do not."""
        if not self._counts_rest:
            return ""
        return exclusion_note(self._request.query.root, shown.count, counted[-1])

    def _others(
        self, parts: Sequence[Clause], shown: Page, engine: SearchEngine
    ) -> dict[Clause, Sequence[Hit]]:
        """Return the passages of parts that the page lacks, of those that have only a few; none if
        no time is left."""
        if not parts:
            return {}
        requests = [
            replace(self._request, query=ResolvedPlan(part), top_k=_MAX_READ) for part in parts
        ]
        scope, deadline = self._request.scope, self._request.deadline
        try:
            _, pages = engine.counts_and_pages((), requests, scope, deadline)
        except QueryTimeoutError:  # the search itself was in time
            return {}
        ids = {hit.id for hit in shown.hits}
        others = ([hit for hit in page.hits if hit.id not in ids] for page in pages)
        return {
            part: hits for part, hits in zip(parts, others, strict=True) if len(hits) <= MAX_TITLES
        }

    def _unrepresented(
        self, shown: Page, pages: Sequence[Page]
    ) -> list[tuple[Clause, Clause, Hit]]:
        """Return each alternative that is in no passage shown, with the query for it and its best
        passage."""
        best = [
            (part, searched, page.hits[0])
            for (part, searched), page in zip((*self._branches, *self._inner), pages, strict=True)
            if page.hits
        ]
        heard = meeting([part for part, _, _ in best], shown.hits, self._manifest.metadata)
        return [branch for branch, met in zip(best, heard, strict=True) if not met]


def _alternatives(query: Clause) -> list[Clause]:
    """Return the alternatives of an OR with one that is more than a plain word."""
    if query.kind != "any" or not any(map(_says_more, query.parts)):
        return []
    return list(dict.fromkeys(query.parts))


def _plain_words(query: Clause) -> list[Clause]:
    """Return the alternatives of an OR of plain words."""
    if query.kind != "any" or any(map(_says_more, query.parts)):
        return []
    return [part for part in dict.fromkeys(query.parts) if part.kind == "word"]


def _inner_alternatives(query: Clause) -> list[tuple[Clause, Clause]]:
    """Return the alternatives of each OR in an AND, each with the AND narrowed to it."""
    if query.kind != "all":
        return []
    return [
        (part, all_of([part if other is group else other for other in query.parts]))
        for group in query.having("wanted")
        for part in _alternatives(group)
    ]


def keyword_counts(
    engine: SearchEngine,
    keywords: Sequence[str],
    scope: ResolvedPlan | None,
    deadline: Deadline | None,
) -> tuple[ClauseCount, ...]:
    """Return how many passages have each keyword, of the first MAX_COUNTED; none if there is only
    one, or no time left."""
    phrases = [
        words_clause(keyword, "") for keyword in dict.fromkeys(keywords) if analysis.terms(keyword)
    ]
    if len(phrases) < 2:
        return ()
    queries: list[tuple[ResolvedPlan, Granularity]] = [
        (ResolvedPlan(phrase), "chunk") for phrase in phrases[:MAX_COUNTED]
    ]
    try:
        counts = engine.counts(queries, scope, deadline)
    except QueryTimeoutError:
        return ()
    return tuple(
        ClauseCount(str(phrase), count, leaf=True)
        for (phrase, _), count in zip(queries, counts, strict=True)
    )


def _rare_conditions(group: Clause, counts: Mapping[Clause, int]) -> list[Clause]:
    """Return the conditions of an AND that have a count, without the most frequent one if it is a
    group."""
    parts = [part for part in group.having("wanted") if part in counts]
    most = max((counts[part] for part in parts), default=0)
    return [part for part in parts if not part.parts or counts[part] < most]


def _is_name(leaf: Clause) -> bool:
    """Return whether a clause is a phrase or a clause on titles."""
    return leaf.kind == "phrase" or (leaf.is_text and leaf.field == TITLE)


def _says_more(part: Clause) -> bool:
    """Return whether an alternative is more than a plain word."""
    if part.kind == "word":
        return _is_name(part)
    return part.kind == "all" or part.is_text
