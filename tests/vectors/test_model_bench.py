"""The bench of encoders, with a real model."""

from __future__ import annotations

from bench.speed.embedding import measure


def test_both_sides_are_compared_and_timed(minilm: str) -> None:
    sentences = [f"Vivaldi wrote opera {number}." for number in range(6)]
    figure = measure(minilm, sentences, 1, batch_size=4)
    first, *_, last = figure.rows
    assert first.what == "throughput of ours to the bare model"
    assert last.value <= 1e-6
    assert set(figure.details["seconds"]) == {
        "ours",
        "bare",
        "in the order given",
        "queries, ours",
        "queries, bare",
    }
