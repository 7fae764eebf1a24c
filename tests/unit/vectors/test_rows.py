"""The texts that have a vector."""

from arag_search.vectors.base import rows_of
from tests.support.passages import chunk


def test_each_sentence_with_a_letter_or_digit_is_a_row_without_blanks_around_it() -> None:
    passage = chunk(3, "a", "Title", "First one. ", "... ", " 1984!\n", "—", "東京。")
    assert rows_of(passage, "sentence") == [
        (passage.ordinal, "First one."),
        (passage.ordinal + 2, "1984!"),
        (passage.ordinal + 4, "東京。"),
    ]


def test_a_passage_is_its_title_a_newline_and_its_content() -> None:
    passage = chunk(3, "a", "Antonio Vivaldi", "He was born. ", "He died.")
    assert rows_of(passage, "passage") == [
        (passage.ordinal, "Antonio Vivaldi\nHe was born. He died."),
    ]


def test_a_passage_without_a_title_is_its_content_alone() -> None:
    passage = chunk(3, "a", "", "He was born. ", "He died.")
    assert rows_of(passage, "passage") == [(passage.ordinal, "He was born. He died.")]


def test_a_passage_without_a_word_has_no_row() -> None:
    for passage in (chunk(0, "a", ""), chunk(0, "a", "", "... ", "—")):
        assert rows_of(passage, "passage") == []
        assert rows_of(passage, "sentence") == []


def test_a_title_alone_is_a_passage() -> None:
    passage = chunk(0, "a", "Title")
    assert rows_of(passage, "passage") == [(passage.ordinal, "Title\n")]
    assert rows_of(passage, "sentence") == []
