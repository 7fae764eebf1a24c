"""Words and lines without an end."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from arag_search import tokens
from index_jobs.cutting import chunking
from index_jobs.cutting.sentences import sentence_ends


@pytest.mark.parametrize(
    "alphabet", ["abcdefghijklmnopqrstuvwxyz0123456789", "x", "字中é😀", "abcdefghi   "]
)
def test_an_endless_word_or_line_is_cut_without_loss_and_its_characters_are_counted_a_few_times(
    alphabet: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = 0

    def counting(function: Callable[[str, Any], Any]) -> Callable[..., Any]:
        def call(text: str, *arguments: int) -> Any:
            nonlocal counted
            limit = arguments[0] if function is tokens.count_up_to else None
            length = len(text) if limit is None else tokens.characters_of(text, limit)
            counted += length
            return function(text, *arguments)

        return call

    for name in ("count_tokens", "count_up_to", "characters_of"):
        monkeypatch.setattr(chunking, name, counting(getattr(tokens, name)))
    chance = Random(1)
    word = "".join(chance.choice(alphabet) for _ in range(40_000))
    passages = list(chunking.passages_of(word, sentence_ends(word), 500))
    assert counted < 8 * len(word)
    assert "".join(word[passage.start : passage.end] for passage in passages) == word
    for passage in passages:
        assert passage.tokens == tokens.count_tokens(word[passage.start : passage.end]) <= 500
    count_of_one_word, counted = counted, 0
    list(chunking.passages_of(2 * word, sentence_ends(2 * word), 500))
    assert counted < 2.2 * count_of_one_word
