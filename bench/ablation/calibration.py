"""Calibration: whether answers are right as often as the model is sure of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from arag_search.evaluation import measures as names
from bench.ablation.values import SetValues, Table
from bench.report.markdown import table

BIN = 100
"""Answers in a bin, as in the program of BrowseComp-Plus."""


def calibration_error(confidences: Table, verdicts: Table) -> float:
    """Return the root mean square, over bins of ``BIN`` answers of similar confidence (the last one
    takes the rest), of mean confidence less the share of right answers, weighted by answers.

    The program of BrowseComp-Plus leaves its last bin out of the sum; here all bins count.
    """
    order = np.argsort(confidences, kind="stable")
    ends = [BIN * number for number in range(1, len(order) // BIN)]
    squares = [
        len(part) * float(confidences[part].mean() - verdicts[part].mean()) ** 2
        for part in np.split(order, ends)
    ]
    return float(np.sqrt(sum(squares) / len(order)))


def calibration_lines(sets: Sequence[SetValues]) -> list[str]:
    """Return the calibration of every condition in Markdown; nothing if no answer that was judged
    states a confidence. An answer without one counts as quite sure, as in BrowseComp-Plus."""
    rows: list[Sequence[str]] = []
    for values in sets:
        stated, judged = (
            values.tables.get(kind.name) for kind in (names.CONFIDENCE, names.JUDGE_ACC)
        )
        if stated is None or judged is None:
            continue
        for column, condition in enumerate(values.conditions):
            is_judged = ~np.isnan(judged[:, column])
            confidences, verdicts = stated[is_judged, column], judged[is_judged, column]
            if np.isnan(confidences).all():
                continue
            sure = np.nan_to_num(confidences, nan=1.0)
            figures = (verdicts.mean(), sure.mean(), calibration_error(sure, verdicts))
            levels = ", ".join(level for _, level in condition)
            rows.append(
                (values.name, levels, str(len(sure)), *(f"{float(value):.3f}" for value in figures))
            )
    if not rows:
        return []
    head = ("data set", "condition", "answers", "right", "mean confidence", "calibration error")
    return ["## Calibration", "", *table(head, rows)]
