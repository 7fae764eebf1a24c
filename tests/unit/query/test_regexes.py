"""Regular expressions: which are taken, how long they may take, and which words they make sure."""

import pytest
import regex

from arag_search.plan.lookup import RegexLookup
from arag_search.query import regexes
from arag_search.query.regexes import (
    MAX_WAY,
    SlowPatternError,
    Stopwatch,
    is_found,
    longest_way,
    places,
    written_nodes,
)


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
