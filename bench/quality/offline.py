"""Evidence and answers of the offline model on real questions.

    python -m bench offline
    python -m bench offline 2wikimultihopqa --limit 100 --json offline.json

Prints a table and adds the figures to the file of results. See bench/studies/agent.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping, Sequence
from statistics import fmean
from typing import Any

from arag_search.agent.loop import Agent
from arag_search.agent.models.offline import RULES, OfflineModel
from arag_search.agent.models.offline.questions import parse_question
from arag_search.agent.presets import load_preset
from arag_search.evaluation.score import QuestionScore, score_question
from arag_search.evaluation.text_match import evidence_recall, exact_match
from arag_search.questions.files import Question, load_questions
from arag_search.search.index import Index, open_index
from arag_search.search.results import SearchHit
from arag_search.tokens import count_tokens
from bench.arguments import BenchParser, positive
from bench.data import sets_in
from bench.quality.question_words import words_query
from bench.report.fingerprints import agent_fingerprints
from bench.report.rows import Figure, Row, Target, circumstances, table, write_results
from bench.workbench import say, set_up

MAIN = "2wikimultihopqa"
PARTS = (MAIN, "musique", "hotpotqa")
PRESET = "logical_read"
NO_PASSAGES = "direct_answer"
CHAINED = ("compositional", "inference")
MAX_TOKENS = 1_200

_HITS = 20


def main(arguments: Sequence[str]) -> int:
    """Measure the chosen data sets and return the exit code; a missed target is not a failure."""
    parser = BenchParser("offline", __doc__)
    add = parser.add_argument
    add("part", nargs="?", choices=(*PARTS, "all"), default="all")
    add(
        "--no-rules",
        dest="rules",
        action="store_const",
        const=(),
        default=tuple(RULES),
        help="do not measure what each rule contributes",
    )
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
                measure = measure_main if part == MAIN else measure_other
                figures.append(measure(index, questions, part, options.rules))
            run = circumstances(command, bench.manifest)
        run |= agent_fingerprints(questions, load_preset(PRESET), OfflineModel())
        write_results(options.json, figures[-1:], run)
    print(table(figures))
    return 0


def measure_main(
    index: Index, questions: Sequence[Question], name: str, rules: Collection[str] = RULES
) -> Figure:
    """Measure the model, its baselines, and the model without each of these rules."""
    scores = ask(index, questions, OfflineModel())
    bare = ask(index, questions, OfflineModel(), preset=NO_PASSAGES)
    own = [score.retrieved_tokens or 0 for score in scores]
    recall, exact = mean_recall(scores), mean_exact(scores)
    queried = one_query(index, questions, own)
    wide = one_query(index, questions, [MAX_TOKENS] * len(questions))
    guessed = fmean(exact_match(guess(question.text), question.answers) for question in questions)
    chained = [score for score in scores if score.type in CHAINED]
    rows = [
        Row("evidence recall", recall, "", target=Target("at least", 0.75)),
        Row("retrieved tokens a question", fmean(own), "", target=Target("at most", MAX_TOKENS)),
        Row("recall of one BM25 query, same tokens", queried, ""),
        Row("recall above it", recall - queried, "", target=Target("at least", 0.12)),
        Row(f"recall of one BM25 query, {MAX_TOKENS:,} tokens", wide, ""),
        Row("exact match", exact, ""),
        Row("exact match without passages", mean_exact(bare), ""),
        Row("exact match above it", exact - mean_exact(bare), "", target=Target("at least", 0.05)),
        Row("exact match of a guess", guessed, ""),
        Row("exact match above the guess", exact - guessed, "", target=Target("at least", 0.05)),
        Row(
            f"exact match, {' and '.join(CHAINED)}",
            mean_exact(chained),
            "",
            target=Target("at least", 0.08),
        ),
        Row("F1", fmean(score.f1 for score in scores), ""),
        Row("questions without an answer", fmean(float(score.refused) for score in scores), ""),
    ]
    left_out = without_each(index, questions, rules)
    rows += [_without(rule, kept, recall, exact) for rule, kept in left_out.items()]
    half = len(scores) // 2
    details = {
        **kept_details(scores, left_out),
        "halves": [summary(scores[:half]), summary(scores[half:])],
    }
    return Figure(name, tuple(rows), details)


def measure_other(
    index: Index, questions: Sequence[Question], name: str, rules: Collection[str] = RULES
) -> Figure:
    """Measure the model and one query on questions for which no target is set."""
    scores = ask(index, questions, OfflineModel())
    own = [score.retrieved_tokens or 0 for score in scores]
    recall, exact = mean_recall(scores), mean_exact(scores)
    left_out = without_each(index, questions, rules)
    rows = (
        Row("evidence recall", recall, ""),
        Row("retrieved tokens a question", fmean(own), ""),
        Row("recall of one BM25 query, same tokens", one_query(index, questions, own), ""),
        Row("exact match", exact, ""),
        *(_without(rule, kept, recall, exact) for rule, kept in left_out.items()),
    )
    return Figure(name, rows, kept_details(scores, left_out))


def without_each(
    index: Index, questions: Sequence[Question], rules: Collection[str]
) -> dict[str, list[QuestionScore]]:
    """Score the model without each of the rules."""
    return {rule: ask(index, questions, OfflineModel(frozenset((rule,)))) for rule in rules}


def kept_details(
    scores: Sequence[QuestionScore], left_out: Mapping[str, Sequence[QuestionScore]]
) -> dict[str, Any]:
    """Return what JSON keeps in addition to the rows: types of questions, and rules left out."""
    return {
        "types": {kind: summary(kept) for kind, kept in by_type(scores).items()},
        "rules": {rule: {"does": RULES[rule], **summary(left_out[rule])} for rule in left_out},
    }


def _without(rule: str, kept: Sequence[QuestionScore], recall: float, exact: float) -> Row:
    """Return the contribution of a rule: exact match with it minus that without it; the
    contribution to recall is in the name."""
    gain = recall - mean_recall(kept)
    return Row(f"rule {rule}: recall {gain:+.3f}, exact match", exact - mean_exact(kept), "")


def ask(
    index: Index, questions: Sequence[Question], model: OfflineModel, preset: str = PRESET
) -> list[QuestionScore]:
    """Score a model on the questions, in their order."""
    say(f"{model.name}, preset {preset}: {len(questions)} questions")
    agent = Agent(index, load_preset(preset), model)
    return [
        score_question(question, agent.ask(question.text, question.id)) for question in questions
    ]


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


def guess(question: str) -> str:
    """Guess an answer without searching: the first of two names, or yes."""
    asked = parse_question(question)
    if asked.form == "choice":
        return asked.names[0]
    return "yes" if asked.form == "yes_no" else ""


def mean_exact(scores: Sequence[QuestionScore]) -> float:
    """Exact match over all questions; 0 if there is none."""
    return fmean(score.exact_match for score in scores) if scores else 0.0


def mean_recall(scores: Sequence[QuestionScore]) -> float:
    """Evidence recall over the questions that name evidence; 0 if none does."""
    recalls = [score.evidence_recall for score in scores if score.evidence_recall is not None]
    return fmean(recalls) if recalls else 0.0


def summary(scores: Sequence[QuestionScore]) -> dict[str, float]:
    """Return the means of a group that are kept."""
    return {
        "questions": len(scores),
        "exact_match": round(mean_exact(scores), 4),
        "evidence_recall": round(mean_recall(scores), 4),
        "retrieved_tokens": round(fmean(score.retrieved_tokens or 0 for score in scores), 1),
    }


def by_type(scores: Sequence[QuestionScore]) -> dict[str, list[QuestionScore]]:
    """Group the scores by the type of their question, in order of the names."""
    kinds = sorted({score.type or "all" for score in scores})
    return {kind: [score for score in scores if (score.type or "all") == kind] for kind in kinds}
