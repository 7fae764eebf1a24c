"""Number formats of workbooks: numbers, dates and times as their cells show them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from functools import lru_cache
from operator import eq, ge, gt, le, lt, ne

_SECTION = re.compile(r'((?:"[^"]*"|\\.|\[[^\]]*\]|[^;])*)(?:;|\Z)', re.DOTALL)
_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"?|\\(?P<escaped>.)|[_*].|\[(?P<brackets>[^\]]*)\]|(?P<general>General)'
    r"|(?P<clock>AM/PM|A/P|y+|m+|d+|h+|s+)|(?P<power>E[+-]0+)"
    r"|(?P<fraction>[#0?]* *[#0?]+/(?:[#0?]+|[1-9]\d{0,4}))|(?P<digits>[0#?.,]+)|(?P<sign>.)",
    re.IGNORECASE | re.DOTALL,
)
_CONDITION = re.compile(r"(<=|>=|<>|<|>|=)(-?\d+(?:\.\d+)?)")
_COMPARISONS = {"<=": le, ">=": ge, "<>": ne, "<": lt, ">": gt, "=": eq}
_MOST, _LEAST = 1e15, 1e-15
_LONGEST = 300
_Tokens = Sequence[tuple[str, str]]


@lru_cache(1 << 10)
def _sections(form: str) -> Sequence[_Tokens]:
    """Return the tokens of the sections of a format: for any number, below zero, and zero."""
    sections = _SECTION.findall(form[:_LONGEST])[:3]
    if len(sections) > 1 and not sections[-1]:
        sections.pop()
    return [
        [(token.lastgroup or "", token[token.lastindex or 0]) for token in _TOKEN.finditer(section)]
        for section in sections
    ]


def shown_value(value: object, form: str) -> str:
    """Return a value of a cell as a format shows it; texts and dates of a day stay as they are."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float):
        plain = f"{value:.15g}" if abs(value) < _MOST else str(value)
        is_plain = form in ("General", "") or not (value == 0 or _LEAST < abs(value) < _MOST)
        try:
            return plain if is_plain else _number(value, form, plain.lstrip("-"))
        except ArithmeticError:  # of more digits than a format can have
            return plain
    if isinstance(value, datetime | date | time | timedelta):
        tokens = _sections(form)[0]
        letters = {text[0].lower() for kind, text in tokens if kind == "clock"}
        if not letters >= {"y", "m", "d"} and (letters or isinstance(value, timedelta)):
            return _dated(value, tokens) or str(value)
        if isinstance(value, datetime):
            return str(value.date()) if value.time() == time() else value.isoformat(" ")
    return str(value)


def _number(value: float, form: str, plain: str) -> str:
    sections = _sections(form)
    place = 1 if value < 0 else 2 if value == 0 else 0
    tokens = sections[place if place < len(sections) else 0]
    sign = "-" * (value < 0 and place >= len(sections))
    conditions = [
        next(filter(None, (_CONDITION.fullmatch(text) for _, text in section)), None)
        for section in sections
    ]
    if any(conditions):
        tokens = [("general", "")]
        for section, condition in zip(sections, conditions, strict=True):
            if not condition or _COMPARISONS[condition[1]](value, float(condition[2])):
                tokens = section
                break
    amount = abs(Decimal(repr(value))) * 100 ** tokens.count(("sign", "%"))
    numbers = iter(_numbers(amount, tokens))
    shown = "".join(
        next(numbers) if kind in ("digits", "power", "fraction")
        else plain if kind == "general" or (kind, text) == ("sign", "@")
        else text[1:].partition("-")[0] if kind == "brackets" and text[0:1] == "$"
        else text * (kind in ("quoted", "escaped", "sign", "clock"))
        for kind, text in tokens
    )  # fmt: skip
    return sign + shown.strip()


