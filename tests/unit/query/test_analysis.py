"""The analyser against examples worked by rule, and against the real one."""

from __future__ import annotations

import json
import random
import sys
import time
from array import array
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import accumulate, chain

import pytest

from arag_search.query import analysis
from arag_search.query.analysis import Token, fold, terms, tokens
from tests.support.shared_data import DATA

Analysis = tuple[str, bytes, bytes]
"""Terms, a line each; their starts and their ends in UTF-16 units, as the bytes of an array."""
Lucene = Callable[[str], Analysis]


@pytest.fixture(scope="module")
def lucene() -> Lucene:
    """The real analyser.

    A call of Java for every token would take most of the tests' time, so the loop over the tokens
    is put together of Java's own method handles, and runs there.
    """
    from arag_search.engines.lucene import jvm

    jvm.start()
    import jpype
    import jpype.nio

    java = jpype.JClass
    attributes = "org.apache.lucene.analysis.tokenattributes."
    term_type, offset_type = (java(attributes + n + "Attribute") for n in ("CharTerm", "Offset"))
    stream_type = java("org.apache.lucene.analysis.TokenStream")
    text_type, chars_type = java("java.lang.StringBuilder"), java("java.lang.CharSequence")
    ints_type, order = java("java.nio.IntBuffer"), java("java.nio.ByteOrder").nativeOrder()
    nothing, flag, number = (java(f"java.lang.{n}").TYPE for n in ("Void", "Boolean", "Integer"))
    handles, kind = java("java.lang.invoke.MethodHandles"), java("java.lang.invoke.MethodType")
    find, kind = handles.publicLookup().findVirtual, kind.methodType
    analyzer = java("org.apache.lucene.analysis.standard.StandardAnalyzer")()

    def analyse(text: str) -> Analysis:
        stream = analyzer.tokenStream("text", text)
        words = text_type()
        add = find(text_type, "append", kind(text_type, chars_type)).bindTo(words)
        term = stream.getAttribute(term_type)
        steps = [handles.insertArguments(add, 0, chars) for chars in (term, "\n")]
        columns = [bytearray(4 * len(text) + 4) for _ in range(2)]
        for name, column in zip(("startOffset", "endOffset"), columns, strict=True):
            ints = jpype.nio.convertToDirectBuffer(column).order(order).asIntBuffer()
            get = find(offset_type, name, kind(number)).bindTo(stream.getAttribute(offset_type))
            put = find(ints_type, "put", kind(ints_type, number)).bindTo(ints)
            steps.append(handles.filterReturnValue(get, put))
        body = handles.empty(kind(nothing))
        for step in steps:
            body = handles.foldArguments(step.asType(kind(nothing)), body)
        more = find(stream_type, "incrementToken", kind(flag)).bindTo(stream)
        stream.reset()
        handles.whileLoop(None, more, body).invokeWithArguments([])
        stream.end()
        stream.close()
        lines = bytes(words.toString().getBytes("UTF-8")).decode()
        starts, ends = (bytes(column[: 4 * lines.count("\n")]) for column in columns)
        return lines, starts, ends

    return analyse


def ours(texts: list[str]) -> Analysis:
    """What ``lucene`` says of the texts as lines of one, by ``tokens`` of each text alone."""
    words: list[str] = []
    starts, ends = array("i"), array("i")
    base = 0
    for text in texts:
        flat = list(chain.from_iterable(tokens(text)))  # term, start, end, term, start, end, …
        line, first, last = flat[::3], flat[1::3], flat[2::3]
        assert terms(text) == line, ascii(text)
        units = len(text)
        if not text.isascii() and max(text) > "\uffff":
            at = list(accumulate((1 + (c > "\uffff") for c in text), initial=0))
            units, first, last = at[-1], [at[i] for i in first], [at[i] for i in last]
        words += line
        starts.extend(map(base.__add__, first))
        ends.extend(map(base.__add__, last))
        base += units + 1
    return "\n".join([*words, ""]), starts.tobytes(), ends.tobytes()


