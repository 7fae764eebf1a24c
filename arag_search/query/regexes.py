"""Regular expressions of queries: what they match in a text, within limits of time.

The library is ``regex``: its classes are those of Unicode, and its searches can be stopped. Texts
of a corpus and patterns of a model are both unknown, and some pairs of them would take for ever.
"""

from __future__ import annotations

import re
import time
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regex import Pattern

MAX_TEXT_S = 0.05
"""How long a pattern may take for one text, in seconds."""
MAX_QUERY_S = 2.0
"""How long the patterns of a query may take in all, in seconds."""

MAX_REPEATED = 10_000
"""The product of the counts of repetitions, such as {3}: each is written out in memory."""

_SPECIAL = re.compile(r"[\\.^$*+?{}\[\]|()/]")
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_FLAGS = re.compile(r"\(\?(?=[^:)]*[a-zA-Z])[abefiLmprsuwxV01-]+[:)]")
_COUNTS = re.compile(r"\{(\d*),?(\d*)\}")
_SEPARATORS = frozenset(' \t()[]{}<>=/"|')
"""Characters that stand in no word of the analyser, and that end a word of ASCII beside them."""
_SPACES = frozenset("snrt")
_UNKNOWN = frozenset("wWdDsSbB")
_FOLDED = frozenset("isk")
"""Letters that others than their capital match without case: İ, ı, ſ and the sign of kelvin."""
_MAX_WORD = 100


class SlowPatternError(Exception):
    """A pattern that takes too long for a text."""


def check_regex(pattern: str, ignore_case: bool) -> None:
    """Raise ValueError, which says what is wrong, for what is no pattern or may take too long."""
    if not pattern:
        raise ValueError("nothing in it")
    plain = _ESCAPED.sub("", pattern)
    if _FLAGS.search(plain):
        raise ValueError("flags within it; an i after the last slash is the only flag")
    counts = [max(1, *(int(digits or 0) for digits in pair)) for pair in _COUNTS.findall(plain)]
    if prod(counts) > MAX_REPEATED:
        raise ValueError(f"repetitions that multiply to more than {MAX_REPEATED:,}")
    _compiled(pattern, ignore_case)


@lru_cache(maxsize=256)
def _compiled(pattern: str, ignore_case: bool) -> Pattern[str]:
    import regex

    try:
        return regex.compile(pattern, regex.IGNORECASE if ignore_case else 0)
    except (regex.error, ValueError, OverflowError, RecursionError, KeyError) as error:
        raise ValueError(str(error)) from None


class Stopwatch:
    """The time that the patterns of a query have left, in seconds."""

    def __init__(self, limit_s: float) -> None:
        self.left_s = limit_s


def is_found(pattern: str, ignore_case: bool, text: str, watch: Stopwatch) -> bool:
    """Return whether a pattern matches somewhere. Raises SlowPatternError if that takes longer than
    MAX_TEXT_S, or than the ``watch`` has left."""
    if watch.left_s <= 0:
        raise SlowPatternError
    limit_s = min(MAX_TEXT_S, watch.left_s)
    started = time.perf_counter()
    try:
        return bool(_compiled(pattern, ignore_case).search(text, timeout=limit_s))
    except TimeoutError:
        raise SlowPatternError from None
    finally:
        watch.left_s -= time.perf_counter() - started


def places(
    pattern: str, ignore_case: bool, text: str, limit_s: float = MAX_TEXT_S
) -> list[tuple[int, int]]:
    """Return where a pattern matches, without empty places: the offsets of the first character and
    after the last. Raises SlowPatternError if that takes longer than ``limit_s``."""
    try:
        matches = _compiled(pattern, ignore_case).finditer(text, timeout=limit_s)
        return [match.span() for match in matches if match.end() > match.start()]
    except TimeoutError:
        raise SlowPatternError from None


def literal(text: str) -> str:
    """Return the pattern that matches a text, with a backslash only where it needs one."""
    return _SPECIAL.sub(r"\\\g<0>", text)


def certain_words(pattern: str, ignore_case: bool) -> tuple[str, ...]:
    """Return words that a text certainly has where the pattern matches, each a word of its own for
    the analyser too: letters and digits between two characters of the pattern that separate words.

    A pattern with alternatives, or with an escape that is not understood, has none.
    """
    words: list[str] = []
    for piece in _literal_pieces(pattern):
        words += re.findall(r"(?<=\0)[a-zA-Z0-9]+(?=\0)", piece)
    if ignore_case:
        words = [word for word in words if not _FOLDED & set(word.lower())]
    return tuple(dict.fromkeys(word for word in words if len(word) <= _MAX_WORD))


def _literal_pieces(pattern: str) -> list[str]:
    """Return the literal stretches outside of groups, with U+0000 for what separates words."""
    atoms: list[str] = []  # a character, U+0000 for a separator, "" for what is not known
    at = 0
    while at < len(pattern):
        character = pattern[at]
        end = at + 1
        atom = character if character.isascii() and character.isalnum() else ""
        if character == "\\":
            escaped = pattern[end : end + 1]
            end += 1
            if escaped in _SPACES or escaped in _SEPARATORS:
                atom = "\0"
            elif escaped.isalnum() and escaped not in _UNKNOWN:
                return []
        elif character == "|":
            return []
        elif character in "[(":
            end = _end_of_group(pattern, at)
            if end < 0:
                return []
        elif character in "*?+{":
            if character == "{" and "}" not in pattern[at:]:
                return []
            end = pattern.index("}", at) + 1 if character == "{" else end
            if atoms and not (character == "+" and atoms[-1] == "\0"):
                atoms[-1] = ""
            at = end
            continue
        elif character in _SEPARATORS:
            atom = "\0"
        atoms.append(atom)
        at = end
    return "".join(atom or "\1" for atom in atoms).split("\1")


def _end_of_group(pattern: str, at: int) -> int:
    """Return the offset after a class or a group; -1 for one that holds a class."""
    if pattern[at] == "[":
        end = re.compile(r"\[\^?\]?(?:[^\]\[\\]|\\.)*\]", re.DOTALL).match(pattern, at)
        return end.end() if end else -1
    depth = 0
    while at < len(pattern):
        match pattern[at]:
            case "\\":
                at += 1
            case "[":
                return -1
            case "(":
                depth += 1
            case ")":
                depth -= 1
                if not depth:
                    return at + 1
            case _:
                pass
        at += 1
    return -1
