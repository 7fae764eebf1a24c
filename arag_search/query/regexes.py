"""Regular expressions of queries: what they match in a text, within limits of time.

The library is ``regex``: it has the classes of Unicode, and its searches can be stopped. Texts of a
corpus and patterns of a model are both unknown, and some pairs of them would take for ever.
"""

from __future__ import annotations

import re
import time
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from functools import lru_cache
from typing import TYPE_CHECKING

from arag_search.query.analysis import fold

if TYPE_CHECKING:
    from regex import Pattern

MAX_TEXT_S = 0.05
"""How long a pattern may take for one text, in seconds."""
MAX_QUERY_S = 2.0
"""How long the patterns of a query may take in all, in seconds."""

MAX_NODES = 10_000
"""The most nodes of a pattern with its repetitions, such as {3}, written out, as they are in
memory."""

MAX_WAY = 300
"""The most characters and classes on a way through a pattern. Before the library searches for fixed
characters, it makes tables of them in cubic time, and no other thread runs meanwhile."""

_SPECIAL = re.compile(r"[\\.^$*+?{}\[\]|()/]")
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_FLAGS = re.compile(r"\(\?(?=[^:)]*[a-zA-Z])[abefiLmprsuwxV01-]+[:)]")
_PIECES = re.compile(
    r"(?P<count>\{(?P<least>\d*)(?:,(?P<most>\d*))?\})|(?P<sign>[*+?])|(?P<comment>\(\?#[^)]*\)?)"
    r"|(?P<open>\()|(?P<close>\))|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|\\.|.",
    re.DOTALL,
)

_HYPHENS = "\u2010", "-"
"""The hyphen of typeset text, and of a compound that may have been cut there. For patterns it is
the plain one, in them and in texts."""

_MIN_LETTERS = 3
_MAX_RUNS = 3
_MAX_ALTERNATIVES = 8
_NOT_ALONE = "si"  # without regard to case they match ſ and ı, which stay what they are in terms
_SURE_PIECES = re.compile(
    r"(?:(?P<open>\((?:\?(?:P?<\w+>|[:>]))?(?![?*]))|(?P<hidden>\(\?(?!\#))|(?P<bar>\|)"
    r"|(?:(?P<close>\))|(?P<letter>[^\W_²³¹¼½¾\u0530-\U0010ffff])|(?P<blank>\\?[ ])"
    r"|\[\^?\]?(?:\\.|[^\]\\\[])*\]|[^\\\[(){*+?|]"
    r"|\\(?:[pP]\{[^{}]*\}|[bBdDsSwWAZfnrtv]|\d+|[^a-zA-Z0-9]))"
    r"(?P<count>(?:(?P<none>[*?]|\{0*(?:,\d*)?\})|\+|\{\d+(?:,\d*)?\})[+?]?)?)",
    re.DOTALL,
)
"""Pieces whose meaning is known, with their counts. A pattern with another one may match anything,
as one with ``{e<=1}`` does."""


class SlowPatternError(Exception):
    """A pattern that takes too long for a text."""


def check_regex(pattern: str, ignore_case: bool) -> None:
    """Raise ValueError, which says what is wrong, if a text is no pattern or may take too long."""
    if not pattern:
        raise ValueError("nothing in it")
    plain = _ESCAPED.sub("", pattern)
    if _FLAGS.search(plain):
        raise ValueError("flags within it; an i after the last slash is the only flag")
    if (nodes := written_nodes(pattern)) > MAX_NODES:
        raise ValueError(
            f"{nodes:,} nodes where its repetitions are written out; at most {MAX_NODES:,}"
        )
    if (way := longest_way(pattern)) > MAX_WAY:
        raise ValueError(f"{way:,} characters and classes in a row; at most {MAX_WAY}")
    _compiled(pattern, ignore_case)


def written_nodes(pattern: str) -> int:
    """Return a bound of the size of a pattern: the sum of its characters, classes, groups and
    alternatives, each times all counts around it. O(length)."""
    totals, last = [0], 0  # of each group that is open, and of the last piece
    for piece in _PIECES.finditer(pattern):
        match piece.lastgroup:
            case "sign" | "comment":
                continue
            case "count":
                times = max(1, int(piece["least"] or 0), int(piece["most"] or 0))
                totals[-1] += last * (times - 1)
                last *= times
                continue
            case "open":
                totals.append(1)
                last = 0
                continue
            case "close" if len(totals) > 1:
                last = totals.pop()
            case _:
                last = 1
        totals[-1] += last
    return sum(totals)


def longest_way(pattern: str) -> int:
    """Return the number of characters and classes on the longest way through the alternatives.

    No text that a match must hold is longer. O(length of the pattern).
    """
    way = 0
    open_groups = [(0, 0)]  # for each, the way before it, and the longest through its alternatives
    for piece in _PIECES.finditer(pattern):
        if piece.lastgroup == "open":
            open_groups.append((way, 0))
        elif piece.lastgroup == "close" and len(open_groups) > 1:
            way = max(way, open_groups.pop()[1])
        elif piece[0] == "|":
            before, most = open_groups[-1]
            open_groups[-1] = before, max(most, way)
            way = before
        elif piece.lastgroup is None:
            way += 1
    return max(way, *(most for _, most in open_groups))


Runs = tuple[str, ...]
"""Parts of terms, with ``?`` for any letter and ``*`` for any letters: a text has one of them."""


