"""Rewriting: a record with invented names, drawn by a seed, and moved years."""

from __future__ import annotations

import itertools
import string
from collections.abc import Callable, Container, Iterator
from random import Random
from typing import Any, cast

import regex

from arag_search.corpus import nfc
from arag_search.query.dictionaries import lemmas
from bench.counterfactual.names import Names, Text, Token, bare, of_a_kind, read
from bench.counterfactual.years import MOVED, Years

_RUNNING = ("text", "sentences")
"""Fields of running text; in others, such as titles and questions, names need no capitals."""
_IDS = ("id", "_id", "doc_id", "docid")
_OF_QUESTIONS = (*_IDS, "source", "type", "question_type")
"""Fields of a question that are no text, and stay."""
_DATED = regex.compile(r"date|year|born|died|birth|death|inception", regex.I)
_HASHED = regex.compile(r"\d\p{L}|\p{L}\d")
_QUOTE = regex.compile(r'["“](?:(?:The|An?) )?$'), regex.compile(r'[ ,.!?]*["”]')
_ARROW = ">>"
"""Stands between a name and a relation in steps of MuSiQue."""
_VOWELS = "aeiou"
_ONSETS = ("b", "br", "d", "dr", "f", "g", "gr", "h", "k", "l", "m", "n", "p", "r", "t", "tr", "v")
_ENDS = ("l", "m", "n", "nd", "r", "rk", "t", "k", "v", "x", "a", "o", "i", "e")
_SUFFIXES = ("s", "es", "n", "an", "ian", "ean", "ese", "er", "ish", "ist", "ism", "esque")
_TRIES = 40