def _numbers(amount: Decimal, tokens: _Tokens) -> Iterator[str]:
    """Yield what stands in place of the digits, the power and the fraction of a format."""
    places = [text for kind, text in tokens if kind == "digits"]
    pattern = "".join(places)
    bare = pattern.rstrip(",")
    before, _, after = bare.partition(".")
    after = re.sub(r"[^0#?]", "", after)
    power = ""
    if any(kind == "power" for kind, _ in tokens):
        shown, _, power = f"{amount:.{len(after)}E}".partition("E")
        power = f"E{int(power):+03}"
    else:
        amount = amount / 1000 ** (len(pattern) - len(bare))
        shown = f"{amount.quantize(Decimal(1).scaleb(-len(after)), ROUND_HALF_UP):f}"
    whole, _, part = shown.partition(".")
    least = after.rfind("0") + 1
    part = part[:least] + part[least:].rstrip("0")
    whole = whole.lstrip("0").zfill(before.count("0"))
    if re.search(r"[0#?],[0#?]", before) and whole:
        whole = f"{int(whole):,}"
    left = [sum(sign in "0#?" for sign in text) for text in places]
    for kind, text in tokens:
        if kind == "power":
            yield power
        elif kind == "fraction":
            yield _fraction(amount, text)
        elif kind == "digits" and "." not in bare and len(places) > 1:
            del left[0]
            end = len(whole) - sum(left)
            yield whole[: max(end, 0)]
            whole = whole[max(end, 0) :]
        elif kind == "digits":
            yield f"{whole}.{part}" if part else whole
            whole = part = ""


def _fraction(amount: Decimal, pattern: str) -> str:
    above, _, below = pattern.partition("/")
    most = int(below) if below.isdecimal() and below.strip("0") else 10 ** len(below) - 1
    whole, rest = divmod(amount, 1) if " " in above.strip() else (Decimal(0), amount)
    part = Fraction(rest)
    part = Fraction(round(part * most), most) if below.isdecimal() else part.limit_denominator(most)
    whole += part.numerator if part.denominator == 1 else 0
    shown = f"{part.numerator}/{part.denominator}" if part.denominator > 1 else ""
    return f"{whole:f} {shown}".strip() if whole or not shown else shown


def _dated(value: datetime | date | time | timedelta, tokens: _Tokens) -> str:
    """Return a date without its day, or a time, in the letters of its format."""
    seconds = value.total_seconds() if isinstance(value, timedelta) else 0.0
    hour, minute, second = (
        (value.hour, value.minute, value.second) if isinstance(value, datetime | time)
        else (int(seconds // 3600) % 24, int(seconds // 60) % 60, int(seconds) % 60)
    )  # fmt: skip
    is_half = any(text.upper() in ("AM/PM", "A/P") for _, text in tokens)
    pieces: list[str] = []
    last = ""
    clock = [
        text[0].lower() for kind, text in tokens if kind == "clock" or text[:1] in ("h", "m", "s")
    ]
    for kind, text in tokens:
        letter, size = text[:1].lower(), len(text)
        if kind == "brackets" and letter in ("h", "m", "s"):
            pieces.append(f"{int(seconds // {'h': 3600, 'm': 60, 's': 1}[letter]):0{size}}")
        elif kind != "clock":
            pieces.append(text * (kind in ("quoted", "escaped", "sign")))
            continue
        elif letter == "a":
            pieces.append("PM" if hour > 11 else "AM")
        elif letter == "h":
            pieces.append(f"{(hour - 1) % 12 + 1 if is_half else hour:0{min(size, 2)}}")
        elif letter == "s":
            pieces.append(f"{second:0{min(size, 2)}}")
        elif letter == "m" and size < 3 and (last == "h" or "s" in clock[clock.index("m") :][1:2]):
            pieces.append(f"{minute:0{size}}")
        elif isinstance(value, date):
            names = {"y": "%y" if size < 3 else "%Y", "m": "%b" if size == 3 else "%B",
                     "d": "%a" if size == 3 else "%A"}  # fmt: skip
            number = value.month if letter == "m" else value.day
            pieces.append(
                value.strftime(names[letter]) if size > 2 or letter == "y" else f"{number:0{size}}"
            )
        last = letter
    return "".join(pieces).strip()
