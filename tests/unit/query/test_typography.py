"""The table of typographic signs, which index, queries and measures share."""

from __future__ import annotations

import pytest

from arag_search.query.typography import APOSTROPHES, DASHES, PLAIN


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
