"""The questions that advice asks the index beside the page of a search, and how they are asked
together.

A piece of advice is a generator. It yields what it asks, gets the answers, and returns what it
tells. The questions that all pieces ask at the same step go to the engine in one call. A server
gets them with the search itself, if they need no page. An embedded engine searches first, so that
nothing is asked that the page answers.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from arag_search.engines.base import (
    FieldsPage,
    FieldsRequest,
    Granularity,
    Page,
    SearchEngine,
    SearchRequest,
)
from arag_search.errors import QueryTimeoutError
from arag_search.plan.clauses import Clause, ResolvedPlan
from arag_search.search.advice.judging import Judge
from arag_search.search.asked import Search

_T = TypeVar("_T")
_R = TypeVar("_R")
Counted = tuple[Clause, Granularity]


class Questions(NamedTuple):
    """Counts, searches and field values to ask for.

    Example: Questions(counts=[(opera, "chunk")])
    """

    counts: Sequence[Counted] = ()
    pages: Sequence[SearchRequest] = ()
    values: FieldsRequest | None = None


class Answers(NamedTuple):
    """The page of the search, and the answers to questions.

    ``counts``: the number of matches of each question, by the question.
    ``pages``: the pages of the searches, in their order.
    ``values``: the values of fields; None if they were not asked for.
    """

    page: Page
    counts: Mapping[Counted, int]
    pages: Sequence[Page]
    values: FieldsPage | None


Advice = Generator[Questions, Any, _T]
"""A piece of advice: it yields questions, gets their answers, and returns what it tells."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A search as advice sees it: its arguments (``asked``), the ``request`` to the ``engine``, the
    ``judge`` of its hits, and whether the query was corrected. A remote engine is asked at once for
    all that advice may need, an embedded one step by step."""

    asked: Search
    request: SearchRequest
    judge: Judge
    engine: SearchEngine
    is_corrected: bool = False

    @property
    def query(self) -> Clause:
        """What is searched."""
        return self.request.query.root

    def meeting(self, page: Page, conditions: Sequence[Clause]) -> list[set[str]]:
        """Return for each condition the ids of the hits of the page that match it."""
        return self.judge.meeting(page.hits, conditions)

    def counts_on(self, page: Page, conditions: Sequence[Clause]) -> dict[Clause, int]:
        """Return the conditions that hits of the page match, with the number of these."""
        met = zip(conditions, self.meeting(page, conditions), strict=True)
        return {condition: len(ids) for condition, ids in met if ids}


def answered(
    engine: SearchEngine,
    request: SearchRequest,
    page: Page | None,
    first: Sequence[Advice[_T]],
    rest: Callable[[Page], Iterable[Advice[_R]]] = lambda _: (),
    *,
    exact: bool = False,
    as_shown: Callable[[Page], Page] = lambda page: page,
) -> tuple[Page, list[_T], list[_R]]:
    """Return the page of a search, what the ``first`` pieces of advice return, and what the
    ``rest`` do. If the engine is asked for the page here, ``as_shown`` makes the final page of it.

    The first questions are asked with the page; the rest begin when it is known, as it is at once
    if it is given. A piece whose answers take too long gets QueryTimeoutError; unless it handles
    that, it returns nothing. ``exact`` is as in ``SearchEngine.counts``. Raises QueryTimeoutError
    if the search itself takes too long.
    """
    results: dict[int, Any] = {}
    running: dict[int, Advice[Any]] = dict(enumerate(first))
    messages: dict[int, Answers | QueryTimeoutError | None] = {}
    is_complete = False
    while running or not is_complete:
        if page is not None and not is_complete:
            is_complete = True
            running |= dict(enumerate(rest(page), len(first)))
        asked: dict[int, Questions] = {}
        for at, advice in running.items():
            message = messages.get(at)
            try:
                is_late = isinstance(message, QueryTimeoutError)
                asked[at] = advice.throw(message) if is_late else advice.send(message)
            except StopIteration as end:
                results[at] = end.value
            except QueryTimeoutError:  # the search itself was in time
                pass
        running = {at: running[at] for at in asked}
        if asked or page is None:
            page, messages = _answers(engine, request, page, asked, exact, as_shown)
    assert page is not None
    ordered, of_first = sorted(results.items()), len(first)
    return (
        page,
        [result for at, result in ordered if at < of_first],
        [result for at, result in ordered if at >= of_first],
    )


def _answers(
    engine: SearchEngine,
    request: SearchRequest,
    page: Page | None,
    asked: Mapping[int, Questions],
    exact: bool,
    as_shown: Callable[[Page], Page],
) -> tuple[Page, dict[int, Answers | QueryTimeoutError | None]]:
    """Ask all questions, and for the page if it is not known, in one call, and in another one for
    values of fields."""
    counted = list(dict.fromkeys(part for questions in asked.values() for part in questions.counts))
    plans: list[tuple[ResolvedPlan, Granularity]] = [
        (ResolvedPlan(clause), unit) for clause, unit in counted
    ]
    searched = [search for questions in asked.values() for search in questions.pages]
    try:
        if page is None and not (plans or searched):
            page = as_shown(engine.search(request))
        searches = searched if page is not None else [request, *searched]
        numbers, pages = list[int](), list[Page]()
        if plans or searches:
            numbers, pages = engine.counts_and_pages(
                plans, searches, request.scope, request.deadline, exact
            )
        if page is None:
            page, pages = pages[0], pages[1:]
            if request.query.root.is_counted and not page.total.is_exact:  # as a search counts
                plans = [(request.query, request.granularity)]
                (total,) = engine.counts(plans, request.scope, request.deadline, exact=True)
                page = page.with_total(total)
            page = as_shown(page)
        counts = dict(zip(counted, numbers, strict=True))
        answers: dict[int, Answers | QueryTimeoutError | None] = {}
        for at, (_, own, values) in asked.items():
            read = None if values is None else engine.field_values(values)
            answers[at] = Answers(page, counts, pages[: len(own)], read)
            pages = pages[len(own) :]
        return page, answers
    except QueryTimeoutError as error:
        if page is None:
            raise
        return page, dict.fromkeys(asked, error)
