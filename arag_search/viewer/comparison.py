"""Two runs side by side: whether they can be compared, and the difference of each question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from arag_search.errors import RunError
from arag_search.evaluation.loaded_run import LoadedRun
from arag_search.questions.question import Question

DIFFERENCES = {
    "first": "only A is right",
    "second": "only B is right",
    "status": "other status",
    "answer": "other answers",
    "same": "same answer",
    "none": "no answer in either",
    "one": "in one run only",
}
"""The differences of two answers to a question, in the order in which questions are shown."""


def union(runs: Sequence[LoadedRun], folders: Sequence[str]) -> tuple[Question, ...]:
    """Return the questions of all runs, each as in the first run that has it. Those of the first
    run come first, in its order.

    Raises RunError if two runs share no question, or ask different questions under one id.
    """
    questions = {question.id: question for run in reversed(runs) for question in run.questions}
    ordered = {question.id: questions[question.id] for run in runs for question in run.questions}
    if len(runs) == 2:
        _check_comparable(runs[0], runs[1], " and ".join(folders))
    return tuple(ordered.values())


def _check_comparable(first: LoadedRun, second: LoadedRun, where: str) -> None:
    texts = {question.id: question.text for question in first.questions}
    shared = [question for question in second.questions if question.id in texts]
    if not shared:
        raise RunError(
            "The two runs share no question.",
            where=where,
            allowed="two runs over the same questions, or with some of the same ids",
        )
    other = [question.id for question in shared if question.text != texts[question.id]]
    if other:
        more = f" and {len(other) - 3} more" if len(other) > 3 else ""
        raise RunError(
            f"The two runs ask something else under the same id: {', '.join(other[:3])}{more}.",
            where=where,
            allowed="two runs in which an id stands for the same question",
        )


def notes_on(first: LoadedRun, second: LoadedRun) -> list[str]:
    """Return notes on differences of the two runs other than preset or model."""
    notes: list[str] = []
    indexes = [run.description.fingerprints.get("index") for run in (first, second)]
    if indexes[0] != indexes[1]:
        notes.append(
            "The runs searched different indexes, or scopes of one: passages with the same id may "
            "differ."
        )
    mine = {question.id: question for question in first.questions}
    theirs = {question.id: question for question in second.questions}
    shared = mine.keys() & theirs.keys()
    if mine.keys() != theirs.keys():
        these = "it" if len(shared) == 1 else "these"
        notes.append(
            f"{_counted(len(shared), 'is', 'are')} in both runs, and differences are over {these}."
        )
    other = sum(_gold(mine[id]) != _gold(theirs[id]) for id in shared)
    if other:
        notes.append(
            f"{_counted(other, 'has', 'have')} other gold answers in B, by which its answers are "
            "judged: those of A are shown. Give both runs one file with --questions."
        )
    return notes


def _counted(number: int, singular: str, many: str) -> str:
    return f"1 question {singular}" if number == 1 else f"{number:,} questions {many}"


def _gold(question: Question) -> tuple[object, ...]:
    return question.answers, question.answerable


def difference(shown: Sequence[Mapping[str, Any] | None]) -> str:
    """Return a key of DIFFERENCES for the results of two runs on a question. "Only one is right"
    requires that both were judged, each by the gold answers of its run."""
    first, second = shown
    if first is None or second is None:
        return "one"
    is_judged = None not in (first["right"], second["right"])
    if is_judged and first["right"] != second["right"]:
        return "first" if first["right"] else "second"
    if first["status"] != second["status"]:
        return "status"
    if first["answer"] != second["answer"]:
        return "answer"
    return "same" if first["answer"] else "none"
