"""Runs of Word documents and slides, formulas and symbols: the text that a reader sees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from index_jobs.sources.converters import raised
from index_jobs.sources.converters.numbering import BULLET, VALUE, Numbering, W, value_of
from index_jobs.sources.converters.symbols import UNKNOWN, as_seen, symbol_font

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element  # as which lxml's elements are used here

A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
LEFT_OUT = frozenset((f"{W}del", f"{W}moveFrom", f"{W}pPr", f"{W}rPr", f"{A}rPr", FALLBACK))
"""Deleted text, properties, and fallbacks for programs without text boxes or formulas."""

_PARAGRAPH = f"{W}p"
_TEXTS = frozenset((f"{W}t", f"{A}t", f"{_MATH}t"))
_RUNS = {f"{W}r": f"{W}rPr", f"{A}r": f"{A}rPr", f"{A}fld": f"{A}rPr"}
_RUBY, _ENCLOSED, _PART, _SUM = f"{W}ruby", f"{_MATH}d", f"{_MATH}e", f"{_MATH}nary"
_AROUND = {
    **dict.fromkeys((_PARAGRAPH, f"{W}tc", f"{A}p"), ("\n", "\n")),
    **dict.fromkeys((f"{W}br", f"{W}cr", f"{A}br"), ("\n", "")),
    **dict.fromkeys((f"{W}tab", f"{W}ptab"), ("\t", "")),
    f"{W}noBreakHyphen": ("-", ""),
    f"{W}rt": (raised.READING, raised.END),
    f"{_MATH}num": (raised.ABOVE, raised.END),
    f"{_MATH}den": (raised.BELOW, raised.END),
    f"{_MATH}sup": (raised.RAISED, raised.END),
    f"{_MATH}sub": (raised.LOWERED, raised.END),
    f"{_MATH}lim": (raised.LOWERED, raised.END),
    f"{_MATH}rad": (raised.ROOT, raised.END),
    f"{_MATH}deg": (raised.DEGREE, raised.END),
    f"{_MATH}fName": ("", " "),
}
"""What stands before and after the text of elements. A paragraph in another element is one of a
text box or of a cell."""

_LEAST_RAISE = 3  # half points in Word; thousandths of the size in slides
_MOST_STYLES = 16  # each may be based on another one


class _Look(NamedTuple):
    """How a run is shown: the mark of raised or lowered text, and the font if it is of symbols."""

    mark: str = ""
    font: str = ""

    def with_properties(self, properties: Element | None) -> _Look:
        """Return the look that properties of a run give in place of this one."""
        if properties is None:
            return self
        mark, font = self
        rise = properties.get("baseline")
        for child in properties:
            if child.tag == f"{W}vertAlign":
                mark, rise = raised.MARKS.get(str(child.get(VALUE)), ""), None
            elif child.tag == f"{W}position":
                rise = child.get(VALUE)
            elif child.tag == f"{W}rFonts":
                font = symbol_font(child.get(f"{W}ascii") or child.get(f"{W}hAnsi"))
            elif child.tag in (f"{A}latin", f"{A}sym"):
                font = symbol_font(child.get("typeface")) or font
        digits = (rise or "").removesuffix("%").lstrip("-")[:9]
        if rise and digits.isdecimal() and int(digits) >= _LEAST_RAISE:
            mark = raised.LOWERED if rise[0] == "-" else raised.RAISED
        return _Look(mark, font)


class Styles:
    """The names of styles by their ids, which are in the language of the author, and the looks that
    they give to runs."""

    def __init__(self, styles: Element | None = None) -> None:
        elements = () if styles is None else styles.iter(f"{W}style")
        self._styles = {str(style.get(f"{W}styleId")): style for style in elements}
        self.names = {id: value_of(style, "name") for id, style in self._styles.items()}
        self._looks: dict[str, _Look] = {}

    def look(self, id: str) -> _Look:
        """Return the look of a style."""
        if id not in self._looks:
            look = _Look()
            for style in reversed(list(self.chain(id))):
                look = look.with_properties(style.find(f"{W}rPr"))
            self._looks[id] = look
        return self._looks[id]

    def chain(self, id: str) -> Iterator[Element]:
        """Yield a style and the styles that it is based on."""
        for _ in range(_MOST_STYLES):
            if (style := self._styles.get(id)) is None:
                return
            yield style
            id = value_of(style, "basedOn")


class SeenText:
    """The text of elements, with the looks that styles give and the numbers of lists."""

    def __init__(self, styles: Styles, numbering: Numbering | None = None) -> None:
        self._styles = styles
        self._numbering = numbering or Numbering(None, styles.chain)

    def of(self, element: Element, style: str = "") -> str:
        """Return the text below an element; its runs are in a style."""
        pieces: list[str] = []
        self._collect(element, pieces, self._styles.look(style))
        return raised.written("".join(pieces))

    def _collect(self, element: Element, pieces: list[str], look: _Look) -> None:
        # In ruby text, the reading comes before what it belongs to.
        for child in reversed(element) if element.tag == _RUBY else element:
            tag = child.tag
            if tag in _TEXTS:
                pieces.append(as_seen(child.text or "", look.font))
            elif tag in _RUNS:
                properties = child.find(_RUNS[tag])
                styled = self._styles.look(value_of(properties, "rStyle"))
                own = _Look(styled.mark or look.mark, styled.font or look.font)
                own = own.with_properties(properties)
                pieces.append(own.mark)
                self._collect(child, pieces, own)
                pieces.append(raised.END * bool(own.mark))
            elif tag in _SIGNS:
                pieces.append(_SIGNS[tag](child))
            elif tag == _ENCLOSED:
                before, between, after = _signs_of(child, begChr="(", sepChr="|", endChr=")")
                for part in child.iterfind(_PART):
                    pieces.append(before)
                    self._collect(part, pieces, look)
                    before = between
                pieces.append(after)
            elif tag not in LEFT_OUT:
                before, after = _AROUND.get(tag, ("", ""))
                pieces += _signs_of(child, chr="∫") if tag == _SUM else (before,)
                its_look = look
                if tag == _PARAGRAPH:
                    properties = child.find(f"{W}pPr")
                    its_look = self._styles.look(value_of(properties, "pStyle"))
                    if label := self._numbering.label(properties).strip(BULLET):
                        pieces.append(f"{label} ")
                self._collect(child, pieces, its_look)
                pieces.append(after)


def _signs_of(element: Element, **usual: str) -> list[str]:
    """Return the signs that the properties of a formula give in place of the usual ones."""
    signs = {sign.tag: str(sign.get(f"{_MATH}val") or "") for sign in element.iterfind("*/*")}
    return [signs.get(f"{_MATH}{name}", sign) for name, sign in usual.items()]


def _symbol(element: Element) -> str:
    try:
        code = chr(int(str(element.get(f"{W}char")), 16))
    except (ValueError, OverflowError):
        return UNKNOWN
    sign = as_seen(code, symbol_font(element.get(f"{W}font")))
    return sign if sign.isprintable() else UNKNOWN


def _box(box: Element) -> str:
    """Return the sign of a box of a form, which is ticked now, or as it was made."""
    states = {state.tag: state.get(VALUE, "1") for state in box}
    state = states.get(f"{W}checked", states.get(f"{W}default"))
    return "☒" if state in ("1", "true", "on") else "☐"


_SIGNS = {f"{W}sym": _symbol, f"{W}checkBox": _box}
