"""Single searches with the question itself, by kind of search, and estimates of their results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from arag_search.evaluation.bootstrap import LEVEL, Interval, intervals, resampled_means
from arag_search.evaluation.text_match import evidence_recall, gold_names, title_names
from arag_search.query.problems import QueryError
from arag_search.questions.files import Question
from arag_search.search.hits import SearchHit
from arag_search.search.index import Index
from arag_search.tokens import count_tokens
from bench import BenchError
from bench.quality.question_words import content_words, words_query
from bench.report.rows import MACRO

CUTS = (5, 20)
"""The numbers of passages that are scored; each question is searched for once, with the largest."""
MEASURES = tuple(f"{what}@{cut}" for what in ("recall", "tokens") for cut in CUTS)
CONTRASTS = (("semantic", "logical"), ("hybrid", "logical"))
"""The differences of interest, declared before anything was measured."""
CONTRAST_LEVEL = 1 - (1 - LEVEL) / (len(CONTRASTS) * len(MEASURES))
"""The level of each interval at which all intervals of a data set hold together at LEVEL
(Bonferroni)."""

_MOST = max(CUTS)


# Searches


def _keyword(index: Index, question: str) -> Sequence[SearchHit]:
    words = content_words(question)
    return index.keyword_search(words, top_k=_MOST).hits if words else ()


def _logical(index: Index, question: str) -> Sequence[SearchHit]:
    query = words_query(question)
    if not query:
        return ()
    return index.logical_search(query, top_k=_MOST, operators=False, feedback=False).hits


Search = Callable[[Index, str], Sequence[SearchHit]]
SEARCHES: Mapping[str, Search] = {
    "keyword": _keyword,
    "logical": _logical,
    "semantic": lambda index, text: index.semantic_search(text, top_k=_MOST).hits,
    "naive": lambda index, text: index.naive_embedding_search(text, top_k=_MOST).hits,
    "hybrid": lambda index, text: index.hybrid_search(text, top_k=_MOST).hits,
}
BY_WORDS = {"keyword", "logical"}
"""The searches that need no vectors."""


class Answer(NamedTuple):
    """The result of one search for one question. ``values`` are in the order of MEASURES."""

    values: tuple[float, ...]
    hits: int
    refused: bool


class Evidence(NamedTuple):
    """The evidence that passages can show: gold titles over all questions, those that no passage
    has, questions with such a title, and titles that several passages have."""

    titles: int
    unresolved: int
    questions: int
    shared: int


@dataclass(frozen=True, slots=True)
class Measured:
    """The answers of every search to the questions of a data set, in their order."""

    name: str
    questions: Sequence[Question]
    answers: Mapping[str, Sequence[Answer]]
    evidence: Evidence


def measure(
    name: str,
    index: Index,
    questions: Sequence[Question],
    say: Callable[[str], None],
    searches: Collection[str] = SEARCHES,
) -> Measured:
    """Search for every question in these ways.

    Raises BenchError for a question without evidence, and what the searches raise but QueryError.
    """
    for question in questions:
        if not question.gold_titles:
            raise BenchError(
                f'The question "{question.id}" names no evidence.',
                where=name,
                allowed="questions with supporting titles or a chain of facts",
                do="Leave it out of the file.",
            )
    evidence = evidence_of(
        {chunk.doc_id: chunk.title for chunk in index.scan()}.values(), questions
    )
    if not set(searches) <= BY_WORDS:
        index.encode_queries([question.text for question in questions])
    tokens: dict[str, int] = {}
    answers: dict[str, list[Answer]] = {}
    for kind in searches:
        say(f"{name}: {kind}, {len(questions)} questions")
        answers[kind] = [_answer(index, SEARCHES[kind], question, tokens) for question in questions]
    return Measured(name, questions, answers, evidence)


def _answer(index: Index, search: Search, question: Question, tokens: dict[str, int]) -> Answer:
    """Search for one question; ``tokens`` caches the number of tokens of passages by id."""
    try:
        hits, refused = search(index, question.text), False
    except QueryError:
        hits, refused = (), True
    for hit in hits:
        if hit.id not in tokens:
            tokens[hit.id] = count_tokens(hit.title) + count_tokens(hit.content)
    return Answer(values_of(question, hits, tokens), len(hits), refused)


def values_of(
    question: Question, hits: Sequence[SearchHit], tokens: Mapping[str, int]
) -> tuple[float, ...]:
    """Evidence recall and tokens of the first hits, in the order of MEASURES."""
    recalls = [evidence_recall(question, [hit.title for hit in hits[:cut]]) for cut in CUTS]
    shown = [float(sum(tokens[hit.id] for hit in hits[:cut])) for cut in CUTS]
    return (*(recall or 0.0 for recall in recalls), *shown)


def evidence_of(titles: Collection[str], questions: Sequence[Question]) -> Evidence:
    """Count the evidence that passages with these titles (one for each document) can show."""
    documents = {
        of_subjects: Counter(
            name for title in titles for name in title_names(title, of_subjects=of_subjects)
        )
        for of_subjects in (False, True)
    }
    evidence = [
        [documents[not question.supporting_titles][name] for name in gold_names(question)]
        for question in questions
    ]
    return Evidence(
        titles=sum(map(len, evidence)),
        unresolved=sum(counts.count(0) for counts in evidence),
        questions=sum(0 in counts for counts in evidence),
        shared=sum(count > 1 for counts in evidence for count in counts),
    )


# Estimates


class Column(NamedTuple):
    """A search, or the difference of two, and the measure."""

    what: str
    measure: str

    @property
    def is_difference(self) -> bool:
        """Whether it is the difference of two searches."""
        return self.what in DIFFERENCES


DIFFERENCES = {f"{first} - {other}": (first, other) for first, other in CONTRASTS}


def columns_of(searches: Collection[str]) -> list[Column]:
    """Return the columns of these searches and of the differences between them."""
    within = [what for what, pair in DIFFERENCES.items() if set(pair) <= set(searches)]
    return [Column(what, measure) for what in (*searches, *within) for measure in MEASURES]


Estimates = Mapping[str, Mapping[Column, Interval]]
"""Estimates by data set, in order; MACRO is the last."""


def estimates(sets: Sequence[Measured]) -> Estimates:
    """Estimate the mean of every column with its interval: of each data set, and of the average of
    several data sets, in which each counts the same."""
    columns = columns_of(sets[0].answers)
    tables = [
        np.array([_row(measured, at, columns) for at in range(len(measured.questions))])
        for measured in sets
    ]
    values = [table.mean(axis=0) for table in tables]
    means = [
        resampled_means(table, [question.type for question in measured.questions], measured.name)
        for measured, table in zip(sets, tables, strict=True)
    ]
    names = [measured.name for measured in sets]
    if len(sets) > 1:
        names.append(MACRO)
        values.append(np.mean(values, axis=0))
        means.append(np.mean(means, axis=0))
    levels = [CONTRAST_LEVEL if column.is_difference else LEVEL for column in columns]
    return {
        name: dict(zip(columns, intervals(value, mean, levels), strict=True))
        for name, value, mean in zip(names, values, means, strict=True)
    }


def _row(measured: Measured, at: int, columns: Sequence[Column]) -> list[float]:
    """Return the values of one question in the order of the columns."""

    def value(what: str, measure: str) -> float:
        if what in DIFFERENCES:
            first, other = DIFFERENCES[what]
            return value(first, measure) - value(other, measure)
        return measured.answers[what][at].values[MEASURES.index(measure)]

    return [value(*column) for column in columns]


def verdict(difference: Interval, measure: str) -> str:
    """Return what the interval of a difference supports; if it is not resolved, also the smallest
    difference that would be."""
    if difference.is_resolved:
        return "above 0" if difference.low > 0 else "below 0"
    return f"not resolved (from {shown(difference.resolution, measure)})"


def shown(value: float, measure: str) -> str:
    """Format a value: tokens as whole numbers, recall with three decimals."""
    return f"{value:,.0f}" if measure.startswith("tokens") else f"{value:.3f}"
