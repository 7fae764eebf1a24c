"""The analyser, an example a rule. All rules are compared with Lucene's analyser on every class of
characters and on random texts, in ``tests/lucene/test_analysis.py``."""

from __future__ import annotations

import sys

import pytest

from arag_search.query.analysis import Token, fold, terms, tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Who in B2B 4x4 Vitamin-B12", "the who in b2b 4x4 vitamin b12"),
        ("don't St.Maurice a:b l·l a,b a..b U.S.A.", "don't st.maurice a:b l·l a b a b u.s.a"),
        ("1,000.50 3'4 10:30 1..2 a.1 v1.2b2.c3.4", "1,000.50 3'4 10 30 1 2 a 1 v1.2b2 c3.4"),
        ("snake_case _private_ __1__ _ a._b ア_a_1", "snake_case _private_ __1__ a _b ア_a_1"),
        ("Cafe\u0301 co\u00adop a\u200db \u0301 -", "cafe\u0301 co\u00adop a\u200db"),
        ('צה"ל ג\' א"ב"ג a"b', 'צה"ל ג\' א"ב ג a b'),
        ("नमस्ते দুনিয়া สวัสดีชาวโลก ภาษาthai", "नमस्ते দুনিয়া สวัสดีชาวโลก ภาษา thai"),
        (
            "日本ひ か\u3099 カタカナ漢字 대한민국 K팝",
            "日 本 ひ か\u3099 カタカナ 漢 字 대한민국 k팝",
        ),
        ("ok😀😀👍🏽 👨‍👩‍👧 🇩🇪🇫🇷🇩 1️⃣2 #", "ok 😀 😀 👍🏽 👨‍👩‍👧 🇩🇪 🇫🇷 1️⃣2"),
        ("İSTANBUL ΟΔΟΣ STRAẞE 𐐀", "istanbul οδοσ straße 𐐨"),
        (' \t\n - ( ) " ... !', ""),
    ],
)
def test_terms_are_those_of_the_rules(text: str, expected: str) -> None:
    assert terms(text) == expected.split()


def test_fold_lowers_each_character_alone_and_keeps_their_number() -> None:
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    assert len(fold(every)) == len(every)
    assert fold("İ Σ, A.Ⓐ") == "i σ, a.ⓐ"


def test_positions_are_code_points_of_the_original_text() -> None:
    assert tokens("😀 Élan vital, 𐐀x") == [
        *(Token("😀", 0, 1), Token("élan", 2, 6), Token("vital", 7, 12), Token("𐐨x", 14, 16))
    ]


def test_a_long_word_is_cut_after_255_utf_16_units_and_its_rest_is_new_text() -> None:
    assert [len(term) for term in terms("a" * 600 + " b")] == [255, 255, 90, 1]
    assert [len(term) for term in terms("a" + "𐐀" * 200)] == [128, 73]
    assert terms("a" * 254 + ".b") == ["a" * 254, "b"]
    assert terms("a" * 254 + "😀" * 2) == ["a" * 254, "😀", "😀"]


def test_lone_surrogates_separate_words() -> None:
    assert tokens("a\ud83db \udc00") == [Token("a", 0, 1), Token("b", 2, 3)]
    assert tokens("\ud83d" * 300) == []
    assert fold("A\ud83d") == "a\ud83d"
