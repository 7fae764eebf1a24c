"""Two runs side by side: whether they can be compared, and how far each question differs."""

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
"""How the two answers to a question differ; in this order questions are shown."""


def union(runs: Sequence[LoadedRun], folders: Sequence[str]) -> tuple[Question, ...]:
    """The questions of all runs as they are shown: as the first run that has one was given it, in
    the order of the first.

    Raises RunError where two runs share none, or ask something else under the same id.
    """
    found = {question.id: question for run in reversed(runs) for question in run.questions}
    ordered = {one.id: found[one.id] for run in runs for one in run.questions}
    if len(runs) == 2:
        _check_comparable(runs[0], runs[1], " and ".join(folders))
    return tuple(ordered.values())


def _check_comparable(first: LoadedRun, second: LoadedRun, where: str) -> None:
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


def notes_on(first: LoadedRun, second: LoadedRun) -> list[str]:
    """What makes the two runs differ in more than their preset or model."""
    notes: list[str] = []
    indexes = [each.description.fingerprints.get("index") for each in (first, second)]
    if indexes[0] != indexes[1]:
        notes.append(
            "The runs searched different indexes, or scopes of one: passages with the same id may "
            "differ."
        )
    mine = {each.id: each for each in first.questions}
    theirs = {each.id: each for each in second.questions}
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


def _counted(number: int, one: str, many: str) -> str:
    return f"1 question {one}" if number == 1 else f"{number:,} questions {many}"


def _gold(question: Question) -> tuple[object, ...]:
    return question.answers, question.answerable


def difference(shown: Sequence[Mapping[str, Any] | None]) -> str:
    """A key of DIFFERENCES, given what each of two runs made of a question. Only one is right where
    both were judged, each by the gold answers of its run."""
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
