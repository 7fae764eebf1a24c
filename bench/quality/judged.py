"""Rankings of judged sets: any folder in the format of BEIR or MTEB, and logical queries for its
needs from a file. A passage counts as its document. Where judgements have grades below 0, the share
of such documents among the first ten is measured as well.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from arag_search.evaluation.bootstrap import LEVEL, SEED
from arag_search.evaluation.measurement import ranking_values
from arag_search.evaluation.measures import parse_measures
from arag_search.query.problems import QueryError
from arag_search.questions.files import load_questions
from arag_search.questions.question import Question
from arag_search.search.hits import SearchHit
from arag_search.search.index import Index
from bench import BenchError
from bench.data import corpus_file
from bench.quality.data_sets import drawn, open_kept
from bench.quality.question_words import words_query
from bench.report.estimates import means
from bench.report.fingerprints import encoder_of, questions_of
from bench.report.rows import Figure, circumstances, corpus_of, show
from bench.workbench import say

DEPTH = 100
CUTOFF = 10
MEASURES = parse_measures(["nDCG@10", f"AP@{DEPTH}", "Recall@1", "Recall@10", f"Recall@{DEPTH}"])
"""The measures. The mean of AP over the first 100 documents is the MAP of a run of this depth."""
EXCLUDED = f"excluded@{CUTOFF}"

Search = Callable[[Index, str, str], Sequence[SearchHit]]
"""Searches for the text of a need and the logical query for it."""


def _words(index: Index, need: str, query: str) -> Sequence[SearchHit]:
    words = words_query(need)
    if not words:
        return ()
    return index.logical_search(words, top_k=DEPTH, operators=False, feedback=False).hits


SEARCHES: Mapping[str, Search] = {
    "words": _words,
    "naive": lambda index, need, query: index.naive_embedding_search(need, top_k=DEPTH).hits,
    "hybrid": lambda index, need, query: index.hybrid_search(need, top_k=DEPTH).hits,
}
WITH_QUERIES: Mapping[str, Search] = {
    "query": lambda index, need, query: (
        index.logical_search(query, top_k=DEPTH, feedback=False).hits
    ),
    "query and meaning": lambda index, need, query: (
        index.hybrid_search(query, meaning=need, top_k=DEPTH).hits
    ),
    "nearest where query": lambda index, need, query: (
        index.naive_embedding_search(need, where=query, top_k=DEPTH).hits
    ),
}
"""The searches with a logical query for each need."""
REFERENCE = "words"
"""The search that the others are compared with."""


def measured(options: argparse.Namespace, command: str) -> int:
    """Measure the folder that the options name, and return the exit code."""
    folder = options.judged
    needs = drawn(load_questions(folder), options.questions, folder.name)
    queries = {} if options.queries is None else _queries(options, needs)
    with open_kept(corpus_file(folder), options.work / folder.name, options.encoder) as index:
        index.encode_queries([need.text for need in needs])
        searches = {**SEARCHES, **(WITH_QUERIES if queries else {})}
        values, refused = measure(index, needs, queries, searches)
        made_of = {
            "corpus": corpus_of(index.manifest),
            "encoder": encoder_of(index.open_vectors().encoder.identity),
            "questions": questions_of(needs),
        }
    figure = figure_of(folder.name, values, {**made_of, "refused": refused})
    show(options.json, [figure], circumstances(command, seed=SEED))
    return 0


def _queries(options: argparse.Namespace, needs: Sequence[Question]) -> dict[str, str]:
    """Return the logical query of each need. Raises BenchError if one has none."""
    records = map(orjson.loads, options.queries.read_bytes().splitlines())
    queries = {str(record["id"]): record["query"] for record in records}
    missing = [need.id for need in needs if need.id not in queries]
    if missing:
        raise BenchError(
            f'{len(missing):,} needs have no query, the first of them "{missing[0]}".',
            where=str(options.queries),
            allowed='JSON lines {"id", "query"}, one for each need',
        )
    return queries


def measure(
    index: Index,
    needs: Sequence[Question],
    queries: Mapping[str, str],
    searches: Mapping[str, Search],
) -> tuple[dict[str, dict[str, dict[str, float]]], dict[str, int]]:
    """Return the measures by search and need, and how many queries each search refused; a refused
    query counts as one that finds nothing. Rankings leave out the documents that a need excludes by
    id."""
    judged = {need.id: dict(need.relevant_documents) for need in needs}
    excluded = {
        id: {document for document, grade in grades.items() if grade < 0}
        for id, grades in judged.items()
    }
    values: dict[str, dict[str, dict[str, float]]] = {}
    refused: dict[str, int] = {}
    for name, search in searches.items():
        say(f"{name}: {len(needs):,} needs")
        ranked: dict[str, list[str]] = {}
        refused[name] = 0
        for need in needs:
            hits: Sequence[SearchHit] = ()
            try:
                hits = search(index, need.text, queries.get(need.id, ""))
            except QueryError:
                refused[name] += 1
            documents = dict.fromkeys(hit.doc_id for hit in hits)
            ranked[need.id] = [id for id in documents if id not in need.excluded_documents]
        values[name] = ranking_values(MEASURES, judged, ranked)
        if any(excluded.values()):
            for id, of_need in values[name].items():
                first = ranked[id][:CUTOFF]
                of_need[EXCLUDED] = len(excluded[id].intersection(first)) / CUTOFF
    return values, refused


def figure_of(
    name: str, values: Mapping[str, Mapping[str, Mapping[str, float]]], details: Mapping[str, Any]
) -> Figure:
    """Estimate the mean of every measure with its interval, and the paired difference of each
    search from the words of the need. Raises BenchError if no need was judged."""
    ids = list(values[REFERENCE])
    if not ids:
        raise BenchError("No need has a relevant document.", where=name)
    measures = list(values[REFERENCE][ids[0]])
    table = {
        f"{search}, {measure}": [values[search][id][measure] for id in ids]
        for search in values
        for measure in measures
    }
    for search in values:
        if search != REFERENCE:
            for measure in measures:
                table[f"{search} - {REFERENCE}, {measure}"] = [
                    values[search][id][measure] - values[REFERENCE][id][measure] for id in ids
                ]
    rows = means(table, name)
    return Figure(f"judged: {name}", rows, {**details, "level": LEVEL, "needs": len(ids)})
