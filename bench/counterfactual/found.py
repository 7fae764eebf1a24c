"""Names found: the words of a text, which of them are names, and the names of several words."""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
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
_QUOTED = regex.compile(r"[\"“]([^\"“”\n]{3,90})[\"”]")
_ABBREVIATED = regex.compile(r"(?:^|[\s.(])(?:\p{Lu}|Mr|Mrs|Ms|Dr|St|Jr|Sr|Lt|Col|Gen|Rev)$")
_ROMAN = regex.compile(r"(?=..)x{0,3}(?:ix|iv|v?i{0,3})")
_AWARD = regex.compile(
    r"(?:\p{Lu}[\p{L}'’.-]*\s+)*(?:Awards?|Prizes?|Medals?|Order of (?:the )?(?:\p{Lu}\w+ ?)+)\b"
    r"(?:\s+(?:for|of|in)\s+(?:the\s+)?\p{Lu}[\p{L}-]*(?:\s+(?:\p{Lu}[\p{L}-]*|in|of|and|or|a))*)?"
)
FOREIGN = regex.compile(r"[^\P{L}\p{Latin}\u02b0-\u02ff]|[\u0250-\u02af]")
"""A letter of another script than Latin, or of sounds."""
ARTICLES = ("the", "a", "an")
STAYING = ("countries", "nationalities", "months", "awards")
"""The kinds of words and names that stay, whatever else a name has."""


class Token(NamedTuple):
    """A word or a number of a text; ``key`` is without capitals and marks."""

    text: str
    key: str
    start: int
    end: int

    @property
    def is_capital(self) -> bool:
        """Whether it has a capital letter, as a name does."""
        return self.text != self.text.lower()


@lru_cache(100_000)
def _key(word: str) -> str:
    letters = unicodedata.normalize("NFKD", word).casefold().translate(_NO_MARKS)
    return letters if letters.isascii() else regex.sub(r"\p{M}", "", letters)


def tokens_of(text: str) -> list[Token]:
    """Return the words and numbers of a text, in order."""
    return [Token(m[0], _key(m[0]), m.start(), m.end()) for m in _TOKEN.finditer(text)]


def is_first(text: str, start: int) -> bool:
    """Return whether a word begins a sentence or stands first in quotes or brackets."""
    before = text[max(0, start - 12) : start].rstrip(" '’*")
    if not before or before[-1] in '!?:;"“”([\n|>':
        return True
    return before[-1] == "." and not _ABBREVIATED.search(before[:-1])


def awards_in(text: str) -> list[tuple[int, int]]:
    """Return where awards stand in a text."""
    return [match.span() for match in _AWARD.finditer(text)]


# Words and names that stay


@cache
def kept() -> dict[str, frozenset[tuple[str, ...]]]:
    """Return the words and names that stay, as keys, by their kind."""
    path = Path(__file__).with_name("kept.yaml")
    lists = read_mapping(path, "list of words that stay", holds="words", allowed="kinds")
    return {
        str(kind): frozenset(
            tuple(t.key for t in tokens_of(name)) for name in str(names).split(",")
        )
        for kind, names in lists.items()
    }


@cache
def _names_that_stay() -> frozenset[tuple[str, ...]]:
    plural = {(f"{keys[0]}s",) for keys in kept()["nationalities"] if len(keys) == 1}
    return frozenset(plural.union(*(kept()[kind] for kind in STAYING)))


@cache
def of_a_kind(key: str) -> bool:
    """Return whether a word stays where a name has others, such as *river* and *the*."""
    kinds = kept()["kinds"] | kept()["small"]
    return (key,) in kinds or (len(key) > 4 and (key.removesuffix("s"),) in kinds)


def _stays(key: str) -> bool:
    return (key,) in _names_that_stay() or not key[:1].isalpha() or bool(_ROMAN.fullmatch(key))


def not_staying(keys: Sequence[str]) -> list[int]:
    """Return the positions of words that are no part of a name that stays."""
    staying = {n for n, key in enumerate(keys) if _stays(key)}
    for start in range(len(keys)):
        for end in range(start + 2, min(len(keys), start + 4) + 1):
            if tuple(keys[start:end]) in _names_that_stay():
                staying.update(range(start, end))
    return [n for n in range(len(keys)) if n not in staying]


def replaceable(tokens: Sequence[Token]) -> list[int]:
    """Return which words of a name are replaced: those that are its own, else those of its kind,
    else all. Words and names that always stay are none of them."""
    open_ = not_staying([token.key for token in tokens])
    own = [n for n in open_ if not of_a_kind(tokens[n].key) and len(tokens[n].key) > 1]
    return own or [n for n in open_ if (tokens[n].key,) not in kept()["small"]] or open_


def is_kept(name: Sequence[Token]) -> bool:
    """Return whether a name stays: it has a country, nationality, month, award or number, and
    nothing else but words of a kind."""
    keys = [token.key for token in name]
    left = [keys[n] for n in not_staying(keys)]
    return (len(left) < len(keys) and all(map(of_a_kind, left))) or keys in (["yes"], ["no"])


def is_name(name: Sequence[Token]) -> bool:
    """Return whether a text can be a name: its first and most of its words have capitals."""
    content = [t for t in name if not of_a_kind(t.key) and t.key.isalpha()] or list(name)
    capital = sum(token.is_capital for token in content)
    return bool(content) and content[0].is_capital and len(name) < 15 and 2 * capital > len(content)


