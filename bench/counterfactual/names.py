"""Names: the words of a text, which of them are names, and the names of several words."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import regex

from arag_search.evaluation.text_match import without_brackets
from arag_search.query.dictionaries import lemmas
from arag_search.system.yaml_file import read_mapping

# A word has its apostrophes, as in don't and Mu'tasim, but for possessives and O'Brien's.
_TOKEN = regex.compile(
    r"\p{L}[\p{L}\p{M}]*(?:['’](?!s(?!\p{L}))\p{Ll}[\p{L}\p{M}]*)*|\d+(?:st|nd|rd|th)?"
)
_NO_MARKS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "’": "'", "ı": "i"})
_CAPITAL = regex.compile(r"[^\P{L}\p{Latin}\u02b0-\u02ff]|[\u0250-\u02af]|\p{Lu}")
_WITHIN = regex.compile(r"(?:[\p{Ll}\d,;)]|\p{Lu}{2}) ?$")
_QUOTED = regex.compile(r"[\"“]([^\"“”\n]{3,90})[\"”]")
_ARTICLES = ("the", "a", "an")


class Token(NamedTuple):
    """A word or a number of a text; ``key`` is without capitals and marks. A capital is one, as
    names have it, or a letter of sounds or of another script."""

    text: str
    key: str
    start: int
    end: int
    is_capital: bool


class Text(NamedTuple):
    """A text with its words. ``stays`` are the positions of words that are never replaced: names
    of kept.yaml, awards and numbers."""

    text: str
    tokens: Sequence[Token]
    keys: tuple[str, ...]
    stays: frozenset[int]

    def replaceable(self, span: Iterable[int]) -> set[int]:
        """Return which words of a name are replaced: its own words, else words of its kind, else
        all words that do not stay."""
        open_ = {at for at in span if at not in self.stays}
        own = {at for at in open_ if len(self.keys[at]) > 1 and not of_a_kind(self.keys[at])}
        return own or {at for at in open_ if _list_of((self.keys[at],)) != "small"} or open_

    def is_kept(self) -> bool:
        """Return whether it is a name that stays: a word stays, and all others are of a kind."""
        left = [key for at, key in enumerate(self.keys) if at not in self.stays]
        return bool(self.stays) and all(map(of_a_kind, left))

    def is_initial(self, at: int) -> bool:
        """Return whether a word is a capital with a full stop."""
        _, key, _, end, is_capital = self.tokens[at]
        return is_capital and len(key) == 1 and self.text.startswith(".", end)

    def is_within(self, at: int) -> bool:
        """Return whether a word follows another one within a sentence."""
        start = self.tokens[at].start
        return bool(_WITHIN.search(self.text[max(0, start - 3) : start]))


@lru_cache(100_000)
def _key(word: str) -> str:
    letters = unicodedata.normalize("NFKD", word).casefold().translate(_NO_MARKS)
    return letters if letters.isascii() else regex.sub(r"\p{M}", "", letters)


def tokens_of(text: str) -> list[Token]:
    """Return the words and numbers of a text, in order."""
    return [
        Token(m[0], _key(m[0]), m.start(), m.end(), bool(_CAPITAL.search(m[0])))
        for m in _TOKEN.finditer(text)
    ]


def read(text: str) -> Text:
    """Return a text with its words."""
    tokens = tokens_of(text)
    keys = tuple(token.key for token in tokens)
    stays = {at for at, key in enumerate(keys) if not key[:1].isalpha()}
    for length in range(1, 5):
        for at in range(len(keys) - length + 1):
            kind = _list_of(keys[at : at + length])
            is_short = kind != "abbreviations" or text.startswith(".", tokens[at].end)
            if kind not in ("", "kinds", "small") and is_short:
                stays.update(range(at, at + length))
    return Text(text, tokens, keys, frozenset(stays))


@cache
def _kept() -> Mapping[tuple[str, ...], str]:
    path = Path(__file__).with_name("kept.yaml")
    lists = read_mapping(path, "list of words that stay", holds="words", allowed="kinds")
    return {
        tuple(token.key for token in tokens_of(name)): str(kind)
        for kind, names in lists.items()
        for name in str(names).split(",")
    }


@lru_cache(100_000)
def _list_of(keys: tuple[str, ...]) -> str:
    """Return which list of kept.yaml has words, or has them in the singular; "" if none has."""
    singular = (*keys[:-1], keys[-1].removesuffix("s")) if len(keys[-1]) > 4 else keys
    return _kept().get(keys) or _kept().get(singular, "")


def of_a_kind(key: str) -> bool:
    """Return whether a word stays where a name has others, such as *river* and *the*."""
    return _list_of((key,)) in ("kinds", "small")


def is_name(tokens: Sequence[Token]) -> bool:
    """Return whether words can be a name: the first and most of them have capitals."""
    content = [t for t in tokens if not of_a_kind(t.key) and t.key.isalpha()] or tokens
    capital = sum(token.is_capital for token in content)
    return bool(content) and content[0].is_capital and 2 * capital > len(content)


def bare(name: str) -> tuple[str, ...]:
    """Return the words of a name without brackets at its end and an article."""
    keys = tuple(token.key for token in tokens_of(without_brackets(name)))
    return keys[1:] if len(keys) > 1 and keys[0] in _ARTICLES else keys


class Names:
    """The names in a corpus and its questions. ``words`` are all of their words."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.words: set[str] = set()
        self._names: set[tuple[str, ...]] = set()
        self._longest: Counter[str] = Counter()
        self._low: Counter[str] = Counter()
        self._capital: Counter[str] = Counter()
        for name in names:
            self.add(name)

    def add(self, name: str) -> None:
        """Add a name with and without its article, unless the name stays."""
        text = read(without_brackets(name))
        self.words.update(text.keys)
        if not text.is_kept():
            for keys in (text.keys, bare(name)):
                if keys:
                    self._names.add(keys)
                    self._longest[keys[0]] = max(self._longest[keys[0]], len(keys))

    def count(self, title: str, texts: Iterable[str]) -> None:
        """Count the words of a passage, and add its title and the works that it quotes. A title
        that its text has in small letters, and that has no brackets, is no name."""
        low: set[str] = set()
        for text in map(read, texts):
            self.words.update(text.keys)
            for at, token in enumerate(text.tokens):
                if not token.is_capital:
                    low.add(token.key)
                    self._low[token.key] += 1
                elif text.is_within(at):
                    self._capital[token.key] += 1
            for quoted in _QUOTED.finditer(text.text):
                name = tokens_of(quoted[1])
                if 2 <= len(name) <= 9 and name[-1].is_capital and is_name(name):
                    self.add(quoted[1])
        name = tokens_of(without_brackets(title))
        content = [token for token in name if not of_a_kind(token.key)] or name
        is_marked = title != without_brackets(title) or any(t.is_capital for t in content[1:])
        if is_marked or any(token.key not in low for token in content):
            self.add(title)

    def spans(self, text: Text, *, any_case: bool = False) -> Iterator[range]:
        """Yield where names stand: the longest name that begins at a word, and none within another.
        With ``any_case``, names of several words need no capitals."""
        at = 0
        while at < len(text.keys):
            end = min(len(text.keys), at + self._longest.get(text.keys[at], 0))
            while end > at and not (
                text.keys[at:end] in self._names
                and ((any_case and end > at + 1) or is_name(text.tokens[at:end]))
            ):
                end -= 1
            if end > at:
                yield range(at, end)
            at = max(end, at + 1)

    def is_proper(self, key: str, times: float = 9) -> bool:
        """Return whether a word is a name wherever it has a capital. Within sentences, it has one
        more than ``times`` as often as none. If it does not stand there, no dictionary has it."""
        low, capital = self._low[key], self._capital[key]
        is_known = lemmas("en").get(key, "A").islower()
        return (
            (capital > times * low or not (low or is_known)) and len(key) > 1 and not of_a_kind(key)
        )
