"""The analyser, compared with examples worked out by its rules."""

from __future__ import annotations

import sys

from arag_search.query.analysis import Token, fold, terms, tokens

# Examples of the rules, worked by hand


def test_words_are_lower_case_letters_and_digits() -> None:
    assert terms("Lothair II died in 875.") == ["lothair", "ii", "died", "in", "875"]
    assert terms("B2B 4x4 Vitamin-B12") == ["b2b", "4x4", "vitamin", "b12"]
    assert terms(' \t\n - ( ) " ... !') == []
    assert terms("") == []


def test_stop_words_are_kept() -> None:
    assert terms("The Who") == ["the", "who"]


def test_some_marks_join_letters() -> None:
    assert terms("don't St.Maurice a:b l·l k‧k") == ["don't", "st.maurice", "a:b", "l·l", "k‧k"]
    assert terms("don’t ‘tis rock‘n’roll") == ["don’t", "tis", "rock‘n’roll"]
    assert terms("a,b a;b a..b a.'b a-b a/b a@b") == ["a", "b"] * 7
    assert terms("U.S.A. 'quoted' :x: .com") == ["u.s.a", "quoted", "x", "com"]


def test_some_marks_join_digits() -> None:
    assert terms("1,000.50 3'4 5;6 7’8 9․9") == ["1,000.50", "3'4", "5;6", "7’8", "9․9"]
    assert terms("10:30 1..2 1.-2") == ["10", "30", "1", "2", "1", "2"]


def test_a_mark_between_a_letter_and_a_digit_separates_them() -> None:
    assert terms("a.1 1.a v1.2b2.c3.4") == ["a", "1", "1", "a", "v1.2b2", "c3.4"]


def test_connectors_join_letters_digits_and_katakana_but_are_no_word_alone() -> None:
    assert terms("snake_case _private_ __1__ a\u202fb x‿y") == [
        *("snake_case", "_private_", "__1__", "a\u202fb", "x‿y"),
    ]
    assert terms("_ ___ a._b") == ["a", "_b"]
    assert terms("ア_a_1") == ["ア_a_1"]


def test_combining_marks_and_format_characters_stay_with_the_word() -> None:
    assert terms("Cafe\u0301 co\u00adop a\u200db a.\u0301b") == [
        *("cafe\u0301", "co\u00adop", "a\u200db", "a.\u0301b"),
    ]
    assert terms("\u0301a - \u0301 -") == ["a"]


def test_hebrew_keeps_quotes_that_abbreviate() -> None:
    assert terms("צה\"ל ג' ג'ירפה") == ['צה"ל', "ג'", "ג'ירפה"]
    assert terms('a"b א"1 א"') == ["a", "b", "א", "1", "א"]
    assert terms('א"ב"ג') == ['א"ב', "ג"]  # Lucene's rule; UAX #29 would keep them together


def test_indic_words_keep_their_vowel_signs() -> None:
    assert terms("नमस्ते दुनिया, বাংলা") == ["नमस्ते", "दुनिया", "বাংলা"]


def test_a_run_of_thai_is_one_token() -> None:
    assert terms("สวัสดีชาวโลก ลาว") == ["สวัสดีชาวโลก", "ลาว"]


def test_a_run_of_a_south_east_asian_script_ends_at_other_letters() -> None:
    assert terms("ภาษาthai မြန်မာ၁ ភាសាខ្មែរ ພາສາລາວ") == [
        *("ภาษา", "thai", "မြန်မာ", "၁", "ភាសាខ្មែរ", "ພາສາລາວ"),
    ]


def test_ideographs_and_hiragana_are_tokens_one_by_one() -> None:
    assert terms("日本語ひらがな") == list("日本語ひらがな")
    assert terms("か\u3099日\ufe00") == ["か\u3099", "日\ufe00"]
    assert terms("時々〇") == ["時", "々", "〇"]


