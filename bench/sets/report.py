"""The figures of sets, with intervals by group of needs, and their picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.report.estimates import mean_rows
from bench.report.rows import Figure, Row
from bench.sets.lines import BROKEN, KNOWN
from bench.sets.needs import DEPTHS, KINDS, Need

SHORT = ("nDCG@10", "F1", "best F1", "exact")
"""The measures of groups of needs. For all needs there are all measures; BROKEN is over the needs
with an exclusion."""
EXCLUDES = "but not"

_COLOURS = ("#3b82f6", "#8b949e", "#16a34a", "#d97706", "#a855f7", "#ef4444")


def figure_of(
    name: str,
    needs: Sequence[Need],
    values: Mapping[str, Sequence[Mapping[str, float]]],
    details: Mapping[str, Any],
) -> Figure:
    """Return the means of each line over all needs, and over groups of them."""
    every = [measure for measure in next(iter(values.values()))[0] if measure != BROKEN]
    groups = {"all": (every, [True] * len(needs))}
    if len({need.depth for need in needs}) > 1:
        groups |= {f"depth {of}": (SHORT, [need.depth == of for need in needs]) for of in DEPTHS}
        groups |= {of: (SHORT, [need.kind == of for need in needs]) for of in KINDS}
        alone = [need.kind == KINDS[-1] and need.depth == 1 for need in needs]
        groups |= {f"{KINDS[-1]}, depth 1": (SHORT, alone)}
        groups |= {EXCLUDES: ([BROKEN], [bool(need.excluded) for need in needs])}
    rows: list[Row] = []
    for group, (measures, chosen) in groups.items():
        columns = {
            f"{line}, {measure}": [
                float(value[measure]) for value, is_in in zip(of_line, chosen, strict=True) if is_in
            ]
            for line, of_line in values.items()
            for measure in measures
        }
        rows += mean_rows({group: columns}, {group: [None] * sum(chosen)})
    counts = {group: sum(chosen) for group, (_, chosen) in groups.items()}
    return Figure(name, tuple(rows), {**details, "needs": counts})


def draw(figure: Figure, lines: Sequence[str], path: Path) -> None:
    """Draw two measures by depth as SVG, dashed where it is known what no interface is told."""
    means_of = {row.what: row.value for row in figure.rows}
    parts: list[str] = []
    for left, measure in ((40, "nDCG@10"), (490, "best F1")):
        ends: list[tuple[float, str, str]] = []
        for line, colour in zip(lines, _COLOURS, strict=False):
            y = [240 - 200 * means_of[f"depth {of}: {line}, {measure}"] for of in DEPTHS]
            points = " ".join(f"{left + 280 / 3 * at:.0f},{of:.1f}" for at, of in enumerate(y))
            dashed = ' class="d"' if line == KNOWN or left > 40 else ""
            parts.append(f'<polyline{dashed} stroke="{colour}" points="{points}"/>')
            ends.append((y[-1], line, colour))
        low = 0.0
        for end, line, colour in sorted(ends):
            low = max(end + 4, low + 15)
            parts.append(
                f'<text x="{left + 288}" y="{low:.1f}" style="fill:{colour}">{line}</text>'
            )
    template = Path(__file__).with_name("picture.svg").read_text("utf-8")
    path.write_text(template.format(lines="\n".join(parts)), "utf-8")
