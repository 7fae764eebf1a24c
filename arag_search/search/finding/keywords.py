"""The search of A-RAG for keywords (Eq. 1 and Eq. 2)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from arag_search.engines.base import Deadline, KeywordRequest, Matching, SearchRequest
from arag_search.engines.hits import Hit, LeafScore
from arag_search.errors import QueryTimeoutError
from arag_search.plan.clauses import ResolvedPlan, any_clause
from arag_search.plan.lower import lower
from arag_search.plan.matching import Pattern
from arag_search.query import analysis
from arag_search.query.analysis import spellings_of
from arag_search.query.fields import CONTENT, TITLE
from arag_search.query.tree import Phrase
from arag_search.search.advice.told import ClauseCount
from arag_search.search.asked import Keywords
from arag_search.search.counting.reply_forms import counted_all
from arag_search.search.reading.snippets import Highlighter, keyword_sentences
from arag_search.search.results import SearchResult
from arag_search.search.state import IndexState

_NARROWING: Mapping[Matching, str] = {
    "token": "Give fewer keywords, and shorter phrases.",
    "substring": "Use token matching: substring matching reads every passage.",
}

MOST_SENTENCES = 4
"""The most sentences of a passage that are shown beside counts."""
RARE = 2
"""The most passages of a rare keyword."""


def keyword_search(state: IndexState, asked: Keywords) -> SearchResult:
    """See ``Index.keyword_search``."""
    started = time.perf_counter()
    engine, form, wanted, matching = state.engine, asked.form, asked.keywords, asked.matching
    shows_text = asked.snippets and form.reads_text
    scope, within = state.narrowed(asked.filter)
    with state.timed(_NARROWING[matching]) as deadline:
        page = engine.keyword_search(
            KeywordRequest(
                tuple(wanted),
                asked.top_k,
                asked.offset,
                matching,
                scope,
                shows_text or asked.explain,
                deadline,
            )
        )
        phrases = [lower(Phrase(word)) for word in wanted if analysis.terms(word)]
        if form.is_list and phrases:
            counted = SearchRequest(
                ResolvedPlan(any_clause(phrases)), scope=scope, deadline=deadline
            )
            page = counted_all(engine, page, counted)
    is_told = asked.branches and matching == "token"
    hits = [
        hit._replace(
            sentences=tuple(_sentences(hit, asked, is_told)) if shows_text else (),
            explanation=tuple(keyword_scores(hit, wanted, matching)) if asked.explain else None,
        )
        for hit in page.hits
    ]
    counts = _counts(state, asked, scope, deadline) if is_told and hits else ()
    if is_told:
        hits.sort(key=lambda hit: not _is_named(hit, wanted))
    return SearchResult.of(
        state,
        asked,
        f"{asked.query}{within}",
        hits,
        keyword_notes(wanted) if matching == "token" else [],
        started,
        page,
        branches=counts,
        unrepresented=tuple(_rare(state, asked, hits, counts)),
        highlighter=Highlighter.of_keywords(wanted, as_substrings=matching == "substring"),
    )


def _is_named(hit: Hit, keywords: Sequence[str]) -> bool:
    return any(_count(keyword, hit.title, "token") for keyword in keywords)


def _sentences(hit: Hit, asked: Keywords, is_told: bool) -> list[int]:
    """Return all sentences with a keyword or, beside counts, the best MOST_SENTENCES, among them
    the first if the title has a keyword."""
    most = MOST_SENTENCES if is_told else len(hit.sentence_ends)
    best = keyword_sentences(hit, asked.keywords, asked.matching, most)
    if is_told and any(best[:1]) and _is_named(hit, asked.keywords):
        best = [0, *keyword_sentences(hit, asked.keywords, asked.matching, most - 1)]
    return best


def _rare(
    state: IndexState, asked: Keywords, hits: Sequence[Hit], counts: Sequence[ClauseCount]
) -> Iterator[Hit]:
    """Yield the passages of keywords with at most RARE that are not among the first hits."""
    shown = {hit.id for hit in hits}
    for part in counts if asked.form.reads_text and not asked.offset else ():
        if part.leaf and _on_page(part.leaf.typed, hits) < part.count <= RARE:
            alone = replace(asked, keywords=(part.leaf.typed,), top_k=RARE, branches=False)
            others = keyword_search(state, alone).hits
            yield from (hit._replace(branch=part.clause) for hit in others if hit.id not in shown)
            shown.update(hit.id for hit in others)


def _on_page(keyword: str, hits: Sequence[Hit]) -> int:
    return sum(
        1 for hit in hits if _is_named(hit, (keyword,)) or _count(keyword, hit.content, "token")
    )


def _counts(
    state: IndexState, asked: Keywords, scope: ResolvedPlan | None, deadline: Deadline | None
) -> tuple[ClauseCount, ...]:
    """Return how many passages have each keyword; none if there is only one, or no time left."""
    words = [word for word in dict.fromkeys(asked.keywords) if analysis.terms(word)]
    if len(words) < 2:
        return ()
    phrases = [ResolvedPlan(lower(Phrase(word))) for word in words]
    try:
        counts = state.engine.counts([(phrase, "chunk") for phrase in phrases], scope, deadline)
    except QueryTimeoutError:
        return ()
    return tuple(
        ClauseCount(str(phrase), count, phrase.root)
        for phrase, count in zip(phrases, counts, strict=True)
    )


def keyword_notes(keywords: Sequence[str]) -> list[str]:
    """Return notes on keywords that token matching cannot search."""
    empty = [keyword for keyword in dict.fromkeys(keywords) if not analysis.terms(keyword)]
    return [f'"{keyword}" holds nothing to search.' for keyword in empty]


def keyword_scores(hit: Hit, keywords: Sequence[str], matching: Matching) -> Iterator[LeafScore]:
    """Yield the score of each keyword by field: count times length (A-RAG Eq. 1)."""
    for keyword in keywords:
        scores: dict[str, float] = {}
        for name, text in ((TITLE, hit.title), (CONTENT, hit.content)):
            count = _count(keyword, text, matching)
            if count:
                scores[name] = float(count * len(keyword))
        yield LeafScore(f'"{keyword}"', scores)


def _count(keyword: str, text: str, matching: Matching) -> int:
    if matching == "substring":
        return text.lower().count(keyword.lower())
    return sum(1 for _ in Pattern(spellings_of(keyword)).runs(analysis.terms(text)))
