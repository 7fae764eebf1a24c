"""The types of metadata fields: one table, which everything asks that depends on a type.

A type says how a value is read from a record, stored, asked for in a query and written. A value is
stored as an exact term, a double or a long, and that decides the rest. Terms are asked for one by
one, and counted. Doubles and longs have an order: they are asked for by ranges, and summed up by
the least and the greatest.
"""

from __future__ import annotations

import math
import re
import sys
from calendar import isleap, monthrange
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final, Literal

from arag_search.corpus import MetadataScalar, is_unicode, nfc
from arag_search.errors import ArgumentError
from arag_search.query.limits import EXACT_INTEGER
from arag_search.query.problems import NodeError, ProblemKind

MetadataType = Literal["keyword", "number", "date", "boolean"]
Storage = Literal["term", "double", "long"]

_GREATEST: Mapping[Storage, float] = {"double": sys.float_info.max, "long": (1 << 63) - 1}

MAX_KEYWORD_BYTES = 4_096
"""The longest keyword value in bytes of UTF-8; a longer value is rejected."""


@dataclass(frozen=True, slots=True)
class FieldType:
    """A type of metadata fields.

    Values of records and of filters:
    ``read``: makes a value of what a record or front matter has; None if it is empty.
    ``stored``: returns a value as engines keep and compare it. ``read`` and it raise ValueError,
    which says what is allowed.
    ``given``: the Python types of a value in a filter as data; ``in_data`` names them.

    Values in the text of a query:
    ``holds``: whether a text is a value.
    ``is_exact``: whether the value is told apart from all others.
    ``allowed``: how values of a field ``{name}`` are written.
    ``meant``: the value that a text plainly stands for although it is not written as one, or "".
    ``since``: the first and the last value of a time seen from today; the last is "" if it is open.
    None for another text.

    Values of an ordered type:
    ``ends``: the first and the last double or long that a value in a query stands for.
    ``canonical``: the value as it is printed.
    ``written``: a double or long as a query writes it.
    ``moments``: the type that stores points in time. A range with a bound that has a zone compares
    these; other ranges compare what is written.

    Front matter:
    ``share``: how many of the values of a key must be of the type to make it a field of the type.
    ``is_likely``: whether a text is meant as a value of the type.
    ``keeps``: whether a text, once read, is written as before. If not, it is a code or a version.
    """

    name: MetadataType
    storage: Storage
    read: Callable[[object], MetadataScalar | None]
    stored: Callable[[MetadataScalar], str | float]
    share: float
    allowed: str
    given: tuple[type, ...] = (str,)
    in_data: str = "text"
    holds: Callable[[str], bool] = lambda _: True
    is_exact: Callable[[str], bool] = lambda _: True
    meant: Callable[[str], str] = lambda _: ""
    since: Callable[[str], tuple[str, str] | None] = lambda _: None
    is_likely: Callable[[str], bool] = lambda _: True
    keeps: Callable[[str], bool] = lambda _: True
    ends: Callable[[str], tuple[float, float]] = lambda _: (0, 0)
    canonical: Callable[[str], str] = str
    written: Callable[[float], str] = str
    moments: FieldType | None = None

    @property
    def is_ordered(self) -> bool:
        """Whether queries ask for ranges of values."""
        return self.storage != "term"

    @property
    def is_signed(self) -> bool:
        """Whether values may begin with a minus sign, which then is no NOT."""
        return self.is_ordered and self.holds("-1")

    def interval(
        self, lower: str | None, upper: str | None, include_lower: bool, include_upper: bool
    ) -> tuple[float, float]:
        """Return the least and the greatest double or long of a range between two values; None is
        open. A range that holds nothing has a least above its greatest."""
        if self.moments is not None and _has_zone(lower, upper):
            return self.moments.interval(lower, upper, include_lower, include_upper)
        greatest = _GREATEST[self.storage]
        least = -greatest
        if lower is not None:
            first, last = self.ends(lower)
            least = first if include_lower else self._beside(last, 1)
        if upper is not None:
            first, last = self.ends(upper)
            greatest = last if include_upper else self._beside(first, -1)
        return least, greatest

    def column(self, field: str, lower: str | None, upper: str | None) -> str:
        """Return the column of a field that a range between two values is about."""
        return field + MOMENTS * (self.moments is not None and _has_zone(lower, upper))

    def _beside(self, value: float, step: int) -> float:
        is_long = self.storage == "long"
        return value + step if is_long else math.nextafter(value, step * math.inf)

    def compared(self, value: MetadataScalar, where: str) -> str | float:
        """Return a value as it is stored. Raises ArgumentError, with ``where``, for a value that is
        not of the type."""
        try:
            return self.stored(value)
        except (ValueError, OverflowError) as error:
            raise ArgumentError(f"The value {value!r}.", where=where, allowed=str(error)) from None

    def problem(self, text: str, field: str) -> NodeError | None:
        """Return why a query cannot ask whether a field has this value; None if it can."""
        if not self.is_exact(text):
            return NodeError(ProblemKind.INEXACT_NUMBER, name=field)
        return None if self.holds(text) else self._misused(ProblemKind.NOT_A_VALUE, field)

    def no_range(self, field: str) -> NodeError:
        """Return why a query cannot ask for a range of values of a field of terms."""
        return self._misused(ProblemKind.RANGE_ON_TERMS, field)

    def _misused(self, kind: ProblemKind, field: str) -> NodeError:
        allowed = self.allowed.format(name=field)
        return NodeError(kind, name=field, type=self.name, values_are=allowed)


