"""The order of a page beyond the scores of an engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from arag_search.engines.base import Page, SearchEngine, SearchRequest
from arag_search.engines.hits import Hit
from arag_search.plan.clauses import Clause, ResolvedPlan, all_clauses, joined, unranked, with_parts
from arag_search.search.advice.judging import Judge
from arag_search.search.advice.parts import MAX_COUNTED
from arag_search.search.advice.told import MAX_RARE
from arag_search.search.counting.reply_forms import MAX_REACH
from arag_search.search.reading.snippets import Highlighter


def with_places(page: Page, alternatives: Mapping[Clause, Hit | None], judge: Judge) -> Page:
    """Return a page whose last places have the best passages of the alternatives without a hit.

    ``alternatives`` has these passages, None for an alternative with a hit. The last hits give way,
    but the first one of each alternative stays.
    """
    met = judge.meeting(page.hits, list(alternatives))
    firsts = {next((hit.id for hit in page.hits if hit.id in ids), "") for ids in met}
    free = [hit for hit in page.hits if hit.id not in firsts]
    lacking = {hit.id: hit for hit in alternatives.values() if hit is not None}
    taken = list(lacking.values())[: len(free)]
    given = free[len(free) - len(taken) :]
    return replace(page, hits=(*(hit for hit in page.hits if hit not in given), *taken))


def related(page: Page, words: Sequence[Clause], others: Sequence[Clause], judge: Judge) -> Page:
    """Return a page with the hits that meet one of the ``others``, then the hits that meet two of
    the frequent ``words``. All other hits are left to later pages."""
    met = judge.meeting(page.hits, [*others, *words])
    ids = set[str]().union(*met[: len(others)])
    matches = Counter(id for of_word in met[len(others) :] for id in of_word)
    first = [hit for hit in page.hits if hit.id in ids]
    then = [hit for hit in page.hits if hit.id not in ids and matches[hit.id] > 1]
    return replace(page, hits=(*first, *then))


def page_after(request: SearchRequest, first: Page, page: Page) -> Page:
    """Return the page of a request in a list of the ``first`` page, then all hits that it does not
    show. ``page`` has all hits up to the end of the request."""
    offset, top_k = request.offset, request.top_k
    shown = {hit.id for hit in first.hits}
    hits = (*first.hits, *(hit for hit in page.hits if hit.id not in shown))
    return replace(page, hits=hits[offset : offset + top_k])


def rarest(engine: SearchEngine, request: SearchRequest, page: Page) -> tuple[Page, str]:
    """Return a page of a list, and a note. Matches of only the most frequent alternative come last,
    on pages of their own, and the note says how many. If they are few, the page stays as it is."""
    query, offset = request.query.root, request.offset
    is_other = request.sort or request.per_document or request.from_ordinal is not None
    parts = () if is_other or request.granularity != "chunk" else query.parts
    is_short = page.total.is_exact and page.total.number <= MAX_RARE
    if query.kind != "any" or not 1 < len(parts) <= MAX_COUNTED or is_short:
        return page, ""
    others = [unranked(with_parts(query, [p for p in parts if p is not part])) for part in parts]
    total, *counts = engine.counts(
        [(ResolvedPlan(counted), "chunk") for counted in (query, *others)],
        request.scope,
        request.deadline,
        exact=True,
    )
    page, first = page.with_total(total), min(counts)
    if not first or total - first <= MAX_RARE or total > MAX_REACH:
        return page, ""
    most, within = parts[counts.index(first)], others[counts.index(first)]
    note = f"{most.text} alone: {total - first:,} more passages."
    if offset >= first:
        within = all_clauses([unranked(most), replace(within, role="excluded")])
        offset, note = offset - first, ""
    scope = joined(request.scope, ResolvedPlan(within))
    page = engine.search(replace(request, scope=scope, offset=offset))
    return replace(page, passages=total).with_total(total), note


def typed_first(hits: Sequence[Hit], highlighter: Highlighter) -> Sequence[Hit]:
    """Return the hits of a page; among equal scores, the hit with most words as typed comes first.
    All matches of a score would have to be read to order them across pages."""
    ordered: list[Hit] = []
    for _, equal in groupby(hits, lambda hit: hit.score):
        group = list(equal)
        ordered += sorted(group, key=highlighter.typed_in, reverse=True) if group[1:] else group
    return ordered
