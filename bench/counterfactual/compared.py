"""Hops compared: those that the searches of the gold chain find before a rewriting and after."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from arag_search.agent.answers import normalise
from arag_search.questions.files import Question
from bench.gold_chain.ground import Asked, open_ground
from bench.gold_chain.names import Names
from bench.gold_chain.policy import ORDERS
from bench.gold_chain.searcher import Searcher
from bench.report.rows import Row, Target

_REGIMES: tuple[Names, ...] = ("canonical", "surface")
_SEED = 1
_ORDER = ORDERS["Q1 Q2 Q3"]
LOST = 0.05
"""The share of the hops found before that may be lost."""

_Found = dict[tuple[Names, int], bool]


def compared(
    corpora: Sequence[Path], questions: Sequence[Sequence[Question]], work: Path
) -> tuple[list[Row], list[dict[str, Any]]]:
    """Return rows of the hops that are lost, for names as the data has them and as the question
    does, and each lost hop with its cause. Questions that are answered yes or no count apart; those
    without a chain are left out. ``corpora`` and ``questions`` are those before and after."""
    sides = [
        _walked(corpus, [question for question in asked if question.hops], work / side)
        for corpus, asked, side in zip(corpora, questions, ("before", "after"), strict=True)
    ]
    flags: dict[str, list[bool]] = {}
    lost: list[dict[str, Any]] = []
    for (old, before), (new, after) in zip(*sides, strict=True):
        is_closed = normalise("".join(old.question.answers)) in ("yes", "no")
        for (names, hop), was_found in before.items():
            of = f"{'yes/no' if is_closed else 'other'} questions, names as {names}"
            if was_found:
                flags.setdefault(of, []).append(not after[names, hop])
            if was_found and not after[names, hop]:
                lost.append(
                    {
                        "question": old.question.id,
                        "hop": hop + 1,
                        "names": names,
                        "name": old.known[hop].name(names, ""),
                        "now": new.known[hop].name(names, ""),
                        "cause": _cause(old, new, hop),
                    }
                )
    rows = [_counted(f"hops lost, {of}", losses) for of, losses in sorted(flags.items())]
    return rows, lost


def _walked(corpus: Path, questions: Sequence[Question], work: Path) -> list[tuple[Asked, _Found]]:
    """Return each question with which of its hops are found, by the names that are searched."""
    if not questions:
        return []
    ground = open_ground(corpus, questions, work / corpus.resolve().parent.name, None)
    try:
        searcher = Searcher(ground.index, "logical")
        return [
            (
                asked,
                {
                    (names, number): hop.shown
                    for names in _REGIMES
                    for number, hop in enumerate(searcher.walk(asked.chain(names, _SEED), _ORDER))
                },
            )
            for asked in ground.asked
        ]
    finally:
        ground.index.close()


def _counted(what: str, losses: Sequence[bool]) -> Row:
    """Return how many hops are lost, with the interval of Wilson (1927) at 95 %."""
    count, total, z = sum(losses), len(losses), 1.96
    share = count / total
    middle = (share + z**2 / (2 * total)) / (1 + z**2 / total)
    half = z / (1 + z**2 / total) * math.sqrt(share * (1 - share) / total + z**2 / (4 * total**2))
    low, high = (round(total * bound, 1) for bound in (middle - half, middle + half))
    return Row(what, count, f"of {total:,}", low, high, Target("at most", LOST * total))


def _cause(old: Asked, new: Asked, hop: int) -> str:
    """Return why a hop is found no longer."""
    if not new.evidence[hop]:
        return "its passage is not found by its title"
    if len(old.evidence[hop]) != len(new.evidence[hop]):
        return "the answer stands in other passages"
    return "the queries find other passages first"
