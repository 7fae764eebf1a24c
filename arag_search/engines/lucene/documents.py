"""Lucene documents, made once and filled again for each chunk and sentence.

Creating Java objects from Python costs more than Lucene takes to index them; setting the values of
those that exist costs a third.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from arag_search.corpus import Chunk, MetadataScalar
from arag_search.engines.lucene import schema
from arag_search.engines.lucene.jvm import java, java_array, java_string
from arag_search.errors import BuildError
from arag_search.query.dates import period_ms
from arag_search.query.fields import CONTENT, DOC_ID, TITLE, MetadataType

_DOCUMENT = "org.apache.lucene.document"
_MAX_SHAPES = 256

_Shape = tuple[tuple[str, int], ...]
"""How many values each declared field has: documents of one shape share their field objects."""


class ChunkDocuments:
    """Makes the document of a chunk. The one that is returned is filled again by the next call."""

    def __init__(self, metadata: Mapping[str, MetadataType]) -> None:
        self._metadata = _MetadataFields(metadata)
        no_bytes = java("org.apache.lucene.util.BytesRef")()
        self._record = java(f"{_DOCUMENT}.BinaryDocValuesField")(schema.RECORD, no_bytes)
        self._text = java(f"{_DOCUMENT}.StoredField")(schema.TEXT, "")
        self._id = _exact(schema.ID)
        self._doc_id = _exact(DOC_ID)
        self._ordinals = _ordinals()
        self._title = _analysed(TITLE)
        self._content = _analysed(CONTENT)
        fields = [self._record, self._id, self._doc_id, *self._ordinals]
        fields += [self._title, self._content, self._text]
        self._documents = _Documents(fields)
        # Bound once: looking a method up costs as much as calling it.
        self._set_record = self._record.setBytesValue
        self._set_text = self._text.setStringValue
        self._set_id = self._id.setStringValue
        self._set_doc_id = self._doc_id.setStringValue
        self._set_column, self._set_point = (each.setLongValue for each in self._ordinals)
        self._set_title = self._title.setStringValue
        self._set_content = self._content.setStringValue

    def document(self, chunk: Chunk) -> Any:
        """The Lucene document of the chunk.

        Raises BuildError for an id or keyword that is too long.
        """
        record = schema.encode_record(chunk)
        _check_length(chunk.id, chunk)
        _check_length(chunk.doc_id, chunk)
        self._set_record(record)
        self._set_id(chunk.id)
        self._set_doc_id(chunk.doc_id)
        self._set_column(chunk.ordinal)
        self._set_point(chunk.ordinal)
        self._set_title(chunk.title)
        content = java_string(chunk.content)
        self._set_content(content)
        self._set_text(content)
        return self._documents.with_fields(*self._metadata.filled(chunk))


class SentenceDocuments:
    """Makes the documents of the sentences of a chunk: ``begin`` it, then one after the other."""

    def __init__(self, metadata: Mapping[str, MetadataType]) -> None:
        self._metadata = _MetadataFields(metadata)
        self._chunk_id = _exact(schema.CHUNK_ID)
        self._doc_id = _exact(DOC_ID)
        self._ordinals = _ordinals()
        self._title = _analysed(TITLE)
        self._content = _analysed(CONTENT)
        fields = [self._chunk_id, self._doc_id, *self._ordinals, self._title, self._content]
        self._documents = _Documents(fields)
        self._document: Any = None
        self._set_chunk_id = self._chunk_id.setStringValue
        self._set_doc_id = self._doc_id.setStringValue
        self._set_title = self._title.setStringValue
        self._set_content = self._content.setStringValue
        self._set_column, self._set_point = (each.setLongValue for each in self._ordinals)

    def begin(self, chunk: Chunk) -> None:
        """Set what all sentences of the chunk have in common."""
        self._set_chunk_id(chunk.id)
        self._set_doc_id(chunk.doc_id)
        self._set_title(chunk.title)
        self._document = self._documents.with_fields(*self._metadata.filled(chunk))

    def document(self, ordinal: int, text: str) -> Any:
        """The Lucene document of one sentence of the chunk begun."""
        self._set_column(ordinal)
        self._set_point(ordinal)
        self._set_content(text)
        return self._document


class _Documents:
    """One Lucene document for each shape of metadata, all with the same other fields."""

    def __init__(self, fields: list[Any]) -> None:
        self._fields = fields
        self._by_shape: dict[_Shape, Any] = {}

    def with_fields(self, shape: _Shape, metadata: list[Any]) -> Any:
        found = self._by_shape.get(shape)
        if found is None:
            if len(self._by_shape) >= _MAX_SHAPES:
                self._by_shape.clear()
            found = self._by_shape[shape] = java(f"{_DOCUMENT}.Document")()
            for field in (*self._fields, *metadata):
                found.add(field)
        return found


class _MetadataFields:
    """Field objects for declared metadata: for each field as many as it had values at most."""

    def __init__(self, metadata: Mapping[str, MetadataType]) -> None:
        self._types = metadata
        self._pools: dict[str, list[Any]] = {name: [] for name in metadata}

    def filled(self, chunk: Chunk) -> tuple[_Shape, list[Any]]:
        """The shape of the chunk's metadata, and field objects that hold its values."""
        shape: list[tuple[str, int]] = []
        fields: list[Any] = []
        for name, kind in self._types.items():
            values = chunk.metadata.get(name)
            if values is None:
                continue
            values = values if isinstance(values, tuple) else (values,)
            pool = self._pools[name]
            while len(pool) < len(values):
                pool.append(_metadata_field(name, kind))
            for field, value in zip(pool, values, strict=False):
                _set_value(field, kind, value, chunk)
                fields.append(field)
            shape.append((name, len(values)))
        return tuple(shape), fields


