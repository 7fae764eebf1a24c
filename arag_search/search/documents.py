"""The passages and documents of an index, as they are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import accumulate, groupby
from typing import Any

from arag_search.corpus import Chunk, MetadataValue, is_unicode, nfc
from arag_search.engines.base import Deadline, FieldsRequest, SearchEngine
from arag_search.errors import IndexDamagedError, UnknownChunkError, UnknownDocumentError
from arag_search.plan.clauses import ResolvedPlan, joined, values_of
from arag_search.query.fields import DOC_ID
from arag_search.search.hits import metadata_dict, outline_dict

MAX_COMPARED = 5_000
"""The passages of the largest index whose ids are compared with an id that is unknown."""

_MOST = 3
_SIMILARITY = 0.6


@dataclass(frozen=True, slots=True)
class ReadChunk:
    """A chunk in full, with the ids of its neighbours (None if there is none)."""

    chunk: Chunk
    previous_id: str | None
    next_id: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return the chunk in types of JSON, as ``arag-search read --json`` prints it."""
        chunk = self.chunk
        return {
            "id": chunk.id,
            "doc_id": chunk.doc_id,
            "title": chunk.title,
            **outline_dict(chunk.outline),
            "part": chunk.part,
            "parts": chunk.parts,
            "content": chunk.content,
            "sentences": chunk.sentences(),
            "metadata": metadata_dict(chunk.metadata),
            "previous_id": self.previous_id,
            "next_id": self.next_id,
        }


@dataclass(frozen=True, slots=True)
class IndexDocument:
    """A document as an index holds it: its passages in order."""

    chunks: tuple[Chunk, ...]

    @property
    def id(self) -> str:
        """The id of the document, ``doc_id`` of its passages."""
        return self.chunks[0].doc_id

    @property
    def title(self) -> str:
        return self.chunks[0].title

    @property
    def metadata(self) -> Mapping[str, MetadataValue]:
        return self.chunks[0].metadata

    @property
    def text(self) -> str:
        """The whole text in NFC: the passages, joined."""
        return "".join(chunk.content for chunk in self.chunks)

    @property
    def characters(self) -> int:
        """The length of the text in code points."""
        return sum(len(chunk.content) for chunk in self.chunks)

    @property
    def sentence_ends(self) -> tuple[int, ...]:
        """The offsets in the text after each sentence. A sentence that is longer than a passage
        counts as several."""
        starts = accumulate((len(chunk.content) for chunk in self.chunks), initial=0)
        return tuple(
            start + end
            for start, chunk in zip(starts, self.chunks, strict=False)
            for end in chunk.sentence_ends
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the document in types of JSON, as ``arag-search read --document --json`` prints
        it. ``chunks`` has the offsets, in code points, of each passage in ``text``."""
        ends = list(accumulate(len(chunk.content) for chunk in self.chunks))
        return {
            "id": self.id,
            "title": self.title,
            "metadata": metadata_dict(self.metadata),
            "text": self.text,
            "chunks": [
                {"id": chunk.id, "start": end - len(chunk.content), "end": end}
                for chunk, end in zip(self.chunks, ends, strict=True)
            ],
        }


def documents_of(chunks: Iterable[Chunk], location: str) -> Iterator[IndexDocument]:
    """Yield the documents of chunks, which come in corpus order; holds one document at a time.

    Raises IndexDamagedError for a document of which passages are missing: it was changed while it
    was read.
    """
    for doc_id, group in groupby(chunks, key=lambda chunk: chunk.doc_id):
        document = IndexDocument(tuple(group))
        parts = [chunk.part for chunk in document.chunks]
        if parts != list(range(1, document.chunks[0].parts + 1)):
            raise IndexDamagedError(
                f'Passages of the document "{doc_id}" are missing.',
                where=location,
                allowed=f"all {document.chunks[0].parts:,} of its passages",
                do="If the index was changed meanwhile, run the same again; else build it again.",
            )
        yield document


def read_chunks(
    engine: SearchEngine, location: str, ids: Sequence[str], scope: ResolvedPlan | None
) -> list[ReadChunk]:
    """Return chunks with their neighbours. Raises UnknownChunkError naming every id that the scope
    does not hold."""
    ids = [nfc(id_) for id_ in ids]
    chunks = engine.read(ids, scope)
    unknown = [id_ for id_, chunk in zip(ids, chunks, strict=True) if chunk is None]
    if unknown:
        raise unknown_chunks(unknown, location)
    return [
        ReadChunk(chunk, *engine.neighbours(chunk, scope)) for chunk in chunks if chunk is not None
    ]


def document_of(
    engine: SearchEngine,
    location: str,
    doc_id: str,
    scope: ResolvedPlan | None,
    timeout_s: float | None,
) -> IndexDocument:
    """Return the document with an id. Raises UnknownDocumentError, which suggests ids."""
    doc_id = nfc(doc_id)
    for document in documents_with_ids(engine, location, [doc_id], scope):
        return document
    nearest = _nearest(engine, doc_id, scope, timeout_s) if doc_id and is_unicode(doc_id) else []
    raise unknown_document(doc_id, location, nearest)


def documents_with_ids(
    engine: SearchEngine, location: str, doc_ids: Sequence[str], scope: ResolvedPlan | None
) -> Iterator[IndexDocument]:
    """Yield the documents with these ids that are in the scope, in corpus order."""
    wanted = [id for id in doc_ids if id and is_unicode(id)]
    if wanted:
        within = joined(scope, values_of(DOC_ID, wanted))
        yield from documents_of(engine.scan(within), location)


def _nearest(
    engine: SearchEngine, doc_id: str, scope: ResolvedPlan | None, timeout_s: float | None
) -> list[str]:
    passage = engine.read([doc_id], scope)[0]
    if passage is not None:
        return [passage.doc_id]
    counted = FieldsRequest((), 0, scope, deadline=Deadline.after(timeout_s))
    if engine.field_values(counted).chunks > MAX_COMPARED:
        return []
    return nearest_ids(doc_id, (chunk.doc_id for chunk in engine.scan(scope)))


def unknown_chunks(ids: Sequence[str], location: str) -> UnknownChunkError:
    """Return the error for ids that an index does not hold."""
    named = ", ".join(f'"{id_}"' for id_ in ids)
    return UnknownChunkError(
        f"No chunk has the id {named}." if len(ids) == 1 else f"No chunks have the ids {named}.",
        where=location,
        allowed="ids as searches show them in brackets",
        do="Search first, and copy the id.",
    )


def unknown_document(doc_id: str, location: str, nearest: Sequence[str]) -> UnknownDocumentError:
    """Return the error for an id that no document has."""
    suggestion = f"Did you mean {', '.join(map(_quoted, nearest))}? " if nearest else ""
    return UnknownDocumentError(
        f"No document has the id {_quoted(doc_id)}.",
        where=location,
        allowed="ids as the field doc_id has them",
        do=f"{suggestion}arag-search read INDEX --all lists all ids, Index.documents in Python.",
    )


def nearest_ids(doc_id: str, ids: Iterable[str]) -> list[str]:
    """Return the ids most like one that is unknown, at most three: those that contain it, whatever
    the case, else those that are spelled nearly the same. O(all their characters x its length)."""
    known = list(dict.fromkeys(ids))
    wanted = doc_id.strip().casefold()
    containing = [known_id for known_id in known if wanted and wanted in known_id.casefold()]
    if containing:
        return sorted(containing, key=len)[:_MOST]
    return get_close_matches(doc_id, known, _MOST, _SIMILARITY)


def _quoted(doc_id: str) -> str:
    return f'"{doc_id}"'