def assert_as_lucene(lucene: Lucene, texts: list[str]) -> None:
    """``tokens`` and ``terms`` of every text alone are Lucene's.

    Lucene gets all texts in one call, a line each: a line end is in no token, and its scanner
    keeps nothing from one token to the next. It runs while Python does its part.
    """
    with ThreadPoolExecutor(1) as pool:
        theirs = pool.submit(lucene, "\n".join(texts))
        mine = ours(texts)
    if mine != theirs.result():
        for text in texts:
            assert ours([text]) == lucene(text), ascii(text)
        raise AssertionError("the texts differ as lines, none of them alone")


def strings(value: object) -> Iterator[str]:
    """Every string in a JSON value, but keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (s for v in value.values() for s in strings(v))
    elif isinstance(value, list):
        yield from (s for v in value for s in strings(v))


# What the rules say, worked by hand.


def test_words_are_lower_case_letters_and_digits() -> None:
    assert terms("Lothair II died in 875.") == ["lothair", "ii", "died", "in", "875"]
    assert terms("B2B 4x4 Vitamin-B12") == ["b2b", "4x4", "vitamin", "b12"]
    assert terms(' \t\n - ( ) " ... !') == []
    assert terms("") == []


def test_stop_words_are_kept() -> None:
    assert terms("The Who") == ["the", "who"]


def test_marks_that_hold_letters_together() -> None:
    assert terms("don't St.Maurice a:b l·l k‧k") == ["don't", "st.maurice", "a:b", "l·l", "k‧k"]
    assert terms("don’t ‘tis rock‘n’roll") == ["don’t", "tis", "rock‘n’roll"]
    assert terms("a,b a;b a..b a.'b a-b a/b a@b") == ["a", "b"] * 7
    assert terms("U.S.A. 'quoted' :x: .com") == ["u.s.a", "quoted", "x", "com"]


def test_marks_that_hold_digits_together() -> None:
    assert terms("1,000.50 3'4 5;6 7’8 9․9") == ["1,000.50", "3'4", "5;6", "7’8", "9․9"]
    assert terms("10:30 1..2 1.-2") == ["10", "30", "1", "2", "1", "2"]


def test_a_mark_between_a_letter_and_a_digit_parts_them() -> None:
    assert terms("a.1 1.a v1.2b2.c3.4") == ["a", "1", "1", "a", "v1.2b2", "c3.4"]


def test_connectors_join_letters_digits_and_katakana_but_are_no_word() -> None:
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


def test_two_regional_indicators_are_one_token_and_one_is_none() -> None:
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


def test_places_are_code_points_of_the_text_as_given() -> None:
    assert tokens("😀 Élan vital, 𐐀x") == [
        *(Token("😀", 0, 1), Token("élan", 2, 6), Token("vital", 7, 12), Token("𐐨x", 14, 16)),
    ]


def test_a_long_word_is_cut_after_255_utf_16_units() -> None:
    assert [len(term) for term in terms("a" * 600 + " b")] == [255, 255, 90, 1]
    assert [len(term) for term in terms("é" * 255 + " " + "日" + "1" * 256)] == [255, 1, 255, 1]
    assert [len(term) for term in terms("𐐀" * 200)] == [127, 73]
    assert [len(term) for term in terms("a" + "𐐀" * 200)] == [128, 73]
    assert [(t.start, t.end) for t in tokens("é " + "a" * 256)] == [(0, 1), (2, 257), (257, 258)]


def test_what_a_cut_leaves_over_is_read_anew() -> None:
    assert terms("a" * 254 + ".b") == ["a" * 254, "b"]
    assert terms("a" + "\u0301" * 300 + "b") == ["a" + "\u0301" * 254, "b"]
    assert terms("_" * 300 + "a") == ["_" * 254 + "a"]
    assert terms("a" + "_" * 300) == ["a" + "_" * 254]
    assert terms("a" * 254 + "😀" * 2) == ["a" * 254, "😀", "😀"]


def test_lone_surrogates_are_between_words() -> None:
    assert tokens("a\ud83db \udc00") == [Token("a", 0, 1), Token("b", 2, 3)]
    assert tokens("\ud83d" * 300) == []
    assert fold("A\ud83d") == "a\ud83d"


@pytest.mark.parametrize(
    "unit",
    [
        *(
            "a",
            "é",
            "1,",
            "a.",
            "'",
            '"',
            "_",
            "_.",
            "日",
            "ก",
            "ั",
            "_ั",
            "ア_",
            'א"',
            "® ",
            "ℹ\u200d",
        ),
        *("\u0301", "_\u0301", "\u200d", "_\u200d", "😀\u200d", "🇩", "😀\ufe0f", "é." + " " * 70),
        *(start + "\u0301" * 300 for start in ("🇩", "#", "_")),
    ],
    ids=lambda unit: ascii(unit[:2]),
)
def test_time_grows_with_the_text_alone(unit: str) -> None:
    text = (unit * 30_000)[:30_000]
    started = time.thread_time()  # on a busy machine as well
    tokens("x" + text + "😀")
    assert time.thread_time() - started < 0.6  # what grows with its square takes far longer


# What Lucene says.


@pytest.mark.engine
@pytest.mark.shared_data
def test_every_string_of_the_real_corpora_is_as_in_lucene(lucene: Lucene) -> None:
    found: dict[str, None] = {}
    for path in sorted(DATA.glob("*/*.json*")):
        text = path.read_text("utf-8")
        for line in [text] if path.suffix == ".json" else text.splitlines():
            found.update(dict.fromkeys(strings(json.loads(line))))
    assert len(found) > 1000
    assert_as_lucene(lucene, list(found))


@cache
def by_class() -> dict[str, list[str]]:
    """The characters at the ends of every run of a class, and all that lower case changes."""
    classes = analysis._classes()
    codes = {start + d for start in classes.starts for d in (-1, 0) if start}
    codes.update(code for code in range(0x20000) if chr(code).lower() != chr(code))
    out: dict[str, list[str]] = {}
    for code in sorted(codes):
        if not 0xD800 <= code < 0xE000:
            out.setdefault(classes[code], []).append(chr(code))
    return out


@pytest.mark.engine
def test_every_run_of_a_class_begins_and_ends_where_lucenes_does(lucene: Lucene) -> None:
    around = "{} a{}a 1{}1 א{}א א{} ア{}ア ก{}ก ☺\ufe0f{}😀 🇩{} #{}\u20e3 #{} _{}_"
    every = chain.from_iterable(by_class().values())
    assert_as_lucene(lucene, [around.replace("{}", character) for character in every])


MIXES = (
    *("AHKNUXOQDBLP", "HQDABLPXU", "AN QBLPU", "EMZFGJXTtA", "ZFEJ", "CF#NXGZ", "SVXUAZ", "RXZE"),
    "",
)
"""Classes that the rules speak of together (a space is itself); the last stands for all."""


@pytest.mark.engine
def test_random_strings_are_as_in_lucene(lucene: Lucene) -> None:
    rng = random.Random(4)
    classes = by_class()
    texts: list[str] = []
    for _ in range(10_000):
        mix = rng.choice(MIXES) or "".join(classes)
        letters = rng.choices(mix, k=rng.randint(1, 12))
        texts.append("".join(rng.choice(classes.get(c) or [c]) for c in letters))
    assert_as_lucene(lucene, texts)


@pytest.mark.engine
def test_random_long_strings_are_as_in_lucene(lucene: Lucene) -> None:
    rng = random.Random(5)
    classes = by_class()
    texts: list[str] = []
    for _ in range(200):
        mix = rng.choice(MIXES) or "".join(classes)
        few = [rng.choice(classes.get(c) or [c]) for c in rng.choices(mix, k=3)]
        weights = rng.choice([(1, 0, 0), (300, 1, 0), (300, 300, 1), (1, 1, 1)])
        texts.append("".join(rng.choices(few, weights, k=rng.randint(240, 800))))
    assert_as_lucene(lucene, texts)
