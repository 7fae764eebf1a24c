"""The k1, b and weight of titles that suit an index best, by its questions.

    python -m bench tune INDEX QUESTIONS
    python -m bench tune INDEX QUESTIONS --json

Half of the questions, drawn by a seed, chooses the values; the other half measures them beside the
defaults, with paired intervals. The query is the words of the question, each in a title once more
if titles have a weight. The measure is nDCG@10 where the questions have judged documents, else
evidence recall@10. Nothing is built again: Lucene takes k1 and b when it searches.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np

from arag_search.engines.lucene.reader import LuceneEngine
from arag_search.engines.write import DEFAULT_B, DEFAULT_K1
from arag_search.evaluation.bootstrap import LEVEL, SEED
from arag_search.evaluation.measurement import ranking_values
from arag_search.evaluation.measures import parse_measures
from arag_search.evaluation.text_match import evidence_recall
from arag_search.query import analysis
from arag_search.query.limits import MAX_LEAVES
from arag_search.questions.files import load_questions
from arag_search.questions.question import Question
from arag_search.search.index import Index, open_index
from arag_search.search.results import SearchHit
from bench import BenchError
from bench.arguments import BenchParser
from bench.report.estimates import means
from bench.report.fingerprints import questions_of
from bench.report.rows import Figure, circumstances, corpus_of, show
from bench.workbench import say

NAME = "tune"
CUT = 10
K1 = (0.4, 0.9, DEFAULT_K1, 2.0, 4.0, 10.0, 25.0)
B = (0.0, 0.2, 0.4, DEFAULT_B, 1.0)
TITLE_WEIGHTS = (0.25, 0.5, 1.0)
_NDCG = parse_measures([f"nDCG@{CUT}"])


class Setting(NamedTuple):
    """Values of a ranking; ``title`` 0 weighs titles as the index does."""

    k1: float
    b: float
    title: float

    def __str__(self) -> str:
        return f"k1 {self.k1:g}, b {self.b:g}, title {self.title:g}"


DEFAULTS = Setting(DEFAULT_K1, DEFAULT_B, 0.0)


def main(arguments: Sequence[str]) -> int:
    """Choose and measure the values, and return the exit code."""
    parser = BenchParser(NAME, __doc__)
    parser.add_argument("index", type=Path, metavar="INDEX", help="an index in a local folder")
    parser.add_argument("questions", type=Path, metavar="QUESTIONS", help="a file of questions")
    parser.add_printed_json()
    return parser.run(arguments, _measured)


def _measured(options: argparse.Namespace, command: str) -> int:
    everything = load_questions(options.questions)
    is_judged = any(question.relevant_documents for question in everything)
    questions = [q for q in everything if (q.relevant_documents if is_judged else q.gold_titles)]
    if len(questions) < 4:
        raise BenchError(
            f"{len(questions)} of {len(everything)} questions have evidence or judgements.",
            where=str(options.questions),
            allowed="4 or more such questions",
        )
    Random(SEED).shuffle(questions)
    half = len(questions) // 2
    with open_index(options.index, search_timeout_s=None) as index:
        best = chosen(index, questions[:half])
        figure = compared(index, questions[half:], best)
        run = circumstances(command, index.manifest, seed=SEED)
        details = {"corpus": corpus_of(index.manifest), "questions": questions_of(everything)}
    build = f"arag-search index SOURCE --bm25 {best.k1:g},{best.b:g}"
    details |= {**figure.details, "development": half, "index": build}
    show(options.results, [Figure(figure.name, figure.rows, details)], run, as_json=options.json)
    if best.title:
        say(f"A query weighs titles so: word OR title:word^{best.title:g}")
    say(f"Build with: {build}")
    return 0


def chosen(index: Index, questions: Sequence[Question]) -> Setting:
    """Return the setting with the highest mean: first k1 and b, then the weight of titles with
    these. Of equal settings the defaults are taken, else the first."""
    means: dict[Setting, float] = {}

    def best(settings: Iterable[Setting]) -> Setting:
        for setting in settings:
            if setting not in means:
                means[setting] = float(np.mean(list(values(index, questions, setting).values())))
                say(f"{setting}: {means[setting]:.4f} on {len(questions):,} questions")
        return max(means, key=lambda setting: means[setting])

    k1, b, title = best([DEFAULTS, *(Setting(k1, b, 0.0) for k1, b in product(K1, B))])
    return best(Setting(k1, b, weight) for weight in (title, *TITLE_WEIGHTS))


def compared(index: Index, questions: Sequence[Question], best: Setting) -> Figure:
    """Measure the defaults and the best setting with their paired difference."""
    measure = f"nDCG@{CUT}" if questions[0].relevant_documents else f"recall@{CUT}"
    sides = [values(index, questions, setting) for setting in (DEFAULTS, best)]
    before, after = ([side[question.id] for question in questions] for side in sides)
    columns = {
        f"defaults ({DEFAULTS}), {measure}": before,
        f"best ({best}), {measure}": after,
        f"difference, {measure}": [new - old for old, new in zip(before, after, strict=True)],
    }
    rows = means(columns, NAME, [question.type for question in questions])
    return Figure(NAME, rows, {"level": LEVEL, "measured": len(questions)})


def values(index: Index, questions: Sequence[Question], setting: Setting) -> Mapping[str, float]:
    """Return the measure of each question under a setting. Raises BenchError for an index that is
    not in a local folder."""
    if not isinstance(index.engine, LuceneEngine):
        raise BenchError(
            "The values of this index cannot be changed while it is searched.",
            where=index.location,
            allowed="an index in a local folder",
        )
    index.engine.use_bm25(setting.k1, setting.b)
    hits = {question.id: _hits(index, question, setting.title) for question in questions}
    if not questions[0].relevant_documents:
        return {
            question.id: evidence_recall(question, [hit.title for hit in hits[question.id]]) or 0.0
            for question in questions
        }
    judged = {question.id: dict(question.relevant_documents) for question in questions}
    ranked = {
        question.id: [
            id
            for id in dict.fromkeys(hit.doc_id for hit in hits[question.id])
            if id not in question.excluded_documents
        ]
        for question in questions
    }
    of_judged = ranking_values(_NDCG, judged, ranked)
    return {id: of_judged.get(id, {}).get(f"nDCG@{CUT}", 0.0) for id in judged}


def _hits(index: Index, question: Question, title: float) -> Sequence[SearchHit]:
    words = analysis.terms(question.text)[: MAX_LEAVES // (2 if title else 1)]
    clauses = [f'"{word}"' for word in words]
    clauses += [f'title:"{word}"^{title:g}' for word in words if title]
    if not clauses:
        return ()
    excluded = len(question.excluded_documents)
    return index.logical_search(
        " ".join(clauses),
        top_k=min(CUT + excluded, 1_000),
        per_document=1 if question.relevant_documents else None,
        feedback=False,
        snippets=False,
    ).hits
