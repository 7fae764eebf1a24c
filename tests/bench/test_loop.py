"""The bench of the agent loop."""

from __future__ import annotations

from bench.speed import agent_loop


def test_the_bench_of_the_agent_loop_runs() -> None:
    figure, _ = agent_loop.measure(rounds=1, steps=2)
    long, short, documents = figure.rows
    assert documents.value > 0
    assert (long.what, long.unit) == ("a step from 60,000 tokens of history on", "ms")
    assert long.value > 0
    assert short.value > 0
