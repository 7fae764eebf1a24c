"""The overview of the runs of a page: means with intervals, differences of two runs, categories,
and whether two runs can be compared, with the difference of each question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from typing import Any

from arag_search.errors import RunError
from arag_search.evaluation import measures as names
from arag_search.evaluation.bootstrap import LEVEL, Interval, intervals, resampled_means
from arag_search.evaluation.evidence import FAILURES
from arag_search.evaluation.loaded_run import LoadedRun
from arag_search.evaluation.measurement import measures_json
from arag_search.evaluation.measures import Measure
from arag_search.evaluation.score import Score
from arag_search.questions.question import Question
from arag_search.system.extras import install_line

MEASURES = tuple(
    Measure(kind)
    for kind in (
        names.EM,
        names.F1,
        names.CONTAIN_ACC,
        names.EVIDENCE_RECALL,
        names.FULL_EVIDENCE,
        names.TOKENS_TO_EVIDENCE,
        names.RETRIEVED_TOKENS,
        names.TOTAL_TOKENS,
        names.STEPS,
        names.SECONDS,
        names.COST,
    )
)
"""The measures that the overview shows if they could be measured."""
_CITED = (Measure(names.CITED_RECALL, 1), Measure(names.CITED_NDCG, 10))

RESAMPLES = 2_000
"""Fewer than the bench draws, because nothing is claimed here."""
_DRAWS = "view"


def measures_of(runs: Sequence[LoadedRun]) -> Sequence[Measure]:
    """Return the measures of an overview of these runs. They include measures of cited documents
    where answers cite documents and ir-measures is installed."""
    cites = any(record.citations for run in runs for record in run.records.values())
    return (*MEASURES, *_CITED) if cites and find_spec("ir_measures") else MEASURES


def overview(scores: Sequence[Score]) -> dict[str, Any]:
    """Compute the figures of one run, or of two with their differences."""
    return {
        "level": LEVEL,
        "measures": [
            {**described, **_measured(described["name"], scores)}
            for described in measures_json(scores[0].measures)
            if any(score.means[0].values[described["name"]] is not None for score in scores)
        ],
        "types": [_types(score) for score in scores],
        "categories": list(FAILURES.items()),
        "failures": [score.failure_counts() for score in scores],
        "tools": [
            {name: asdict(use) for name, use in score.trajectories.tools.items()}
            for score in scores
        ],
    }


def notes_on_intervals() -> list[str]:
    """Return the note for missing intervals."""
    return (
        []
        if _has_numpy()
        else [f"There are no intervals, which need numpy: {install_line('vectors')}"]
    )


def _types(score: Score) -> list[dict[str, Any]]:
    """Return the means over all questions, then over those of each type."""
    return [
        {
            "type": means.type,
            "questions": means.questions,
            "values": dict(means.values),
            "counted": dict(means.counted),
        }
        for means in score.means
    ]


def _measured(measure: str, scores: Sequence[Score]) -> dict[str, Any]:
    """Return one measure: for each run its mean and the number of its questions, and for two runs
    the mean difference over the questions that both have."""
    measured: dict[str, Any] = {
        "runs": [
            {
                **_estimate(_table([score], measure), [1.0]),
                "value": score.means[0].values[measure],
                "counted": score.means[0].counted[measure],
            }
            for score in scores
        ]
    }
    if len(scores) == 2:
        paired = _table(scores, measure)
        measured["difference"] = {**_estimate(paired, [-1.0, 1.0]), "counted": len(paired)}
    return measured


def _table(scores: Sequence[Score], measure: str) -> dict[str, tuple[str | None, list[float]]]:
    """Return type and values of each question that has a value in all of the runs."""
    first = scores[0]
    table: dict[str, tuple[str | None, list[float]]] = {}
    for question in first.questions:
        values = [
            score.values[question.id][measure] if question.id in score.values else None
            for score in scores
        ]
        known = [value for value in values if value is not None]
        if len(known) == len(values):
            table[question.id] = (question.type, known)
    return table


def _estimate(
    table: Mapping[str, tuple[str | None, list[float]]], weights: Sequence[float]
) -> dict[str, float | None]:
    """Estimate the mean of the weighted sum of the columns, with the bounds of its interval."""
    if not table:
        return {"value": None, "low": None, "high": None}
    types = [type for type, _ in table.values()]
    sums = [
        sum(weight * value for weight, value in zip(weights, values, strict=True))
        for _, values in table.values()
    ]
    if not _has_numpy():
        return {"value": sum(sums) / len(sums), "low": None, "high": None}
    interval = _interval(sums, types)
    return {"value": interval.value, "low": interval.low, "high": interval.high}


def _interval(values: Sequence[float], types: Sequence[str | None]) -> Interval:
    import numpy as np

    column = np.array(values, dtype=np.float64)[:, None]
    means = resampled_means(column, types, _DRAWS, RESAMPLES)
    return intervals([float(column.mean())], means, [LEVEL])[0]


def _has_numpy() -> bool:
    return find_spec("numpy") is not None


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
