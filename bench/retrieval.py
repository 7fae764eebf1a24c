"""What one search for a question finds, by kind of search.

    python -m bench retrieval
    python -m bench retrieval --sets musique --questions 20 --searches keyword,logical
    python -m bench retrieval --data negconstraint --queries logical.jsonl

For questions with evidence, it measures the evidence among the first passages, and their tokens.
For judged needs (a folder of BEIR or MTEB), it measures the ranking of their documents. It prints
the figures and adds them to the file of results. See bench/studies/retrieval.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from arag_search.engines.hits import Hit
from arag_search.evaluation.bootstrap import LEVEL, SEED
from arag_search.evaluation.interfaces import content_words, words_query
from arag_search.evaluation.judgements import checked_judgements
from arag_search.evaluation.measurement import ranking_values
from arag_search.evaluation.measures import parse_measures
from arag_search.evaluation.text_match import evidence_recall
from arag_search.query.problems import QueryError
from arag_search.questions.files import load_questions
from arag_search.questions.question import Question
from arag_search.search.index import Index
from arag_search.tokens import count_tokens
from arag_search.vectors.encoders.model_files import OFFLINE_PACKAGE
from bench import BenchError
from bench.arguments import BenchParser, names_from, positive
from bench.data import SETS, corpus_file, drawn, questions_in, sets_in
from bench.report.estimates import mean_rows
from bench.report.fingerprints import questions_of
from bench.report.rows import Figure, circumstances, corpus_of, show
from bench.workbench import open_kept, say

NAME = "retrieval"
CUTS = (5, 20)
"""The numbers of passages that are scored for evidence."""
DEPTH = 100
RANKING = parse_measures(["nDCG@10", f"AP@{DEPTH}", "Recall@1", "Recall@10", f"Recall@{DEPTH}"])
"""The measures of judged needs. The mean of AP is the MAP of a run of this depth."""
EXCLUDED = "excluded@10"
"""The share of documents that a need excludes (a grade below 0) among the first ten."""


def _keyword(index: Index, need: str, query: str, count: int) -> Sequence[Hit]:
    words = content_words(need)
    return index.keyword_search(words, top_k=count).hits if words else ()


def _logical(index: Index, need: str, query: str, count: int) -> Sequence[Hit]:
    words = words_query(need)
    if not words:
        return ()
    return index.logical_search(words, top_k=count, operators=False, feedback=False).hits


Search = Callable[[Index, str, str, int], Sequence[Hit]]
"""Searches for the text of a need, or the logical query for it, and returns so many passages."""
SEARCHES: Mapping[str, Search] = {
    "keyword": _keyword,
    "logical": _logical,
    "semantic": lambda index, need, query, count: index.semantic_search(need, top_k=count).hits,
    "naive": lambda index, need, query, count: index.naive_embedding_search(need, top_k=count).hits,
    "hybrid": lambda index, need, query, count: index.hybrid_search(need, top_k=count).hits,
}
WITH_QUERIES: Mapping[str, Search] = {
    "query": lambda index, need, query, count: (
        index.logical_search(query, top_k=count, feedback=False).hits
    ),
    "nearest where query": lambda index, need, query, count: (
        index.naive_embedding_search(need, where=query, top_k=count).hits
    ),
}
"""The searches with a logical query for each need."""
BY_WORDS = {"keyword", "logical", "query"}
"""The searches that need no vectors."""
REFERENCE = "logical"
"""The search that the others are compared with."""

Values = dict[str, dict[str, list[float]]]
"""Values of each question, by search and measure."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The values of a data set. ``refused`` are queries that a search refused; such a query counts
    as finding nothing."""

    name: str
    values: Values
    types: Sequence[str | None]
    refused: Mapping[str, int]
    about: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def columns(self) -> dict[str, Sequence[float]]:
        """Return the values of each search and measure. If the search for all words of the question
        was measured, add the paired differences of the others from it."""
        table: dict[str, Sequence[float]] = {
            f"{search}, {measure}": values
            for search, by_measure in self.values.items()
            for measure, values in by_measure.items()
        }
        for search in self.values if REFERENCE in self.values else ():
            for measure, values in self.values[search].items() if search != REFERENCE else ():
                pairs = zip(values, self.values[REFERENCE][measure], strict=True)
                differences = [value - reference for value, reference in pairs]
                table[f"{search} - {REFERENCE}, {measure}"] = differences
        return table


def main(arguments: Sequence[str]) -> int:
    """Measure the chosen data sets and return the exit code."""
    parser = BenchParser(NAME, __doc__)
    add = parser.add_argument
    add("--sets", type=_names, default=SETS, metavar="A,B", help="data sets, as folders of --data")
    add(
        "--searches",
        type=names_from(SEARCHES),
        default=tuple(SEARCHES),
        metavar="A,B",
        help=f"searches to measure: {','.join(SEARCHES)} (default all)",
    )
    add("--questions", type=positive, metavar="N", help="questions of each, drawn by a seed")
    parser.add_default("--encoder", str, OFFLINE_PACKAGE, "encoder of the vectors")
    add(
        "--queries",
        type=Path,
        metavar="FILE",
        help='logical queries for the needs of one judged set: JSON lines of "id" and "query"',
    )
    parser.add_data()
    parser.add_kept_work("indexes and vectors", NAME)
    parser.add_results()
    return parser.run(arguments, _measured)


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, text.split(",")))) or SETS


def _measured(options: argparse.Namespace, command: str) -> int:
    run = circumstances(command, seed=SEED)
    searches = {name: SEARCHES[name] for name in options.searches}
    encoder = None if set(searches) <= BY_WORDS else options.encoder
    if options.queries is not None:
        searches |= {
            name: search for name, search in WITH_QUERIES.items() if encoder or name in BY_WORDS
        }
    sets: dict[bool, list[Measured]] = {}
    for name, folder in sets_in(options.data, options.sets).items():
        questions = drawn(load_questions(questions_in(folder)), options.questions, name)
        is_judged = any(question.relevant_documents for question in questions)
        queries: dict[str, str] = {}
        if options.queries is not None:
            queries = _queries(options.queries, questions)
        with closing(open_kept(corpus_file(folder), options.work / name, encoder)) as index:
            if encoder:
                index.encode_queries([question.text for question in questions])
            measure = ranking if is_judged else evidence
            measured = measure(name, index, questions, searches, queries)
            about = {
                "corpus": corpus_of(index.manifest),
                "encoder": encoder,
                "questions": questions_of(questions),
                "refused": measured.refused,
            }
        sets.setdefault(is_judged, []).append(replace(measured, about=about))
    figures = [
        figure(f"{NAME}, judged" if is_judged else NAME, measured)
        for is_judged, measured in sets.items()
    ]
    show(options.json, figures, run)
    return 0


def _queries(path: Path, needs: Sequence[Question]) -> dict[str, str]:
    """Return the logical query of each need. Raises BenchError if one has none."""
    records = map(orjson.loads, path.read_bytes().splitlines())
    queries = {str(record["id"]): record["query"] for record in records}
    missing = [need.id for need in needs if need.id not in queries]
    if missing:
        raise BenchError(
            f'{len(missing):,} needs have no query, the first of them "{missing[0]}".',
            where=str(path),
            allowed='JSON lines {"id", "query"}, one for each need',
        )
    return queries


def figure(name: str, sets: Sequence[Measured]) -> Figure:
    """Estimate all values and differences; the intervals of the differences of a data set hold
    together at 95 % (Bonferroni)."""
    tables = {measured.name: measured.columns() for measured in sets}
    types = {measured.name: measured.types for measured in sets}
    differences = sum(_is_difference(column) for column in next(iter(tables.values())))
    level = 1 - (1 - LEVEL) / max(1, differences)
    rows = mean_rows(tables, types, lambda column: level if _is_difference(column) else LEVEL)
    details = {"level_of_differences": level, "sets": {of.name: of.about for of in sets}}
    return Figure(name, rows, details)


def _is_difference(column: str) -> bool:
    return f" - {REFERENCE}, " in column


def _searched(
    index: Index,
    questions: Sequence[Question],
    search: Search,
    queries: Mapping[str, str],
    count: int,
) -> Iterator[tuple[Question, Sequence[Hit] | None]]:
    """Search for each question, and yield it with its hits; None for a query that is refused."""
    for question in questions:
        try:
            yield question, search(index, question.text, queries.get(question.id, ""), count)
        except QueryError:
            yield question, None


def evidence(
    name: str,
    index: Index,
    questions: Sequence[Question],
    searches: Mapping[str, Search],
    queries: Mapping[str, str],
) -> Measured:
    """Measure the evidence recall and the tokens of the first passages of each search.

    Raises BenchError for a question without evidence.
    """
    for question in questions:
        if not question.gold_titles:
            raise BenchError(
                f'The question "{question.id}" names no evidence.',
                where=name,
                allowed="questions with supporting titles, a chain of facts, or judged documents",
                do="Leave it out of the file.",
            )
    tokens: dict[str, int] = {}
    values: Values = {}
    refused = dict.fromkeys(searches, 0)
    for kind, search in searches.items():
        say(f"{name}: {kind}, {len(questions)} questions")
        columns = values.setdefault(kind, {})
        for question, hits in _searched(index, questions, search, queries, max(CUTS)):
            refused[kind] += hits is None
            for measure, value in evidence_of(question, hits or (), tokens).items():
                columns.setdefault(measure, []).append(value)
    return Measured(name, values, [question.type for question in questions], refused)


def evidence_of(
    question: Question, hits: Sequence[Hit], tokens: dict[str, int]
) -> dict[str, float]:
    """Return the evidence recall and the tokens of the first passages. ``tokens`` keeps the number
    for each passage by its id."""
    for hit in hits:
        if hit.id not in tokens:
            tokens[hit.id] = count_tokens(hit.title) + count_tokens(hit.content)
    recalls = {
        f"recall@{cut}": evidence_recall(question, [hit.title for hit in hits[:cut]]) or 0.0
        for cut in CUTS
    }
    return recalls | {f"tokens@{cut}": sum(tokens[hit.id] for hit in hits[:cut]) for cut in CUTS}


def ranking(
    name: str,
    index: Index,
    needs: Sequence[Question],
    searches: Mapping[str, Search],
    queries: Mapping[str, str],
) -> Measured:
    """Measure the rankings of documents, where a passage counts as its document. Documents that a
    need leaves out by id are left out of its rankings. Raises BenchError if no need is judged."""
    needs, notes = checked_judgements(needs, index)
    for note in notes:
        say(f"{name}: {note}")
    judged = {need.id: dict(need.relevant_documents) for need in needs}
    excluded = {
        id: {document for document, grade in grades.items() if grade < 0}
        for id, grades in judged.items()
    }
    values: Values = {}
    refused = dict.fromkeys(searches, 0)
    for kind, search in searches.items():
        say(f"{name}: {kind}, {len(needs):,} needs")
        ranked: dict[str, list[str]] = {}
        for need, hits in _searched(index, needs, search, queries, DEPTH):
            refused[kind] += hits is None
            ranked[need.id] = need.ranked(hit.doc_id for hit in hits or ())
        columns = values.setdefault(kind, {})
        for id, of_need in ranking_values(RANKING, judged, ranked).items():
            if any(excluded.values()):
                of_need[EXCLUDED] = len(excluded[id].intersection(ranked[id][:10])) / 10
            for measure, value in of_need.items():
                columns.setdefault(measure, []).append(value)
        if not columns:
            raise BenchError("No need has a relevant document.", where=name)
    return Measured(name, values, [None] * len(next(iter(columns.values()))), refused)
