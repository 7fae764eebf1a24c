"""What the runs of a page are worth: means with intervals, differences of two, categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from arag_search.evaluation import measures as names
from arag_search.evaluation.bootstrap import LEVEL, Interval, intervals, resampled_means
from arag_search.evaluation.failures import FAILURES
from arag_search.evaluation.measurement import measures_json
from arag_search.evaluation.measures import Measure
from arag_search.evaluation.score import Score

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
        names.STEPS,
        names.SECONDS,
        names.COST,
    )
)
"""What the overview shows of what could be measured."""

RESAMPLES = 2_000
"""Fewer than the bench draws: here nothing is claimed."""
_DRAWS = "view"
NO_INTERVALS = (
    'There are no intervals, which numpy is needed for: pip install "arag-search[semantic]".'
)


def overview(scores: Sequence[Score]) -> dict[str, Any]:
    """The figures of one run, or of two with their differences."""
    return {
        "level": LEVEL,
        "measures": [
            {**described, **_measured(described["name"], scores)}
            for described in measures_json(MEASURES)
            if any(score.means[0].values[described["name"]] is not None for score in scores)
        ],
        "types": [_types(score) for score in scores],
        "categories": list(FAILURES.items()),
        "failures": [score.failure_counts() for score in scores],
    }


def notes_on_intervals() -> list[str]:
    """What is to be said where there are none."""
    return [] if _has_numpy() else [NO_INTERVALS]


def _types(score: Score) -> list[dict[str, Any]]:
    """Means over all questions, then over those of each type."""
    return [
        {
            "type": one.type,
            "questions": one.questions,
            "values": dict(one.values),
            "counted": dict(one.counted),
        }
        for one in score.means
    ]


def _measured(measure: str, scores: Sequence[Score]) -> dict[str, Any]:
    """One measure: of each run its mean with how many questions it is over, and of two runs the
    mean difference over the questions that both have."""
    found: dict[str, Any] = {
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
        found["difference"] = {**_estimate(paired, [-1.0, 1.0]), "counted": len(paired)}
    return found


def _table(scores: Sequence[Score], measure: str) -> dict[str, tuple[str | None, list[float]]]:
    """Type and values of each question that has one in all of the runs."""
    first = scores[0]
    found: dict[str, tuple[str | None, list[float]]] = {}
    for one in first.questions:
        values = [_value(score.values, one.id, measure) for score in scores]
        known = [value for value in values if value is not None]
        if len(known) == len(values):
            found[one.id] = (one.type, known)
    return found


def _value(values: Mapping[str, Mapping[str, float | None]], id: str, name: str) -> float | None:
    return values[id][name] if id in values else None


def _estimate(
    table: Mapping[str, tuple[str | None, list[float]]], weights: Sequence[float]
) -> dict[str, float | None]:
    """The mean of the weighted sum of the columns, with the bounds of its interval."""
    if not table:
        return {"value": None, "low": None, "high": None}
    types = [type for type, _ in table.values()]
    sums = [
        sum(weight * value for weight, value in zip(weights, values, strict=True))
        for _, values in table.values()
    ]
    if not _has_numpy():
        return {"value": sum(sums) / len(sums), "low": None, "high": None}
    found = _interval(sums, types)
    return {"value": found.value, "low": found.low, "high": found.high}


def _interval(values: Sequence[float], types: Sequence[str | None]) -> Interval:
    import numpy as np

    column = np.array(values, dtype=np.float64)[:, None]
    means = resampled_means(column, types, _DRAWS, RESAMPLES)
    return intervals([float(column.mean())], means, [LEVEL])[0]


def _has_numpy() -> bool:
    return find_spec("numpy") is not None
