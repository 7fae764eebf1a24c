"""The texts of a page, each stored once and named by its number."""

from __future__ import annotations

from itertools import accumulate

from arag_search.search.marking import Mark


class Texts:
    """Gives texts their numbers, from 0; the same text has the same number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """The number of a text."""
        return self._numbers.setdefault(text, len(self._numbers))

    def all(self) -> list[str]:
        """All texts, by number."""
        return list(self._numbers)


def utf16_places(text: str, places: list[Mark]) -> list[int]:
    """Places in a text as a browser counts, start and end in turn: a character beyond U+FFFF is two
    units there."""
    flat = [at for place in places for at in place]
    if not flat or text.isascii() or max(text) <= "\uffff":
        return flat
    units = list(accumulate((1 + (one > "\uffff") for one in text), initial=0))
    return [units[at] for at in flat]