# Keywords


def is_rounded(value: object) -> bool:
    """Return whether a value of JSON was an integer of more digits than JSON's readers keep."""
    return isinstance(value, float) and abs(value) > EXACT_INTEGER


def _read_keyword(value: object) -> str | None:
    if not isinstance(value, str | int | float) or value != value:  # NaN
        raise ValueError("a string, number or boolean, or a list of them")
    if is_rounded(value):
        raise ValueError("an integer of so many digits in quotes, for JSON rounds it")
    text = nfc(scalar_text(value))
    if len(text.encode("utf-8", "surrogatepass")) > MAX_KEYWORD_BYTES:
        raise ValueError(f"a keyword of at most {MAX_KEYWORD_BYTES:,} bytes")
    if not is_unicode(text):
        raise ValueError("a keyword without lone surrogates")
    return text or None


def scalar_text(value: object) -> str:
    """Return a value of metadata as text."""
    return str(value).lower() if isinstance(value, bool) else str(value)


# Numbers


_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)


def number_text(number: float) -> str:
    """Return a number as text, without a fraction if it is whole."""
    is_whole = abs(number) <= EXACT_INTEGER and number == int(number)
    return str(int(number)) if is_whole else repr(number)


def _read_number(value: object) -> int | float:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = int(value) if value.lstrip("+-").isdigit() else float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("a number, or a list of numbers")
    try:
        is_finite = math.isfinite(value)
    except OverflowError:
        is_finite = False
    if not is_finite:
        raise ValueError("a finite number")
    if isinstance(value, int) and abs(value) > EXACT_INTEGER:
        raise ValueError(f"an integer up to {EXACT_INTEGER:,}; declare it as a keyword for ids")
    return value


def _is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None and math.isfinite(float(text))


def _is_exact_number(text: str) -> bool:
    digits = text.lstrip("+-")
    return not (digits.isascii() and digits.isdigit()) or int(digits[:400]) <= EXACT_INTEGER


# Dates: a year, a month, a day or a moment, by the clock of its zone or in UTC


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_DAY_MS = 86_400_000
_DATE = re.compile(
    r"(?P<year>\d{4})(?:-(?P<month>\d\d)(?:-(?P<day>\d\d)"
    r"(?:[T ](?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d{1,9}))?)?"
    r"(?P<zone>Z|[+-]\d\d:\d\d)?)?)?)?"
)
_ZONE = re.compile(r"(:\d\d(?:\.\d+)?) ?([+-]\d\d):?(\d\d)")
"""The end of a date with a zone as Jekyll writes it, such as ``12:00:00 +0800``."""
_END_WITH_ZONE = re.compile(r":\d\d(?:\.\d+)?(?:Z|([+-])(\d\d):(\d\d))$")

_DATES = "a year, month, day or moment, such as 2001, 2001-05, 2001-05-31 or 2001-05-31T12:00"


