"""The searches of a condition: rates over all of them together.

A rate is the quotient of two sums over questions, so a question counts by the number of its
searches. The interval of a rate resamples questions with all of their searches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arag_search.evaluation.bootstrap import LEVEL, Interval, intervals, resampled_means
from bench.ablation.analysis.analysis import Analysis
from bench.ablation.analysis.design import Stratum
from bench.ablation.analysis.values import Condition, SetValues
from bench.ablation.experiment.search_sums import SUMS
from bench.report.statistics import MACRO

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Table = NDArray[np.float64]

OVERLAP: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "of the larger": ("of_larger", ("pairs",)),
    "Jaccard": ("jaccard", ("pairs",)),
    "of those asked for": ("of_asked", ("pairs",)),
    "found nothing twice": ("empty_pairs", ("pairs", "empty_pairs")),
}
"""Overlap of consecutive searches: the sum, and the sums that it is divided by."""
RECOVERY: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "failed": ("failed", ("searches",)),
    "the next found something": ("at_once", ("failed",)),
    "a later one": ("later", ("failed",)),
    "none": ("never", ("failed",)),
    "searches until one did": ("waited", ("at_once", "later")),
}
"""Searches after those that found nothing or were refused."""
RATES = {**OVERLAP, **RECOVERY}


@dataclass(frozen=True, slots=True)
class Searched:
    """The searches of a level under the main policy. ``counts`` are by name in SUMS, over all
    questions and seeds, empty for MACRO; ``rates`` by name in RATES, None if there was nothing
    to divide by."""

    set_name: str
    level: str
    counts: Mapping[str, float]
    rates: Mapping[str, Interval | None]


def searched(analysis: Analysis, stratum: Stratum) -> list[Searched]:
    """Return the rates of each data set and level with records, then the macro-average if there are
    several data sets."""
    rates: list[Searched] = []
    resampled: dict[str, list[Table]] = {}
    for data_set in analysis.sets:
        for level in analysis.design.compared:
            condition = analysis.design.condition(stratum, analysis.design.main, level)
            if condition in data_set.searched:
                made = _drawn(data_set, condition, analysis.resamples)
                resampled.setdefault(level, []).append(made)
                counts = dict(zip(SUMS, made[0].tolist(), strict=True))
                rates.append(Searched(data_set.name, level, counts, _rates([made])))
    if len(analysis.sets) > 1:
        rates += [
            Searched(MACRO, level, {}, _rates(sums_by_set))
            for level, sums_by_set in resampled.items()
        ]
    return rates


def _drawn(data_set: SetValues, condition: Condition, resamples: int) -> Table:
    """Return the sums of a condition and, in one row each, those over resampled questions."""
    import numpy as np

    table = data_set.searched[condition]
    means = resampled_means(table, data_set.types, data_set.name, resamples)
    return np.vstack([table.mean(axis=0), means]) * len(table)


def _rates(sums: Sequence[Table]) -> Mapping[str, Interval | None]:
    return {name: _rate(name, sums) for name in RATES}


def _rate(name: str, sums: Sequence[Table]) -> Interval | None:
    """Average a rate over data sets; draws with a zero denominator are left out."""
    import numpy as np

    above, below = RATES[name]
    rows = [SUMS.index(name) for name in below]
    with np.errstate(invalid="ignore"):
        ratios = [table[:, SUMS.index(above)] / table[:, rows].sum(axis=1) for table in sums]
    mean = np.mean(ratios, axis=0)
    drawn = mean[1:][~np.isnan(mean[1:])]
    if np.isnan(mean[0]) or not len(drawn):
        return None
    (interval,) = intervals([float(mean[0])], drawn[:, None], [LEVEL])
    return interval
