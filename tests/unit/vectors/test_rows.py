"""The texts that have a vector."""

import pytest

from arag_search.vectors.base import rows_of
from tests.support.passages import chunk


@pytest.mark.parametrize(
    ("title", "sentences", "passage", "sentence_rows"),
    [
        (
            "T", ("One. ", "... ", " 1984!\n", "—", "東京。"),
            "T\nOne. ...  1984!\n—東京。", {0: "One.", 2: "1984!", 4: "東京。"},
        ),
        ("", ("He was. ", "He died."), "He was. He died.", {0: "He was.", 1: "He died."}),
        ("T", ("",), "T\n", {}),
        ("", ("",), None, {}),
        ("", ("... ", "—"), None, {}),
    ],
)  # fmt: skip
def test_a_passage_is_its_title_and_content_and_a_sentence_a_row_where_they_have_a_word(
    title: str, sentences: tuple[str, ...], passage: str | None, sentence_rows: dict[int, str]
) -> None:
    read = chunk(3, "a", title, *sentences)
    whole = [] if passage is None else [(read.ordinal, passage)]
    assert rows_of(read, "passage") == whole
    assert rows_of(read, "sentence") == [(read.ordinal + at, s) for at, s in sentence_rows.items()]
