"""The bench of encoders, with a real model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from arag_search.cli.app import run
from arag_search.vectors.encoders.hashing import HashingEncoder
from bench.speed.embedding import hybrid_sides, measure
from tests.support.commands import SAMPLE

if TYPE_CHECKING:
    from arag_search.vectors.base import FloatArray


class Counted(HashingEncoder):
    """A hashing encoder that counts the queries it has encoded."""

    queries = 0

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        self.queries += len(queries)
        return super().encode_queries(queries)


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


def test_hybrid_searches_are_timed_with_every_encoder_over_the_same_vectors(
    tmp_path: Path,
) -> None:
    location = str(tmp_path / "index")
    assert run(["index", SAMPLE, "--to", location]) == 0
    encoders = {"torch": Counted(), "ONNX": Counted()}
    with hybrid_sides(location, encoders, ["Who wrote Evangeline?", "rain"]) as sides:
        assert set(sides) == {"hybrid, torch", "hybrid, ONNX"}
        assert all(side() > 0 for side in (*sides.values(), sides["hybrid, torch"]))
    assert (encoders["torch"].queries, encoders["ONNX"].queries) == (4, 2)  # none from a cache
