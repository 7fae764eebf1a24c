"""What the gold-chain agent starts from: hops, their evidence, and what is known of them.

    python -m bench gold_chain
    python -m bench gold_chain --freeze

Prints counts in Markdown. ``--freeze`` keeps the hash of the policy as it is now; what that means
is in bench/README.md.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from arag_search.engines.lucene.jvm import cache_folder
from arag_search.errors import AragError
from arag_search.evaluation.measures import normalise, without_brackets
from arag_search.evaluation.resolution import RULES
from arag_search.questions.files import load_questions
from bench.gold_chain.frozen import FROZEN, policy_hash
from bench.gold_chain.ground import UNRESOLVED, Asked, check_chains, open_ground
from bench.gold_chain.outcome import half_of
from bench.quality.data_sets import DATA

SETS = ("2wikimultihopqa", "musique")


def main(arguments: Sequence[str]) -> int:
    """Print what the arguments name. Exit code 1 for a failure."""
    given = _parser().parse_args(arguments)
    if given.freeze:
        FROZEN.write_text(f"{policy_hash()}\n", "ascii")
        print(f"The policy is frozen: {policy_hash()}.")
        return 0
    work: Path = given.work or cache_folder() / "bench" / "ablate" / "sets"
    try:
        columns = {name: _counts(name, given.data, work) for name in SETS}
    except AragError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"| | {' | '.join(columns)} |\n|{'---|' * (len(columns) + 1)}")
    for what in next(iter(columns.values())):
        print(f"| {what} | {' | '.join(f'{each[what]:,}' for each in columns.values())} |")
    return 0


def _counts(name: str, data: Path, work: Path) -> dict[str, int]:
    """What there is of each kind in a data set, passages as published."""
    questions = load_questions(data / name / "questions.jsonl")
    check_chains(questions, name)
    ground = open_ground(data / name / "corpus.jsonl", "published", questions, work / name, None)
    try:
        titles = {chunk.id: chunk.title for chunk in ground.index.scan()}
    finally:
        ground.index.close()
    found = Counter({"questions": len(questions)})
    found["questions of the development half"] = sum(
        half_of(one.id) == "development" for one in questions
    )
    found["questions with an unresolved hop"] = sum(UNRESOLVED in one.rules for one in ground.asked)
    for one in ground.asked:
        found.update(_kinds(one, titles))
    return {what: found[what] for what in _KINDS}


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
    """What the hops of a question are, one by one."""
    found: Counter[str] = Counter({"hops": len(asked.known)})
    hops = zip(asked.question.hops, asked.known, asked.evidence, asked.rules, strict=True)
    for hop, known, evidence, rule in hops:
        found[f"hops {rule}" if rule == UNRESOLVED else f"hops resolved by {rule}"] += 1
        name = normalise(known.canonical)
        sought = {normalise(without_brackets(titles[one])) for one in evidence}
        answer = f" {normalise(hop.answer)} "
        texts = [text for one in evidence.values() for text in one]
        for what, holds in (
            ("names that were revealed otherwise than the data has them",
             normalise(known.surface) != name),
            ("names of one word, of which none is dropped", len(known.canonical.split()) == 1),
            ("names that are the title of the passage sought", name in sought),
            ("names that hold the answer", answer in f" {name} "),
            ("hops whose answer stands in no single sentence",
             bool(texts) and not any(answer in f" {normalise(text)} " for text in texts)),
        ):  # fmt: skip
            found[what] += holds
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench gold_chain",
        description="Count what the gold-chain agent starts from.",
    )
    add = parser.add_argument
    add("--data", type=Path, default=DATA, help="folder of the data sets (default %(default)s)")
    add("--work", type=Path, help="where indexes are kept (default: the cache)")
    add("--freeze", action="store_true", help="keep the hash of the policy as it is now")
    return parser
