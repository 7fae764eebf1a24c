"""The characters of a page of PDF by their sizes and places. Accents that are drawn by themselves,
as by the default fonts of LaTeX, go into their letters. Raised and lowered text gets marks.

PDFium ends a line where the base line changes, also in the middle of a line that a reader sees.
"""

from __future__ import annotations

import ctypes
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache, partial
from itertools import groupby
from typing import Any, NamedTuple, cast

from index_jobs.sources.converters.raised import ABOVE, BELOW, END, LOWERED, RAISED

_SMALL = re.compile(
    r"[\d+−–-](?<!\d.)[\d,+−–-]*+(?! (?:(?<= \d )|(?<= \d\d )))"
    r"|(?<=\S)(?=.?.(?:\r\n|\Z))[^\W\d_]{1,2}(?=\r\n|\Z)"  # looks for the end first: it is rare
)
_LINE_END = "\r\n"
_NEAR, _NEXT = 6, 5
_SMALLER = 0.92
_RAISE, _FALL = (0.1, 0.8), (0.04, 0.6)
"""How far raised and lowered text is from the base line, in sizes of the text beside it."""

_BLANK = 0.12
_FREE = str.maketrans("\1\2\3\4\5\6\x0e\x0f", "\x7f\ufffe" + "\x7f" * 6)
"""Codes that are marks of ``raised``. One of them is a sign of PDFium for a hyphen."""

_SIGNS = "`\u00b4^\u02c6~\u02dc\u00af\u02d8\u02d9\u00a8\u02da\u02dd\u02c7"
_COMBINING = "\u0300\u0301\u0302\u0302\u0303\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c"
_BELOW = {"\u00b8": "\u0327", "\u02db": "\u0328", "\u0327": "\u0327", "\u0328": "\u0328"}
_ACCENTS = dict(zip(_SIGNS + _COMBINING, _COMBINING * 2, strict=True)) | _BELOW
_ACCENT = re.compile(rf"[{re.escape(''.join(_ACCENTS))}](?<![^\W\d_][\u0300-\u036f])")
_DOTLESS = {"\u0131": "i", "\u0237": "j"}
_FAR = 120  # characters: the accent of a capital is above the line, and may come at its end
_SLANT = 0.2
_GAP = 0.6
"""How far an accent may be beside or above its letter, in widths and heights of the letter."""


class _Place(NamedTuple):
    """The base line and the box of a character."""

    base: float
    left: float
    bottom: float
    right: float
    top: float


