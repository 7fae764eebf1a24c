"""What lies in the two Lucene indexes of a generation: names of fields, and how records are coded.

``chunks/`` holds one document a chunk. ``id`` and ``doc_id`` are exact, ``title`` and ``content``
analysed, none of them stored. ``ordinal`` is a column to sort by and a point to look up. Declared
metadata are exact terms (keyword), doubles (number) or the first millisecond of the period (date).
``record`` is a column of JSON with all that a hit shows but its text: read by number of document it
costs a third of a stored field, which is unpacked a block at a time. ``text`` is stored.

``sentences/`` holds one document a sentence: ``chunk_id``, ``doc_id``, ``ordinal``, the title and
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
"""What the manifest says of an index of this kind."""

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
"""Given while every chunk was added after those of lower ordinals: documents are in order then."""


def lucene_field(name: str) -> str:
    """The Lucene field of a metadata field that queries name."""
    return DOC_ID if name == DOC_ID else f"metadata.{name}"


def encode_record(chunk: Chunk) -> bytes:
    """Everything of a chunk apart from its text."""
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
    """What the index holds of a chunk, as a Hit begins; ``text`` is None where it was not read."""

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
    """Records as JSON gives them, with their texts in UTF-8, which follow each other.

    A text ends where its last sentence ends.
    """
    found: list[Record] = []
    rest = None if texts is None else texts.decode()
    place = 0
    for id_, doc_id, title, part, parts, ordinal, metadata, ends in records:
        text = None
        if rest is not None:
            end = place + (ends[-1] if ends else 0)
            text, place = rest[place:end], end
        values = _metadata(metadata) if metadata else metadata
        found.append(Record(id_, doc_id, title, part, parts, ordinal, values, tuple(ends), text))
    return found


def _metadata(loaded: Mapping[str, Any]) -> dict[str, MetadataValue]:
    return {
        name: tuple(value) if isinstance(value, list) else value  # pyright: ignore
        for name, value in loaded.items()
    }
