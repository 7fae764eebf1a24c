"""Years moved: 400 later, which keeps weekdays and the last two digits; centuries four later."""

from __future__ import annotations

import regex

MOVED = 400
_DONE = "\ue000"
"""Stands before a number that was moved, until all are."""
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|June?|July?|Aug|Sept?|Oct|Nov|Dec)[a-z]*\.?"
_UNITS = (
    "[kmc]?m|met[re]{2}s?|feet|miles|people|men|women|years|days|times|copies|votes|points|dollars|"
    "pounds|euros|members|employees|locations"
)
_AMOUNT = rf"[\s-]?(?:%|(?:{_UNITS})\b)|[,.]\d{{3}}(?!\d)"
_BEFORE_CHRIST = r"s?(?:\s*[-–—]\s*\d+)?\s*(?:BC|B\.C)"
_FOUR = regex.compile(
    rf"(?<![\d\p{{Lu}}$€£¥₹#{_DONE}]|\b(?:over|more than)\s|(?<!\d\.\d+)\d\.)"
    rf"(1\d{{3}}|20[0-2]\d)((?:1\d|20)\d\d)?(?!\d|{_AMOUNT}|{_BEFORE_CHRIST})"
)
# A year of three digits is known by what stands before it, and by no noun after it.
_THREE = regex.compile(
    rf"(\b(?:[Ii]n|died|born|d\.|b\.|c\.|ca\.|circa|r\.|fl\.|since|until|between|from|after|before|year|AD"
    rf"|{_MONTH}(?:\s+\d{{1,2}}(?:st|nd|rd|th)?)?,?)\s*|\((?=\d+\s?[-–—]\s?{_DONE}?\d{{3}})"
    rf"|{_DONE}\d+\s*(?:or|and|to|[-–—/])\s*)(?<!\d)(\d{{3}})(?!\d|[,.]\d)(?!{_BEFORE_CHRIST})"
    r"(?=s\b|\s*(?:$|[).,;:?!'\"–—/-]|(?:and|or|to|at|by|when|as|s?he|h[ie][sr]|in|on|until|where|"
    r"under|with(?:out)?|AD|CE|after|before|during)\b))"
)
_ERA = regex.compile(r"(\bAD\s?)(\d{1,3})\b|\b(\d{1,3})(?=\s?(?:AD|CE)\b)")
_ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
    "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth",
    "eighteenth", "nineteenth", "twentieth", "twenty-first", "twenty-second", "twenty-third",
    "twenty-fourth", "twenty-fifth",
)  # fmt: skip
_NUMBER = r"(\d{1,2})(?:st|nd|rd|th)"
_ORDINAL = "|".join(reversed(_ORDINALS[:-4]))
_CENTURY = regex.compile(
    rf"\b(?:{_NUMBER}|({_ORDINAL}))(?=(?:[\s,/–-]*(?:and|or|to|through|the|early|mid|late"
    rf"|\d+(?:st|nd|rd|th)|{_ORDINAL})\b)*[\s-]*centur(?:y|ies)\b(?!\s*(?:BC|B\.C)))",
    regex.I,
)
_WHOLE = regex.compile(r"\d{3}")


class Years:
    """Moves the years of texts, and counts them in ``moved``."""

    def __init__(self) -> None:
        self.moved = 0

    def later(self, text: str, *, is_date: bool = False) -> str:
        """Return the text with its years moved; ``is_date`` says that it is nothing but a date."""
        if is_date and _WHOLE.fullmatch(text):
            return self._plus(text).removeprefix(_DONE)
        text = _CENTURY.sub(self._century, text)
        text = _ERA.sub(lambda era: (era[1] or "") + self._plus(era[2] or era[3]), text)
        text = _FOUR.sub(lambda four: "".join(map(self._plus, filter(None, four.groups()))), text)
        for _ in range(2):  # the second time for the ends of ranges
            text = _THREE.sub(lambda three: three[1] + self._plus(three[2]), text)
        return text.replace(_DONE, "")

    def _plus(self, year: str) -> str:
        self.moved += 1
        return f"{_DONE}{int(year) + MOVED}"

    def _century(self, match: regex.Match[str]) -> str:
        self.moved += 1
        if match[2]:
            later = _ORDINALS[_ORDINALS.index(match[2].lower()) + 4]
            return later.capitalize() if match[2][0].isupper() else later
        number = int(match[1]) + 4
        ending = "th" if 10 < number < 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
        return f"{number}{ending}"
