"""The results of each part of a query alone: its count, and the best passage of an alternative that
the page does not show.

What parts are called, of these queries:

    (opera AND rome) OR "antonio vivaldi" OR venice
    opera AND (title:rome OR venice)
    opera OR rome

``alternatives``: the parts of an OR, unless all are plain words: all three of the first query.
``inner``: alternatives of an OR in an AND, each with the AND narrowed to it. The second query
    has title:rome (as opera AND title:rome) and venice (as opera AND venice).
``words``: the parts of an OR of plain words: opera and rome of the third query.
``names``: phrases and clauses on titles, wherever they are wanted: "antonio vivaldi"; title:rome.
``conjunctions``: the query or alternatives, if they are an AND of several: opera AND rome.
``scarce``: a conjunction that matches at most three passages; only these stay.
``dead``: a conjunction that matches nothing.
``absences``: a name with a plain word of the same OR, which no passage of it may have: "antonio
    vivaldi" AND venice.
``conditions``: the parts of a scarce conjunction that are worth a count: opera and rome.
``rare``: conditions with so few matches that they are read: rome, if six passages have it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from arag_search.engines.base import MAX_TOTAL, Page, SearchRequest
from arag_search.engines.hits import Hit
from arag_search.errors import QueryTimeoutError
from arag_search.plan.clauses import (
    Clause,
    ResolvedPlan,
    all_clauses,
    has_lookups,
    wanted_leaves,
    with_parts,
)
from arag_search.search.advice.questions import Advice, Answers, Questions, Subject
from arag_search.search.advice.relaxing import (
    MAX_RELAXED_CLAUSES,
    nearest_hits,
    relaxed_queries,
    relaxed_requests,
)
from arag_search.search.advice.told import MAX_RARE, Absence, ClauseCount, Told
from arag_search.search.reading.snippets import Snippets

MAX_COUNTED = 8
"""The most parts of each kind: alternatives, names, conditions."""
MAX_TITLES = 3
"""The most passages elsewhere of a condition that are named."""
_NEXT_TO_NOTHING = 3
_MAX_READ = 6


class Parts:
    """The parts of a query that are worth a count or a search of their own, at most eight a kind.

    ``alternatives``: counted and searched.
    ``inner``: searched; each comes with the query for it.
    ``words``, ``names``: counted.
    ``conjunctions``: their conditions are counted.

    Without ``operators``, each space is an OR, and plain words beside a phrase are no parts.
    """

    def __init__(self, query: Clause, *, operators: bool) -> None:
        parts = [part for part in _alternatives(query) if operators or _says_more(part)]
        self._query = query
        self.alternatives = parts[:MAX_COUNTED]
        self.words = _plain_words(query)[:MAX_COUNTED]
        self.inner = _inner_alternatives(query)[:MAX_COUNTED]
        self.conjunctions = [
            part
            for part in (query, *self.alternatives)
            if part.kind == "all" and part.having("wanted")[1:]
        ]
        self.absences = {
            (name, word): all_clauses([name, word])
            for name in self.alternatives
            for word in self.alternatives
            if name.is_name and word.kind == "word" and not (word.is_name or has_lookups(query))
        }
        named = list(dict.fromkeys(leaf for leaf in wanted_leaves(query) if leaf.is_name))
        self.names = named[:MAX_COUNTED] if self.alternatives or named[1:] else []

    def keep_scarce(self, matches: Mapping[Clause, int]) -> None:
        """Keep the conjunctions that have next to no matches."""
        kept = [part for part in self.conjunctions if matches.get(part, 0) <= _NEXT_TO_NOTHING]
        self.conjunctions = kept

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
        alone = [(part, with_parts(self._query, [part])) for part in self.alternatives]
        return [*alone, *self.inner]


def parts(subject: Subject, page: Page | None) -> Advice[Tally | None]:
    """Ask for the counts of the parts, and for the best passage of each part that the page lacks.
    Return None if there is nothing to ask, or the search finds nothing.

    If the page is known, a part with a hit on it is not searched, and not counted if the page shows
    all. Scarce conjunctions take further steps: see ``Tally.read_scarce``.
    """
    of_query = Parts(subject.query, operators=subject.asked.operators)
    searches, on_page = of_query.searches(), dict[Clause, int]()
    if page is not None:
        if not page.total.number:
            return None
        on_page = subject.counts_on(page, [part for part, _ in searches])
        searches = [(part, searched) for part, searched in searches if part not in on_page]
        of_query.keep_scarce({**on_page, subject.query: page.total.number})
    counted = of_query.counted()
    if page is not None and page.total.number > len(page.hits):
        counted += [part for part in of_query.alternatives if part in on_page]
    if (page is None or page.total.number > len(page.hits)) and not subject.is_corrected:
        counted += of_query.absences.values()
    if not (counted or searches):
        return None
    answers: Answers = yield Questions(
        [(part, "chunk") for part in counted],
        [_search(subject.request, plan, 1) for _, plan in searches],
    )
    if not answers.page.total.number:
        return None
    counts = {part: on_page.get(part, 0) for part in of_query.alternatives}
    counts |= {part: answers.counts[part, "chunk"] for part in counted}
    alone = list(zip(searches, answers.pages, strict=True))
    counts |= {
        part: min(page.total.number, MAX_TOTAL + 1)
        for (part, _), page in alone
        if part in of_query.alternatives
    }
    best = [_Best(*search, page.hits[0]) for search, page in alone if page.hits]
    tally = Tally(subject, of_query, answers.page, counts, best)
    yield from tally.read_scarce()
    return tally


class _Best(NamedTuple):
    """The best passage of a part, with the query that it was searched by."""

    part: Clause
    plan: Clause
    hit: Hit


class Tally:
    """The counts and the best passages of the parts of a query, as an engine answered them."""

    def __init__(
        self,
        subject: Subject,
        of_query: Parts,
        page: Page,
        counts: dict[Clause, int],
        best: Sequence[_Best],
    ) -> None:
        self._subject = subject
        self._parts = of_query
        self._page = page
        self._counts = counts
        self._shows_all = page.total.number <= len(page.hits)
        # A frequent word is no name: every space is an OR.
        names = [b for b in best if _says_more(b.part) or counts.get(b.part, 0) <= _MAX_READ]
        on_page = subject.counts_on(page, [branch.part for branch in names])
        self._best = [branch for branch in names if branch.part not in on_page]
        of_query.keep_scarce(
            {**counts, subject.query: page.total.number if self._shows_all else MAX_TOTAL}
        )
        self._conditions = list(
            dict.fromkeys(
                part for group in of_query.conjunctions for part in _conditions(group, counts)
            )
        )
        self._elsewhere: dict[Clause, list[Hit]] = {}
        self._nearest: dict[Clause, Hit] = {}

    def read_scarce(self) -> Advice[None]:
        """Ask for the passages of rare conditions, and for those nearest to dead conjunctions.

        The nearest are asked for step by step: first passages that miss one condition, then two,
        and so on. If that takes too long, the counts remain.
        """
        request, judge = self._subject.request, self._subject.judge
        rare = [part for part in self._conditions if self._counts[part] <= _MAX_READ]
        dead: list[Clause] = []
        if self._subject.asked.relax:
            dead = [part for part in self._parts.conjunctions if self._counts.get(part) == 0]
        left = {part: relaxed_queries(part) for part in dead}
        while rare or any(left.values()):
            at_once = MAX_RELAXED_CLAUSES if self._subject.engine.is_remote else 1
            relaxed = [(part, step) for part in left for step in left[part][:at_once]]
            steps = relaxed_requests(replace(request, top_k=1), [step for _, step in relaxed])
            try:
                answers: Answers = yield Questions(
                    pages=[*(_search(request, part, _MAX_READ) for part in rare), *steps]
                )
            except QueryTimeoutError:
                return
            self._elsewhere |= _elsewhere(rare, answers.pages, self._page)
            for (part, step), near in zip(relaxed, answers.pages[len(rare) :], strict=True):
                if part not in self._nearest:
                    for hit in nearest_hits(part, step, near, judge):
                        self._nearest[part] = hit
            rare = []
            left = {part: left[part][at_once:] for part in left if part not in self._nearest}

    @property
    def alternatives(self) -> dict[Clause, Hit | None]:
        """The alternatives of an OR, each with its best passage if the page lacks one."""
        best = {branch.part: branch.hit for branch in self._best}
        return {part: best.get(part) for part in self._parts.alternatives}

    @property
    def absent(self) -> tuple[Absence, ...]:
        """The rare names of the query, each with the frequent words that no passage of it has."""
        frequent, others = self.by_frequency()
        absent: list[Absence] = []
        for name in others:
            pairs = [(word, self._parts.absences.get((name, word))) for word in frequent]
            words = [word.text for word, pair in pairs if pair and self._counts.get(pair) == 0]
            if words and 0 < self._counts[name] <= MAX_RARE:
                absent.append(Absence(name.text, self._counts[name], tuple(words)))
        return tuple(absent)

    def by_frequency(self) -> tuple[list[Clause], list[Clause]]:
        """Return the alternatives that are words of more passages than a rare name, and others."""
        parts = self._parts.alternatives
        words = [part for part in parts if part.kind == "word" and not part.is_name]
        words = [part for part in words if self._counts[part] > MAX_RARE]
        return words, [part for part in parts if part not in words]

    def told(self, page: Page) -> Told:
        """Return what the tally tells beside the page of the search, given in its final order."""
        self._page = page
        page_ids = {hit.id for hit in page.hits}
        best = [branch for branch in self._best if branch.hit.id not in page_ids]
        if self._subject.query in self._parts.conjunctions and self._page.total.number == 1:
            others = self._elsewhere.items()
            best += [_Best(part, part, hits[0]) for part, hits in others if hits and part.is_name]
        passages: dict[str, Hit] = {}
        texts = self._subject.judge.texts
        for part, plan, hit in best:
            passages.setdefault(hit.id, Snippets(plan, texts).shown(hit)._replace(branch=part.text))
        near = [near for near in self._nearest.values() if near.id not in passages]
        return Told(
            absent=self.absent,
            branches=self._rows({*passages, *(near.id for near in self._nearest.values())}),
            nearest=tuple(near for near in near if near.id not in page_ids),
            unrepresented=tuple(passages.values()),
        )

    def _rows(self, apart: Collection[str]) -> tuple[ClauseCount, ...]:
        """Return the counts that are told: of parts of which not all matches are on the page.
        ``apart`` are the ids of passages beside the page, which need not be named."""
        parts, counts, hits = self._parts, self._counts, self._page.hits
        listed = [p for p in parts.alternatives if not (self._shows_all and counts[p])]
        listed += [] if self._shows_all else parts.words
        listed += [p for p in (*parts.names, *self._conditions) if p not in parts.alternatives]
        few = [p for p in listed if 0 < counts[p] <= len(hits) + MAX_TITLES]
        on_page = dict(zip(few, self._subject.meeting(self._page, few), strict=True))
        rows: list[ClauseCount] = []
        for part in dict.fromkeys(listed):
            elsewhere = sorted(self._elsewhere.get(part, ()), key=lambda hit: hit.ordinal)
            titles = {hit.id: hit.title for hit in elsewhere}
            rows.append(
                ClauseCount(
                    part.text,
                    counts[part],
                    None if part.parts else part,
                    titles={id: title for id, title in titles.items() if id not in apart},
                    matches=frozenset({*on_page.get(part, ()), *titles}),
                    lacks=self._nearest[part].lacks if part in self._nearest else (),
                )
            )
        return tuple(rows)


def _search(request: SearchRequest, part: Clause, top_k: int) -> SearchRequest:
    return replace(request, query=ResolvedPlan(part), top_k=top_k)


def _elsewhere(
    parts: Sequence[Clause], pages: Sequence[Page], shown: Page
) -> dict[Clause, list[Hit]]:
    """Return the passages that the page lacks, of each part that has at most MAX_TITLES of them."""
    ids = {hit.id for hit in shown.hits}
    others = ([hit for hit in page.hits if hit.id not in ids] for page in pages)
    of_parts = zip(parts, others, strict=False)
    return {part: hits for part, hits in of_parts if len(hits) <= MAX_TITLES}


def _alternatives(query: Clause) -> list[Clause]:
    """Return the alternatives of an OR, or none if no alternative is more than a plain word."""
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
        (
            part,
            with_parts(
                query,
                [with_parts(group, [part]) if other is group else other for other in query.parts],
            ),
        )
        for group in query.having("wanted")
        for part in _alternatives(group)
    ]


def _conditions(group: Clause, counts: Mapping[Clause, int]) -> list[Clause]:
    """Return the conditions of an AND that have a count, without the most frequent one if it is a
    group."""
    parts = [part for part in group.having("wanted") if part in counts]
    most = max((counts[part] for part in parts), default=0)
    return [part for part in parts if not part.parts or counts[part] < most]


def _says_more(part: Clause) -> bool:
    """Return whether an alternative is more than a plain word."""
    if part.kind == "word":
        return part.is_name
    return part.kind == "all" or part.is_text
