"""The results of each part of a query alone: counts, and the best passage of an alternative of an
OR that has no passage on the page."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from arag_search.engines.base import MAX_TOTAL, Hit, Page, SearchRequest
from arag_search.errors import QueryTimeoutError
from arag_search.plan.clauses import (
    Clause,
    ResolvedPlan,
    all_of,
    has_lookups,
    wanted_leaves,
)
from arag_search.query.fields import TITLE
from arag_search.search.advice.questions import Advice, Answers, Questions, Subject
from arag_search.search.advice.relaxing import (
    nearest_hits,
    relaxed_queries,
    relaxed_requests,
)
from arag_search.search.advice.told import ClauseCount, Told
from arag_search.search.hits import HitBeside
from arag_search.search.snippets import Snippets

MAX_COUNTED = 8
"""The most parts of each kind: alternatives, names, conditions."""
MAX_TITLES = 3
"""The most passages elsewhere of a condition that are named."""
_NEXT_TO_NOTHING = 3
_MAX_READ = 6


class Parts:
    """The parts of a query that are worth a count of their own.

    Parts are the ``alternatives`` of an OR, ``names`` (phrases and clauses on titles), and the
    conditions of an AND, at the top or in the OR (``conjunctions``), that finds next to nothing.
    The alternatives of an OR in an AND (``inner``) have a search, but no count; ``words``, those of
    an OR of plain words, have a count, but no search. Without ``operators``, each space is an OR,
    and plain words beside a phrase are no parts.
    """

    def __init__(self, query: Clause, *, operators: bool) -> None:
        parts = [part for part in _alternatives(query) if operators or _says_more(part)]
        self.alternatives = parts[:MAX_COUNTED]
        self.words = _plain_words(query)[:MAX_COUNTED]
        self.inner = _inner_alternatives(query)[:MAX_COUNTED]
        self.conjunctions = [
            part
            for part in (query, *self.alternatives)
            if part.kind == "all" and part.having("wanted")[1:]
        ]
        named = list(dict.fromkeys(filter(_is_name, wanted_leaves(query))))
        self.names = named[:MAX_COUNTED] if self.alternatives or named[1:] else []

    def counted(self) -> list[Clause]:
        """Return the parts that are counted whatever a page shows."""
        conditions = dict.fromkeys(
            part
            for group in self.conjunctions
            for part in group.having("wanted")
            if not has_lookups(part)  # whose matches elsewhere are not known
        )
        counted = dict.fromkeys([*self.words, *self.names, *list(conditions)[:MAX_COUNTED]])
        return [part for part in counted if part not in self.alternatives]

    def searches(self) -> list[tuple[Clause, Clause]]:
        """Return the parts whose best passage is searched, each with the query for it."""
        return [*((part, part) for part in self.alternatives), *self.inner]


def parts(subject: Subject, page: Page | None) -> Advice[Told]:
    """Tell the counts of the parts, and the best passages of those that the page lacks.

    A part that a known page has is not searched, and the page tells its count if it shows all. What
    else the conditions of an AND find, if it finds next to nothing, takes a second step.
    """
    query, request, metadata = subject.query, subject.request, subject.metadata
    of_query = Parts(query, operators=subject.asked.operators)
    searches, seen = of_query.searches(), dict[Clause, int]()
    if page is not None:
        if not page.count:
            return Told()
        met = subject.meeting([part for part, _ in searches], page)
        seen = {part: len(ids) for (part, _), ids in zip(searches, met, strict=True) if ids}
        searches = [(part, searched) for part, searched in searches if part not in seen]
        matches = {**seen, query: page.count}
        of_query.conjunctions = [
            part for part in of_query.conjunctions if matches.get(part, 0) <= _NEXT_TO_NOTHING
        ]
    counted = of_query.counted()
    if page is not None and page.count > len(page.hits):
        counted += [part for part in seen if part in of_query.alternatives]
    if not (counted or searches):
        return Told()
    answers: Answers = yield Questions(
        [(part, "chunk") for part in counted], [_search(request, plan, 1) for _, plan in searches]
    )
    page = answers.page
    if not page.count:
        return Told()
    counts = {part: seen.get(part, 0) for part in of_query.alternatives}
    counts |= {part: answers.counts[part, "chunk"] for part in counted}
    alone_by_part = list(zip(searches, answers.pages, strict=True))
    counts |= {
        part: min(alone.count, MAX_TOTAL + 1)
        for (part, plan), alone in alone_by_part
        if plan is part
    }
    is_all_shown = page.count <= len(page.hits)
    totals = {**counts, query: page.count if is_all_shown else MAX_TOTAL}
    scarce = [part for part in of_query.conjunctions if totals[part] <= _NEXT_TO_NOTHING]
    conditions = dict.fromkeys(part for group in scarce for part in _rare(group, counts))
    others: dict[Clause, list[Hit]] = {}
    nearest: dict[Clause, HitBeside] = {}
    rare = [part for part in conditions if counts[part] <= _MAX_READ]
    dead = [part for part in scarce if not totals[part]] if subject.asked.relax else []
    relaxed = [(part, step) for part in dead for step in relaxed_queries(part)]
    if rare or relaxed:
        best_only = replace(request, top_k=1)
        searches = [_search(request, part, _MAX_READ) for part in rare]
        try:
            answers = yield Questions(
                pages=[*searches, *relaxed_requests(best_only, [step for _, step in relaxed])]
            )
            others = _elsewhere(rare, answers.pages, page)
            for (part, step), near in zip(relaxed, answers.pages[len(rare) :], strict=True):
                for hit in () if part in nearest else nearest_hits(part, step, near, metadata):
                    nearest[part] = hit
        except QueryTimeoutError:  # the counts were in time
            pass
    listed = [part for part in of_query.alternatives if not (is_all_shown and counts[part])]
    listed += [] if is_all_shown else of_query.words
    listed += [p for p in (*of_query.names, *conditions) if p not in of_query.alternatives]
    best = [
        (part, plan, alone.hits[0])
        for (part, plan), alone in alone_by_part
        # A frequent word is no name: every space is an OR.
        if alone.hits and (_says_more(part) or counts.get(part, 0) <= _MAX_READ)
    ]
    met = subject.meeting([part for part, _, _ in best], page)
    best = [branch for branch, ids in zip(best, met, strict=True) if not ids]
    lacking = [branch for branch in best if branch[0] in of_query.alternatives]
    hits: tuple[Hit, ...] = ()
    if lacking and subject.asked.first_page == request.top_k:
        hits = _with_places(subject.meeting(of_query.alternatives, page), page.hits, lacking)
        best = [branch for branch in best if branch[2] not in hits]
        page = replace(page, hits=hits)
        subject = Subject(subject.asked, request, subject.metadata)
    if query in scarce and page.count == 1:
        best += [(part, part, hits[0]) for part, hits in others.items() if hits and _is_name(part)]
    passages: dict[str, HitBeside] = {}
    for part, plan, hit in best:
        passages.setdefault(hit.id, HitBeside(Snippets(plan).shown(hit), branch=part.text))
    shown = {*passages, *(hit.id for hit in page.hits)}
    apart = {*passages, *(near.hit.id for near in nearest.values())}
    listed = list(dict.fromkeys(listed))
    on_page = {} if hits else dict(seen)
    if not is_all_shown:
        few = [p for p in listed if p not in on_page and 0 < counts[p] <= len(page.hits)]
        on_page |= zip(few, map(len, subject.meeting(few, page)), strict=True)
    return Told(
        branches=tuple(
            ClauseCount(
                part.text,
                counts[part],
                None if part.parts else part,
                lacks=nearest[part].lacks if part in nearest else (),
                is_shown=not is_all_shown and counts[part] == on_page.get(part, 0) > 0,
                titles=tuple(
                    dict.fromkeys(
                        hit.title
                        for hit in sorted(others.get(part, ()), key=lambda hit: hit.ordinal)
                        if hit.title and hit.id not in apart
                    )
                ),
            )
            for part in listed
        ),
        nearest=tuple(near for near in nearest.values() if near.hit.id not in shown),
        unrepresented=tuple(passages.values()),
        hits=hits,
    )


def _with_places(
    met: Sequence[Collection[str]], hits: Sequence[Hit], best: Sequence[tuple[Clause, Clause, Hit]]
) -> tuple[Hit, ...]:
    """Return the hits of a page with the best passages of alternatives in the last places. The last
    hits give way, but the first of each alternative, whose matches are ``met``, stays."""
    firsts = {next((hit.id for hit in hits if hit.id in ids), "") for ids in met}
    free = [hit for hit in hits if hit.id not in firsts]
    taken = list({hit.id: hit for _, _, hit in best}.values())[: len(free)]
    given = free[len(free) - len(taken) :]
    return (*(hit for hit in hits if hit not in given), *taken)


def _search(request: SearchRequest, part: Clause, top_k: int) -> SearchRequest:
    return replace(request, query=ResolvedPlan(part), top_k=top_k)


def _elsewhere(
    parts: Sequence[Clause], pages: Sequence[Page], shown: Page
) -> dict[Clause, list[Hit]]:
    """Return the passages of parts that the page lacks, of those that have only a few."""
    ids = {hit.id for hit in shown.hits}
    others = ([hit for hit in page.hits if hit.id not in ids] for page in pages)
    of_parts = zip(parts, others, strict=False)
    return {part: hits for part, hits in of_parts if len(hits) <= MAX_TITLES}


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


def _rare(group: Clause, counts: Mapping[Clause, int]) -> list[Clause]:
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
