"""A logical search, from the text of a query to its result."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from arag_search.corpus import MAX_SENTENCES, nfc
from arag_search.engines.base import Granularity, LeafScore, Page, SearchRequest
from arag_search.errors import NotServedError, QueryTimeoutError
from arag_search.plan.clauses import Clause, ResolvedPlan, leaves, wanted_leaves
from arag_search.plan.lower import lower
from arag_search.query.fields import TITLE
from arag_search.query.problems import NOTE_UNRANKED
from arag_search.query.reading import Options, Query, parse_checked
from arag_search.search.asked import Search
from arag_search.search.branches import Branches
from arag_search.search.documents import unknown_chunks
from arag_search.search.feedback import ClauseCount, Feedback
from arag_search.search.feedback import feedback as feedback_on
from arag_search.search.fields import parse_sort
from arag_search.search.hints import narrowing
from arag_search.search.hits import BranchHit, NearestHit, SearchHit, hit_of
from arag_search.search.nearest import lowered_by, unmet_preferences
from arag_search.search.relaxing import nearest_hits, relaxed_requests
from arag_search.search.resolve import resolve
from arag_search.search.results import CORPUS_ORDER, SearchResult
from arag_search.search.shown.form import Listing
from arag_search.search.snippets import Highlighter, Snippets
from arag_search.search.state import IndexState


@dataclass(slots=True)
class _Beside:
    """What is said beside the hits of a page."""

    page: Page
    feedback: Feedback | None = None
    nearest: tuple[NearestHit, ...] = ()
    branches: tuple[ClauseCount, ...] = ()
    unrepresented: tuple[BranchHit, ...] = ()
    note: str = ""


def logical_search(state: IndexState, asked: Search) -> SearchResult:
    """See ``Index.logical_search``."""
    started = time.perf_counter()
    if asked.granularity == "sentence" and not state.manifest.has_sentences:
        raise NotServedError(
            "The index has no sentences.",
            where=state.location,
            allowed="granularity chunk",
            do="Build it again without --without sentences.",
        )
    engine, schema, form = state.engine, state.schema, asked.form
    sort = None if asked.sort is None else parse_sort(asked.sort, schema)
    options = Options(schema, asked.default_operator, asked.operators, published=asked.published)
    parsed = parse_checked(asked.query, options)
    scope, within = state.narrowed(asked.filter)
    plan = lower(parsed.tree, parsed.language)
    with state.timed(lambda: narrowing(plan)) as deadline:
        resolved = resolve(plan, engine, asked.granularity, scope, deadline, asked.query)
        request = SearchRequest(
            resolved,
            asked.top_k,
            asked.offset,
            asked.granularity,
            scope,
            asked.snippets and form.reads_text,
            asked.full_text or form.reads_whole,
            deadline,
            sort,
            1 if form.of_documents else asked.per_document,
            None if asked.after is None else _ordinal_after(state, asked.after, scope),
        )
        beside = _searched(state, asked, request)
        listing = form.fetch(engine, request, beside.page)
        hits = _hits(state, asked, listing)
    marked = tuple([leaf for leaf in wanted_leaves(plan) if not leaf.is_metadata])
    in_order = listing.request.from_ordinal is not None
    return SearchResult.of(
        asked,
        f"{parsed.text}{within}",
        hits,
        _notes(state, asked, parsed, listing, beside),
        started,
        listing.page,
        sort=CORPUS_ORDER if in_order else str(sort or ""),
        feedback=beside.feedback,
        nearest=beside.nearest,
        branches=beside.branches,
        unrepresented=beside.unrepresented,
        highlighter=Highlighter(marked, by_sentence=asked.granularity == "sentence"),
    )


def _ordinal_after(state: IndexState, id: str, scope: ResolvedPlan | None) -> int:
    """Return the first ordinal after the passage with an id; 0 for an empty id."""
    (passage,) = state.engine.read([nfc(id)], scope) if id else (None,)
    if passage is None and id:
        raise unknown_chunks([id], state.location)
    return 0 if passage is None else passage.ordinal + MAX_SENTENCES


def _hits(state: IndexState, asked: Search, listing: Listing) -> list[SearchHit]:
    """Return the hits of a page with the sentences to show."""
    request, page, matches = listing
    explained: Sequence[Sequence[LeafScore]] = ()
    if asked.explain:
        explained = state.engine.explain(request, [hit.id for hit in page.hits])
    chooser = Snippets(request.query.root) if request.with_text and page.hits else None
    lowered = lowered_by(request.query.root, page.hits, state.manifest.metadata) if chooser else {}
    return [
        hit_of(
            hit,
            chooser.choose(hit, every=asked.form.is_list) if chooser else (),
            tuple(explained[at]) if explained else None,
            lowered.get(hit.id, ()),
            is_named=chooser is not None and chooser.names(hit),
            matches=matches[at] if matches else None,
        )
        for at, hit in enumerate(page.hits)
    ]


def _notes(
    state: IndexState, asked: Search, parsed: Query, listing: Listing, beside: _Beside
) -> list[str]:
    """Return the notes on a query and on what it found."""
    request, page, _ = listing
    notes = [*parsed.notes, *([beside.note] if beside.note else [])]
    if asked.sort is not None or (asked.feedback and not page.count):
        notes = [note for note in notes if note != NOTE_UNRANKED]
    may_name_title = f"{TITLE}:" in parsed.text
    if may_name_title and not state.contents.has_titles and _names_title(request.query.root):
        notes.append("no passage of this index has a title: title: finds nothing.")
    is_list = asked.form.is_list
    if page.hits and state.scope is None and not is_list:  # the note is about all passages
        deadline, unit = request.deadline, asked.granularity
        texts = [leaf for leaf in wanted_leaves(request.query.root) if leaf.is_text]
        note = state.frequent_words.note(texts, unit, deadline)
        notes += [note] if note else []
    if asked.offset:
        return notes
    if request.with_text and page.hits:
        notes += _preference_notes(state, request, page)
    if asked.feedback and (request.with_text or (is_list and not page.hits)):
        is_told = beside.feedback is not None
        notes += state.spelling.notes(request, page.hits, is_told=is_told)
    return notes


def _names_title(clause: Clause) -> bool:
    return any(leaf.is_text and leaf.field == TITLE for leaf in leaves(clause))


def _preference_notes(state: IndexState, request: SearchRequest, page: Page) -> list[str]:
    """Return the notes on preferences that no passage meets. Only preferences that no shown
    passage meets are counted."""
    unmet = unmet_preferences(request, page.hits, state.manifest.metadata)
    if not unmet:
        return []
    queries: list[tuple[ResolvedPlan, Granularity]] = [
        (ResolvedPlan(condition), "chunk") for _, condition in unmet
    ]
    try:
        counts = state.engine.counts(queries, request.scope, request.deadline)
    except QueryTimeoutError:  # the search itself was in time
        return []
    return [
        f"{prefer}: no passage that matches has it."
        for (prefer, _), count in zip(unmet, counts, strict=True)
        if not count
    ]


def _searched(state: IndexState, asked: Search, request: SearchRequest) -> _Beside:
    """Return the page of a search, in one round trip, or in two if it finds nothing.

    On a server, values of fields take one more.
    """
    engine = state.engine
    parts = None
    if asked.branches and _is_plain(request):
        parts = Branches(
            request, state.manifest, exclusions=not asked.published, operators=asked.operators
        )
    if parts is not None and (parts.requests or parts.queries):
        counts, pages = engine.counts_and_pages(
            parts.queries, [request, *parts.requests], request.scope, request.deadline
        )
        beside = _Beside(pages[0], note=parts.exclusion_note(pages[0], counts))
        if beside.page.count:
            beside.branches, beside.unrepresented = parts.told(
                beside.page, counts, pages[1:], engine
            )
    else:
        beside = _Beside(engine.search(request))
    has_feedback = asked.feedback and asked.after is None
    if beside.page.count == 0 and (has_feedback or asked.relax):
        _explain_nothing(state, asked, request, beside)
    return beside


def _explain_nothing(
    state: IndexState, asked: Search, request: SearchRequest, beside: _Beside
) -> None:
    """Count the parts of a query that found nothing, and find the nearest passages."""
    relaxed = relaxed_requests(request) if asked.relax and request.with_text else []
    pages: list[Page] = []

    def counts(queries: Sequence[tuple[ResolvedPlan, Granularity]]) -> list[int]:
        counted, nearest = state.engine.counts_and_pages(
            queries, relaxed, request.scope, request.deadline
        )
        pages.extend(nearest)
        return counted

    if asked.feedback and asked.after is None:
        beside.feedback = feedback_on(
            request.query.root,
            request.granularity,
            counts,
            lambda fields: state.engine.field_values(
                replace(fields, scope=request.scope, deadline=request.deadline)
            ),
        )
    elif relaxed:
        counts(())
    if pages:
        beside.nearest = nearest_hits(request.query.root, relaxed, pages, state.manifest.metadata)


def _is_plain(request: SearchRequest) -> bool:
    """Return whether a search is for the first passages by score, with their text."""
    return (
        request.granularity == "chunk"
        and not request.offset
        and request.with_text
        and request.sort is None
        and request.per_document is None
    )
