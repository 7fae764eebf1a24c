"""Evidence that the offline model finds on real questions, beside one BM25 query.

    python -m bench offline
    python -m bench offline 2wikimultihopqa --limit 100 --json offline.json

Prints a table and adds the figures to the file of results. See bench/studies/agent.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from statistics import fmean

from arag_search.agent.loop import Agent
from arag_search.agent.models.offline import OfflineModel
from arag_search.agent.presets import load_preset
from arag_search.evaluation.score import QuestionScore, score_question
from arag_search.evaluation.text_match import evidence_recall
from arag_search.questions.files import Question, load_questions
from arag_search.search.hits import SearchHit
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from arag_search.tokens import count_tokens
from bench.arguments import BenchParser, positive
from bench.data import sets_in
from bench.quality.question_words import words_query
from bench.report.fingerprints import agent_fingerprints
from bench.report.rows import Figure, Row, Target, circumstances, table, write_results
from bench.workbench import say, set_up

PARTS = ("2wikimultihopqa", "musique", "hotpotqa")
PRESET = "logical_read"

_HITS = 20


def main(arguments: Sequence[str]) -> int:
    """Measure the chosen data sets and return the exit code."""
    parser = BenchParser("offline", __doc__)
    add = parser.add_argument
    add("part", nargs="?", choices=(*PARTS, "all"), default="all")
    add("--limit", type=positive, help="ask only the first questions of each data set")
    parser.add_data()
    parser.add_results()
    parser.add_work()
    return parser.run(arguments, _measured)


def _measured(options: argparse.Namespace, command: str) -> int:
    parts = PARTS if options.part == "all" else (options.part,)
    figures: list[Figure] = []
    for part, folder in sets_in(options.data, parts).items():
        with set_up(folder / "corpus.jsonl", options.work) as bench:
            questions = load_questions(folder / "questions.jsonl")[: options.limit]
            with open_index(bench.index, search_timeout_s=None) as index:
                figures.append(measure(index, questions, part))
            run = circumstances(command, bench.manifest)
        run |= agent_fingerprints(questions, load_preset(PRESET), OfflineModel())
        write_results(options.json, figures[-1:], run)
    print(table(figures))
    return 0


def measure(index: Index, questions: Sequence[Question], name: str) -> Figure:
    """Measure the evidence and tokens of the model, and the evidence of one query of as many
    tokens."""
    say(f"offline, preset {PRESET}: {len(questions)} questions")
    agent = Agent(index, load_preset(PRESET), OfflineModel())
    scores = [score_question(asked, agent.ask(asked.text, asked.id)) for asked in questions]
    tokens = [score.retrieved_tokens or 0 for score in scores]
    aim = Target("at least", 0.75) if name == PARTS[0] else None
    rows = (
        Row("evidence recall", mean_recall(scores), "", target=aim),
        Row("retrieved tokens a question", fmean(tokens), ""),
        Row("recall of one BM25 query, same tokens", one_query(index, questions, tokens), ""),
    )
    return Figure(name, rows, {"questions": len(questions)})


def one_query(index: Index, questions: Sequence[Question], tokens: Sequence[int]) -> float:
    """Return the evidence recall of one BM25 query of the words of each question. Its passages are
    shown as the search tool shows them and cut at ``tokens``; a passage that is cut counts."""
    recalls: list[float] = []
    for question, room in zip(questions, tokens, strict=True):
        hits = index.logical_search(words_query(question.text), top_k=_HITS).hits
        recall = evidence_recall(question, [hit.title for hit in cut_hits(hits, room)])
        recalls += [] if recall is None else [recall]
    return fmean(recalls)


def cut_hits(hits: Sequence[SearchHit], room: int) -> list[SearchHit]:
    """Return the hits that begin within ``room`` tokens of titles and snippets."""
    kept: list[SearchHit] = []
    used = 0
    for hit in hits:
        if used >= room:
            break
        kept.append(hit)
        used += count_tokens(hit.title) + count_tokens(hit.snippet)
    return kept


def mean_recall(scores: Sequence[QuestionScore]) -> float:
    """Return the evidence recall over the questions that name evidence; 0 if none does."""
    recalls = [score.evidence_recall for score in scores if score.evidence_recall is not None]
    return fmean(recalls) if recalls else 0.0
