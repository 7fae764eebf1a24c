"""Counting tokens as GPT-4o does (o200k_base), offline, and cutting texts to a number of tokens."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable
from importlib import import_module
from typing import Protocol, cast

from arag_search.system.imports import leave_unread

CHARACTERS_PER_TOKEN = 32
"""A generous estimate: texts rarely have so many."""
CUT_MARK = " ..."
"""The end of a text that was cut."""


class _Tokenizer(Protocol):
    """The compiled tokenizer."""

    def count(self, text: str, /) -> int: ...

    def count_till_limit(self, text: str, token_limit: int, /) -> int | None: ...

    def encode(self, text: str, /) -> list[int]: ...

    def decode(self, tokens: list[int], /) -> str: ...


@functools.cache
def _tokenizer() -> _Tokenizer:
    """Return the compiled tokenizer of the package, without its own code. That computes the tables
    of every model it knows, which takes longer than everything else a first search does."""
    leave_unread("bpe_openai")
    bindings = import_module("bpe_openai._bindings")
    return cast(_Tokenizer, bindings.tokenizer_for_encoding("o200k_base"))


_MAX_KEPT = 256
_kept: dict[str, int] = {}
"""The tokens of the texts that were counted last: texts of one reply are counted several times."""


def count_tokens(text: str) -> int:
    """Count the o200k_base tokens of ``text``; 0 for the empty string.

    Special tokens are counted as plain text. A lone surrogate counts as the replacement that
    ``encodable`` gives it. O(len(text)).
    """
    count = _kept.get(text)
    return _keep(text, _count(text)) if count is None else count


def _keep(text: str, count: int) -> int:
    if len(_kept) >= _MAX_KEPT:
        _kept.clear()
    _kept[text] = count
    return count


def _count(text: str) -> int:
    try:
        return _tokenizer().count(text)
    except UnicodeEncodeError:
        return _tokenizer().count(encodable(text))


def count_with(text: str, parts: Iterable[tuple[int, int]]) -> int:
    """Count the tokens of a text. These parts of it, each from an offset to another one, in order,
    are counted by themselves, too; all within a part is counted once."""
    total = done = 0
    for start, end in parts:
        part = text[start:end]
        first, last = part.find(" "), part.rfind(" ")
        if first == last or not (_is_between(part, first) and _is_between(part, last)):
            continue
        ends = _count(part[:first]) + _count(part[last:])
        count = _kept.get(part)
        within = _count(part[first:last]) if count is None else count - ends
        _keep(part, ends + within)
        total += _count(text[done : start + first]) + within
        done = start + last
    return _keep(text, total + _count(text[done:]))


def with_line(text: str, at: int, line: str) -> str:
    """Return a text with a line put in at an offset. Only the text from the last word before the
    line on is counted anew."""
    longer = text[:at] + line + text[at:]
    blank = text.rfind(" ", 0, at)
    if _is_between(text[:at], blank):
        _keep(longer, count_tokens(text) - _count(text[blank:]) + _count(longer[blank:]))
    return longer


def _is_between(text: str, blank: int) -> bool:
    """Return whether a blank stands between two words, so that a token ends before it."""
    return len(text[max(blank - 1, 0) : blank + 2].split()) == 2


def count_all(texts: Iterable[str]) -> int:
    """Return the sum of the tokens of texts, each counted by itself."""
    return sum(map(count_tokens, texts))


def count_up_to(text: str, max_tokens: int) -> int | None:
    """Count tokens as ``count_tokens`` does; stop and return None beyond ``max_tokens``."""
    if 4 * len(text) <= max_tokens:  # a character has at most four
        return _count(text)
    if text.count(" ") > max_tokens and "  " not in text and text.isprintable():
        return None  # no token holds two blanks between words
    if len(text) <= 4 * max_tokens:  # it may well fit, and its count is kept
        count = count_tokens(text)
        return count if count <= max_tokens else None
    try:
        return _tokenizer().count_till_limit(text, max_tokens)
    except UnicodeEncodeError:
        return _tokenizer().count_till_limit(encodable(text), max_tokens)


def characters_of(text: str, tokens: int) -> int:
    """Return how many whole characters the first ``tokens`` tokens of a text have. O(len(text))."""
    tokenizer = _tokenizer()
    try:
        first = tokenizer.encode(text)[:tokens]
    except UnicodeEncodeError:
        text = encodable(text)
        first = tokenizer.encode(text)[:tokens]
    while first:
        with contextlib.suppress(ValueError):  # a part of a character
            decoded = tokenizer.decode(first)
            if text.startswith(decoded):
                return len(decoded)
        first.pop()
    return 0


def cut_to(text: str, max_tokens: int) -> str:
    """Return the beginning of a text in at most ``max_tokens`` tokens (1 or more).

    A text that is cut ends with ``...``, and after a whole word unless its words are very long.
    """
    if len(text) * (1 if text.isascii() else 4) <= max_tokens:  # no more tokens than bytes
        return text
    beginning = text[: CHARACTERS_PER_TOKEN * max_tokens]
    if count_tokens(beginning) <= max_tokens and count_tokens(text) <= max_tokens:
        return text
    high = 4 * max_tokens
    while high < len(text) and count_tokens(_ended(text[:high])) <= max_tokens:
        high *= 2
    low, high = 0, min(high, len(text))
    while low < high:  # the longest prefix that fits
        middle = (low + high + 1) // 2
        if count_tokens(_ended(text[:middle])) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    kept = text[:low]
    blank = max(kept.rfind(" "), kept.rfind("\n"))
    return _ended(kept[:blank] if blank > low // 2 else kept)


def _ended(text: str) -> str:
    return f"{text.rstrip()}{CUT_MARK}".lstrip(" ")


def encodable(text: str) -> str:
    """Return the text with lone surrogates (half an emoji, as a model may escape it) replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
