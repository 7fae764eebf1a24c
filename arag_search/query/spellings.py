"""The spellings of a text in a query: the tokens that it stands for.

A word with an apostrophe stands for its tokens with a straight and with a typographic one, and if
possessives are wanted, also for those in which one token ends in 's.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from arag_search.corpus import is_unicode, nfc
from arag_search.errors import ArgumentError
from arag_search.query import analysis
from arag_search.query.limits import (
    MAX_APOSTROPHES,
    MAX_POSSESSIVE_WORDS,
    MIN_PREFIX_CHARACTERS,
)

Spellings = tuple[tuple[str, ...], ...]
"""The tokens of a text in each of its spellings."""

APOSTROPHES = ("\u0027", "\u2019")
POSSESSIVES = tuple(f"{apostrophe}s" for apostrophe in APOSTROPHES)


def checked_text(text: str) -> str:
    """Return a text in NFC. Raises ArgumentError for a lone surrogate."""
    if text.isascii():
        return text
    if not is_unicode(text):
        raise ArgumentError("A text with a lone surrogate.", allowed="Unicode characters")
    return nfc(text)


def spellings_of(text: str) -> Spellings:
    """Return the tokens of a text in each of its spellings; no spelling for a text without tokens.

    Raises ArgumentError for more than MAX_APOSTROPHES and for lone surrogates.
    """
    text = checked_text(text)
    if _is_one_token(text):
        return ((text.lower(),),)
    places = inner_apostrophes(text)
    if len(places) > MAX_APOSTROPHES:
        raise ArgumentError(
            f"A text with {len(places)} apostrophes in its words.",
            allowed=f"at most {MAX_APOSTROPHES}",
            do="Write several phrases, joined by AND.",
        )
    if places:
        return tuple(dict.fromkeys(tuple(analysis.terms(mix)) for mix in _mixes(text, places)))
    terms = tuple(analysis.terms(text))
    return (terms,) if terms else ()


def possessive_spellings(spellings: Spellings) -> Spellings | None:
    """Return the spellings, and those in which one word is its possessive, with each apostrophe.

    None if they have more than MAX_POSSESSIVE_WORDS words.
    """
    if sum(map(len, spellings)) > MAX_POSSESSIVE_WORDS:
        return None
    expanded = dict.fromkeys(spellings)
    for words in spellings:
        for at, word in enumerate(words):
            if _has_possessive(word):
                for ending in POSSESSIVES:
                    expanded[(*words[:at], word + ending, *words[at + 1 :])] = None
    return tuple(expanded) if sum(map(len, expanded)) <= MAX_POSSESSIVE_WORDS else None


def _has_possessive(word: str) -> bool:
    """Return whether 's after a token makes another token. It does not after a digit."""
    if _is_one_token(word) and len(word) <= analysis.MAX_UNITS - 2:
        return word[-1].isalpha()
    if word.endswith(POSSESSIVES):
        return False
    return all(analysis.terms(word + ending) == [word + ending] for ending in POSSESSIVES)


def is_prefix(text: str) -> bool:
    """Return whether a ``*`` may follow the text: it is long enough, and exactly one token."""
    if len(text) < MIN_PREFIX_CHARACTERS:
        return False
    if _is_one_token(text):
        return True
    tokens = analysis.tokens(text)
    return len(tokens) == 1 and tokens[0].start == 0 and tokens[0].end == len(text)


def inner_apostrophes(text: str) -> list[int]:
    """Return the offsets of the apostrophes whose spelling changes the tokens. O(len(text)).

    If all apostrophes of the text had one spelling, these would be inside a token. (After a Hebrew
    letter, only U+0027 would be.)
    """
    if not any(apostrophe in text for apostrophe in APOSTROPHES):
        return []
    inner: set[int] = set()
    for apostrophe in APOSTROPHES:
        uniform = text.translate(dict.fromkeys(map(ord, APOSTROPHES), apostrophe))
        for token in analysis.tokens(uniform):
            at = uniform.find(apostrophe, token.start, token.end)
            while at >= 0:
                inner.add(at)
                at = uniform.find(apostrophe, at + 1, token.end)
    return sorted(inner)


def _mixes(text: str, places: list[int]) -> Iterator[str]:
    """Yield the text with every mix of apostrophes at these offsets, first with straight ones."""
    cuts = [0, *(at + 1 for at in places)]
    ends = [*places, len(text)]
    pieces = [text[start:end] for start, end in zip(cuts, ends, strict=True)]
    for mix in itertools.product(APOSTROPHES, repeat=len(places)):
        yield "".join(itertools.chain.from_iterable(zip(pieces, (*mix, ""), strict=True)))


def _is_one_token(text: str) -> bool:
    """Return whether a text is plainly one token, as most words are; False means unknown."""
    return text.isascii() and text.isalnum() and len(text) <= analysis.MAX_UNITS
