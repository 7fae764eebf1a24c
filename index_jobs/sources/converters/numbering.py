"""The numbers of lists, headings and clauses, as a reader sees them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element  # as which lxml's elements are used here

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
VALUE = f"{W}val"
BULLET = "-"
_ROMAN = {1000: "m", 900: "cm", 500: "d", 400: "cd", 100: "c", 90: "xc", 50: "l", 40: "xl", 10: "x",
          9: "ix", 5: "v", 4: "iv", 1: "i"}  # fmt: skip
_MOST = 3_999
"""Higher numbers are written in digits, as are those below 1."""

_FORMS = {"a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}
"""The forms of numbers in Word, by their names in pages and in OpenDocument."""

_ENDINGS = {1: "st", 2: "nd", 3: "rd"}
_PLACE = re.compile(r"%([1-9])")
_MOST_LEVELS = 9


def shown_number(number: int, form: str) -> str:
    """Return a number in a form such as ``lowerLetter`` (Word), ``lower-alpha`` or ``a``."""
    form = _FORMS.get(form, form)
    if form == "ordinal":
        return f"{number}{_ENDINGS.get(number % 10 * (number // 10 % 10 != 1), 'th')}"
    shown = f"{number:02}" if form == "decimalZero" else str(number)
    if 0 < number <= _MOST and form.endswith(("Letter", "alpha", "latin")):
        shown = chr(ord("a") + (number - 1) % 26) * ((number + 25) // 26)
    elif 0 < number <= _MOST and form.endswith(("Roman", "roman")):
        shown = ""
        for value, sign in _ROMAN.items():
            shown += sign * (number // value)
            number %= value
    return shown.upper() if form.startswith("upper") else shown


def value_of(element: Element | None, name: str) -> str:
    """Return the value of a child of an element of Word; empty if there is none."""
    child = None if element is None else element.find(f"{W}{name}")
    return "" if child is None else str(child.get(VALUE) or "")


def whole(text: str | None, default: int) -> int:
    """Return a whole number of at most 9 characters."""
    try:
        return int((text or "")[:9])
    except ValueError:
        return default


def _place(element: Element) -> int:
    return whole(element.get(f"{W}ilvl"), 0)


class NumberedList(NamedTuple):
    """The levels of a list, the numbers at which it starts once, and its last numbers, which lists
    with the same definition share."""

    levels: Mapping[int, Element]
    starts: dict[int, int]
    numbers: dict[int, int]

    def label(self, place: int) -> str:
        """Return what stands before the next paragraph of a level: its number, BULLET, or
        nothing."""
        levels, starts, numbers = self
        if (level := levels.get(place)) is None:
            return BULLET
        first = whole(value_of(level, "start"), 0)
        numbers[place] = starts.pop(place, numbers.get(place, first - 1) + 1)
        for deeper in [below for below in numbers if below > place]:
            if place < whole(value_of(levels.get(deeper), "lvlRestart"), _MOST_LEVELS):
                del numbers[deeper]
        form = value_of(level, "numFmt")
        legal = level.find(f"{W}isLgl")
        is_legal = legal is not None and legal.get(VALUE, "1") not in ("0", "false")

        def number(sign: re.Match[str]) -> str:
            at = min(int(sign[1]) - 1, place)
            named = levels.get(at, level)
            form = value_of(named, "numFmt")
            count = numbers.setdefault(at, whole(value_of(named, "start"), 0))
            return shown_number(count, "" if is_legal and form != "decimalZero" else form)

        if form in ("bullet", "none"):
            return BULLET * (form == "bullet")
        return _PLACE.sub(number, value_of(level, "lvlText")).strip()


class Numbering:
    """The numbers of the paragraphs of a document, which are asked for in order.

    ``definitions`` is the part of a document with its lists. ``chain`` yields a style and the
    styles that it is based on.
    """

    def __init__(
        self, definitions: Element | None, chain: Callable[[str], Iterator[Element]]
    ) -> None:
        self._chain = chain
        self._lists: dict[str, NumberedList] = {}
        if definitions is None:
            return
        abstract = {
            str(element.get(f"{W}abstractNumId")): element
            for element in definitions.iterfind(f"{W}abstractNum")
        }
        linked = {value_of(element, "styleLink"): id for id, element in abstract.items()}
        numbers: dict[str, dict[int, int]] = {}
        for num in definitions.iterfind(f"{W}num"):
            name = value_of(num, "abstractNumId")
            name = linked.get(value_of(abstract.get(name), "numStyleLink") or "-", name)
            defined = abstract[name].iterfind(f"{W}lvl") if name in abstract else ()
            self._lists[str(num.get(f"{W}numId"))] = NumberedList(
                {_place(lvl): lvl for lvl in (*defined, *num.iterfind(f"{W}lvlOverride/{W}lvl"))},
                {
                    _place(override): whole(start, 1)
                    for override in num.iterfind(f"{W}lvlOverride")
                    if (start := value_of(override, "startOverride"))
                },
                numbers.setdefault(name, {}),
            )

    def label(self, properties: Element | None) -> str:
        """Return what stands before a paragraph with these properties: its number, BULLET, or
        nothing."""
        if properties is None or properties.find(f"{W}rPr/{W}del") is not None:
            return ""
        if (label := properties.get("label")) is not None:
            return label
        id, place = self._list_of(properties)
        return "" if id in ("", "0") else self._lists.get(id, NumberedList({}, {}, {})).label(place)

    def _list_of(self, properties: Element) -> tuple[str, int]:
        """Return the list and the level of a paragraph, which its style may give."""
        own = properties.find(f"{W}numPr")
        id, place = value_of(own, "numId"), value_of(own, "ilvl")
        for style in self._chain(value_of(properties, "pStyle")) if not (id and place) else ():
            given = style.find(f"{W}pPr/{W}numPr")
            id = id or value_of(given, "numId")
            place = place or value_of(given, "ilvl")
            for at, level in self._lists[id].levels.items() if id in self._lists else ():
                if not place and value_of(level, "pStyle") == style.get(f"{W}styleId"):
                    place = str(at)
        return id, whole(place, 0)
