"""Long runs of combining characters: the time depends only on the length of the text."""

from __future__ import annotations

import time

import pytest

from arag_search.query.analysis import tokens


@pytest.mark.long
@pytest.mark.parametrize(
    "unit",
    [
        *(
            "a", "é", "1,", "a.", "'", '"', "_", "_.", "日", "ก", "ั", "_ั", "ア_", 'א"', "® ",
            "ℹ\u200d",
        ),
        *("\u0301", "_\u0301", "\u200d", "_\u200d", "😀\u200d", "🇩", "😀\ufe0f", "é." + " " * 70),
        *(start + "\u0301" * 300 for start in ("🇩", "#", "_")),
    ],
    ids=lambda unit: ascii(unit[:2]),
)  # fmt: skip
def test_the_time_depends_only_on_the_length_of_the_text(unit: str) -> None:
    def seconds(length: int) -> float:
        """Return the least processor time of some runs over a text of this length."""
        text = "x" + (unit * length)[:length] + "😀"
        times: list[float] = []
        for _ in range(9):
            start = time.thread_time()
            tokens(text)
            times.append(time.thread_time() - start)
        return min(times)

    assert seconds(12_000) < 10 * seconds(3_000)  # linear time is 4 times, quadratic 16 times
