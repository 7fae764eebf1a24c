"""Runs over the same questions beside the first of them, question by question.

Differences are of means over the questions that have a value in both runs. Their intervals are
percentiles of resampled questions (paired bootstrap), and hold together at LEVEL (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from arag_search.errors import RunError
from arag_search.evaluation.bootstrap import LEVEL, Difference, import_numpy, mean_interval
from arag_search.evaluation.measures import Unit, parse_measures
from arag_search.evaluation.score import Score
from arag_search.runs.folder import shorten_names

BY_DEFAULT = parse_measures(["EM,F1,ContainAcc,GroundedAcc,EvidenceRecall,RetrievedTokens,Steps"])
"""The measures by which runs are made if none is named."""
_FEW = 20


@dataclass(frozen=True, slots=True)
class RunDifference:
    """A run beside the first one by a measure. ``means`` are the means of both over ``questions``,
    and ``difference`` is what the run has more. Wins are questions on which the run is better."""

    measure: str
    unit: Unit
    run: str
    questions: int
    means: Sequence[float]
    difference: Difference


@dataclass(frozen=True, slots=True)
class RunDifferences:
    """The scores of runs by name, and how the others differ from the first one. ``level`` is the
    level of a single interval."""

    scores: Mapping[str, Score]
    level: float
    differences: list[RunDifference]
    notes: list[str]

    def to_json(self) -> dict[str, Any]:
        """Return the differences as JSON values, with a row for each question of each run."""
        scored = {name: score.to_json() for name, score in self.scores.items()}
        return {
            "runs": {name: of["run"] for name, of in scored.items()},
            "level": self.level,
            "differences": [asdict(difference) for difference in self.differences],
            "notes": self.notes,
            "questions": [
                {"run": name, **row} for name, of in scored.items() for row in of["questions"]
            ],
        }


def compare_runs(scores: Mapping[str, Score]) -> RunDifferences:
    """Compare runs by the measures of their scores. Raises RunError if two of them asked no common
    question, or other questions under an id; MissingExtraError without numpy."""
    first, *others = scores
    level = 1 - (1 - LEVEL) / (len(others) * len(scores[first].measures))
    made = RunDifferences(scores, level, [], [])
    for name in others:
        types = _common_types(scores, first, name)
        asked = max(len(scores[run].questions) for run in (first, name))
        if len(types) < asked:
            made.notes.append(f"{name}: {len(types):,} of {asked:,} questions are in both runs.")
        if len(types) < _FEW:
            made.notes.append(f"{name}: intervals over fewer than {_FEW} questions are too narrow.")
        made.differences.extend(_differences(scores[first], scores[name], name, types, level))
    made.notes.extend(f"{name}: {note}" for name, of in scores.items() for note in of.notes)
    return made


def _common_types(scores: Mapping[str, Score], first: str, name: str) -> dict[str, str | None]:
    """Return the types of the questions of both runs, by id."""
    asked = {score.id: score.question.split() for score in scores[name].questions}
    common = [score for score in scores[first].questions if score.id in asked]
    others = [score.id for score in common if score.question.split() != asked[score.id]]
    if not common or others:
        raise RunError(
            f"The runs asked different questions{': ' * bool(others)}{shorten_names(others)}.",
            where=f"{first} and {name}",
            allowed="runs over the same file of questions",
            do="Run both over one file, or compare others.",
        )
    return {score.id: score.type for score in common}


def _differences(
    first: Score, run: Score, name: str, types: Mapping[str, str | None], level: float
) -> Iterator[RunDifference]:
    """Yield the difference by each measure that has a value in both runs."""
    np = import_numpy()
    for measure in first.measures:
        text = str(measure)
        rows = {id: (first.values[id][text], run.values[id][text]) for id in types}
        known = {id: row for id, row in rows.items() if None not in row}
        if known:
            values = np.array([*known.values()], dtype=np.float64)
            gaps = values[:, 1] - values[:, 0]
            interval = mean_interval(gaps, [types[id] for id in known], "score", level)
            gains = gaps if measure.kind.higher_is_better else -gaps
            means = values.mean(axis=0).tolist()
            difference = Difference.of(interval, gains)
            yield RunDifference(text, measure.kind.unit, name, len(known), means, difference)
