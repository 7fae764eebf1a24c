"""Ways to merge the ranking of a logical query with that of vectors.

    python -m bench merging
    python -m bench merging --sets musique

A merge is chosen on the development half of the questions, and reported on the other half. The
logical queries are those of the gold chain (name and relation, and the name), with the name of each
hop as the data has it or without one of its words, and those that a model wrote in recorded runs
(``model_runs`` beside the data sets, if it is there). The meaning is the words of the hop, or the
question of the run. The relevant passages are those with the evidence of the hop, or of the
question. See bench/studies/retrieval.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from statistics import fmean

import orjson

from arag_search.agent.record import Record
from arag_search.evaluation.bootstrap import LEVEL, SEED, intervals, resampled_means
from arag_search.evaluation.measures import NDCG, Measure
from arag_search.evaluation.ranking import ranking_values
from arag_search.query.problems import QueryError
from arag_search.questions.files import load_questions
from arag_search.search.fusion import fuse
from arag_search.search.index import Index, open_index
from arag_search.vectors.encoders.hub import OFFLINE_PACKAGE
from bench import BenchError
from bench.arguments import BenchParser
from bench.data import corpus_file, sets_in
from bench.gold_chain.ground import Asked, check_chains, open_ground
from bench.gold_chain.names import Names
from bench.gold_chain.outcome import Half, half_of
from bench.gold_chain.queries import wordings
from bench.quality.data_sets import kept_passage_vectors
from bench.quality.packed import PUBLISHED
from bench.report.fingerprints import encoder_of, questions_of
from bench.report.rows import Figure, Row, circumstances, corpus_of, show
from bench.workbench import say

NAME = "merging"
SETS = ("2wikimultihopqa", "musique")
MODEL_RUNS = "model_runs"
CUTOFF = 10
MEASURE = Measure(NDCG, CUTOFF)
DEPTH = 100
"""The number of passages of each ranking that are merged, as in hybrid_search."""
REFERENCE = "RRF 1:1, K = 60"
"""The merge that the others are compared with: the one of LogicalRAG's hybrid search."""

_REGIMES: Mapping[Names, str] = {
    "canonical": "gold chain",
    "dropped": "gold chain, a word of the name dropped",
}
_RUNS = ("logical_read", "logicalrag")


Ranking = Sequence[int]
Merge = Callable[[Ranking, Ranking], Ranking]


def _rrf(weight: float, k: float) -> Merge:
    def merge(logical: Ranking, vectors: Ranking) -> Ranking:
        return [item.ordinal for item in fuse(logical, vectors, weights=(weight, 1), k=k)]

    return merge


def _interleaved(logical: Ranking, vectors: Ranking) -> Ranking:
    pairs = chain.from_iterable(zip_longest(logical, vectors))
    return list(dict.fromkeys(item for item in pairs if item is not None))


def _filled_up(logical: Ranking, vectors: Ranking) -> Ranking:
    return list(dict.fromkeys([*logical, *vectors]))


MERGES: Mapping[str, Merge] = {
    "logical alone": lambda logical, _: logical,
    "vectors alone": lambda _, vectors: vectors,
    **{f"RRF {w:g}:1, K = {k}": _rrf(w, k) for w in (0.5, 1, 2, 4, 8) for k in (60, 10, 1)},
    "interleaved, logical first": _interleaved,
    "logical first, then filled up": _filled_up,
}


@dataclass(frozen=True, slots=True)
class Item:
    """A pair of queries of a question, from a source, with the relevant passages."""

    source: str
    question: str
    query: str
    meaning: str
    evidence: frozenset[str]


def main(arguments: Sequence[str]) -> int:
    """Measure the chosen data sets and return the exit code."""
    parser = BenchParser(NAME, __doc__)
    add = parser.add_argument
    add("--sets", nargs="+", default=SETS, metavar="SET", help="data sets with chains of facts")
    parser.add_default("--encoder", str, OFFLINE_PACKAGE, "encoder of the vectors")
    parser.add_data()
    parser.add_kept_work("indexes and vectors", NAME)
    parser.add_results()
    return parser.run(arguments, _measured)


def _measured(options: argparse.Namespace, command: str) -> int:
    values: dict[str, dict[str, dict[str, float]]] = {}
    made_of: dict[str, object] = {}
    for name, folder in sets_in(options.data, options.sets).items():
        corpus, work = corpus_file(folder), options.work / name
        location, vectors = kept_passage_vectors(corpus, work / PUBLISHED, options.encoder)
        items = list(_items(name, folder, work, options.data))
        with open_index(location, vectors=vectors, search_timeout_s=None) as index:
            say(f"{name}: {len(items):,} pairs of queries")
            for source, by_question in scores(index, items).items():
                values[f"{name}, {source}"] = by_question
            made_of[name] = {
                "corpus": corpus_of(index.manifest),
                "encoder": encoder_of(index.open_vectors().encoder.identity),
                "questions": questions_of(load_questions(folder / "questions.jsonl")),
            }
    show(options.json, [figure(values, made_of)], circumstances(command, seed=SEED))
    return 0


def _items(name: str, folder: Path, work: Path, data: Path) -> Iterator[Item]:
    """Yield the pairs of queries of a data set, and of the runs over its corpus."""
    corpus = corpus_file(folder)
    questions = load_questions(folder / "questions.jsonl")
    check_chains(questions, name)
    ground = open_ground(corpus, PUBLISHED, questions, work, None)
    ground.index.close()
    for asked in ground.asked:
        yield from _of_chain(asked)
    file = data / MODEL_RUNS / f"{name}.questions.jsonl"
    if not file.is_file():
        return
    ground = open_ground(corpus, PUBLISHED, load_questions(file), work, None)
    ground.index.close()
    by_id = {asked.question.id: asked for asked in ground.asked}
    for run in _RUNS:
        records = file.with_name(f"{name}.{run}.jsonl")
        if records.is_file():
            for line in records.read_bytes().splitlines():
                record = Record.from_json(orjson.loads(line))
                yield from _of_record(record, by_id[record.question_id])


