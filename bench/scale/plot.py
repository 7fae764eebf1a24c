"""The picture of growth with the corpus: measured points, and the extrapolated line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.scale.law import MIN_POINTS, TARGET_PASSAGES, last_decades, power_law
from bench.scale.searching import CLASSES, Latency
from bench.scale.sides import Measured

_MARKS = ("o", "s", "^", "D", "v", "P", "X")
_GREYS = ("0.0", "0.25", "0.45", "0.0", "0.25", "0.45", "0.6")

Points = Sequence[tuple[float, float]]

_LATENCIES: Sequence[tuple[str, str, Callable[[Latency], float]]] = (
    ("Median latency, lucene (ms)", "lucene", lambda latency: latency.median_ms),
    ("95th percentile, lucene (ms)", "lucene", lambda latency: latency.p95_ms),
    ("Median latency, opensearch (ms)", "opensearch", lambda latency: latency.median_ms),
)


def plot(measured: Mapping[str, Mapping[int, Measured]], results: Path) -> list[Path]:
    """Write a PNG and an SVG beside the file of results, and return their paths."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(16, 8), layout="constrained")
    panels = figure.subplots(2, 3)
    sides = {name: sizes for name, sizes in measured.items() if sizes}
    _lines(
        panels[0][0],
        "Time to build (hours)",
        {
            name: _points(sizes, lambda measured: measured.build.seconds / 3600)
            for name, sizes in sides.items()
        },
    )
    _lines(
        panels[0][1],
        "Size of the index (GB)",
        {
            name: _points(sizes, lambda measured: measured.build.bytes / 1e9)
            for name, sizes in sides.items()
        },
    )
    _rates(panels[0][2], sides)
    for panel, (label, side, value) in zip(panels[1], _LATENCIES, strict=True):
        sizes = sides.get(side, {})
        classes = {
            name: _points(sizes, lambda of, name=name, value=value: value(of.latency[name]))
            for name in CLASSES
        }
        _lines(panel, label, classes)
    figure.suptitle(
        "Synthetic passages of 100 words. Filled marks: measured. Dashes: extrapolated to KILT\n"
        f"({TARGET_PASSAGES / 1e6:g} M passages) with the 95 % prediction interval"
    )
    paths = [results.with_suffix(ending) for ending in (".png", ".svg")]
    for path in paths:
        figure.savefig(path, dpi=150, metadata=None if path.suffix == ".png" else {"Date": None})
    return paths


def _rates(panel: Any, sides: Mapping[str, Mapping[int, Measured]]) -> None:
    """Draw the rate of builds as they go on, of the largest sizes of each side: by the clock, and
    dashed by processor time."""
    largest = [(name, sizes[size]) for name, sizes in sides.items() for size in sorted(sizes)[-2:]]
    for number, (name, measured) in enumerate(largest):
        grey, mark = _GREYS[number % len(_GREYS)], _MARKS[number % len(_MARKS)]
        label = f"{name}, {measured.passages:,}"
        for rates, style in ((measured.tenths, "-"), (measured.processor_tenths, "--")):
            shares = [100 * (at + 0.5) / len(rates) for at in range(len(rates))]
            panel.plot(shares, rates, style, color=grey, marker=mark, linewidth=1, label=label)
            label = None
    panel.set(xlabel="Share of the passages (%)", ylabel="Passages/s (dashed: of processor time)")
    panel.set_ylim(0)
    panel.grid(visible=True, color="0.9")
    if panel.lines:
        panel.legend(fontsize="small")


def _points(sizes: Mapping[int, Measured], value: Callable[[Measured], float]) -> Points:
    return [(size, value(sizes[size])) for size in sorted(sizes)]


def _lines(panel: Any, label: str, lines: Mapping[str, Points]) -> None:
    """Draw lines that differ by marker and grey, readable without colour."""
    panel.set(xscale="log", yscale="log", xlabel="Passages", ylabel=label)
    for number, (name, points) in enumerate(lines.items()):
        if not points:
            continue
        grey, mark = _GREYS[number % len(_GREYS)], _MARKS[number % len(_MARKS)]
        x, y = zip(*points, strict=True)
        panel.plot(x, y, color=grey, marker=mark, markersize=5, linewidth=1, label=name)
        if len(near := last_decades(points)) >= MIN_POINTS:
            law = power_law(near)
            prediction = law.predict(TARGET_PASSAGES)
            far = TARGET_PASSAGES * 1.06**number  # beside each other, not over
            panel.plot(
                (near[0][0], far),
                (law.at(near[0][0]), law.at(far)),
                "--",
                color=grey,
                linewidth=0.8,
            )
            panel.errorbar(
                far,
                prediction.value,
                yerr=([prediction.value - prediction.low], [prediction.high - prediction.value]),
                color=grey,
                marker=mark,
                markerfacecolor="white",
                capsize=3,
                linewidth=0.8,
            )
    panel.grid(visible=True, which="major", color="0.9")
    if panel.lines:
        panel.legend(fontsize="small")