@dataclass(slots=True)
class Phrases:
    """Names by their first two words; those of one word too."""

    _names: dict[tuple[str, ...], dict[tuple[str, ...], tuple[bool, ...]]] = field(
        default_factory=lambda: defaultdict(dict)
    )

    def add(self, tokens: Sequence[Token]) -> None:
        """Add a name."""
        keys = tuple(token.key for token in tokens)
        self._names[keys[:2]].setdefault(keys, tuple(token.is_capital for token in tokens))

    def matches(self, tokens: Sequence[Token], *, any_case: bool) -> Iterator[tuple[int, int]]:
        """Yield where names stand, from and to; the longest of those that begin at a word, and none
        within another. A mention has the capitals of the name, but for words of a kind and, with
        ``any_case``, if the name has several words."""
        at = 0
        while at < len(tokens):
            end = 0
            first = tuple(token.key for token in tokens[at : at + 2])
            for begins in (first[:1], first):
                for keys, capitals in self._names.get(begins, {}).items():
                    span = tokens[at : at + len(keys)]
                    if len(keys) <= end - at or tuple(token.key for token in span) != keys:
                        continue
                    has_capital = any(token.is_capital for token in span)
                    if (any_case and len(keys) > 1) or (
                        has_capital
                        and all(
                            token.is_capital
                            or not is_capital
                            or (len(keys) > 2 and of_a_kind(token.key))
                            for token, is_capital in zip(span, capitals, strict=True)
                        )
                    ):
                        end = at + len(keys)
            if end:
                yield at, end
            at = end or at + 1


@dataclass(slots=True)
class Found:
    """What a corpus and its questions call by name. ``words`` are all words; ``chain`` are the
    names of the chains, as written; ``phrases`` those of several words, ``single`` the words that
    are a name alone."""

    words: set[str] = field(default_factory=set[str])
    phrases: Phrases = field(default_factory=Phrases)
    single: set[str] = field(default_factory=set[str])
    chain: dict[str, None] = field(default_factory=dict[str, None])
    _low: Counter[str] = field(default_factory=Counter[str])
    _capital: Counter[str] = field(default_factory=Counter[str])
    _first: Counter[str] = field(default_factory=Counter[str])
    _not_acronyms: set[str] = field(default_factory=set[str])
    _proper: dict[str, bool] = field(default_factory=dict[str, bool])

    def read(self, title: str, texts: Iterable[str]) -> None:
        """Count the words of a passage, and take its title and the works that it quotes. A title
        that its text has in small letters, and that has no brackets, is no name."""
        own = [token for text in texts for token in self._counted(text)]
        low = {token.key for token in own if not token.is_capital}
        self.words.update(token.key for token in tokens_of(title))
        name = tokens_of(without_brackets(title))
        self._not_acronyms.update(token.key for token in name if not token.text.isupper())
        content = [token for token in name if not of_a_kind(token.key)]
        is_marked = title != without_brackets(title) or any(t.is_capital for t in content[1:])
        if is_marked or not content or any(token.key not in low for token in content):
            self._add(name)

    def _counted(self, text: str) -> list[Token]:
        tokens = tokens_of(text)
        for token in tokens:
            self.words.add(token.key)
            if not token.is_capital:
                self._low[token.key] += 1
                continue
            where = self._first if is_first(text, token.start) else self._capital
            where[token.key] += 1
            if not token.text.isupper():
                self._not_acronyms.add(token.key)
        for quoted in _QUOTED.finditer(text):
            name = tokens_of(quoted[1])
            if 2 <= len(name) <= 9 and name[-1].is_capital and is_name(name):
                self._add(name)
        return tokens

    def ask(self, text: str, names: Iterable[str]) -> None:
        """Take the words of a question, and the names of its chain."""
        self.words.update(token.key for token in tokens_of(text))
        for written in names:
            name = tokens_of(without_brackets(written))
            self.words.update(token.key for token in name)
            if is_name(name) and not is_kept(name):
                self.chain.setdefault(written)
                self._add(name)

    def _add(self, name: Sequence[Token]) -> None:
        """Add a name as it is, and without its article."""
        bare = name[1:] if len(name) > 1 and name[0].key in ARTICLES else name
        if is_kept(name):
            return
        if len(bare) == 1:
            self.single.add(bare[0].key)
        for tokens in (name, bare):
            if len(tokens) > 1:
                self.phrases.add(tokens)

    def is_proper(self, key: str) -> bool:
        """Return whether a word is a name wherever it has a capital: at most one in ten of its uses
        is in small letters and, where it hardly stands within a sentence, no dictionary has it."""
        if key not in self._proper:
            low, capital = self._low[key], self._capital[key]
            is_rare = low == 0 and capital < 3 and self._first[key] >= capital
            is_known = lemmas("en").get(key, "A").islower()
            is_ordinary = is_known if is_rare else 9 * low >= capital
            self._proper[key] = not is_ordinary and self._is_open(key)
        return self._proper[key]

    def can_be_name(self, key: str) -> bool:
        """Return whether a word may be part of a name: a third of its uses or more have capitals
        within sentences."""
        return self._low[key] <= 2 * self._capital[key] and self._is_open(key)

    def is_acronym(self, key: str) -> bool:
        """Return whether the corpus has a word in capitals alone."""
        return len(key) < 6 and key not in self._not_acronyms

    @staticmethod
    def _is_open(key: str) -> bool:
        return len(key) > 1 and not _stays(key) and not of_a_kind(key)