def period_ms(text: str) -> tuple[int, int]:
    """Return the first and the last millisecond of the period that ``text`` names.

    Milliseconds count from 1970 by the clock of whoever wrote the text, negative before: its zone
    changes nothing. A year, month, day, minute or second is a period of its usual length. A moment
    with a fraction of a second is 1 ms long. Raises ValueError, which says what is allowed, for
    text that is no date.
    """
    match = _DATE.fullmatch(text) if text.isascii() else None
    if match is None:
        raise ValueError(_DATES)
    year, month, day = (int(match[unit] or 1) for unit in ("year", "month", "day"))
    hour, minute, second = (int(match[unit] or 0) for unit in ("hour", "minute", "second"))
    try:
        start = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError as error:
        raise ValueError(f"{_DATES} ({error})") from None
    first = (start - _EPOCH) // _MILLISECOND
    if match["month"] is None:
        return first, first + (366 if isleap(year) else 365) * _DAY_MS - 1
    if match["day"] is None:
        return first, first + monthrange(year, month)[1] * _DAY_MS - 1
    if match["fraction"]:
        first += int(match["fraction"].ljust(3, "0")[:3])
        return first, first
    if match["second"]:
        return first, first + 999
    return first, first + (60_000 if match["hour"] else _DAY_MS) - 1


def moment_ms(text: str) -> tuple[int, int]:
    """Return the first and the last millisecond, in UTC, of the period that ``text`` names; one
    without a zone is in UTC. Raises ValueError."""
    first, last = period_ms(text)
    zone = _END_WITH_ZONE.search(text)
    if zone is None or not zone[1]:
        return first, last
    ahead_ms = int(f"{zone[1]}1") * (int(zone[2]) * 60 + int(zone[3])) * 60_000
    return first - ahead_ms, last - ahead_ms


def _has_zone(*texts: str | None) -> bool:
    return any(text is not None and _END_WITH_ZONE.search(text) for text in texts)


def date_text(first_ms: float) -> str:
    """Return the shortest date whose period begins at a millisecond: a year, a day or a moment."""
    moment = _EPOCH + int(first_ms) * _MILLISECOND
    day = f"{moment.year:04}-{moment.month:02}-{moment.day:02}"
    if moment.microsecond:
        return f"{day}T{moment:%H:%M:%S}.{moment.microsecond // 1000:03}"
    if moment.second or moment.minute or moment.hour:
        return f"{day}T{moment:%H:%M:%S}".removesuffix(":00")
    return f"{moment.year:04}" if day.endswith("-01-01") else day


def _read_date(value: object) -> str:
    is_text = isinstance(value, str | int) and not isinstance(value, bool)
    text = _ZONE.sub(r"\1\2:\3", str(value)) if is_text else ""
    period_ms(text)
    return text


def _is_date(text: str) -> bool:
    try:
        period_ms(text)
    except ValueError:
        return False
    return True


_OTHERWISE = {
    10: "%Y-%m-%d|%Y/%m/%d|%Y.%m.%d|%d.%m.%Y|%d %B %Y|%B %d %Y|%d %b %Y|%b %d %Y",
    7: "%Y-%m|%Y/%m|%B %Y|%b %Y",
    16: "%Y-%m-%dT%H:%M|%Y-%m-%d %H:%M",
}
"""Other ways to write days, months and moments, by the length of the usual form. Each can be read
in one way alone; ``3/4/2026`` cannot."""


def _meant_date(text: str) -> str:
    text = _ZONE.sub(r"\1\2:\3", text.replace(",", ""))
    if text.isdigit() and len(text) == 8:
        text = f"{text[:4]}-{text[4:6]}-{text[6:]}"
    if _is_date(text.upper()):
        return text.upper()
    for length, forms in _OTHERWISE.items():
        for form in forms.split("|"):
            with suppress(ValueError):
                return datetime.strptime(text, form).isoformat()[:length]
    return ""


_DAYS = {"now": 0, "today": 0, "yesterday": 1, "tomorrow": -1}
_TURNS = {"this": 0, "current": 0, "last": 1, "past": 1, "previous": 1, "next": -1}
_MONTHS_OF_A_UNIT = {"month": 1, "y": 12, "year": 12}
_DAYS_OF_A_UNIT = {"h": 1 / 24, "hour": 1 / 24, "d": 1, "day": 1, "w": 7, "week": 7}
_BACK = re.compile(r"(?:(?:now|today)? ?-|(?:last|past|previous) )(\d{1,3}) ?([a-z]+?)s?(?:/.*)?")


