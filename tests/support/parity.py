"""Differences between the answers of engines that hold the same corpus."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from arag_search.corpus import Chunk
from arag_search.engines.base import Granularity
from arag_search.plan.clauses import ResolvedPlan
from arag_search.plan.lower import lower
from arag_search.query import analysis
from arag_search.query.printing import quoted
from arag_search.query.reading import parse
from arag_search.search.index import Index
from arag_search.search.results import SearchResult
from arag_search.tools.preset_files import load_preset
from arag_search.tools.tool import ReadSet
from arag_search.tools.toolbox import tools_of
from tests.support.drawn_queries import keyword_sets, logical_queries

TOP_K = 10
TOLERANCE = 1e-4
"""The relative tolerance of scores."""
_DOCUMENTS_PRESET = "agentic_logical"
_OPENED = 3

_GRANULARITIES: tuple[Granularity, ...] = ("chunk", "sentence")
_BATCH = 25


@dataclass(frozen=True, slots=True)
class Question:
    """A query, or keywords, to be asked of each index. With ``patterns``, the query is one for the
    tools of documents, and the patterns are looked for in the first documents."""

    kind: str
    query: str
    granularity: Granularity = "chunk"
    keywords: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()

    def ask(self, index: Index) -> SearchResult:
        """Search an index and return its answer."""
        if self.keywords:
            return index.keyword_search(self.keywords, top_k=TOP_K)
        return index.logical_search(self.query, top_k=TOP_K, granularity=self.granularity)

    def replies(self, index: Index) -> list[str]:
        """Return what ``search`` replies, and ``find`` and ``open`` in the first documents."""
        tools, seen = tools_of(load_preset(_DOCUMENTS_PRESET), index), ReadSet()
        reply = tools["search"].run({"queries": [self.query]}, seen)
        texts = [reply.text]
        for shown in reply.references[:_OPENED]:
            document = {"reference_id": shown.reference}
            finding = tools["find"].run({**document, "patterns": list(self.patterns)}, seen)
            texts += [finding.text, tools["open"].run({**document, "line_number": 1}, seen).text]
        return texts


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between the answer of an index and that of the first."""

    location: str
    kind: str
    question: Question
    expected: object
    actual: object


# Questions


def questions(chunks: Sequence[Chunk], count: int, phrases: int) -> list[Question]:
    """Draw ``count`` logical queries, up to ``phrases`` titles as phrases, and conjunctions of a
    tenth of the queries, which match little, all at both granularities; ``count`` / 5 sets of
    keywords; and ``count`` / 10 queries for the tools of documents."""
    random = Random(count)
    logical = logical_queries(chunks, count)
    titles = sorted({chunk.title for chunk in chunks if analysis.terms(chunk.title)})
    title_phrases = [quoted(title) for title in random.sample(titles, min(phrases, len(titles)))]
    texts = [("logical", text) for text in logical] + [
        ("title phrase", text) for text in title_phrases
    ]
    firsts, seconds = (random.sample(logical, count // 10) for _ in range(2))
    pairs = zip(firsts, seconds, strict=True)
    texts += [("both", f"({first}) AND ({other})") for first, other in pairs]
    drawn = [
        Question(kind, text, granularity) for kind, text in texts for granularity in _GRANULARITIES
    ]
    sets = keyword_sets(chunks, max(1, count // 5))
    drawn += [Question("keywords", ", ".join(words), keywords=words) for words in sets]
    drawn += [
        Question("documents", text, patterns=words)
        for text, words in zip(firsts, itertools.cycle(sets), strict=False)
    ]
    return drawn


# Comparison


def compare(indexes: Sequence[Index], asked: Sequence[Question]) -> list[Difference]:
    """Return all differences of the other indexes from the first."""
    first, *others = indexes
    differing = _document_differences(
        indexes, [question for question in asked if question.patterns]
    )
    asked = [question for question in asked if not question.patterns]
    for start in range(0, len(asked), _BATCH):
        batch = asked[start : start + _BATCH]
        expected, counts = [question.ask(first) for question in batch], _counts(first, batch)
        for other in others:
            for question, right, count, counted in zip(
                batch, expected, counts, _counts(other, batch), strict=True
            ):
                pairs = [*differences(right, question.ask(other))]
                if counted != count:
                    pairs.append(("counts", count, counted))
                differing += [
                    Difference(other.location, kind, question, *pair) for kind, *pair in pairs
                ]
    return differing


def _document_differences(indexes: Sequence[Index], asked: Sequence[Question]) -> list[Difference]:
    """Return the first reply of each question that differs, for each of the other indexes."""
    first, *others = indexes
    differing: list[Difference] = []
    for question in asked:
        expected = question.replies(first)
        for other in others:
            pairs = itertools.zip_longest(expected, question.replies(other), fillvalue="")
            if pair := next((pair for pair in pairs if pair[0] != pair[1]), None):
                differing.append(Difference(other.location, "replies", question, *pair))
    return differing


def _counts(index: Index, asked: Sequence[Question]) -> list[int | None]:
    """Count how often each whole query matches, all in one call; None for keywords."""
    trees: list[tuple[ResolvedPlan, Granularity]] = [
        (ResolvedPlan(lower(query.tree, query.language)), question.granularity)
        for question in asked
        if not question.keywords
        for query in (parse(question.query, index.manifest.query_schema),)
    ]
    counted = iter(index.engine.counts(trees, index.scope))
    return [None if question.keywords else next(counted) for question in asked]


def differences(first: SearchResult, other: SearchResult) -> Iterator[tuple[str, object, object]]:
    """Kind and both sides of everything in which the answers of two indexes differ."""
    ids, others = [hit.id for hit in first.hits], [hit.id for hit in other.hits]
    if sorted(ids) != sorted(others):
        yield "ids", ids, others
    elif ids != others:
        yield "order", ids, others
    scores = {hit.id: hit.score for hit in other.hits}
    for hit in first.hits:
        score = scores.get(hit.id, hit.score)
        if not math.isclose(hit.score, score, rel_tol=TOLERANCE):
            yield "scores", hit.score, score
            break
    texts = {hit.id: (hit.title, hit.part, hit.parts, hit.snippet) for hit in other.hits}
    for hit in first.hits:
        text = (hit.title, hit.part, hit.parts, hit.snippet)
        if texts.get(hit.id, text) != text:
            yield "snippets", text, texts[hit.id]
            break
    pairs = {
        "totals": [
            (result.total, result.total_is_exact, result.passages) for result in (first, other)
        ],
        "notes": [result.notes for result in (first, other)],
        "feedback": [
            None if result.feedback is None else str(result.feedback) for result in (first, other)
        ],
    }
    for kind, (right, wrong) in pairs.items():
        if right != wrong:
            yield kind, right, wrong
