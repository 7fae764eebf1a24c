"""Regular expressions: which are taken, how long they may take, and which words they make sure."""

import string
from fnmatch import fnmatchcase
from random import Random

import pytest
import regex
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

from arag_search.plan.lookup import RegexLookup
from arag_search.query import analysis, regexes
from arag_search.query.regexes import (
    MAX_WAY,
    SlowPatternError,
    Stopwatch,
    is_found,
    longest_way,
    places,
    sure_runs,
    written_nodes,
)
from tests.support.examples import examples


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        "a{9999}b{9999}",
        "(?:(?:a|bc)" * 3 + "){90}" * 3,
        "(?i)a",
        "(?i:a)",
        "a(?-i:b)",
        "",
        r"\p{Nothing}",
        "a" * 301,
        "(?:" + "a" * 160 + "|b)(?:c|" + "d" * 160 + ")",
        "(?2)",
    ],
)
def test_what_is_no_pattern_or_has_flags_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        regexes.check_regex(pattern, False)


@pytest.mark.parametrize("pattern", [r"\(?i\)", "(?P<n>a)(?P=n)", "(?<n>a)", "(?#i)a"])
def test_what_only_looks_like_flags_is_a_pattern(pattern: str) -> None:
    regexes.check_regex(pattern, False)
    assert regex.compile(pattern)


def test_a_search_that_would_never_end_is_stopped() -> None:
    watch = Stopwatch(10.0)
    with pytest.raises(SlowPatternError):
        is_found(r"(?:a|a|ab)+(?:b|c)*\d", False, "ab" * 3000, watch)
    with pytest.raises(SlowPatternError):
        places(r"(?:a|a|ab)+(?:b|c)*\d", False, "ab" * 3000, watch)
    assert watch.left_s < 10


def test_a_compound_that_was_cut_at_its_hyphen_has_a_plain_one_for_patterns() -> None:
    text = "a self\u2010employed man"
    assert places("self-employed", False, text, Stopwatch()) == [(2, 15)]
    assert is_found("SELF[-]E", True, text, Stopwatch())
    assert is_found("f\u2010e", False, "self-employed", Stopwatch())


def test_a_query_has_a_time_limit_over_all_its_texts() -> None:
    watch = Stopwatch(0.0)
    with pytest.raises(SlowPatternError):
        is_found("a", False, "a", watch)


def test_places_of_one_query_share_its_time_and_are_looked_for_once() -> None:
    with Stopwatch(0.2) as watch:
        slow = [
            RegexLookup(r"(?:a|a|ab)+(?:b|c)*\d", False, None).places("ab" * (3000 + n))
            for n in range(60)
        ]
        assert watch.has_stopped
        assert not any(slow)
        assert watch.left_s <= 0
    with Stopwatch() as watch:
        lookup = RegexLookup("a", False, None)
        assert lookup.places("ba") == [(1, 2)]
        left_s = watch.left_s
        assert lookup.places("ba") == [(1, 2)]
        assert watch.left_s == left_s
        assert not watch.has_stopped


@pytest.mark.parametrize(
    ("pattern", "nodes"),
    [
        ("abc", 3),
        (r"a.{0,200}b.{0,200}c", 403),
        ("(?:a|bc){3}", 18),
        ("(?:(?:){100}){100}", 20_200),
        ("(?:|){5000}", 15_000),
        (r"[[:alpha:](]{5}\){2}", 7),
        ("[]{9}]{2}", 2),
        ("(?#(((){9})a{2}", 3),
        ("a{,3}b{2,}{4}c+?", 12),
        (r"\p{L}{3}", 6),
    ],
)
def test_the_size_of_a_pattern_is_that_of_its_repetitions_written_out(
    pattern: str, nodes: int
) -> None:
    assert written_nodes(pattern) == nodes


@pytest.mark.parametrize(
    ("pattern", "characters"),
    [
        ("abc", 3),
        ("ab|c|", 2),
        ("a(b|cd(e|))f", 5),
        (r"a*b+c?d{9}[a-f]\.", 6),
        ("(?#abc)a|b)c|d", 2),
        ("", 0),
    ],
)
def test_the_way_through_a_pattern_is_that_through_its_longest_alternatives(
    pattern: str, characters: int
) -> None:
    assert longest_way(pattern) == characters


def test_many_alternatives_are_a_pattern() -> None:
    regexes.check_regex("|".join(f"word{number}" for number in range(200)), True)
    regexes.check_regex("a" * MAX_WAY, False)


# The runs that are sure


