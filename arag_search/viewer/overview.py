"""The overview of a run: means with intervals, and categories of wrong answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from importlib.util import find_spec
from typing import Any

from arag_search.evaluation.bootstrap import LEVEL, mean_interval
from arag_search.evaluation.evidence import FAILURES
from arag_search.evaluation.loaded_run import LoadedRun
from arag_search.evaluation.measurement import measures_json
from arag_search.evaluation.measures import Measure, parse_measures
from arag_search.evaluation.score import Score
from arag_search.system.extras import install_line

MEASURES = parse_measures(
    [
        "EM,F1,ContainAcc,EvidenceRecall,FullEvidence,TokensToEvidence,RetrievedTokens,TotalTokens",
        "Steps,Seconds,Cost",
    ]
)
"""The measures that the overview shows if they could be measured."""
_CITED = parse_measures(["CitedRecall@1,CitedNDCG@10"])

RESAMPLES = 2_000
"""Fewer than the bench draws, because nothing is claimed here."""
_DRAWS = "view"


def measures_of(run: LoadedRun) -> Sequence[Measure]:
    """Return the measures of an overview of a run. They include measures of cited documents where
    answers cite documents and ir-measures is installed."""
    cites = any(record.citations for record in run.records.values())
    return (*MEASURES, *_CITED) if cites and find_spec("ir_measures") else MEASURES


def overview(score: Score) -> dict[str, Any]:
    """Compute the figures of a run."""
    return {
        "level": LEVEL,
        "measures": [
            {**described, **_measured(described["name"], score)}
            for described in measures_json(score.measures)
            if score.means[0].values[described["name"]] is not None
        ],
        "types": [asdict(means) for means in score.means],
        "categories": list(FAILURES.items()),
        "failures": score.failure_counts(),
        "tools": {name: asdict(use) for name, use in score.trajectories.tools.items()},
    }


def notes_on_intervals() -> list[str]:
    """Return the note for missing intervals."""
    return (
        []
        if _has_numpy()
        else [f"There are no intervals, which need numpy: {install_line('vectors')}"]
    )


def _measured(measure: str, score: Score) -> dict[str, Any]:
    means = score.means[0]
    measured = {"value": means.values[measure], "counted": means.counted[measure]}
    known = [
        (question.type, value)
        for question in score.questions
        if question.id in score.values and (value := score.values[question.id][measure]) is not None
    ]
    if not known or not _has_numpy():
        return {**measured, "low": None, "high": None}
    types, values = zip(*known, strict=True)
    interval = mean_interval(values, types, _DRAWS, resamples=RESAMPLES)
    return {**measured, "low": interval.low, "high": interval.high}


def _has_numpy() -> bool:
    return find_spec("numpy") is not None
