"""The schema of the two Lucene indexes of a generation: field names, and the coding of records.

``chunks/`` has one document per chunk. ``id`` and ``doc_id`` are exact, ``title`` and ``content``
analysed; none of them is stored. ``ordinal`` is a column for sorting and a point for look-ups.
Declared metadata are exact terms (keyword), doubles (number) or the first millisecond of the period
(date). They and ``doc_id`` are columns too, for sorting and for limits per document.
``record`` is a column of JSON with everything that a hit shows except its text: reading it costs a
third of a stored field, which Lucene unpacks block by block. ``text`` is stored.

``sentences/`` has one document per sentence: ``chunk_id``, ``doc_id``, ``ordinal``, the title and
metadata of the chunk, the sentence as ``content``. Nothing is stored: a hit's chunk is found by
ordinal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from arag_search.corpus import Chunk, MetadataValue
from arag_search.query.fields import DOC_ID

ENGINE = "lucene"
"""The name of this engine in manifests."""

CHUNKS_FOLDER = "chunks"
SENTENCES_FOLDER = "sentences"

ID = "id"
CHUNK_ID = "chunk_id"
ORDINAL = "ordinal"
RECORD = "record"
TEXT = "text"

# Keys of the user data of a commit.
MANIFEST_KEY = "manifest"
UPDATE_KEY = "update"
CHECKPOINT_KEY = "arag-checkpoint"
LAST_ORDINAL_KEY = "arag-last-ordinal"
"""Present as long as chunks were added in order of ordinal: documents are then stored in order."""


def lucene_field(name: str) -> str:
    """Return the Lucene field of a metadata field of the query language."""
    return DOC_ID if name == DOC_ID else f"metadata.{name}"


def encode_record(chunk: Chunk) -> bytes:
    """Encode everything of a chunk except its text."""
    return orjson.dumps(
        (
            chunk.id,
            chunk.doc_id,
            chunk.title,
            chunk.part,
            chunk.parts,
            chunk.ordinal,
            chunk.metadata,
            chunk.sentence_ends,
        )
    )


class Record(NamedTuple):
    """The stored part of a chunk, ordered like a Hit; ``text`` is None if it was not read."""

    id: str
    doc_id: str
    title: str
    part: int
    parts: int
    ordinal: int
    metadata: Mapping[str, MetadataValue]
    sentence_ends: tuple[int, ...]
    text: str | None


def decode_records(records: Sequence[list[Any]], texts: bytes | None) -> list[Record]:
    """Decode records from JSON values, and their texts from one piece of UTF-8.

    The texts follow each other; a text ends where its last sentence ends.
    """
    decoded: list[Record] = []
    rest = None if texts is None else texts.decode()
    place = 0
    for id_, doc_id, title, part, parts, ordinal, metadata, ends in records:
        text = None
        if rest is not None:
            end = place + (ends[-1] if ends else 0)
            text, place = rest[place:end], end
        values = _metadata(metadata) if metadata else metadata
        decoded.append(Record(id_, doc_id, title, part, parts, ordinal, values, tuple(ends), text))
    return decoded


def _metadata(loaded: Mapping[str, Any]) -> dict[str, MetadataValue]:
    return {
        name: tuple(value) if isinstance(value, list) else value  # pyright: ignore
        for name, value in loaded.items()
    }
