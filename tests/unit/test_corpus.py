"""Texts in NFC, and ids as they are typed."""

import unicodedata
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from arag_search import corpus
from arag_search.corpus import MAX_ID_BYTES, nfc, typed_id

DECOMPOSED_MARKS = "\u0340\u0344\u0f73\u0f75\u0f81"
MARKS = "\u0301\u0316\u0327\u0345\u3099\u05b0\u0f71\u0f72" + DECOMPOSED_MARKS
OTHERS = "ae가\u1100\u1161\u11a8 —≠\u2adc\u2126😀\u200d\u093e"
MOST_STEPS = 64


def steps_of_sorting(text: str) -> int:
    """Return how often an insertion sort of the marks in a text moves one, as in CPython until
    python/cpython#149079."""
    steps = 0
    before: list[int] = []
    for sign in "".join(unicodedata.normalize("NFD", character) for character in text):
        order = unicodedata.combining(sign)
        steps += sum(order < other for other in before)
        before = [*before, order] if order else []
    return steps


@given(
    st.lists(st.tuples(st.text(MARKS + OTHERS, max_size=4), st.integers(1, 150)), max_size=8).map(
        lambda pieces: "".join(piece * times for piece, times in pieces)
    )
)
@example("e" + "\u0301\u0316" * 100 + "\u0301e\u0301")
@example("\u0f73\u0f39" * 80 + "—" * 200 + "\u0344\u0316" * 70)
def test_a_text_is_normalised_as_python_does(text: str) -> None:
    assert nfc(text) == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize(
    "unit", ["\u0301\u0316", "\u0301\u0316\u0327", "\u0344\u0316", "\u0f73\u0f39", "—\u0301\u0316"]
)
@pytest.mark.parametrize("start", ["", "e", "x" * 15])
def test_marks_are_sorted_in_steps_that_grow_with_the_length(
    unit: str, start: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    normalised: list[str] = []

    class Counting:
        """The module unicodedata, with a note of each text that is normalised."""

        combining = staticmethod(unicodedata.combining)
        is_normalized = staticmethod(unicodedata.is_normalized)

        @staticmethod
        def normalize(form: Any, text: str) -> str:
            normalised.append(text)
            return unicodedata.normalize(form, text)

    monkeypatch.setattr(corpus, "unicodedata", Counting)
    text = start + unit * (1_200 // len(unit))
    assert nfc(text) == unicodedata.normalize("NFC", text)
    assert sum(map(steps_of_sorting, normalised)) <= MOST_STEPS * len(text)


def test_an_id_is_looked_up_whole_however_its_marks_are_written() -> None:
    for character in ("\u0390", "\u01d5", "\u1f82", "가", "é", "a"):
        id = character * (MAX_ID_BYTES // len(character.encode()))
        assert typed_id(unicodedata.normalize("NFD", id)) == typed_id(id) == id


def test_a_text_that_is_too_long_for_an_id_is_cut_to_one_that_is_too_long() -> None:
    for character in ("\u0390", "\u01d5", "\u1f82", "가", "é", "a", "\u0301\u0316"):
        id = typed_id(unicodedata.normalize("NFD", character) * 100_000)
        assert MAX_ID_BYTES + 100 < len(id.encode()) < 10 * MAX_ID_BYTES
