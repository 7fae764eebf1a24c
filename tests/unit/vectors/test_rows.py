"""Which texts have a vector."""

from arag_search.vectors.storage.rows import rows_of
from tests.support.passages import chunk


def test_each_sentence_with_a_letter_or_digit_is_a_row_without_blanks_around_it() -> None:
    one = chunk(3, "a", "Title", "First one. ", "... ", " 1984!\n", "—", "東京。")
    assert rows_of(one, "sentence") == [
        (one.ordinal, "First one."),
        (one.ordinal + 2, "1984!"),
        (one.ordinal + 4, "東京。"),
    ]


def test_a_passage_is_its_title_a_newline_and_its_content() -> None:
    one = chunk(3, "a", "Antonio Vivaldi", "He was born. ", "He died.")
    assert rows_of(one, "passage") == [
        (one.ordinal, "Antonio Vivaldi\nHe was born. He died."),
    ]


def test_a_passage_without_a_title_is_its_content_alone() -> None:
    one = chunk(3, "a", "", "He was born. ", "He died.")
    assert rows_of(one, "passage") == [(one.ordinal, "He was born. He died.")]


def test_a_passage_that_says_nothing_has_no_row() -> None:
    for one in (chunk(0, "a", ""), chunk(0, "a", "", "... ", "—")):
        assert rows_of(one, "passage") == []
        assert rows_of(one, "sentence") == []


def test_a_title_alone_is_a_passage() -> None:
    one = chunk(0, "a", "Title")
    assert rows_of(one, "passage") == [(one.ordinal, "Title\n")]
    assert rows_of(one, "sentence") == []
