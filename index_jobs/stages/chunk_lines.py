"""Cut documents as lines of JSON: one line holds a document with all of its chunks.

Each batch of lines is compressed with gzip by itself, so that worker processes can do it. The
compressed batches, one after the other, form a valid gzip file.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from typing import Any, cast

import orjson

from arag_search.corpus import (
    Chunk,
    Document,
    MetadataScalar,
    MetadataValue,
    PassageOutline,
)
from arag_search.errors import BuildError, SourceError
from index_jobs.cutting.chunking import Numbered, Packed, counts_of, cut_all
from index_jobs.sources.records import MAX_LINE_BYTES, CorpusFile, readable

_GZIP_LEVEL = 6


def pack_lines(documents: Numbered, chunk_tokens: int) -> Packed:
    """Cut and count the documents of a batch, and compress their lines. Raises BuildError for a
    document that has too many chunks or is too long for a line."""
    cuts = cut_all(documents, chunk_tokens)
    lines = [
        _line(document, chunks, tokens)
        for (_, _, document), (chunks, tokens) in zip(documents, cuts, strict=True)
    ]
    packed = gzip.compress(b"".join(lines), _GZIP_LEVEL, mtime=0) if lines else b""
    return Packed(packed, counts_of(cuts))


def _line(document: Document, chunks: list[Chunk], tokens: int) -> bytes:
    record = {
        "doc_id": document.id,
        "title": document.title,
        "metadata": document.metadata,
        "where": document.where.encode("utf-8", "backslashreplace").decode(),
        "tokens": tokens,
        "chunks": [
            {
                "id": chunk.id,
                "ordinal": chunk.ordinal,
                "content": chunk.content,
                "sentence_ends": chunk.sentence_ends,
                "outline": chunk.outline.to_json(),
                "metadata": _own_metadata(chunk, document),
            }
            for chunk in chunks
        ],
    }
    if document.is_file:
        record["is_file"] = True
    if document.unread:
        record["unread"] = dict(document.unread)
    line = orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
    if len(line) >= MAX_LINE_BYTES:
        raise BuildError(
            "The document is too long for a file of chunks.",
            where=document.where,
            allowed=f"a line of less than {MAX_LINE_BYTES >> 20} MiB",
            do="Split it, or build with arag-search index.",
        )
    return line


def _own_metadata(chunk: Chunk, document: Document) -> dict[str, MetadataValue]:
    """Return the values that a chunk has and its document has not."""
    common = document.metadata
    return {name: value for name, value in chunk.metadata.items() if common.get(name) != value}


def ready_documents(file: CorpusFile, skip: int = 0) -> Iterator[tuple[int, Document]]:
    """Yield the documents after the first ``skip``, each with its number (from 1) and ``ready``.

    Raises SourceError if the file is not a file of chunks.
    """
    number = 0
    while True:
        with readable(file.name):
            line = file.stream.readline()
        if not line:
            return
        number += 1
        if number > skip:
            try:
                document = _document(orjson.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                raise SourceError(
                    "The line is not a document with its chunks.",
                    where=f"{file.name}, line {number}",
                    do="Remove the file and cut its source again.",
                ) from error
            yield number, document


def _document(record: dict[str, Any]) -> Document:
    title: str = record["title"]
    values: Mapping[str, Any] = record["metadata"]
    metadata: dict[str, MetadataValue] = {
        name: tuple(cast("list[MetadataScalar]", value)) if isinstance(value, list) else value
        for name, value in values.items()
    }
    records: list[dict[str, Any]] = record["chunks"]
    chunks = tuple(
        Chunk(
            id=chunk["id"],
            doc_id=record["doc_id"],
            title=title,
            content=chunk["content"],
            part=part,
            parts=len(records),
            ordinal=chunk["ordinal"],
            sentence_ends=tuple(chunk["sentence_ends"]),
            metadata={**metadata, **chunk["metadata"]},
            outline=PassageOutline.of_json(*chunk["outline"]),
        )
        for part, chunk in enumerate(records, 1)
    )
    text = chunks[0].content if len(chunks) == 1 else "".join(chunk.content for chunk in chunks)
    ready = chunks, int(record["tokens"])
    return Document(
        record["doc_id"],
        title,
        text,
        metadata,
        where=record["where"],
        ready=ready,
        is_file=bool(record.get("is_file")),
        unread=record.get("unread", {}),
    )