def sure_runs(pattern: str, ignore_case: bool) -> list[Runs]:
    """Return the runs that a pattern needs. Every text that matches it has one run of each in its
    terms, or a term that the analyser has cut. Runs are of letters and digits. O(length of the
    pattern).

    Example: ``Viva\\w+ (?:opera|sonata)`` -> ``[("*opera*", "*sonata*"), ("*viva*",)]``
    """
    pieces = list(_SURE_PIECES.finditer(f"{pattern})"))
    if sum(len(piece[0]) for piece in pieces) <= len(pattern):
        return []
    # Of each open group the alternatives, and whether it is hidden; the pattern is in the second.
    groups: list[tuple[list[list[Runs]], bool]] = [([[]], False), ([[]], False)]
    run = "*"
    for piece in pieces:
        letter, is_sure = piece["letter"] or "", piece["none"] is None
        if ignore_case and not letter.isascii():
            letter = ""
        if letter and is_sure:
            low = fold(letter)
            run += "?" if ignore_case and low in _NOT_ALONE else low
        if not letter or piece["count"]:
            is_whole = bool(piece["blank"]) and is_sure
            if _letters((run,)) >= _MIN_LETTERS:
                groups[-1][0][-1].append((run if is_whole else f"{run}*",))
            run = "" if is_whole else "*"
        if piece["open"] or piece["hidden"]:
            groups.append(([[]], bool(piece["hidden"])))
        elif piece["bar"]:
            groups[-1][0].append([])
        elif piece["close"]:
            alternatives, is_hidden = groups.pop()
            if is_sure and not is_hidden:
                groups[-1][0][-1] += _of_any(alternatives)
    sure = dict.fromkeys(groups[0][0][0])
    return sorted(sure, key=_letters, reverse=True)[:_MAX_RUNS]


def _of_any(alternatives: list[list[Runs]]) -> list[Runs]:
    """Return the runs that are sure if one of the alternatives matches."""
    if len(alternatives) == 1:
        return alternatives[0]
    if not all(alternatives):
        return []
    runs = {run: None for sure in alternatives for run in max(sure, key=_letters)}
    return [tuple(runs)] if len(runs) <= _MAX_ALTERNATIVES else []


def _letters(runs: Runs) -> int:
    """Return the letters and digits of the run that has the fewest."""
    return min(sum(map(str.isalnum, run)) for run in runs)


@lru_cache(maxsize=32)  # of at most 4 MB each
def _compiled(pattern: str, ignore_case: bool) -> Pattern[str]:
    import regex

    flags = regex.IGNORECASE if ignore_case else 0
    try:
        return regex.compile(pattern.replace(*_HYPHENS), flags, cache_pattern=False)
    except (regex.error, ValueError, OverflowError, RecursionError, KeyError) as error:
        raise ValueError(str(error)) from None


_Places = list[tuple[int, int]]


class Stopwatch:
    """The time that the patterns of a query have left, in seconds. While it is entered, they share
    it: for texts that match, sentences that are shown, and marks."""

    def __init__(self, limit_s: float = MAX_QUERY_S) -> None:
        self.left_s = limit_s
        self.has_stopped = False
        """Whether places of matches were left out because no time was left."""
        self._places: dict[tuple[str, bool, str], _Places] = {}
        self._tokens: list[Token[Stopwatch | None]] = []

    def __enter__(self) -> Stopwatch:
        self._tokens.append(_running.set(self))
        return self

    def __exit__(self, *exception: object) -> None:
        _running.reset(self._tokens.pop())

    @contextmanager
    def timing(self, most_s: float) -> Generator[float]:
        """Yield the seconds that a pattern may take for a text. The seconds that it took are taken
        off. Raises SlowPatternError if it takes longer, or if no time is left."""
        if self.left_s <= 0:
            raise SlowPatternError
        started = time.perf_counter()
        try:
            yield min(most_s, self.left_s)
        except TimeoutError:
            raise SlowPatternError from None
        finally:
            self.left_s -= time.perf_counter() - started

    def kept_places(self, pattern: str, ignore_case: bool, text: str) -> _Places:
        """Return the places of ``places``, kept for the next call with this text; none if that
        takes too long."""
        key = (pattern, ignore_case, text)
        if key not in self._places:
            try:
                self._places[key] = places(pattern, ignore_case, text, self)
            except SlowPatternError:
                self._places[key] = []
                self.has_stopped = True
        return self._places[key]


_running: ContextVar[Stopwatch | None] = ContextVar("stopwatch", default=None)


def stopwatch() -> Stopwatch:
    """Return the stopwatch of the query that is under way, or a new one."""
    return _running.get() or Stopwatch()


def is_found(pattern: str, ignore_case: bool, text: str, watch: Stopwatch) -> bool:
    """Return whether a pattern matches somewhere. Raises SlowPatternError if that takes longer than
    MAX_TEXT_S, or than the ``watch`` has left."""
    plain = text.replace(*_HYPHENS)
    with watch.timing(MAX_TEXT_S) as limit_s:
        return bool(_compiled(pattern, ignore_case).search(plain, timeout=limit_s))


def places(
    pattern: str, ignore_case: bool, text: str, watch: Stopwatch, most_s: float = MAX_TEXT_S
) -> _Places:
    """Return where a pattern matches, without empty places: the offsets of the first character and
    after the last. Raises SlowPatternError if that takes longer than ``most_s``, or than the
    ``watch`` has left."""
    with watch.timing(most_s) as limit_s:
        plain = text.replace(*_HYPHENS)
        matches = _compiled(pattern, ignore_case).finditer(plain, timeout=limit_s)
        return [match.span() for match in matches if match.end() > match.start()]


def literal(text: str) -> str:
    """Return the pattern that matches a text, with a backslash only where it needs one."""
    return _SPECIAL.sub(r"\\\g<0>", text)
