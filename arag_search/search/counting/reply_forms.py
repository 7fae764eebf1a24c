"""The forms of a reply: how a search counts and lists its matches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from arag_search.engines.base import (
    MAX_QUICK_VALUES,
    FieldsRequest,
    Page,
    SearchEngine,
    SearchRequest,
)
from arag_search.errors import ArgumentError
from arag_search.plan.clauses import ResolvedPlan, joined, unranked, values_of
from arag_search.query.fields import DOC_ID

MAX_REACH = 10_000
"""The greatest ``offset + top_k``. A longer list is in corpus order."""
LIST_HITS = 200
"""The hits of a list in a reply."""


class Listing(NamedTuple):
    """A page, the request that it answers, and how many matches each of its hits stands for, if
    the form counts them."""

    request: SearchRequest
    page: Page
    matches: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class ReplyForm:
    """A form of reply.

    ``says``: the text for a model, beside its name; ``help``: the text for users.
    ``is_list``: all matches are counted, and the hits are listed.
    ``in_corpus_order``: a list that is too long for ranks, or goes on after a passage, is in that
    order.
    ``reads_text``: the sentences that match are shown.
    ``reads_whole``: passages are read whole at sentence granularity, too.
    ``of_documents``: the best passage of each document stands for all of its matches.
    ``without``: the arguments of searches that it does not go with.

    Example: ReplyForm("", "ids and titles", reads_text=False)
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


Show = Literal["text", "titles", "lines", "counts"]
"""The name of a form."""
REPLY_FORMS: Mapping[str, ReplyForm] = {
    "text": ReplyForm(is_list=False, in_corpus_order=False),
    "titles": ReplyForm("", "ids and titles", reads_text=False),
    "lines": ReplyForm(
        "sentences that match",
        "each sentence that matches, with the name of its entry",
        reads_whole=True,
    ),
    "counts": ReplyForm(
        "results by document",
        "documents by their best passages, each with its number of results",
        in_corpus_order=False,
        reads_text=False,
        of_documents=True,
        without=("keywords", "per_document", "after"),
    ),
}


def forms_with(argument: str) -> dict[str, ReplyForm]:
    """Return the forms that go with an argument of a search."""
    return {name: form for name, form in REPLY_FORMS.items() if argument not in form.without}


def shows(argument: str = "query") -> tuple[str, str]:
    """Return the texts for a model and for a user about the forms that go with an argument."""
    lists = {name: form for name, form in forms_with(argument).items() if form.is_list}
    says = "; ".join(", ".join(filter(None, (name, form.says))) for name, form in lists.items())
    help = ", ".join(f"{name} lists {form.help}" for name, form in lists.items())
    return (
        f"Lists of {LIST_HITS}: {says}.",
        f"{help}. All count all results; more than {MAX_REACH:,} titles or lines are in corpus "
        "order, with --tool logical.",
    )


def listed(form: ReplyForm, engine: SearchEngine, request: SearchRequest, page: Page) -> Listing:
    """Return what a form shows, given the page of a request. A list is counted exactly. If it is
    too long for ranks, it is asked for again, in corpus order."""
    if not form.is_list:
        return Listing(request, page)
    if form.of_documents:
        return _documents(engine, request, page)
    page = counted_all(engine, page, request)
    if request.per_document == 1 and request.granularity == "chunk":
        page = replace(page, passages=engine.field_values(by_document(request)).fields[0].distinct)
    in_ranks = request.sort or request.per_document or request.offset
    is_first = request.from_ordinal is None and not in_ranks
    if form.in_corpus_order and is_first and page.total.number > MAX_REACH:
        request = replace(request, from_ordinal=0)
        page = engine.search(request).with_total(page.total.number)
    return Listing(request, page)


def _documents(engine: SearchEngine, request: SearchRequest, page: Page) -> Listing:
    """Return the documents of a page, each with the number of its matches, like ``grep -c``. They
    stay in the order of the page, by their best passages. An order by number would put long
    documents first.

    All numbers are exact. They take one call of the engine, and one more if more than
    MAX_QUICK_VALUES documents match.
    """
    if not page.total.number:
        return Listing(request, page)
    asked = by_document(request, MAX_QUICK_VALUES)
    counted = engine.field_values(asked)
    ids = [hit.doc_id for hit in page.hits]
    matches = dict(counted.fields[0].frequent)
    if not matches.keys() >= set(ids):
        within = replace(asked, scope=joined(asked.scope, values_of(DOC_ID, ids)))
        matches = dict(engine.field_values(within).fields[0].frequent)
    page = replace(page.with_total(counted.chunks), passages=counted.fields[0].distinct)
    return Listing(request, page, [matches[id] or 0 for id in ids])


def counted_all(engine: SearchEngine, page: Page, request: SearchRequest) -> Page:
    """Return a page with the exact number of all matches of a request."""
    if page.total.is_exact and request.from_ordinal is None:
        return page.with_total(page.total.number)
    asked, scope = request.query, request.scope
    counts = engine.counts([(asked, request.granularity)], scope, request.deadline, exact=True)
    return page.with_total(counts[0])


def by_document(request: SearchRequest, documents: int = 0) -> FieldsRequest:
    """Return the request that counts the documents with a match, and the matches of so many."""
    within = joined(request.scope, ResolvedPlan(unranked(request.query.root)))
    return FieldsRequest(
        (DOC_ID,), documents, within, deadline=request.deadline, granularity=request.granularity
    )
