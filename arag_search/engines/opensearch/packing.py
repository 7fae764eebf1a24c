"""Chunks as lines of bulk requests.

This is the expensive part of writing to a cluster. It needs no connection, so that other processes
than the sender can do it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from arag_search.corpus import Chunk
from arag_search.engines.opensearch import schema
from arag_search.engines.write import term_bytes
from arag_search.errors import BuildError
from arag_search.query.field_types import FIELD_TYPES, MetadataType
from arag_search.query.forms import forms_of_chunk


@dataclass(frozen=True, slots=True)
class BulkLines:
    """The documents of chunks and their sentences, each as two lines of JSON: an action and a
    document. ``last_ordinal`` belongs to the last chunk, None without chunks."""

    lines: list[bytes]
    last_ordinal: int | None


@dataclass(frozen=True, slots=True)
class BulkPacker:
    """A converter of chunks to documents for two aliases. Without an alias for ``sentences`` it
    leaves them out; unless ``language`` is empty, they have the normal forms of their words."""

    chunks: str
    sentences: str | None
    metadata: Mapping[str, MetadataType]
    language: str = ""

    def __call__(self, chunks: Sequence[Chunk]) -> BulkLines:
        """Return the documents of chunks, which must be in corpus order.

        Raises BuildError for an id or keyword that is too long, and for text that is not Unicode.
        """
        lines: list[bytes] = []
        for chunk in chunks:
            try:
                _check_lengths(chunk, self.metadata)
                self._add(lines, chunk)
            except (orjson.JSONEncodeError, UnicodeEncodeError) as error:
                raise BuildError(
                    f"A passage cannot be stored: {error}.", where=f"passage {chunk.id!r}"
                ) from error
        return BulkLines(lines, chunks[-1].ordinal if chunks else None)

    def _add(self, lines: list[bytes], chunk: Chunk) -> None:
        routing = chunk.doc_id
        forms = forms_of_chunk(chunk, self.language) if self.language else None
        document = schema.chunk_document(chunk, self.metadata, forms)
        lines.append(bulk_line(self.chunks, chunk.ordinal, routing, document))
        if self.sentences is not None:
            for sentence in schema.sentence_documents(chunk, self.metadata, forms):
                ordinal = sentence[schema.ORDINAL]
                lines.append(bulk_line(self.sentences, ordinal, routing, sentence))


def bulk_line(alias: str, identifier: int, routing: str, document: object) -> bytes:
    """Return a document to create, as the two lines of a bulk request."""
    action = {"create": {"_index": alias, "_id": str(identifier), "routing": routing}}
    return b"%b\n%b\n" % (orjson.dumps(action), orjson.dumps(document))


def deletion_line(alias: str, identifier: int, routing: str) -> bytes:
    """Return the deletion of a document, as the line of a bulk request."""
    action = {"delete": {"_index": alias, "_id": str(identifier), "routing": routing}}
    return orjson.dumps(action, option=orjson.OPT_APPEND_NEWLINE)


def _check_lengths(chunk: Chunk, metadata: Mapping[str, MetadataType]) -> None:
    term_bytes(chunk.id, chunk)
    term_bytes(chunk.doc_id, chunk)
    for name, kind in metadata.items():
        value = chunk.metadata.get(name)
        if FIELD_TYPES[kind].storage == "term" and value is not None:
            for scalar in value if isinstance(value, tuple) else (value,):
                term_bytes(str(scalar), chunk)
