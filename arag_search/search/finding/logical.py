"""A logical search, from the text of a query to its result."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from arag_search.corpus import MAX_SENTENCES, typed_id
from arag_search.engines.base import Page, SearchRequest, no_sentences
from arag_search.engines.hits import Hit
from arag_search.plan.clauses import ResolvedPlan, leaf_clauses, with_values
from arag_search.plan.lower import lower
from arag_search.query.fields import TITLE
from arag_search.query.problems import NOTE_UNRANKED
from arag_search.query.reading import Options, parse_checked
from arag_search.search.advice.feedback import feedback
from arag_search.search.advice.judging import Judge
from arag_search.search.advice.parts import Parts, Tally, parts
from arag_search.search.advice.preferences import lowered_by, unmet_preferences
from arag_search.search.advice.questions import Advice, Subject, answered
from arag_search.search.advice.relaxing import relaxed
from arag_search.search.advice.spelling import dotted, spelling, titles_in_texts
from arag_search.search.advice.told import Told, notes_on
from arag_search.search.asked import Search
from arag_search.search.counting.fields import contents, parse_sort
from arag_search.search.counting.reply_forms import Listing, listed
from arag_search.search.finding.code_order import CodeOrder
from arag_search.search.finding.ranking import page_after, rarest, related, typed_first, with_places
from arag_search.search.finding.resolve import resolve_lookups
from arag_search.search.reading.documents import unknown_chunks
from arag_search.search.reading.snippets import Highlighter, Snippets
from arag_search.search.results import CORPUS_ORDER, SearchResult
from arag_search.search.state import NARROWING, IndexState


def logical_search(state: IndexState, asked: Search, *, exact: bool = False) -> SearchResult:
    """See ``Index.logical_search``; an ``exact`` search is for no other values than asked for."""
    started = time.perf_counter()
    if asked.granularity == "sentence" and not state.manifest.has_sentences:
        raise no_sentences(state.location)
    engine, schema, form = state.engine, state.schema, asked.form
    sort = None if asked.sort is None else parse_sort(asked.sort, schema)
    options = Options(schema, asked.default_operator, asked.operators, as_written=asked.as_written)
    parsed = parse_checked(asked.query, options)
    scope, within = state.narrowed(asked.filter)
    plan = lower(parsed.tree, parsed.language)
    with state.timed(NARROWING) as deadline:
        resolved = resolve_lookups(plan, engine, asked.granularity, scope, deadline)
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
        judge = Judge(state.manifest.metadata)
        subject = Subject(asked, request, judge, engine, bool(parsed.notes))
        outcome = _searched(state, subject)
        of_nothing = outcome.advice.feedback if asked.operators else None
        missing = () if of_nothing is None else of_nothing.missing
        meant = [] if exact else [value for value in missing if value.meant]
        if meant:
            plan = with_values(plan, {value.clause: value.meant for value in meant})
            resolved = resolve_lookups(plan, engine, asked.granularity, scope, deadline)
            subject = replace(subject, request=replace(request, query=resolved), is_corrected=True)
            outcome = _searched(state, subject)
        listing = listed(form, engine, subject.request, outcome.page)
        highlighter = Highlighter(plan, by_sentence=asked.granularity == "sentence")
        hits = _hits(state, asked, listing, subject.judge)
        if listing.request.with_text and sort is None and listing.request.from_ordinal is None:
            hits = typed_first(hits, highlighter)
    advice = outcome.advice
    in_order = listing.request.from_ordinal is not None
    understood = plan.text if asked.operators else parsed.text
    return SearchResult.of(
        state,
        asked,
        f"{understood}{within}",
        hits,
        _notes(state, parsed.notes, [value.note() for value in meant], subject, outcome),
        started,
        listing.page,
        sort=CORPUS_ORDER if in_order else str(sort or ""),
        feedback=advice.feedback if asked.after is None else None,
        nearest=advice.nearest,
        branches=advice.branches,
        unrepresented=advice.unrepresented,
        absent=advice.absent,
        first_page=outcome.first_page,
        highlighter=highlighter,
    )


class Found(NamedTuple):
    """A page with what advice tells of it.

    ``first_page``: the size of page one if alternatives were moved onto it, else 0.
    ``rest``: a note on matches that a list leaves to later pages.
    """

    page: Page
    advice: Told
    first_page: int = 0
    rest: str = ""


def _searched(state: IndexState, subject: Subject) -> Found:
    """Return the page of a search, in its final order, with what advice tells of it. If
    alternatives were moved onto page one, a later page has the hits that page one does not show."""
    engine, asked, request = state.engine, subject.asked, subject.request
    if asked.offset and asked.first_page:
        first = replace(request, top_k=asked.first_page, offset=0)
        if _is_plain(first) and Parts(subject.query, operators=asked.operators).alternatives:
            of_first = replace(asked, top_k=asked.first_page, offset=0)
            shown = _searched(state, replace(subject, asked=of_first, request=first))
            if shown.first_page:
                to_end = replace(request, top_k=request.offset + request.top_k, offset=0)
                page = CodeOrder.of(state, asked, to_end).searched(engine)
                return Found(page_after(request, shown.page, page), Told(), shown.first_page)
    order = CodeOrder.of(state, asked, request)
    page = None if engine.is_remote else order.searched(engine)
    at_once: list[Advice[Tally | Told | None]] = []
    if asked.branches and _is_plain(request):
        at_once.append(parts(subject, page))
    if asked.feedback and asked.after is None and _is_plain(request):
        at_once.append(dotted(subject))
    # A single clause is counted exactly by a search alone.
    with_page = page is None and _is_plain(request) and not subject.query.is_counted
    if with_page and asked.feedback:
        at_once += [spelling(subject, None), titles_in_texts(subject, None)]
    page, first, pieces = answered(
        engine,
        order.asked,
        page,
        at_once,
        lambda known: _advice(subject, known, of_words=not with_page),
        as_shown=order.page,
    )
    pieces += [piece for piece in first if isinstance(piece, Told)]
    first_page, rest = 0, ""
    if asked.branches and asked.form.in_corpus_order:
        page, rest = rarest(engine, request, page)
    for tally in (tally for tally in first if isinstance(tally, Tally)):
        alternatives = tally.alternatives
        if asked.first_page == request.top_k and any(alternatives.values()):
            page, first_page = with_places(page, alternatives, subject.judge), request.top_k
        if asked.first_page == request.top_k and tally.absent:
            page = related(page, *tally.by_frequency(), subject.judge)
            first_page = request.top_k
        pieces = [tally.told(page), *pieces]
    return Found(page, Told.all(pieces), first_page, rest)


def _notes(
    state: IndexState, read: Sequence[str], meant: Sequence[str], subject: Subject, outcome: Found
) -> list[str]:
    """Return the notes of a result in their order. First come how the query was ``read`` and which
    values were ``meant``. Then: the index has no titles, no hit meets a preference, words occur
    nowhere."""
    asked, request, query = subject.asked, subject.request, subject.query
    notes = [*read, *meant, *filter(None, [outcome.rest])]
    if request.sort is not None or (asked.feedback and not outcome.page.total.number):
        notes = [note for note in notes if note != NOTE_UNRANKED]
    names_title = f"{TITLE}:" in query.text and any(
        leaf.is_text and leaf.field == TITLE for leaf in leaf_clauses(query)
    )
    if names_title and not state.once(contents).has_titles:
        notes.append("no passage of this index has a title: title: finds nothing.")
    if outcome.page.hits and request.with_text and not asked.offset:
        notes += unmet_preferences(subject, outcome.page)
    notes += notes_on(outcome.advice)
    if outcome.advice.unseen and state.engine.withheld:
        notes.append(state.engine.withheld)
    return notes


def _advice(subject: Subject, page: Page, *, of_words: bool) -> Iterator[Advice[Told]]:
    """Yield the pieces of advice on a page that a search asks for, in the order of their notes.
    ``of_words`` is False if advice on words was asked with the page."""
    asked, with_text, is_list = subject.asked, subject.request.with_text, subject.asked.form.is_list
    if not page.total.number and asked.feedback:
        yield feedback(subject)
    if not page.total.number and asked.relax and with_text:
        yield relaxed(subject)
    is_told = asked.feedback and not asked.offset and of_words
    if is_told and (with_text or (is_list and not page.hits)):
        yield spelling(subject, page)
        yield titles_in_texts(subject, page)


def _is_plain(request: SearchRequest) -> bool:
    """Return whether a search is for the first passages by score, with their text."""
    is_first = not (request.offset or request.sort or request.per_document)
    return is_first and request.granularity == "chunk" and request.with_text


def _ordinal_after(state: IndexState, id: str, scope: ResolvedPlan | None) -> int:
    """Return the first ordinal after the passage with an id; 0 for an empty id."""
    id = typed_id(id)
    (passage,) = state.engine.read([id], scope) if id else (None,)
    if passage is None and id:
        raise unknown_chunks([id], state.location)
    return 0 if passage is None else passage.ordinal + MAX_SENTENCES


def _hits(state: IndexState, asked: Search, listing: Listing, judge: Judge) -> Sequence[Hit]:
    request, hits, query = listing.request, listing.page.hits, listing.request.query.root
    if request.with_text and hits:
        lowered = lowered_by(query, hits, judge)
        chooser, every = Snippets(query, judge.texts), asked.form.is_list
        hits = [chooser.shown(hit, every=every, lowered=lowered.get(hit.id, ())) for hit in hits]
    if asked.explain:
        explained = state.engine.explain(request, [hit.id for hit in hits])
        hits = [
            hit._replace(explanation=tuple(of)) for hit, of in zip(hits, explained, strict=True)
        ]
    if listing.matches:
        counted = zip(hits, listing.matches, strict=True)
        hits = [hit._replace(matches=matches) for hit, matches in counted]
    return hits
