"""The values of fields and the orders of sorts, in the forms that Java writes and reads."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from arag_search.engines.base import FieldsPage, FieldsRequest, FieldValues, SortBy, ValueCount
from arag_search.engines.lucene.schema import lucene_field
from arag_search.query.fields import DOC_ID, TEXT_FIELDS, MetadataType

_LONG, _INT = struct.Struct(">q"), struct.Struct(">i")
_DOUBLE = struct.Struct(">d")
_SIGN = (1 << 63) - 1


def sort_text(sort: SortBy | None, metadata: Mapping[str, MetadataType]) -> str:
    """Return a sort as ``java/Searcher.java`` reads it; empty for None."""
    if sort is None:
        return ""
    kind = "k" if _kind(sort.field, metadata) == "keyword" else "p"
    return f"{kind}{'-' if sort.descending else '+'}{lucene_field(sort.field)}"


def fields_text(request: FieldsRequest, metadata: Mapping[str, MetadataType]) -> str:
    """Return the fields of a request as ``java/Searcher.java`` reads them."""
    words: list[str] = []
    for name in request.fields:
        if name in TEXT_FIELDS:
            words.append(f"t{name}\0")
        else:
            kind = "k" if _kind(name, metadata) == "keyword" else "p"
            words.append(f"{kind}{lucene_field(name)}\0")
    return "".join(words)


def fields_page(
    data: bytes, request: FieldsRequest, metadata: Mapping[str, MetadataType]
) -> FieldsPage:
    """Return the values of fields that ``java/Fields.java`` wrote."""
    values = _Values(data)
    chunks = values.long()
    fields: list[FieldValues] = []
    for name in request.fields:
        with_value = values.long()
        if name in TEXT_FIELDS:
            fields.append(FieldValues(name, with_value))
        elif _kind(name, metadata) == "keyword":
            distinct = values.long()
            fields.append(FieldValues(name, with_value, distinct, values.counts()))
        else:
            is_date = _kind(name, metadata) == "date"
            ends = [
                float(end) if is_date else _double(end) for end in (values.long(), values.long())
            ]
            least, greatest = ends if with_value else (None, None)
            fields.append(FieldValues(name, with_value, least=least, greatest=greatest))
    return FieldsPage(chunks, tuple(fields))


def _kind(name: str, metadata: Mapping[str, MetadataType]) -> MetadataType:
    return "keyword" if name == DOC_ID else metadata[name]


def _double(bits: int) -> float:
    """Return the number with these sortable bits."""
    return float(_DOUBLE.unpack(_LONG.pack(bits if bits >= 0 else bits ^ _SIGN))[0])


class _Values:
    """A reader of numbers and values one after another."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def long(self) -> int:
        """Read a number of eight bytes."""
        (number,) = _LONG.unpack_from(self._data, self._at)
        self._at += _LONG.size
        return int(number)

    def counts(self) -> tuple[ValueCount, ...]:
        """Read values with their counts."""
        (number,) = _INT.unpack_from(self._data, self._at)
        self._at += _INT.size
        return tuple(self._count() for _ in range(number))

    def _count(self) -> ValueCount:
        chunks = self.long()
        (length,) = _INT.unpack_from(self._data, self._at)
        start = self._at + _INT.size
        self._at = start + length
        return ValueCount(self._data[start : self._at].decode(), chunks)
