"""Counts of hops, evidence and names that the gold-chain agent starts from.

    python -m bench gold_chain

Prints the counts in Markdown.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from arag_search.agent.answers import normalise
from arag_search.evaluation.resolution import RULES
from arag_search.evaluation.text_match import without_brackets
from arag_search.questions.files import load_questions
from bench.arguments import BenchParser
from bench.data import sets_in
from bench.gold_chain.ground import UNRESOLVED, Asked, check_chains, open_ground
from bench.gold_chain.outcome import half_of
from bench.report import markdown

SETS = ("2wikimultihopqa", "musique")


def main(arguments: Sequence[str]) -> int:
    """Print the counts and return the exit code."""
    parser = BenchParser("gold_chain", __doc__)
    parser.add_data()
    parser.add_kept_work("indexes", "ablate/sets")
    return parser.run(arguments, _printed)


def _printed(options: argparse.Namespace, _: str) -> int:
    columns = {
        name: _counts(name, folder, options.work)
        for name, folder in sets_in(options.data, SETS).items()
    }
    rows = [[kind, *(f"{counts[kind]:,}" for counts in columns.values())] for kind in _KINDS]
    print("\n".join(markdown.table(("", *columns), rows)), end="")
    return 0


def _counts(name: str, folder: Path, work: Path) -> dict[str, int]:
    """Count what a data set has of each kind, with passages as published."""
    questions = load_questions(folder / "questions.jsonl")
    check_chains(questions, name)
    ground = open_ground(folder / "corpus.jsonl", "published", questions, work / name, None)
    try:
        titles = {chunk.id: chunk.title for chunk in ground.index.scan()}
    finally:
        ground.index.close()
    counts = Counter({"questions": len(questions)})
    counts["questions of the development half"] = sum(
        half_of(question.id) == "development" for question in questions
    )
    counts["questions with an unresolved hop"] = sum(
        UNRESOLVED in asked.rules for asked in ground.asked
    )
    for asked in ground.asked:
        counts.update(_kinds(asked, titles))
    return {what: counts[what] for what in _KINDS}


_KINDS = (
    "questions",
    "questions of the development half",
    "questions with an unresolved hop",
    "hops",
    *(f"hops resolved by {rule}" for rule in RULES),
    f"hops {UNRESOLVED}",
    "names that were revealed otherwise than the data has them",
    "names of one word, of which none is dropped",
    "names that are the title of the passage sought",
    "names that hold the answer",
    "hops whose answer stands in no single sentence",
)


def _kinds(asked: Asked, titles: dict[str, str]) -> Counter[str]:
    """Count the kinds of the hops of a question."""
    counts: Counter[str] = Counter({"hops": len(asked.known)})
    hops = zip(asked.question.hops, asked.known, asked.evidence, asked.rules, strict=True)
    for hop, known, evidence, rule in hops:
        counts[f"hops {rule}" if rule == UNRESOLVED else f"hops resolved by {rule}"] += 1
        name = normalise(known.canonical)
        sought = {normalise(without_brackets(titles[id])) for id in evidence}
        answer = f" {normalise(hop.answer)} "
        texts = [text for shown_texts in evidence.values() for text in shown_texts]
        for what, holds in (
            ("names that were revealed otherwise than the data has them",
             normalise(known.surface) != name),
            ("names of one word, of which none is dropped", len(known.canonical.split()) == 1),
            ("names that are the title of the passage sought", name in sought),
            ("names that hold the answer", answer in f" {name} "),
            ("hops whose answer stands in no single sentence",
             bool(texts) and not any(answer in f" {normalise(text)} " for text in texts)),
        ):  # fmt: skip
            counts[what] += holds
    return counts
