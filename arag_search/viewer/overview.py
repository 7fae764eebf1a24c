"""The overview of the runs of a page: means with intervals, differences of two runs, categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from typing import Any

from arag_search.evaluation import measures as names
from arag_search.evaluation.bootstrap import LEVEL, Interval, intervals, resampled_means
from arag_search.evaluation.failures import FAILURES
from arag_search.evaluation.loaded_run import LoadedRun
from arag_search.evaluation.measurement import measures_json
from arag_search.evaluation.measures import Measure
from arag_search.evaluation.score import Score
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
