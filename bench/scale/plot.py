"""The picture of growth with the corpus: measured points, and the extrapolated line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.scale.law import MIN_POINTS, TARGET_PASSAGES, power_law
from bench.scale.sides import CLASSES, EngineName, Measured

_MARKS = ("o", "s", "^", "D", "v", "P", "X")
_GREYS = ("0.0", "0.25", "0.45", "0.0", "0.25", "0.45", "0.6")

Points = Sequence[tuple[float, float]]


def plot(measured: Mapping[EngineName, Mapping[int, Measured]], results: Path) -> list[Path]:
    """Write a PNG and an SVG beside the file of results, and return their paths."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 8), layout="constrained")
    panels = figure.subplots(2, 2)
    sides = {name: sizes for name, sizes in measured.items() if sizes}
    _lines(
        panels[0][0],
        "Time to build (hours)",
        {
            name: _points(sizes, lambda measured: measured.seconds / 3600)
            for name, sizes in sides.items()
        },
    )
    _lines(
        panels[0][1],
        "Size of the index (GB)",
        {
            name: _points(sizes, lambda measured: measured.bytes / 1e9)
            for name, sizes in sides.items()
        },
    )
    for panel, engine in zip(panels[1], ("lucene", "opensearch"), strict=True):
        sizes = sides.get(engine, {})
        classes = {
            name: _points(sizes, lambda measured, name=name: measured.latency[name].median_ms)
            for name in CLASSES
        }
        _lines(panel, f"Median latency, {engine} (ms)", classes)
    figure.suptitle(
        "Synthetic passages of 100 words. Filled marks: measured. Dashes: extrapolated to KILT\n"
        f"({TARGET_PASSAGES / 1e6:g} M passages) with the 95 % prediction interval"
    )
    paths = [results.with_suffix(ending) for ending in (".png", ".svg")]
    for path in paths:
        figure.savefig(path, dpi=150, metadata=None if path.suffix == ".png" else {"Date": None})
    return paths


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
        if len(points) >= MIN_POINTS:
            law = power_law(points)
            prediction = law.predict(TARGET_PASSAGES)
            far = TARGET_PASSAGES * 1.06**number  # beside each other, not over
            panel.plot(
                (x[-1], far), (law.at(x[-1]), prediction.value), "--", color=grey, linewidth=0.8
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
