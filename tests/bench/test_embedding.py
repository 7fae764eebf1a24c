"""The bench of encoders: what it draws, and that it runs. No time is judged here."""

from __future__ import annotations

from bench.speed.embedding import drawn
from tests.support.passages import VIVALDI, index_of


def test_sentences_are_drawn_from_all_over_the_corpus() -> None:
    chunks = list(index_of(*VIVALDI).scan())
    sentences = drawn(chunks, 10_000)
    assert len(sentences) > 4
    assert all(sentence == sentence.strip() != "" for sentence in sentences)
    sample = drawn(chunks, 3)
    assert sample == [sentences[int(number * len(sentences) / 3)] for number in range(3)]
