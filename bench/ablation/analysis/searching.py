"""How the models of a condition searched: rates of all their searches together.

A rate is a sum over questions divided by another, so that a question counts by its searches; its
interval draws questions again, with all of their searches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arag_search.evaluation.bootstrap import LEVEL, Interval, intervals, resampled_means
from bench.ablation.analysis.analysis import MACRO, Analysis
from bench.ablation.analysis.design import Stratum
from bench.ablation.analysis.values import Condition, SetValues
from bench.ablation.experiment.search_sums import SUMS

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
"""What consecutive searches share: the sum, and those that it is divided by."""
RECOVERY: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "failed": ("failed", ("searches",)),
    "the next found something": ("at_once", ("failed",)),
    "a later one": ("later", ("failed",)),
    "none": ("never", ("failed",)),
    "searches until one did": ("waited", ("at_once", "later")),
}
"""What followed searches that found nothing or were refused."""
RATES = {**OVERLAP, **RECOVERY}


@dataclass(frozen=True, slots=True)
class Searched:
    """How a level searched under the main policy. ``counts`` are by name in SUMS, over all
    questions and seeds, empty for MACRO; ``rates`` by name in RATES, None where there was nothing
    to divide by."""

    set_name: str
    level: str
    counts: Mapping[str, float]
    rates: Mapping[str, Interval | None]


def searched(analysis: Analysis, stratum: Stratum) -> list[Searched]:
    """Of each data set and level whose records are there, then macro-averaged where there are
    several data sets."""
    found: list[Searched] = []
    resampled: dict[str, list[Table]] = {}
    for one in analysis.sets:
        for level in analysis.design.compared:
            condition = analysis.design.condition(stratum, analysis.design.main, level)
            if condition in one.searched:
                made = _drawn(one, condition, analysis.resamples)
                resampled.setdefault(level, []).append(made)
                counts = dict(zip(SUMS, made[0].tolist(), strict=True))
                found.append(Searched(one.name, level, counts, _rates([made])))
    if len(analysis.sets) > 1:
        found += [Searched(MACRO, level, {}, _rates(each)) for level, each in resampled.items()]
    return found


def _drawn(one: SetValues, condition: Condition, resamples: int) -> Table:
    """The sums of a condition, then those over questions drawn again: a row each."""
    import numpy as np

    table = one.searched[condition]
    means = resampled_means(table, one.types, one.name, resamples)
    return np.vstack([table.mean(axis=0), means]) * len(table)


def _rates(sums: Sequence[Table]) -> Mapping[str, Interval | None]:
    return {name: _rate(name, sums) for name in RATES}


def _rate(name: str, sums: Sequence[Table]) -> Interval | None:
    """The mean over data sets; draws without anything to divide by are left out."""
    import numpy as np

    above, below = RATES[name]
    rows = [SUMS.index(one) for one in below]
    with np.errstate(invalid="ignore"):
        ratios = [one[:, SUMS.index(above)] / one[:, rows].sum(axis=1) for one in sums]
    mean = np.mean(ratios, axis=0)
    drawn = mean[1:][~np.isnan(mean[1:])]
    if np.isnan(mean[0]) or not len(drawn):
        return None
    (found,) = intervals([float(mean[0])], drawn[:, None], [LEVEL])
    return found
