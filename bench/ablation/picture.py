"""The picture of a report: accuracy, or evidence, against tokens, as SVG."""

from __future__ import annotations

import math
from xml.sax.saxutils import escape

from bench.ablation.analysis import Analysis

ACROSS = ("TotalTokens", "TokensToEvidence")
UP = ("JudgeAcc", "ContainAcc", "FullEvidence")
"""The measures of the two axes: the first that has values."""
_WIDTH, _HEIGHT, _MARGIN = 420, 300, 50


def picture(analysis: Analysis) -> str | None:
    """Return the plane of all levels over all data sets, with a panel for each stratum and bars for
    the intervals. Return None if the suite measured no such figures."""
    suite, group = analysis.suite, analysis.groups[-1]
    across, up = (next((m for m in of if m in analysis.measures), None) for of in (ACROSS, UP))
    points = {
        (stratum, level): (analysis.estimates.get((across or "", group, at)),
                           analysis.estimates.get((up or "", group, at)))
        for stratum in suite.strata
        for level in suite.compared
        for at in [suite.condition(stratum, level)]
    }  # fmt: skip
    costs = [cost for cost, share in points.values() if cost and share]
    if not costs:
        return None
    low, high = min(cost.low for cost in costs), max(cost.high for cost in costs)
    span = max(high - low, math.log(2))

    def x(tokens: float) -> float:
        return _MARGIN + (tokens - low) / span * (_WIDTH - 2 * _MARGIN)

    def y(share: float) -> float:
        return _HEIGHT - _MARGIN - share * (_HEIGHT - 2 * _MARGIN)

    width = _WIDTH * len(suite.strata)
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{_HEIGHT}" '
        'font-family="sans-serif" font-size="11" text-anchor="middle" stroke="#999" fill="none">'
    ]
    for number, stratum in enumerate(suite.strata):
        title = ", ".join((group, *(level for _, level in stratum)))
        drawn += [
            f'<g transform="translate({number * _WIDTH},0)">',
            f'<path d="M{_MARGIN} {y(1)}V{y(0)}H{_WIDTH - _MARGIN}"/>',
            _text(_WIDTH / 2, 20, title),
            _text(_WIDTH / 2, _HEIGHT - 12, f"{across}, geometric mean"),
            _text(_MARGIN, 40, str(up)),
        ]
        for part in (0, 0.25, 0.5, 0.75, 1):
            tokens = low + span * part
            drawn.append(_text(x(tokens), _HEIGHT - 32, f"{math.exp(tokens):,.0f}"))
            drawn.append(_text(_MARGIN - 18, y(part) + 4, f"{part:g}"))
        for level in suite.compared:
            cost, share = points[stratum, level]
            if cost and share:
                at = x(cost.value), y(share.value)
                drawn += [
                    f'<path d="M{x(cost.low):.1f} {at[1]:.1f}H{x(cost.high):.1f}'
                    f'M{at[0]:.1f} {y(share.low):.1f}V{y(share.high):.1f}"/>',
                    f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="3" fill="black"/>',
                    _text(at[0], at[1] - 6, level),
                ]
        drawn.append("</g>")
    return "\n".join([*drawn, "</svg>", ""])


def _text(x: float, y: float, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" stroke="none" fill="black">{escape(text)}</text>'
