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
from arag_search.questions.files import load_questions
from bench.arguments import BenchParser
from bench.data import sets_in
from bench.gold_chain.ground import check_chains, open_ground
from bench.quality.packed import PUBLISHED
from bench.report import markdown

SETS = ("2wikimultihopqa", "musique")


def main(arguments: Sequence[str]) -> int:
    """Print the counts and return the exit code."""
    parser = BenchParser("gold_chain", __doc__)
    parser.add_data()
    parser.add_kept_work("indexes", "ablate/sets")
    return parser.run(arguments, _printed)


def _printed(options: argparse.Namespace, _: str) -> int:
    folders = sets_in(options.data, SETS)
    columns = [_counts(name, folder, options.work) for name, folder in folders.items()]
    kinds = dict.fromkeys(kind for counts in columns for kind in counts)
    rows = [[kind, *(f"{counts[kind]:,}" for counts in columns)] for kind in kinds]
    print("\n".join(markdown.table(("", *folders), rows)), end="")
    return 0


def _counts(name: str, folder: Path, work: Path) -> Counter[str]:
    """Count what a data set has of each kind, with passages as published."""
    questions = load_questions(folder / "questions.jsonl")
    check_chains(questions, name)
    ground = open_ground(folder / "corpus.jsonl", PUBLISHED, questions, work / name, None)
    ground.index.close()
    counts = Counter({"questions": len(questions)})
    counts["hops"] = sum(len(question.hops) for question in questions)
    counts.update({f"hops, {rule}": count for rule, count in ground.rules.items()})
    for asked in ground.asked:
        for hop, known, evidence in zip(
            asked.question.hops, asked.known, asked.evidence, strict=True
        ):
            answer, name = f" {normalise(hop.answer)} ", normalise(known.canonical)
            texts = [f" {normalise(text)} " for shown in evidence.values() for text in shown]
            counts["names that were revealed otherwise than the data has them"] += (
                normalise(known.surface) != name
            )
            counts["names that hold the answer"] += answer in f" {name} "
            counts["hops whose answer stands in no single sentence"] += bool(texts) and not any(
                answer in text for text in texts
            )
    return counts
