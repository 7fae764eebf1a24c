"""The fields a query may name, and what kind each is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from arag_search.corpus import MetadataScalar
from arag_search.errors import ArgumentError
from arag_search.query.dates import period_ms

MetadataType = Literal["keyword", "number", "date"]
FieldKind = Literal["text", "keyword", "number", "date"]

METADATA_TYPES: tuple[MetadataType, ...] = ("keyword", "number", "date")
TITLE = "title"
CONTENT = "content"
TEXT_FIELDS = (TITLE, CONTENT)
"""The fields that a word without a field is searched in, and that BM25 scores."""
DOC_ID = "doc_id"
"""The one metadata field that every index has."""
RESERVED_FIELDS = frozenset({TITLE, CONTENT, DOC_ID, "id", "text", "sentences", "part", "parts"})
"""Names that a build cannot declare as metadata."""

_NAME = re.compile(r"[^\W\d][\w.-]*")


def is_field_name(name: str) -> bool:
    """Whether a field can be called so: a letter, then letters, digits and ``_.-``."""
    return _NAME.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class Schema:
    """What fields there are. ``metadata`` maps each declared field to its type.

    An ``open`` schema stands for an index that is not known: any other name is taken for a
    metadata field, its type guessed from the value. One of ``metadata_only`` is that of filters:
    it names no text fields where it describes itself.
    """

    metadata: Mapping[str, MetadataType] = field(default_factory=dict[str, MetadataType])
    open: bool = False
    metadata_only: bool = False

    def kind(self, name: str) -> FieldKind | None:
        """The kind of a field, or None where there is no such field."""
        if name in TEXT_FIELDS:
            return "text"
        if name == DOC_ID:
            return "keyword"
        return self.metadata.get(name)

    def describe(self) -> str:
        """The fields in words: ``title, content, doc_id, year (number)``."""
        declared = [f"{name} ({kind})" for name, kind in self.metadata.items()]
        return ", ".join([*(() if self.metadata_only else TEXT_FIELDS), DOC_ID, *declared])


ANY_SCHEMA = Schema(open=True)


def typed(value: MetadataScalar, kind: MetadataType, where: str) -> str | float:
    """The value as its field compares it; a date is its first millisecond since 1970.

    Raises ArgumentError for one that is not of the type.
    """
    try:
        if kind == "number":
            return float(value)
        return str(value) if kind == "keyword" else period_ms(str(value))[0]
    except (ValueError, OverflowError) as error:
        raise ArgumentError(f"The value {value!r}.", where=where, allowed=str(error)) from None
