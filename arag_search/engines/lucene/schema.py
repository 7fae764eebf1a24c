"""The schema of the two Lucene indexes of a generation: field names, and the coding of records.

``chunks/`` has one document per chunk. ``id``, ``doc_id`` and ``names`` are exact, ``title`` and
``content`` analysed; none of them is stored. ``ordinal`` is a column for sorting and a point for
look-ups.
Declared metadata are exact terms, doubles or longs, as ``query/field_types.py`` says of their type.
They and ``doc_id`` are columns too, for sorting and for limits per document.
``record`` is a column of JSON with everything that a hit shows except its text. Reading it costs a
third of a stored field, which Lucene unpacks block by block. ``text`` is stored.

``sentences/`` has one document per sentence: ``doc_id``, ``ordinal``, the title and
metadata of the chunk, the sentence as ``content``. Nothing is stored: a hit's chunk is found by
ordinal.

Packing chunks needs no Java, so that worker processes can do it; ``java/Documents.java`` reads the
bytes in batches. A chunk is, little-endian:

- its ordinal in eight bytes;
- id, doc_id, content, record and words, each as a length in four bytes and so much UTF-8;
- the number of its names, and the names;
- the number and the values (string, double or long) of each column of declared metadata;
- the number of sentences, and the number of titles that sentences have;
- if there are titles, the number (from 0) of the title of each sentence.

Java analyses no text. The words belong to the title, to each sentence and to these titles, with a
TEXT_END between two texts (see ``java/Words.java``). The words of the content follow, unless the
sentences have the same.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import orjson

from arag_search.corpus import (
    Chunk,
    MetadataScalar,
    MetadataValue,
    PassageOutline,
)
from arag_search.engines.hits import Hit
from arag_search.engines.stored import NAME
from arag_search.engines.write import term_bytes
from arag_search.errors import BuildError
from arag_search.query.field_types import FieldType, MetadataType, columns
from arag_search.query.fields import DOC_ID, NAMES
from arag_search.query.forms import forms_of_chunk
from arag_search.query.names import names_of

LUCENE = "lucene"
"""The name of this engine in manifests."""

CHUNKS_FOLDER = "chunks"
SENTENCES_FOLDER = "sentences"

TEXT = "text"

# Keys of the user data of a commit.
MANIFEST_KEY = "manifest"
UPDATE_KEY = "update"
CHECKPOINT_KEY = "arag-checkpoint"
LAST_ORDINAL_KEY = "arag-last-ordinal"
"""Present as long as chunks were added in order of ordinal: documents are then stored in order."""


def lucene_field(name: str) -> str:
    """Return the Lucene field of a metadata field of the query language, or of the names."""
    return {DOC_ID: DOC_ID, NAMES: NAME}.get(name, f"metadata.{name}")


def escaped(value: str) -> str:
    """Return a term as a word that ``java/Queries.java`` reads."""
    return value.replace("\\", "\\\\").replace("\0", "\\0")


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
            *chunk.outline.to_json(),
        )
    )


UNREADABLE = (ValueError, LookupError, TypeError)
"""The errors that decoding a damaged record raises."""


def decode_hits(
    records: Sequence[list[Any]], texts: bytes | None, scores: Iterable[float] = repeat(0.0)
) -> tuple[Hit, ...]:
    """Decode records from JSON values, and their texts, if they were read, from one piece of UTF-8.

    The texts follow each other; a text ends where its last sentence ends.
    """
    decoded: list[Hit] = []
    rest = "" if texts is None else texts.decode()
    offset = 0
    for row, score in zip(records, scores, strict=False):
        id_, doc_id, title, part, parts, ordinal, metadata, ends, *outlined = row
        ends = () if texts is None else tuple(ends)
        end = offset + (ends[-1] if ends else 0)
        place = (title, part, parts, ordinal, _metadata(metadata) if metadata else metadata)
        outline = PassageOutline.of_json(*outlined)
        decoded.append(Hit(id_, doc_id, *place, ends, rest[offset:end], outline, score))
        offset = end
    return tuple(decoded)


def _metadata(loaded: Mapping[str, Any]) -> dict[str, MetadataValue]:
    return {
        name: tuple(value) if isinstance(value, list) else value  # pyright: ignore
        for name, value in loaded.items()
    }


TEXT_END = "\v"
_LONG, _INT, _DOUBLE = struct.Struct("<q"), struct.Struct("<i"), struct.Struct("<d")
_COUNTS = struct.Struct("<2i")


# Packing


@dataclass(frozen=True, slots=True)
class PackedChunks:
    """Chunks in the format of ``LuceneWriter.add_packed``. ``chunks`` is their number; ``ordinals``
    are the first and the last one, None if they do not ascend."""

    data: bytes
    chunks: int
    ordinals: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class ChunkPacker:
    """A function that packs chunks with the declared fields of their metadata and, unless the
    language is empty, with the normal forms of their words."""

    metadata: Mapping[str, MetadataType]
    language: str = ""

    def __call__(self, chunks: Sequence[Chunk]) -> PackedChunks:
        """Pack the chunks of one or several documents.

        Raises BuildError for an id or keyword that is too long to be indexed, and for text that is
        not Unicode.
        """
        parts: list[bytes] = []
        for chunk in chunks:
            try:
                _pack(chunk, self.metadata, self.language, parts)
            except (orjson.JSONEncodeError, UnicodeEncodeError) as error:
                raise BuildError(
                    f"A passage cannot be stored: {error}.", where=f"passage {chunk.id!r}"
                ) from error
        return PackedChunks(b"".join(parts), len(chunks), _ordinals(chunks))


def _ordinals(chunks: Sequence[Chunk]) -> tuple[int, int] | None:
    ordinals = [chunk.ordinal for chunk in chunks]
    growing = all(a < b for a, b in itertools.pairwise(ordinals))
    return (ordinals[0], ordinals[-1]) if ordinals and growing else None


def _pack(
    chunk: Chunk, metadata: Mapping[str, MetadataType], language: str, parts: list[bytes]
) -> None:
    record = encode_record(chunk)
    forms = forms_of_chunk(chunk, language, written=True)
    titles, own = forms.sentence_titles, forms.own_content
    distinct = {title: number for number, title in enumerate(dict.fromkeys(titles))}
    texts = (forms.title, *forms.sentences, *distinct, *(() if own is None else (own,)))
    parts.append(_LONG.pack(chunk.ordinal))
    _add_bytes(term_bytes(chunk.id, chunk), parts)
    _add_bytes(term_bytes(chunk.doc_id, chunk), parts)
    _add_bytes(chunk.content.encode(), parts)
    _add_bytes(record, parts)
    _add_bytes(TEXT_END.join(texts).encode(), parts)
    names = names_of(chunk.title, chunk.doc_id) if chunk.part == 1 else []
    parts.append(_INT.pack(len(names)))
    for name in names:
        _add_bytes(name.encode(), parts)
    for name, kind in columns(metadata).values():
        values = chunk.metadata.get(name, ())
        values = values if isinstance(values, tuple) else (values,)
        parts.append(_INT.pack(len(values)))
        for value in values:
            _add_value(value, kind, chunk, parts)
    parts.append(_COUNTS.pack(len(forms.sentences), len(distinct)))
    parts.extend(map(_INT.pack, map(distinct.__getitem__, titles)))


def _add_value(value: MetadataScalar, kind: FieldType, chunk: Chunk, parts: list[bytes]) -> None:
    stored = kind.stored(value)
    if isinstance(stored, str):
        _add_bytes(term_bytes(stored, chunk), parts)
    else:
        parts.append((_DOUBLE if kind.storage == "double" else _LONG).pack(stored))


def _add_bytes(data: bytes, parts: list[bytes]) -> None:
    parts.append(_INT.pack(len(data)))
    parts.append(data)
