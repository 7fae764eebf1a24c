"""Plots of a report, whose lines differ by marker, dash and grey, so that they need no colour."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arag_search.evaluation.evidence import EVIDENCE_CAP_TOKENS
from bench.ablation.analysis import Analysis
from bench.ablation.design import Stratum
from bench.ablation.tables import levels_text
from bench.ablation.values import Condition, SetValues

TOKENS = ("TokensToEvidence", "RetrievedTokens")
"""The candidates for the axis of tokens; the first one that was measured is used."""
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
_LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (8, 3)))
_GREYS = ("0.0", "0.35", "0.55", "0.15", "0.45", "0.65", "0.25", "0.5")
_ENDINGS = (".png", ".svg")
_PANEL = (4.6, 3.4)  # inches

Panel = Callable[[Analysis, Any, SetValues, Stratum], bool]
"""Draws into the axes; False if there is nothing to draw."""


def plots(analysis: Analysis, folder: Path) -> list[Path]:
    """Write every picture that the values allow, as PNG and SVG, and return their paths."""
    import matplotlib as mpl

    paths: list[Path] = []
    with mpl.rc_context({"svg.hashsalt": analysis.design.suite.name, "font.size": 9}):
        folder.mkdir(parents=True, exist_ok=True)
        name = analysis.design.suite.name
        panels = {"tokens": _distribution, "evidence": _evidence}
        for what, draw in panels.items():
            paths += _grid(analysis, draw, folder / f"{name}_{what}")
    return paths


def _grid(analysis: Analysis, draw: Panel, path: Path) -> list[Path]:
    """Draw a grid with a row for each stratum and a column for each data set."""
    from matplotlib.figure import Figure

    rows, columns = len(analysis.design.strata), len(analysis.sets)
    figure = Figure(figsize=(_PANEL[0] * columns, _PANEL[1] * rows + 0.7), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False)
    drawn = False
    for row, stratum in enumerate(analysis.design.strata):
        for column, data_set in enumerate(analysis.sets):
            panel = panels[row][column]
            title = ": ".join(part for part in (data_set.name, levels_text(stratum)) if part)
            panel.set_title(title, fontsize=9)
            panel.grid(visible=True, color="0.9", linewidth=0.6)
            drawn |= draw(analysis, panel, data_set, stratum)
    return _save(figure, panels[0][0], path) if drawn else []


def _save(figure: Any, panel: Any, path: Path) -> list[Path]:
    handles, labels = panel.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 4) or 1)
    paths = [path.with_suffix(ending) for ending in _ENDINGS]
    for path in paths:
        figure.savefig(path, dpi=130, metadata={"Date": None} if path.suffix == ".svg" else None)
    return paths


def _log_axis(panel: Any) -> None:
    """Label powers with plain numbers, at 1, 2 and 5 times a power of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    panel.set_xscale("log")
    panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    panel.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    panel.xaxis.set_minor_formatter(NullFormatter())


def _levels(
    analysis: Analysis, data_set: SetValues, stratum: Stratum
) -> list[tuple[int, str, Condition]]:
    """Number, name and main condition of every compared level that was measured."""
    design = analysis.design
    made = [design.condition(stratum, design.main, level) for level in design.compared]
    return [
        (number, level, condition)
        for number, (level, condition) in enumerate(zip(design.compared, made, strict=True))
        if condition in data_set.conditions
    ]


def _style(number: int) -> dict[str, Any]:
    return {
        "color": _GREYS[number % len(_GREYS)],
        "marker": _MARKS[number % len(_MARKS)],
        "linestyle": _LINES[number % len(_LINES)],
        "linewidth": 1.2,
        "markersize": 5,
    }


def _column(data_set: SetValues, measure: str, condition: Condition) -> NDArray[np.float64] | None:
    """Return the known values of a condition, or None if the suite does not show the measure."""
    if measure not in data_set.tables:
        return None
    column = data_set.tables[measure][:, data_set.conditions.index(condition)]
    known = column[~np.isnan(column)]
    return known if len(known) else None


def _distribution(analysis: Analysis, panel: Any, data_set: SetValues, stratum: Stratum) -> bool:
    """Draw the share of questions whose evidence was complete by the number of tokens."""
    drawn = False
    for number, level, condition in _levels(analysis, data_set, stratum):
        column = _column(data_set, TOKENS[0], condition)
        if column is None:
            continue
        tokens = np.sort(np.exp(column))
        grid = np.geomspace(30, EVIDENCE_CAP_TOKENS, 200)
        # What reached the cap did not find all; logarithms may have left it a hair below.
        complete = tokens[tokens < EVIDENCE_CAP_TOKENS - 0.5]
        shares = np.searchsorted(complete, grid, side="right") / len(tokens)
        panel.plot(grid, shares, label=level, markevery=(4 * number, 34), **_style(number))
        drawn = True
    _log_axis(panel)
    panel.set(
        xlabel="Retrieved tokens",
        xlim=(30, EVIDENCE_CAP_TOKENS),
        ylabel="Share of questions with\nfull evidence by then",
        ylim=(0, 1),
    )
    return drawn


def _evidence(analysis: Analysis, panel: Any, data_set: SetValues, stratum: Stratum) -> bool:
    """Draw the mean share of the evidence shown by the number of tokens."""
    drawn = False
    for number, level, condition in _levels(analysis, data_set, stratum):
        curves = [curve for curve in data_set.curves[condition] if curve]
        if not curves:
            continue
        farthest = max(curve[-1][0] for curve in curves)
        grid = np.linspace(0, min(max(farthest, 100), EVIDENCE_CAP_TOKENS), 200)
        total = np.zeros_like(grid)
        for curve in curves:
            tokens, shares = np.array(curve).T
            reached = np.searchsorted(tokens, grid, side="right") - 1
            total += np.where(reached >= 0, shares[np.maximum(reached, 0)], 0.0)
        panel.plot(
            grid, total / len(curves), label=level, markevery=(4 * number, 34), **_style(number)
        )
        drawn = True
    panel.set(xlabel="Retrieved tokens", ylabel="Mean share of evidence shown", ylim=(0, 1))
    return drawn