def relative_dates(text: str, today: date) -> tuple[str, str] | None:
    """Return the first and the last date of a time such as ``now-7d`` or ``last month``, on a day.

    The last date is empty if the time is open. None: the text is no such time.
    """
    words = " ".join(re.sub(r"(?<=\d)M\b", "month", text).lower().split())
    if (days := _DAYS.get(words.partition("/")[0])) is not None:
        return _before(today, days), _before(today, days)
    turn, _, unit = words.partition(" ")
    if turn in _TURNS and unit == "week":
        days = 7 * _TURNS[turn] + today.weekday()
        return _before(today, days), _before(today, days - 6)
    if turn in _TURNS and unit in ("month", "year"):
        day = _before(today, months=_TURNS[turn] * _MONTHS_OF_A_UNIT[unit])
        whole = day[: 4 if unit == "year" else 7]
        return whole, whole
    back = _BACK.fullmatch(words if not words.endswith(" ago") else f"-{words[:-4]}")
    if back is None or back[2] not in _MONTHS_OF_A_UNIT.keys() | _DAYS_OF_A_UNIT.keys():
        return None
    days = int(int(back[1]) * _DAYS_OF_A_UNIT.get(back[2], 0))
    return _before(today, days, int(back[1]) * _MONTHS_OF_A_UNIT.get(back[2], 0)), ""


def _before(day: date, days: int = 0, months: int = 0) -> str:
    """Return the date that is so many units before a day; in a shorter month, its last day."""
    year, month = divmod(day.year * 12 + day.month - 1 - months, 12)
    at = min(day.day, monthrange(year, month + 1)[1])
    return (date(year, month + 1, at) - timedelta(days)).isoformat()


def current_day() -> date:
    """Return the day that it is here."""
    return datetime.now().date()


# Booleans


_SPELLINGS = {
    **dict.fromkeys(("true", "t", "yes", "y", "on", "1"), "true"),
    **dict.fromkeys(("false", "f", "no", "n", "off", "0"), "false"),
}


def _read_boolean(value: object) -> bool:
    text = scalar_text(value).lower() if isinstance(value, str | bool) else ""
    if text not in ("true", "false"):
        raise ValueError("true or false, or a list of them")
    return text == "true"


# The table


KEYWORD: Final = FieldType(
    "keyword",
    "term",
    _read_keyword,
    stored=str,
    share=math.inf,
    allowed="{name}:value, or several with OR",
)
NUMBER: Final = FieldType(
    "number",
    "double",
    _read_number,
    stored=lambda value: float(value) + 0.0,  # so that a search for 0 finds -0
    share=0.8,  # versions and names look like numbers
    allowed="{name}:1678, {name}:>=1670 or {name}:[1670 TO 1680]",
    given=(int, float),
    in_data="a number",
    holds=_is_number,
    is_exact=_is_exact_number,
    keeps=lambda text: scalar_text(_read_number(text)) == text,  # not 01234, 1.10, +5, 1e3
    ends=lambda text: (float(text) + 0.0, float(text) + 0.0),
    canonical=lambda text: number_text(float(text) + 0.0),
    written=number_text,
)
DATE: Final = FieldType(
    "date",
    "long",
    _read_date,
    stored=lambda value: period_ms(str(value))[0],
    share=0.5,  # few texts look like dates by chance
    allowed=_DATES,
    given=(str, int),
    in_data=_DATES,
    holds=_is_date,
    is_likely=lambda text: "-" in text,
    ends=period_ms,
    canonical=lambda text: text.replace(" ", "T"),
    written=date_text,
    meant=_meant_date,
    since=lambda text: relative_dates(text, current_day()),
    moments=FieldType(
        "date",
        "long",
        _read_date,
        stored=lambda value: moment_ms(str(value))[0],
        share=math.inf,
        allowed=_DATES,
        ends=moment_ms,
    ),
)

BOOLEAN: Final = FieldType(
    "boolean",
    "term",
    _read_boolean,
    stored=scalar_text,
    share=1,
    allowed="{name}:true or {name}:false",
    given=(bool,),
    in_data="true or false",
    holds=lambda text: text in ("true", "false"),
    meant=lambda text: _SPELLINGS.get(text.strip(" ,;.").lower(), ""),
)

FIELD_TYPES: Mapping[str, FieldType] = {
    kind.name: kind for kind in (KEYWORD, NUMBER, DATE, BOOLEAN)
}
"""All types by their names. A new field of front matter gets the first that enough values have,
else KEYWORD."""

MOMENTS = "@"
"""The end of the name of a column with moments, which no field has."""


def columns(metadata: Mapping[str, MetadataType]) -> Mapping[str, tuple[str, FieldType]]:
    """Return the columns of an index with these fields, in order: the field of each, and the type
    of its values."""
    all_columns: dict[str, tuple[str, FieldType]] = {}
    for name, kind in metadata.items():
        type = FIELD_TYPES[kind]
        all_columns[name] = name, type
        if type.moments is not None:
            all_columns[name + MOMENTS] = name, type.moments
    return all_columns