@pytest.mark.parametrize(
    ("pattern", "runs"),
    [
        (r"Viva\w+ (?:opera|sonata)s?", [("*opera*", "*sonata*"), ("*viva*",)]),
        (r"the treaty of", [("treaty",), ("*the",)]),
        (r"Born +in [12]\d{3}", [("*born",)]),
        (r"colou?rs", [("*colo*",)]),
        (r"libret+o", [("*libret*",)]),
        (r"Ab\.123x|(Abcd|Abc)", [("*123x*", "*abcd*", "*abc*")]),
        (r"(abc)?(abc){0,2}(?=abc)(?!abc)(a)(?(1)abc|abd)", []),
        (r"abc|ab", []),
        (r"(?:abcdef){e<=1}", []),
        (r"\x61bcd", []),
        (r"[[:script=greek:]abc]", []),
        (r"\p{Lu}abc\)", [("*abc*",)]),
        (r"Ёлка в", [("*ёлка",)]),
        (r"東京都庁", []),
        ("|".join(f"abc{number}" for number in range(99)), []),
    ],
)
def test_the_runs_of_a_pattern_that_are_sure(pattern: str, runs: list[tuple[str, ...]]) -> None:
    assert sure_runs(pattern, False) == runs


def test_letters_that_match_without_regard_to_case_stay_what_they_are_in_terms() -> None:
    every = "".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    for letter in string.ascii_letters + string.digits:
        (run,) = sure_runs(f"xx{letter}xx", True)[0]
        for other in regex.findall(letter, every, regex.IGNORECASE):
            (term,) = analysis.terms(f"xx{other}xx")
            assert fnmatchcase(term, run), (letter, other)
    assert sure_runs("ÉÉÉ", True) == []


def test_letters_beyond_ascii_stand_in_one_term() -> None:
    for letter in map(chr, range(0x80, 0x600)):
        terms = analysis.terms(f"xx{letter}1xx")
        for (run,) in sure_runs(f"xx{letter}1xx", False):
            assert any(fnmatchcase(term, run) for term in terms), letter


ATOMS = {text: text for text in ("abs", "ki1", "S", "é", "ß", "ſ", "x2", " ", "_", "-", "的")} | {
    r"\.": ".", r"\ ": " ", r"\s": "\u202f", "[a-c]": "b", "[]k]": "]", "[^]a]": "[", r"\w": "ï",
    "[[:alpha:]abc]": "q", r"\p{Lu}": "K", r"\x61bc": "abc", r"\bab": "ab", "(abs|)": "",
    "(?:abc){e<=1}": "axc", "(?=abc)": "", "(?<!abc)": "", "(?!abc)": "", ".": "\u0301", "^": "",
    "(sik)?": "", "(?P<n>abc)": "abc", "(a)?(?(1)abs|sik)": "sik", "(?>abc)": "abc", "|": "",
}  # fmt: skip
"""Patterns, each with a text that it matches."""
COUNTS = {"": 1, "?": 0, "*": 0, "+": 2, "{2}": 2, "{0}": 0, "{,2}": 1, "{1,}?": 1, "{0,1}+": 0}
CASES = {"s": "ſS", "S": "ſs", "i": "ıI", "k": "\u212aK"}


def drawn(chance: Random, depth: int = 0) -> tuple[str, str]:
    """Return a pattern, and a text that it most often matches."""
    pattern, text = "", ""
    for _ in range(chance.randint(1, 3)):
        piece, match = chance.choice(list(ATOMS.items()))
        if depth < 2 and chance.random() < 0.5:
            (first, match), (second, other) = drawn(chance, depth + 1), drawn(chance, depth + 1)
            piece = chance.choice((f"({first})", f"(?:{first}|{second})"))
            match = other if piece[1] == "?" and chance.random() < 0.5 else match
        count = chance.choice(list(COUNTS)) if chance.random() < 0.5 else ""
        counted = len(match) if piece[0] in "([\\." else 1
        text += match[:-counted] + match[-counted:] * COUNTS[count]
        pattern += piece + count
    return pattern, text


@given(st.integers(0, 1 << 32), st.booleans())
@settings(max_examples=examples(1_000), deadline=None)
def test_a_text_that_matches_has_a_run_of_each_that_are_sure(seed: int, ignore_case: bool) -> None:
    chance = Random(seed)
    pattern, text = drawn(chance)
    if ignore_case:
        text = "".join(chance.choice(letter + CASES.get(letter, letter)) for letter in text)
    before = chance.choice(("", " ", "z", "é", "_", "z" * 253, "𝒜" * 126 + "z"))
    text = before + text + chance.choice(("", "z", "\u0301", " z", "z" * 300))
    try:
        flags = regex.IGNORECASE if ignore_case else 0
        assume(regex.search(pattern, text, flags, timeout=0.05))
    except (regex.error, TimeoutError):
        reject()
    terms = analysis.terms(text)
    cut = "?" * (analysis.MAX_UNITS // 2) + "*"
    for runs in sure_runs(pattern, ignore_case):
        assert any(fnmatchcase(term, run) for term in terms for run in (*runs, cut)), runs
