"""Long runs of characters that combine: the time grows with the text alone."""

from __future__ import annotations

import time

import pytest

from arag_search.query.analysis import tokens


@pytest.mark.parametrize(
    "unit",
    [
        *(
            "a",
            "é",
            "1,",
            "a.",
            "'",
            '"',
            "_",
            "_.",
            "日",
            "ก",
            "ั",
            "_ั",
            "ア_",
            'א"',
            "® ",
            "ℹ\u200d",
        ),
        *("\u0301", "_\u0301", "\u200d", "_\u200d", "😀\u200d", "🇩", "😀\ufe0f", "é." + " " * 70),
        *(start + "\u0301" * 300 for start in ("🇩", "#", "_")),
    ],
    ids=lambda unit: ascii(unit[:2]),
)
def test_time_grows_with_the_text_alone(unit: str) -> None:
    text = (unit * 30_000)[:30_000]
    started = time.thread_time()  # on a busy machine as well
    tokens("x" + text + "😀")
    assert time.thread_time() - started < 0.6  # what grows with its square takes far longer
