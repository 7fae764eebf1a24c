"""The texts of a page, each stored once and named by its number."""

from __future__ import annotations

from itertools import accumulate

from arag_search.search.marking import Mark


class Texts:
    """A table of texts by number, from 0; the same text has the same number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """Return the number of a text."""
        return self._numbers.setdefault(text, len(self._numbers))

    def all(self) -> list[str]:
        """Return all texts by number."""
        return list(self._numbers)


def utf16_places(text: str, places: list[Mark]) -> list[int]:
    """Convert places in a text to those of a browser, start and end in turn: a character beyond
    U+FFFF has two units there."""
    flat = [at for place in places for at in place]
    if not flat or text.isascii() or max(text) <= "\uffff":
        return flat
    units = list(accumulate((1 + (character > "\uffff") for character in text), initial=0))
    return [units[at] for at in flat]
