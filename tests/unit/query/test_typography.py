"""The table of typographic signs, which index, queries and measures share."""

from __future__ import annotations

import pytest

from arag_search.query import typography
from arag_search.query.typography import APOSTROPHES, DASHES, PLAIN, plain_letters


@pytest.mark.parametrize("sign", "‘’ʻʼ′´`")
def test_signs_between_letters_are_one_apostrophe(sign: str) -> None:
    assert sign in APOSTROPHES
    assert f"O{sign}Brien".translate(PLAIN) == "O'Brien"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("1914–1918, non\u2011breaking", "1914-1918, non-breaking"),
        ("“x” «x» 「x」 ‹x›", '"x" "x" "x" \'x\''),
        ("ﬁnance a\u200bb c\u00add", "finance ab cd"),
        ("Köln's 'a-b' \"c\"", "Köln's 'a-b' \"c\""),
    ],
)
def test_typographic_signs_stand_for_plain_ones(text: str, plain: str) -> None:
    assert text.translate(PLAIN) == plain


def test_a_sign_has_one_meaning() -> None:
    assert not set(APOSTROPHES) & set(DASHES)


def test_each_han_character_has_one_form() -> None:
    one_form = typography._han()
    assert not one_form.keys() & set(map(ord, one_form.values()))
    assert all(plain_letters(chr(other)) == form for other, form in one_form.items())


def test_the_table_of_han_characters_is_read_for_these_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(typography, "_han", lambda: {ord("圖"): "图"})
    assert "圖".translate(typography._Letters()) == "图"
    monkeypatch.setattr(typography, "_han", lambda: pytest.fail("read"))
    assert "Łａカ서👍\U0001f3fd".translate(typography._Letters()) == "Łaカ서👍"