class Invented:
    """The invented words of one seed. None is a word of ``taken`` or of English, and no two old
    words have the same one. First letters are exchanged for fixed others, so that initials follow.
    """

    def __init__(self, seed: int, taken: Container[str], is_proper: Callable[[str], bool]) -> None:
        self._seed = seed
        self._taken = taken
        self._is_proper = is_proper
        self.words: dict[str, str] = {}
        self._used: set[str] = set()
        letters = list(string.ascii_lowercase)
        Random(f"{seed} letters").shuffle(letters)
        self._letters = dict(zip(letters, letters[1:] + letters[:1], strict=True))

    def written(self, token: Token) -> str:
        """Return the invented word with the capitals of a mention. For an initial, return the first
        letter of the words that stand for words with this initial."""
        if len(token.text) == 1 and token.key in self._letters:
            return self._letters[token.key].upper()
        new = self._word(token.key)
        if token.text.isupper():
            return new.upper()
        capitals = {n for n, letter in enumerate(token.text) if letter.isupper()}
        return "".join(c.upper() if n in capitals else c for n, c in enumerate(new))

    def _word(self, old: str) -> str:
        if old not in self.words:
            taken = (self._used, self._taken, lemmas("en"))
            candidates = self._candidates(old)
            self.words[old] = next(new for new in candidates if not any(new in of for of in taken))
            self._used.add(self.words[old])
        return self.words[old]

    def _candidates(self, old: str) -> Iterator[str]:
        """Yield words of the same length, then longer ones; an inflection of a name first as the
        inflection of its invented word."""
        for suffix in _SUFFIXES:
            stem = old.removesuffix(suffix)
            if stem != old and len(stem) > 3 and self._is_proper(stem):
                yield self._word(stem) + suffix
        random = Random(f"{self._seed} {old}")
        first = self._letters.get(old[0], random.choice("bdgkmt"))
        for tries in itertools.count():
            word = first
            while len(word) < max(3, len(old) + tries // _TRIES) - 1:
                word += random.choice(_ONSETS if word[-1] in _VOWELS else _VOWELS)
            yield word + random.choice(_ENDS if word[-1] in _VOWELS else _VOWELS)


class Rewriting:
    """Rewrites the strings of records; the same record gives the same strings."""

    def __init__(self, names: Names, invented: Invented, years: Years) -> None:
        self._names, self._invented, self._years = names, invented, years
        # Of the record at hand: ordinary words that are part of a name, and dates of its triples.
        self._own: set[str] = set()
        self._stay: Container[str] = ()

    def record(self, record: object, *, is_question: bool = False) -> Any:
        """Return a record with all of its strings rewritten, each as its field asks."""
        self._own, self._stay = set(), _OF_QUESTIONS if is_question else ()
        moved = self._years.moved
        self._value(record)  # finds the names whose words other strings have
        self._years.moved = moved
        return self._value(record)

    def _value(self, value: object, field: str = "") -> Any:
        if isinstance(value, str):
            return self._string(nfc(value), field)
        if isinstance(value, list):
            items = cast(list[object], value)
            if len(items) == 3 and _DATED.search(str(items[1])):
                self._own.add(str(items[2]))
            return [self._value(item, field) for item in items]
        if not isinstance(value, dict):
            return value
        return {
            name: item
            if name in self._stay
            else item + MOVED
            if type(item) is int and 1000 <= item < 2030 and _DATED.search(name)
            else self._value(item, name)
            for name, item in cast(dict[str, Any], value).items()
        }

    def _string(self, text: str, field: str) -> str:
        if field in _IDS:
            return text if _HASHED.search(text) else self._named(read(text), any_case=True)
        named = self._named(read(text), any_case=field not in _RUNNING)
        return self._years.later(named, is_date=text in self._own)

    def _named(self, text: Text, *, any_case: bool) -> str:
        """Return a text with invented names."""
        replaced = self._replaced(text, any_case)
        parts: list[str] = []
        end = 0
        for at, token in enumerate(text.tokens):
            new = self._invented.written(token) if at in replaced else token.text
            parts += (text.text[end : token.start], new)
            end = token.end
        return "".join((*parts, text.text[end:]))

    def _replaced(self, text: Text, any_case: bool) -> set[int]:
        """Return which words of a text are replaced: words of names, and words that are a name
        wherever they have a capital. With ``any_case``, names need none."""
        keys = text.keys
        replaced: set[int] = set()
        open_ = set(range(len(keys))) - text.stays
        for span in self._names.spans(text, any_case=any_case):
            if len(span) > 1 or _is_meant(text, span[0], any_case):
                own = text.replaceable(span)
                replaced |= own
                open_.difference_update(span)
                self._own.update(keys[at] for at in own if not of_a_kind(keys[at]))
        capital = {at for at in open_ if text.tokens[at].is_capital}
        replaced.update(at for at in capital if keys[at] in self._own)
        replaced.update(
            at for at in (open_ if any_case else capital) if self._names.is_proper(keys[at])
        )
        # Initials and ordinary words with capitals are part of a name beside one or each other.
        can = {
            at
            for at in set(range(len(keys))) - text.stays
            if at in replaced
            or text.is_initial(at)
            or (at in capital and text.is_within(at) and self._names.is_proper(keys[at], 1 / 2))
        }
        for at in sorted(can, reverse=True):
            if at + 1 in can and (at + 1 in replaced or not text.is_initial(at + 1)):
                between = text.text[text.tokens[at].end : text.tokens[at + 1].start]
                if between.lstrip("." if text.is_initial(at) else "") in (" ", "-", ""):
                    replaced |= {at, at + 1}
        return replaced


def _is_meant(text: Text, at: int, any_case: bool) -> bool:
    """Return whether a word is meant as a name of one word. It then is the whole text, stands in
    quotes, or has a capital in a question."""
    token = text.tokens[at]
    if any_case and token.is_capital and not of_a_kind(token.key) and text.is_within(at):
        return True
    before = text.text[max(0, token.start - 6) : token.start]
    is_quoted = _QUOTE[0].search(before) and _QUOTE[1].match(text.text, token.end)
    return bool(is_quoted) or bare(text.text.partition(_ARROW)[0]) == (token.key,)
