"""What a form of reply says of itself, and what it may do otherwise than others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from arag_search.engines.base import FieldsRequest, Page, SearchEngine, SearchRequest
from arag_search.engines.hits import Hit
from arag_search.errors import ArgumentError
from arag_search.plan.clauses import ResolvedPlan, condition_of, joined
from arag_search.query.fields import DOC_ID
from arag_search.search.shown.writing import header_line

MAX_REACH = 10_000
"""The greatest ``offset + top_k``. A longer list is in corpus order."""
MAX_LISTED = 200
"""The hits of a list in a reply."""


class Entry(NamedTuple):
    """A hit in a list: its header, the line above its group, and the sentences that are shown, each
    as it is written."""

    hit: Hit
    header: str
    intro: str = ""
    shown: Sequence[int] = ()
    lines: Sequence[str] = ()


class Listing(NamedTuple):
    """A page, the request that it answers, and how many matches each of its hits stands for, if
    the form counts them."""

    request: SearchRequest
    page: Page
    matches: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Form:
    """A form of reply. A model reads what it ``says`` beside its name, a user its ``help``.

    A form that ``is_list`` counts all matches, and lists its hits; one ``in_corpus_order`` does so
    in that order if they are too many for ranks, or go on after a passage. ``reads_whole`` reads
    whole passages at sentence granularity too. A form ``of_documents`` shows the best passage of
    each, which stands for all. ``without`` are arguments of searches that it does not go with.
    """

    says: str = ""
    help: str = ""
    is_list: bool = True
    in_corpus_order: bool = True
    reads_text: bool = True
    reads_whole: bool = False
    of_documents: bool = False
    without: Sequence[str] = ()

    def check(self, asked: object) -> None:
        """Raise ArgumentError for an argument of a search that does not go with this form."""
        for name in self.without:
            if getattr(asked, name, None):
                raise ArgumentError(
                    f'{name} does not go with show "{getattr(asked, "show", "")}".',
                    allowed=f'{name} with show "text" or "titles"',
                    do="Leave one of them out.",
                )

    def fetch(self, engine: SearchEngine, request: SearchRequest, page: Page) -> Listing:
        """Return what is shown, given the page of the request."""
        if not self.is_list:
            return Listing(request, page)
        page = counted_all(engine, page, request)
        if request.per_document == 1 and request.granularity == "chunk":
            page = replace(
                page, passages=engine.field_values(by_document(request)).fields[0].distinct
            )
        in_ranks = request.sort or request.per_document or request.offset
        is_first = request.from_ordinal is None and not in_ranks
        if self.in_corpus_order and is_first and page.total > MAX_REACH:
            request = replace(request, from_ordinal=0)
            page = engine.search(request).with_count(page.count)
        return Listing(request, page)

    def entries(self, hits: Sequence[Hit], first_match: Callable[[str, str], int]) -> list[Entry]:
        """Return the entries of a list. ``first_match`` is as in ``SearchResult``."""
        del first_match  # only lines of text need it
        return [
            Entry(hit, header_line(hit.id, hit.title, hit.part, hit.parts, hit.outline))
            for hit in hits
        ]


def counted_all(engine: SearchEngine, page: Page, request: SearchRequest) -> Page:
    """Return a page with the exact number of all matches of a request."""
    if page.count_is_exact and request.from_ordinal is None:
        return page.with_count(page.count)
    asked, scope = request.query, request.scope
    counts = engine.counts([(asked, request.granularity)], scope, request.deadline, exact=True)
    return page.with_count(counts[0])


def by_document(request: SearchRequest, documents: int = 0) -> FieldsRequest:
    """Return the request that counts the documents with a match, and the matches of so many."""
    within = joined(request.scope, ResolvedPlan(condition_of(request.query.root)))
    return FieldsRequest(
        (DOC_ID,), documents, within, deadline=request.deadline, granularity=request.granularity
    )
