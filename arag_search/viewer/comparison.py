"""Two runs side by side: whether they can be compared, and how far each question differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from arag_search.agent.run_folder import COMPARED
from arag_search.errors import RunError
from arag_search.evaluation.asked import AskedRun
from arag_search.evaluation.question import Question

DIFFERENCES = {
    "first": "only A is right",
    "second": "only B is right",
    "status": "other status",
    "answer": "other answers",
    "same": "same answer",
    "one": "in one run only",
}
"""How the two answers to a question differ; in this order questions are shown."""


def union(runs: Sequence[AskedRun], folders: Sequence[str]) -> tuple[Question, ...]:
    """The questions of all runs, in the order of the first.

    Raises RunError where two runs share none, or ask something else under the same id.
    """
    found = {question.id: question for run in reversed(runs) for question in run.questions}
    ordered = {one.id: found[one.id] for run in runs for one in run.questions}
    if len(runs) == 2:
        _check_comparable(runs[0], runs[1], " and ".join(folders))
    return tuple(ordered.values())


def _check_comparable(first: AskedRun, second: AskedRun, where: str) -> None:
    texts = {one.id: one.text for one in first.questions}
    shared = [one for one in second.questions if one.id in texts]
    if not shared:
        raise RunError(
            "The two runs share no question.",
            where=where,
            allowed="two runs over the same questions, or with some of the same ids",
        )
    other = [one.id for one in shared if one.text != texts[one.id]]
    if other:
        more = f" and {len(other) - 3} more" if len(other) > 3 else ""
        raise RunError(
            f"The two runs ask something else under the same id: {', '.join(other[:3])}{more}.",
            where=where,
            allowed="two runs in which an id stands for the same question",
        )


def notes_on(first: AskedRun, second: AskedRun) -> list[str]:
    """What makes the two runs differ in more than their preset or model."""
    one, other = first.description, second.description
    differing = [
        name for name in COMPARED if one.fingerprints.get(name) != other.fingerprints.get(name)
    ]
    notes: list[str] = []
    if "index" in differing:
        notes.append(
            "The runs searched different indexes, or scopes of one: passages with the same id may "
            "differ."
        )
    if "questions" in differing:
        shared = {each.id for each in first.questions} & {each.id for each in second.questions}
        notes.append(
            f"The runs were given different files of questions: {len(shared):,} questions are in "
            "both, and differences are over these."
        )
    return notes


def difference(shown: Sequence[Mapping[str, Any] | None]) -> str:
    """A key of DIFFERENCES, given what each of two runs made of a question."""
    first, second = shown
    if first is None or second is None:
        return "one"
    if first["right"] != second["right"]:
        return "first" if first["right"] else "second"
    if first["status"] != second["status"]:
        return "status"
    return "same" if first["answer"] == second["answer"] else "answer"
