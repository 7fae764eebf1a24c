"""Which words an index has: how many passages have each, in which written forms, and the nearest
words where it occurs nowhere.

All numbers count passages in scope, exactly. Written forms and nearest words come from passages in
scope, so that no word is shown that a scope hides. Forms come from the first passages in corpus
order, so that every engine has the same ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice

from arag_search.engines.base import Count, Granularity, Page, SearchEngine, SearchRequest
from arag_search.errors import ArgumentError
from arag_search.plan.clauses import (
    Clause,
    ResolvedPlan,
    all_clauses,
    any_clause,
    in_field,
    unranked,
)
from arag_search.plan.lower import lower
from arag_search.plan.matching import Words, patterns_of
from arag_search.query import analysis
from arag_search.query.fields import CONTENT, TITLE, Schema
from arag_search.query.filters import Data
from arag_search.query.operators import SPELLED
from arag_search.query.printing import quoted
from arag_search.query.problems import QueryError
from arag_search.query.reading import Query, parse
from arag_search.query.tree import EXACT_MARK, Phrase
from arag_search.search.advice.questions import answered
from arag_search.search.advice.spelling import nearest_words
from arag_search.search.finding.resolve import resolve_lookups
from arag_search.search.state import FEWER, IndexState

MAX_COUNTED_WORDS = 70
"""Fifty words, and twenty pairs of them."""
MAX_FORMS = 6
_READ = 400
"""The passages that are read for the forms of all words together."""


@dataclass(frozen=True, slots=True)
class WordSummary:
    """A word, phrase or query, as it was understood, and how many ``passages`` have it.

    ``title``, ``text``: how many have it there; None if it names a field or has several clauses.
    ``forms``: the most frequent written words that it matches in the passages that were read.
    ``other_forms``: how many of its passages have none of these.
    ``nearest``: the words most like it, if it occurs nowhere.
    """

    word: str
    passages: int
    title: int | None = None
    text: int | None = None
    forms: Mapping[str, int] = field(default_factory=dict[str, int])
    other_forms: int = 0
    nearest: Mapping[str, int] = field(default_factory=dict[str, int])


def words(
    state: IndexState,
    *words: str,
    filter: str | Data | None = None,
    as_written: bool = False,
) -> tuple[WordSummary, ...]:
    """Return how many passages have each of up to 70 words, prefixes, phrases and queries.

    A query is such as ``film AND librett*``. Each has its counts in title and text and its written
    forms; a word that occurs nowhere has the nearest words.
    All are counted in one round trip; further ones are for their forms and the nearest words.
    ``as_written`` is as in ``logical_search``. Numbers and errors are as in ``fields``.
    """
    if not 1 <= len(words) <= MAX_COUNTED_WORDS:
        raise ArgumentError(f"There are {len(words)} words.", allowed=f"1 to {MAX_COUNTED_WORDS}")
    engine, parsed = state.engine, _parsed(words, state.schema, as_written)
    scope, _ = state.narrowed(filter)
    with state.timed(FEWER) as deadline:
        conditions = [unranked(lower(query.tree, query.language)) for query in parsed]
        plans = [resolve_lookups(clause, engine, "chunk", scope, deadline) for clause in conditions]
        clauses = [plan.root for plan in plans]
        in_fields = {
            clause: [in_field(clause, TITLE), in_field(clause, CONTENT)]
            for clause in clauses
            if clause.is_text and clause.field is None
        }
        expanded = [clause for clause in dict.fromkeys(clauses) if _is_expanded(clause)]
        request = SearchRequest(plans[0], scope=scope, deadline=deadline, from_ordinal=0)
        reads = [
            replace(request, query=ResolvedPlan(clause), top_k=_READ // len(expanded))
            for clause in expanded
        ]
        counted = [*clauses, *chain(*in_fields.values())]
        numbers, pages = engine.counts_and_pages(
            _of_chunks(counted), reads, scope, deadline, exact=True
        )
        counts = dict(zip(counted, numbers, strict=True))
        forms = _forms(engine, request, dict(zip(expanded, pages, strict=True)))
        nowhere = [clause for clause in clauses if clause.kind == "word" and not counts[clause]]
        none = Page((), Count(0))
        near = [nearest_words(engine, request, nowhere)]
        answers = answered(engine, request, none, near, exact=True)[1]
    nearest = answers[0] if answers else {}  # the counts were in time
    summaries: list[WordSummary] = []
    for query, clause in zip(parsed, clauses, strict=True):
        title, text = [counts[leaf] for leaf in in_fields.get(clause, ())] or (None, None)
        written, near = forms.get(clause, ({}, 0)), nearest.get(clause, {})
        summaries.append(WordSummary(query.text, counts[clause], title, text, *written, near))
    return tuple(summaries)


def _parsed(words: Sequence[str], schema: Schema, as_written: bool) -> list[Query]:
    """Parse all words; an argument of several plain words is a phrase. Raises QueryError with all
    problems."""
    parsed: list[Query] = []
    errors: list[QueryError] = []
    for word in words:
        parts = word.split()
        is_plain = all(part.isalnum() and part not in SPELLED for part in parts)
        try:
            text = quoted(word) if is_plain and len(parts) > 1 else word
            parsed.append(parse(text, schema, as_written=as_written))
        except QueryError as error:
            errors.append(error)
    if errors:
        problems = tuple(problem for error in errors for problem in error.problems)
        raise QueryError(words[0], problems, errors[0].mended if len(errors) == 1 else None)
    return parsed


def _of_chunks(clauses: Sequence[Clause]) -> list[tuple[ResolvedPlan, Granularity]]:
    return [(ResolvedPlan(clause), "chunk") for clause in clauses]


def _is_expanded(clause: Clause) -> bool:
    """Return whether a clause is one word that several written words match."""
    if clause.kind in ("word", "phrase"):
        return bool(clause.language) and all(len(spelling) == 1 for spelling in clause.words)
    return clause.is_text


def _forms(
    engine: SearchEngine, request: SearchRequest, pages: Mapping[Clause, Page]
) -> dict[Clause, tuple[dict[str, int], int]]:
    """Return the written words of each leaf in the passages of its page, most frequent first, and
    how many passages have only others. All are counted in one round trip."""
    exact: dict[Clause, list[Clause]] = {}
    for leaf, page in pages.items():
        patterns, seen = patterns_of(leaf), Counter[str]()
        for hit in page.hits:
            texts = [hit.title] * (leaf.field != CONTENT)
            texts += [hit.content] * (leaf.field != TITLE)
            seen.update({term for text in texts for term in analysis.terms(text)})
        ranked = sorted(seen, key=lambda term: (-seen[term], term))
        matching = (term for term in ranked if any(map(Words(term).match, patterns)))
        phrases = (lower(Phrase(EXACT_MARK + term, 0, leaf.text_field)) for term in matching)
        exact[leaf] = list(islice({form.words: form for form in phrases}.values(), MAX_FORMS))
    clauses = list(chain(*exact.values()))
    clauses += [
        all_clauses([leaf, replace(any_clause(phrases), role="excluded")])
        for leaf, phrases in exact.items()
        if phrases
    ]
    asked, scope = _of_chunks(clauses), request.scope
    numbers = iter(engine.counts(asked, scope, request.deadline, exact=True) if asked else ())
    counted = {
        leaf: {form.typed.removeprefix(EXACT_MARK): next(numbers) for form in phrases}
        for leaf, phrases in exact.items()
    }
    return {
        leaf: (dict(sorted(words.items(), key=lambda form: -form[1])), next(numbers))
        for leaf, words in counted.items()
        if words
    }
