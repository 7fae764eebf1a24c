"""The packing of chunks as bytes, which ``java/Documents.java`` reads in batches.

Packing needs no Java, so that worker processes can do it. A chunk is, little-endian: its ordinal in
eight bytes; id, doc_id, title, content and record, each as a length in four bytes and so many bytes
of UTF-8; for each declared metadata field the number of its values, and the values (a string, a
double, or the first millisecond of a period); the number of sentences, and their ends in code
points.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from arag_search.corpus import Chunk, MetadataScalar
from arag_search.engines.lucene import schema
from arag_search.engines.terms import term_bytes
from arag_search.errors import BuildError
from arag_search.query.dates import period_ms
from arag_search.query.fields import MetadataType

_LONG, _INT, _DOUBLE = struct.Struct("<q"), struct.Struct("<i"), struct.Struct("<d")


@dataclass(frozen=True, slots=True)
class PackedChunks:
    """Chunks in the format of ``LuceneWriter.add_packed``. ``chunks`` is their number; ``ordinals``
    are those of the first and the last chunk, None if the ordinals do not ascend."""

    data: bytes
    chunks: int
    ordinals: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class ChunkPacker:
    """A function that packs chunks with the declared fields of their metadata."""

    metadata: Mapping[str, MetadataType]

    def __call__(self, chunks: Sequence[Chunk]) -> PackedChunks:
        """Pack the chunks of one or several documents.

        Raises BuildError for an id or keyword that is too long to be indexed, and for text that is
        not Unicode.
        """
        parts: list[bytes] = []
        for chunk in chunks:
            try:
                _pack(chunk, self.metadata, parts)
            except (orjson.JSONEncodeError, UnicodeEncodeError) as error:
                raise BuildError(
                    f"A chunk that cannot be stored: {error}.", where=f"chunk {chunk.id!r}"
                ) from error
        return PackedChunks(b"".join(parts), len(chunks), _ordinals(chunks))


def _ordinals(chunks: Sequence[Chunk]) -> tuple[int, int] | None:
    ordinals = [chunk.ordinal for chunk in chunks]
    growing = all(a < b for a, b in itertools.pairwise(ordinals))
    return (ordinals[0], ordinals[-1]) if ordinals and growing else None


def _pack(chunk: Chunk, metadata: Mapping[str, MetadataType], parts: list[bytes]) -> None:
    record = schema.encode_record(chunk)
    parts.append(_LONG.pack(chunk.ordinal))
    _add_bytes(term_bytes(chunk.id, chunk), parts)
    _add_bytes(term_bytes(chunk.doc_id, chunk), parts)
    _add_bytes(chunk.title.encode(), parts)
    _add_bytes(chunk.content.encode(), parts)
    _add_bytes(record, parts)
    for name, kind in metadata.items():
        values = chunk.metadata.get(name, ())
        values = values if isinstance(values, tuple) else (values,)
        parts.append(_INT.pack(len(values)))
        for value in values:
            _add_value(value, kind, chunk, parts)
    parts.append(_INT.pack(len(chunk.sentence_ends)))
    parts.append(_ints(chunk.sentence_ends))


def _add_value(value: MetadataScalar, kind: MetadataType, chunk: Chunk, parts: list[bytes]) -> None:
    if kind == "keyword":
        _add_bytes(term_bytes(str(value), chunk), parts)
    elif kind == "number":
        parts.append(_DOUBLE.pack(float(value) + 0.0))  # so that a search for 0 finds -0
    else:
        parts.append(_LONG.pack(period_ms(str(value))[0]))


def _add_bytes(data: bytes, parts: list[bytes]) -> None:
    parts.append(_INT.pack(len(data)))
    parts.append(data)


def _ints(values: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(values)}i", *values)
