"""Names invented: words of syllables, each for one word, drawn by a seed."""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Callable, Container, Iterator
from random import Random

from arag_search.query.dictionaries import lemmas

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
        self._words: dict[str, str] = {}
        self._used: set[str] = set()
        letters = list(string.ascii_lowercase)
        Random(f"{seed} letters").shuffle(letters)
        turned = letters[1:] + letters[:1]
        self._letters = dict(zip(letters, turned, strict=True))

    @property
    def words(self) -> dict[str, str]:
        """All words that were asked for, with what was invented."""
        return self._words

    def word(self, old: str) -> str:
        """Return the invented word, in small letters."""
        if old not in self._words:
            self._words[old] = new = next(filter(self._is_free, self._candidates(old)))
            self._used.add(new)
        return self._words[old]

    def initial(self, letter: str) -> str:
        """Return the first letter of the words that stand for those with this one."""
        plain = unicodedata.normalize("NFD", letter)[0].lower()
        return self._letters.get(plain, plain).upper()

    def written(self, old: str, key: str, *, is_acronym: bool) -> str:
        """Return the invented word with the capitals of a mention, an accent if it has any, and its
        letters alone if it is an acronym."""
        new = self.word(f"{key}." if is_acronym else key)
        if any(unicodedata.combining(mark) for mark in unicodedata.normalize("NFD", old)):
            at = next((n for n, c in enumerate(new) if n and c in _VOWELS), 0)
            new = unicodedata.normalize("NFC", f"{new[: at + 1]}\u0301{new[at + 1 :]}")
        if old.isupper():
            return new.upper()
        capitals = {n for n, letter in enumerate(old) if letter.isupper()}
        return "".join(c.upper() if n in capitals else c for n, c in enumerate(new))

    def spelt(self, word: str) -> str:
        """Return a word of another script, or of sounds, with other letters of its block."""
        return "".join(map(self._other, word))

    def _other(self, letter: str) -> str:
        low = letter.lower()
        if not letter.isalpha() or len(low) > 1:
            return letter
        start, kind = ord(low) & ~31, unicodedata.category(low)
        near = [c for c in map(chr, range(start, start + 32)) if unicodedata.category(c) == kind]
        turn = Random(f"{self._seed} {start}").randrange(1, max(2, len(near)))
        new = near[(near.index(low) + turn) % len(near)]
        return new.upper() if letter != low and len(new.upper()) == 1 else new

    def _is_free(self, new: str) -> bool:
        return new not in self._used and new not in self._taken and new not in lemmas("en")

    def _candidates(self, old: str) -> Iterator[str]:
        """Yield words of the same length, then longer ones; an inflection of a name first as the
        inflection of its invented word."""
        for suffix in _SUFFIXES:
            stem = old.removesuffix(suffix)
            if stem != old and len(stem) > 3 and self._is_proper(stem):
                yield self.word(stem) + suffix
        random = Random(f"{self._seed} {old}")
        if old.endswith("."):
            yield "".join(self._letters.get(letter, letter) for letter in old[:-1])
        length, tries = len(old), 0
        while True:
            if old.endswith("."):
                letters = random.choices(string.ascii_lowercase, k=len(old) - 2 + tries // _TRIES)
                yield self._letters.get(old[0], old[0]) + "".join(letters)
            else:
                yield self._syllables(random, old[0], max(3, length + tries // _TRIES))
            tries += 1

    def _syllables(self, random: Random, first: str, length: int) -> str:
        word = self._letters.get(first, random.choice("bdgkmt"))
        while len(word) < length - 1:
            word += random.choice(_ONSETS if word[-1] in _VOWELS else _VOWELS)
        return word + random.choice(_ENDS if word[-1] in _VOWELS else _VOWELS)