class Characters:
    """The characters of a page. ``signs`` has the text that is written for each character."""

    def __init__(self, text_page: Any) -> None:
        from pypdfium2 import raw

        self.text: str = text_page.get_text_range()
        self.signs = list(self.text.translate(_FREE))
        # Characters outside of the Basic Multilingual Plane shift the places.
        self.have_places = text_page.count_chars() == len(self.text)
        self.size = cache(partial(cast("Any", raw).FPDFText_GetFontSize, text_page.raw))
        self._place = cache(partial(_place, text_page))

    def written(self) -> str:
        """Return the text of the page. O(len(text))."""
        if self.have_places:
            self._mark()
            self._compose()
        return "".join(self.signs)

    def _mark(self) -> None:
        last = range(0)
        for run in _SMALL.finditer(self.text):
            places = range(*run.span()) if self._has_small(*run.span()) else ()
            for mark, group in groupby(places, self._mark_of):
                own = [*group]
                if mark:
                    last = self._enclosed(range(own[0], own[-1] + 1), mark, last)

    def _enclosed(self, run: range, mark: str, last: range) -> range:
        """Enclose a run in marks, and return it. If it is below the ``last`` one, both are a
        fraction, or indices of the text before them."""
        signs, start, end = self.signs, run.start, run.stop
        is_below = mark == LOWERED and last and self.text[last.stop : start] == _LINE_END
        if is_below and self._place(start).left < self._place(last.stop - 1).right:
            signs[last.stop : start] = "", ""
            if last.start and self.text[last.start - 1].strip():
                signs[end - 1] += END + "".join(signs[last.start : last.stop]).removesuffix(END)
                signs[last.start : last.stop] = [""] * len(last)
            else:
                signs[last.start] = ABOVE + signs[last.start][1:]
                mark = BELOW
        elif self._blank(start - 2) == "":
            signs[start - 2 : start] = "", ""
        signs[start] = mark + signs[start]
        signs[end - 1] += END
        if (blank := self._blank(end)) is not None:
            signs[end : end + 2] = blank, ""
        return run

    def _has_small(self, start: int, end: int) -> bool:
        """Return whether a run has smaller characters than it and the text beside it have."""
        size = self.size(start)
        beside = [next(self._seen(range(start - 1, start - _NEXT, -1)), start)]
        if beside[0] != start - 1:
            beside.append(next(self._seen(range(end, end + _NEXT)), start))
        return size != self.size(end - 1) or size < _SMALLER * max(map(self.size, beside))

    def _mark_of(self, at: int) -> str:
        """Return the mark of a character beside larger ones, on whose line it does not stand."""
        size, base = self.size(at), self._place(at).base
        for near in self._seen((*range(at - 1, at - _NEAR, -1), *range(at + 1, at + _NEAR))):
            if (full := self.size(near)) * _SMALLER > size:
                rise = (base - self._place(near).base) / full
                if _RAISE[0] < rise < _RAISE[1]:
                    return RAISED
                if _FALL[0] < -rise < _FALL[1]:
                    return LOWERED
        return ""

    def _seen(self, places: Iterable[int]) -> Iterator[int]:
        """Yield the places with a visible character."""
        return (at for at in places if 0 <= at < len(self.text) and not self.text[at].isspace())

    def _blank(self, at: int) -> str | None:
        """Return what to write for the line end at ``at``; None for a real line end. It is a blank
        or nothing if the characters on both sides stand on the same line of the page."""
        if at < 1 or self.text[at : at + 2] != _LINE_END or at + 2 == len(self.text):
            return None
        last, following = self._place(at - 1), self._place(at + 2)
        size = max(self.size(at - 1), self.size(at + 2))
        if following.left < last.left or abs(following.base - last.base) > size:
            return None
        is_apart = following.left - last.right > _BLANK * size
        return " " if is_apart and self.text[at + 2] not in " ,.;:)" else ""

    def _compose(self) -> None:
        """Put each accent into the letter above or below which it stands."""
        text, signs = self.text, self.signs
        for accent in _ACCENT.finditer(text):
            at = accent.start()
            around = self._seen(range(at - _FAR, at + _FAR))
            for near in sorted(around, key=lambda near, at=at: abs(near - at)):
                if text[near].isalpha() and self._fits(accent, near):
                    base = _DOTLESS.get(signs[near], signs[near])
                    signs[near] = unicodedata.normalize("NFC", base + _ACCENTS[accent[0]])
                    signs[at] = ""
                    if text[at - 1 : at] == " " and text[at + 1 : at + 2].strip() == "":
                        signs[at - 1] = ""
                    break

    def _fits(self, accent: re.Match[str], letter: int) -> bool:
        """Return whether an accent stands above a letter, or below it."""
        sign, box = self._place(accent.start()), self._place(letter)
        height, width = box.top - box.bottom, box.right - box.left
        beside = (sign.left + sign.right) / 2 - box.left
        distance = box.bottom - sign.top if accent[0] in _BELOW else sign.bottom - box.top
        is_near = -height / 2 < distance < _GAP * height
        return is_near and -_SLANT * width <= beside <= (1 + _SLANT) * width


def _place(text_page: Any, at: int) -> _Place:
    from pypdfium2 import raw

    x, base = ctypes.c_double(), ctypes.c_double()
    cast("Any", raw).FPDFText_GetCharOrigin(text_page, at, x, base)
    return _Place(base.value, *text_page.get_charbox(at))