def test_a_run_of_katakana_is_one_token_apart_from_other_letters() -> None:
    assert terms("カタカナひらがな漢字") == [*("カタカナ", "ひ", "ら", "が", "な", "漢", "字")]
    assert terms("コーヒー2杯 aアb") == ["コーヒー", "2", "杯", "a", "ア", "b"]
    assert terms("ﾊﾝｶｸ　ＦＵＬＬ１２") == ["ﾊﾝｶｸ", "ｆｕｌｌ１２"]


def test_a_run_of_hangul_is_one_token_together_with_letters() -> None:
    assert terms("대한민국 K팝 2024년") == ["대한민국", "k팝", "2024년"]


def test_an_emoji_sequence_is_one_token() -> None:
    assert terms("ok😀😀👍🏽") == ["ok", "😀", "😀", "👍🏽"]
    assert terms("👨‍👩‍👧❤️‍🔥☺️") == ["👨‍👩‍👧", "❤️‍🔥", "☺️"]
    england = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
    assert terms(england) == [england]


def test_a_zwj_before_an_emoji_belongs_to_it() -> None:
    assert terms("\u200d😀 \u200da") == ["\u200d😀", "a"]


def test_two_regional_indicators_are_a_token_and_a_single_one_is_not() -> None:
    assert terms("🇩🇪🇫🇷🇩 🇩") == ["🇩🇪", "🇫🇷"]


def test_keycaps_are_tokens() -> None:
    assert terms("#️⃣ *⃣ 1️⃣2 # * #️") == ["#️⃣", "*⃣", "1️⃣2"]


def test_a_letter_that_is_an_emoji_takes_the_longer_reading() -> None:
    assert terms("aℹb ℹ️ ℹ\u200d😀 ℹ\u200da ℹ\u200d😀a") == [
        *("aℹb", "ℹ️", "ℹ\u200d😀", "ℹ\u200da", "ℹ\u200d😀", "a"),
    ]


def test_each_character_is_lower_cased_alone() -> None:
    assert terms("İSTANBUL ΟΔΟΣ STRAẞE ǅ Ⓜ ǅA 𐐀") == [
        *("istanbul", "οδοσ", "straße", "ǆ", "ⓜ", "ǆa", "𐐨"),
    ]
    assert fold("İ Σ, A.Ⓐ") == "i σ, a.ⓐ"


def test_fold_keeps_the_number_of_characters() -> None:
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    assert len(fold(every)) == len(every)


def test_positions_are_code_points_of_the_original_text() -> None:
    assert tokens("😀 Élan vital, 𐐀x") == [
        *(Token("😀", 0, 1), Token("élan", 2, 6), Token("vital", 7, 12), Token("𐐨x", 14, 16)),
    ]


def test_a_long_word_is_cut_after_255_utf_16_units() -> None:
    assert [len(term) for term in terms("a" * 600 + " b")] == [255, 255, 90, 1]
    assert [len(term) for term in terms("é" * 255 + " " + "日" + "1" * 256)] == [255, 1, 255, 1]
    assert [len(term) for term in terms("𐐀" * 200)] == [127, 73]
    assert [len(term) for term in terms("a" + "𐐀" * 200)] == [128, 73]
    assert [(t.start, t.end) for t in tokens("é " + "a" * 256)] == [(0, 1), (2, 257), (257, 258)]


def test_the_rest_of_a_cut_word_is_analysed_as_new_text() -> None:
    assert terms("a" * 254 + ".b") == ["a" * 254, "b"]
    assert terms("a" + "\u0301" * 300 + "b") == ["a" + "\u0301" * 254, "b"]
    assert terms("_" * 300 + "a") == ["_" * 254 + "a"]
    assert terms("a" + "_" * 300) == ["a" + "_" * 254]
    assert terms("a" * 254 + "😀" * 2) == ["a" * 254, "😀", "😀"]


def test_lone_surrogates_separate_words() -> None:
    assert tokens("a\ud83db \udc00") == [Token("a", 0, 1), Token("b", 2, 3)]
    assert tokens("\ud83d" * 300) == []
    assert fold("A\ud83d") == "a\ud83d"