def _of_chain(asked: Asked) -> Iterator[Item]:
    for names, source in _REGIMES.items():
        for link in asked.chain(names, SEED).links:
            queries = wordings("logical", link.name, link.relation, in_title=False)[:2]
            meaning = wordings("hybrid", link.name, link.relation, in_title=False)[0]
            evidence = frozenset(link.evidence)
            for query in map(str, queries):
                yield Item(source, asked.question.id, query, str(meaning), evidence)


def _of_record(record: Record, asked: Asked) -> Iterator[Item]:
    evidence = frozenset(chain.from_iterable(asked.evidence))
    for step in record.trajectory:
        if step.tool_name == "logical_search" and step.status != "error":
            query = str(step.tool_input["query"])
            yield Item("model", record.question_id, query, record.question, evidence)


def scores(index: Index, items: Sequence[Item]) -> dict[str, dict[str, dict[str, float]]]:
    """Return, by source, question and merge, the mean of the measure over the pairs of queries."""
    index.encode_queries([item.meaning for item in items])
    ids: list[str] = []
    numbers: dict[str, int] = {}

    def ranking(hits: Sequence[str]) -> list[int]:
        for id in hits:
            if id not in numbers:
                numbers[id] = len(ids)
                ids.append(id)
        return [numbers[id] for id in hits]

    ranked: dict[str, dict[str, list[str]]] = {merge: {} for merge in MERGES}
    judged = {str(at): dict.fromkeys(item.evidence, 1) for at, item in enumerate(items)}
    for at, item in enumerate(items):
        logical, vectors = ranking(_logical(index, item)), ranking(_vectors(index, item))
        for name, merge in MERGES.items():
            ranked[name][str(at)] = [ids[number] for number in merge(logical, vectors)[:CUTOFF]]
    values: dict[str, dict[str, dict[str, float]]] = {}
    for name, rankings in ranked.items():
        of_items = ranking_values([MEASURE], judged, rankings)
        by_question: dict[tuple[str, str], list[float]] = {}
        for at, item in enumerate(items):
            value = of_items.get(str(at), {}).get(str(MEASURE), 0.0)
            by_question.setdefault((item.source, item.question), []).append(value)
        for (source, question), some in by_question.items():
            values.setdefault(source, {}).setdefault(question, {})[name] = fmean(some)
    return values


def _logical(index: Index, item: Item) -> list[str]:
    try:
        result = index.logical_search(item.query, top_k=DEPTH, snippets=False, feedback=False)
    except QueryError:
        return []
    return [hit.id for hit in result.hits]


def _vectors(index: Index, item: Item) -> list[str]:
    result = index.naive_embedding_search(item.meaning, top_k=DEPTH, snippets=False)
    return [hit.id for hit in result.hits]


def figure(
    values: Mapping[str, Mapping[str, Mapping[str, float]]], made_of: Mapping[str, object]
) -> Figure:
    """Choose a merge on the development halves, and estimate all merges on the test halves: for
    each source, and for their average, in which each source counts the same."""
    import numpy as np

    halves: dict[Half, list[np.ndarray]] = {"development": [], "test": []}
    for source, by_question in values.items():
        for half, tables in halves.items():
            rows = [
                list(merges.values())
                for question, merges in by_question.items()
                if half_of(question) == half
            ]
            if not rows:
                raise BenchError(f"The {half} half has no question.", where=source)
            tables.append(np.array(rows))
    development = np.mean([table.mean(axis=0) for table in halves["development"]], axis=0)
    names = list(MERGES)
    best = names[int(development.argmax())]
    at, reference = names.index(best), names.index(REFERENCE)
    rows = [
        Row(f"development: {name}", float(value), "")
        for name, value in zip(names, development, strict=True)
    ]
    draws: list[np.ndarray] = []
    for source, table in zip(values, halves["test"], strict=True):
        differences = (table - table[:, [reference]])[:, [at]]
        table = np.hstack([table, differences])
        draws.append(resampled_means(table, [None] * len(table), source))
        means = table.mean(axis=0)
        rows += _rows(source, [names[at], REFERENCE, names[0], names[1]], names, means, draws[-1])
    tables = [
        np.hstack([table, (table - table[:, [reference]])[:, [at]]]) for table in halves["test"]
    ]
    means = np.mean([table.mean(axis=0) for table in tables], axis=0)
    rows += _rows("average of all", names, names, means, np.mean(draws, axis=0))
    details = {
        "chosen": best,
        "measure": str(MEASURE),
        "level": LEVEL,
        "questions": {
            source: {half: len(tables[at]) for half, tables in halves.items()}
            for at, source in enumerate(values)
        },
        "sets": dict(made_of),
    }
    return Figure(NAME, tuple(rows), details)


def _rows(
    source: str,
    shown: Sequence[str],
    names: Sequence[str],
    means: Sequence[float],
    draws: object,
) -> list[Row]:
    """Return the rows of a source; the last column is the difference of the chosen merge from the
    reference."""
    columns = [*names, f"chosen - {REFERENCE}"]
    estimates = intervals(list(map(float, means)), draws, [LEVEL] * len(columns))  # type: ignore[arg-type]
    by_name = dict(zip(columns, estimates, strict=True))
    return [
        Row(f"{source}: {name}", by_name[name].value, "", by_name[name].low, by_name[name].high)
        for name in dict.fromkeys([*shown, columns[-1]])
    ]
