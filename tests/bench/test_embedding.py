"""The bench of encoders: what it draws, and that it runs. No time is judged here."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.speed.embedding import drawn, main
from tests.support.passages import VIVALDI, index_of


def test_sentences_are_drawn_from_all_over_the_corpus() -> None:
    chunks = list(index_of(*VIVALDI).scan())
    sentences = drawn(chunks, 10_000)
    assert len(sentences) > 4
    assert all(sentence == sentence.strip() != "" for sentence in sentences)
    sample = drawn(chunks, 3)
    assert sample == [sentences[int(number * len(sentences) / 3)] for number in range(3)]


def test_a_missing_corpus_is_a_message_and_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--data", str(tmp_path / "absent")]) == 1
    assert "There is no such folder." in capsys.readouterr().err