def _metadata_field(name: str, kind: MetadataType) -> Any:
    field = schema.lucene_field(name)
    if kind == "keyword":
        return _exact(field)
    if kind == "number":
        return java(f"{_DOCUMENT}.DoublePoint")(field, java_array("double", [0.0]))
    return java(f"{_DOCUMENT}.LongPoint")(field, java_array("long", [0]))


def _set_value(field: Any, kind: MetadataType, value: MetadataScalar, chunk: Chunk) -> None:
    if kind == "keyword":
        text = str(value)
        _check_length(text, chunk)
        field.setStringValue(text)
    elif kind == "number":
        field.setDoubleValue(float(value) + 0.0)  # so that -0 is found as 0
    else:
        field.setLongValue(period_ms(str(value))[0])


def _check_length(text: str, chunk: Chunk) -> None:
    """Lucene would refuse a longer one with the document half written."""
    if len(text) > schema.MAX_TERM_BYTES // 4 and len(text.encode()) > schema.MAX_TERM_BYTES:
        raise BuildError(
            f"An id or keyword of {len(text.encode()):,} bytes.",
            where=f"chunk {chunk.id[:60]!r}",
            allowed=f"at most {schema.MAX_TERM_BYTES:,} bytes in UTF-8",
            do="Shorten it, or leave that metadata field undeclared.",
        )


def _exact(name: str) -> Any:
    return java(f"{_DOCUMENT}.StringField")(name, "", _not_stored())


def _analysed(name: str) -> Any:
    return java(f"{_DOCUMENT}.TextField")(name, "", _not_stored())


def _not_stored() -> Any:
    return java(f"{_DOCUMENT}.Field$Store").NO


def _ordinals() -> list[Any]:
    """The ordinal as a column to sort by, and as a point to look up."""
    column = java(f"{_DOCUMENT}.NumericDocValuesField")(schema.ORDINAL, 0)
    point = java(f"{_DOCUMENT}.LongPoint")(schema.ORDINAL, java_array("long", [0]))
    return [column, point]
