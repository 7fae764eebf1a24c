"""Declared metadata: the fields that a build keeps, and the conversion of their values."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable, Mapping
from typing import Any, cast

from arag_search.corpus import MetadataScalar, MetadataValue, is_unicode, nfc
from arag_search.errors import ArgumentError
from arag_search.query.dates import period_ms
from arag_search.query.fields import METADATA_TYPES, RESERVED_FIELDS, MetadataType
from arag_search.query.tree import KeywordEquals

MAX_METADATA_FIELDS = 100
MAX_KEYWORD_BYTES = 4_096
"""The longest keyword value in bytes of UTF-8; a longer value is rejected."""

_MAX_COUNTED_KEYS = 1_000
_OTHER_KEYS = "(other keys)"
_EXACT_INTEGER = 1 << 53
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_DECLARATION = "name:type pairs with commas between them, such as year:number,lang:keyword"


def parse_metadata(text: str) -> dict[str, MetadataType]:
    """Parse a declaration such as ``year:number,lang:keyword,published:date``.

    Raises ArgumentError that names the bad pair and the allowed form.
    """
    declared: dict[str, MetadataType] = {}
    for pair in filter(None, (piece.strip() for piece in text.split(","))):
        name, colon, kind = (part.strip() for part in pair.partition(":"))
        if not colon:
            raise ArgumentError(f'--metadata: "{pair}" has no type.', allowed=_DECLARATION)
        if name in declared:
            raise ArgumentError(f'--metadata: "{name}" is declared twice.')
        declared[name] = cast("MetadataType", kind)
    if not declared:
        raise ArgumentError("--metadata: nothing is declared.", allowed=_DECLARATION)
    check_metadata(declared)
    return declared


def check_metadata(declared: Mapping[str, MetadataType]) -> None:
    """Raise ArgumentError if a declared field could not be queried."""
    if len(declared) > MAX_METADATA_FIELDS:
        raise ArgumentError(
            f"--metadata: {len(declared)} fields.", allowed=f"at most {MAX_METADATA_FIELDS}"
        )
    for name, kind in declared.items():
        if kind not in METADATA_TYPES:
            raise ArgumentError(
                f'--metadata: "{name}" has the type "{kind}".', allowed=", ".join(METADATA_TYPES)
            )
        if name in RESERVED_FIELDS:
            raise ArgumentError(
                f'--metadata: "{name}" is a reserved name.',
                allowed=f"any name but {', '.join(sorted(RESERVED_FIELDS))}",
                do="Rename the field in the source.",
            )
        try:
            KeywordEquals(name, "x")
        except ArgumentError as error:
            raise ArgumentError(
                f'--metadata: the name "{name}" cannot be used in a query.',
                allowed=error.allowed or "a letter, then letters, digits",
                do="Rename the field in the source.",
            ) from None


class MetadataReader:
    """A reader that takes the declared values from records, and counts the other keys.

    ``undeclared`` maps each ignored key to its number of occurrences; ``seen`` holds the declared
    names that had a value. Both may be set to resume from an earlier run.
    """

    def __init__(self, declared: Mapping[str, MetadataType]) -> None:
        self.declared = declared
        self.undeclared: dict[str, int] = {}
        self.seen: set[str] = set()

    def read(self, record: Mapping[str, Any], known: Container[str]) -> dict[str, MetadataValue]:
        """Return the declared values of a record; ``known`` keys are not metadata.

        Raises ValueError (what is wrong, what is allowed) for a wrong value.
        """
        values: dict[str, MetadataValue] = {}
        for key, value in record.items():
            if key in known:
                continue
            kind = self.declared.get(key)
            if kind is None:
                self._count(key)
            elif (converted := _convert(key, value, kind)) is not None:
                values[key] = converted
        if values:
            self.seen.update(values)
        return values

    def take(self, undeclared: Mapping[str, int], seen: Iterable[str]) -> None:
        """Add the counts of another reader."""
        for key, times in undeclared.items():
            self._count(key, times)
        self.seen.update(seen)

    def _count(self, key: str, times: int = 1) -> None:
        if key not in self.undeclared and len(self.undeclared) >= _MAX_COUNTED_KEYS:
            key = _OTHER_KEYS
        self.undeclared[key] = self.undeclared.get(key, 0) + times


def _convert(name: str, value: object, kind: MetadataType) -> MetadataValue | None:
    """Convert a value to the form that is stored; None if there is no value."""
    if isinstance(value, list):
        items = (_scalar(name, item, kind) for item in cast("list[object]", value))
        return tuple(item for item in items if item is not None) or None
    return _scalar(name, value, kind)


def _scalar(name: str, value: object, kind: MetadataType) -> MetadataScalar | None:
    if value is None:
        return None
    match kind:
        case "keyword":
            return _keyword(name, value)
        case "number":
            return _number(name, value)
        case "date":
            return _date(name, value)


def _keyword(name: str, value: object) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int | float):
        raise _wrong(name, value, "a string, number or boolean, or a list of them")
    text = nfc(str(value))
    if len(text.encode("utf-8", "surrogatepass")) > MAX_KEYWORD_BYTES:
        raise _wrong(name, value, f"a keyword of at most {MAX_KEYWORD_BYTES:,} bytes")
    if not is_unicode(text):
        raise _wrong(name, value, "a keyword without lone surrogates")
    return text or None


def _number(name: str, value: object) -> int | float:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = int(value) if value.lstrip("+-").isdigit() else float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(name, value, "a number, or a list of numbers")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise _wrong(name, value, "a finite number")
    return value if isinstance(value, int) and abs(value) <= _EXACT_INTEGER else number


def _date(name: str, value: object) -> str:
    text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    try:
        period_ms(text)
    except ValueError as error:
        raise _wrong(name, value, str(error)) from None
    return text


def _wrong(name: str, value: object, allowed: str) -> ValueError:
    shown = repr(value)
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    return ValueError(f'The metadata field "{name}" has the value {shown}.', allowed)
