"""The passages and documents of an index, as they are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import accumulate, groupby
from typing import Any

from arag_search.corpus import Chunk, MetadataValue, is_unicode, ordinal_of, typed_id
from arag_search.engines.base import Deadline, FieldsRequest
from arag_search.engines.hits import metadata_dict, outline_dict
from arag_search.errors import (
    AragError,
    IndexDamagedError,
    UnknownChunkError,
    UnknownDocumentError,
)
from arag_search.plan.clauses import ResolvedPlan, joined, values_of
from arag_search.query.fields import DOC_ID
from arag_search.query.filters import Data
from arag_search.search.state import IndexState

MAX_COMPARED = 5_000
"""The passages of the largest index whose ids are compared with an id that is unknown."""

_READ = 8
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


def _documents_of(chunks: Iterable[Chunk], location: str) -> Iterator[IndexDocument]:
    """Yield the documents of chunks, which come in corpus order."""
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


def chunk_read(
    state: IndexState, ids: Sequence[str], *, filter: str | Data | None = None
) -> list[ReadChunk]:
    """Return the chunks with these ids in full, in the same order.

    ``filter`` narrows the scope as in ``logical_search``; it applies to the neighbours too. Raises
    UnknownChunkError naming every id that the index (or the scope) does not hold, and QueryError
    for the filter.
    """
    part, ids = state if filter is None else state.within(filter), [*map(typed_id, ids)]
    chunks = part.engine.read(ids, part.scope)
    unknown = [id for id, chunk in zip(ids, chunks, strict=True) if chunk is None]
    if unknown:
        raise unknown_chunks(unknown, state.location)
    return with_neighbours(part, [chunk for chunk in chunks if chunk])


def read(
    state: IndexState, ids: Sequence[str], *, filter: str | Data | None = None
) -> list[Chunk | None]:
    """Return the chunks with these ids; None for an id that the index or the scope, narrowed by
    ``filter``, does not hold."""
    return state.engine.read([*map(typed_id, ids)], state.narrowed(filter)[0])


def with_neighbours(state: IndexState, chunks: Sequence[Chunk]) -> list[ReadChunk]:
    """Return chunks, each with the ids of the previous and the next one."""
    beside = state.engine.neighbours(chunks, state.scope)
    return [ReadChunk(chunk, *ids) for chunk, ids in zip(chunks, beside, strict=True)]


def scan(state: IndexState, *, filter: str | Data | None = None) -> Iterator[Chunk]:
    """Stream all chunks in the scope, narrowed by ``filter``, in corpus order."""
    return state.engine.scan(state.narrowed(filter)[0])


def documents(state: IndexState, *, filter: str | Data | None = None) -> Iterator[IndexDocument]:
    """Stream the documents in the scope, narrowed by ``filter``, in corpus order.

    Every document is read with its passages; one document is held in memory at a time. Raises
    QueryError for the filter, and IndexDamagedError if passages of a document are missing, because
    it was changed while it was read.
    """
    return _documents_of(scan(state, filter=filter), state.location)


def document_read(
    state: IndexState, doc_id: str, *, filter: str | Data | None = None
) -> IndexDocument:
    """Return the whole document with an id. ``filter`` narrows the scope.

    Raises UnknownDocumentError, which suggests ids, QueryError for the filter, and
    IndexDamagedError as ``documents`` does.
    """
    doc_id = typed_id(doc_id)
    scope, _ = state.narrowed(filter)
    for document in documents_with_ids(state, [doc_id], scope):
        return document
    nearest = _nearest(state, doc_id, scope) if doc_id and is_unicode(doc_id) else []
    named = ", ".join(f'"{id}"' for id in nearest)
    suggestion = f"Did you mean {named}? " if named else ""
    raise UnknownDocumentError(
        f'No document has the id "{doc_id}".',
        where=state.location,
        allowed="ids as the field doc_id has them",
        do=f"{suggestion}arag-search read INDEX --all lists all ids, Index.documents in Python.",
    )


def documents_with_ids(
    state: IndexState, doc_ids: Sequence[str], scope: ResolvedPlan | None
) -> Iterator[IndexDocument]:
    """Yield the documents with these ids that are in a scope, in corpus order."""
    wanted = [id for id in doc_ids if id and is_unicode(id)]
    if wanted:
        within = joined(scope, values_of(DOC_ID, wanted))
        yield from _documents_of(state.engine.scan(within), state.location)


def some_titles(state: IndexState) -> tuple[str, ...]:
    """Return the titles of at most three documents in the scope, for descriptions of tools. Only
    the first documents of the index are read, and the ones in the scope are taken."""
    ordinals = [ordinal_of(0, document, 0) for document in range(_READ)]
    try:
        chunks = state.engine.chunks_at(ordinals, state.scope)
    except AragError:  # of which the first search tells
        return ()
    titles = dict.fromkeys(chunk.title for chunk in chunks if chunk and chunk.title)
    return tuple(titles)[:_MOST]


def _nearest(state: IndexState, doc_id: str, scope: ResolvedPlan | None) -> list[str]:
    """Return at most three ids like an unknown one; none if the scope is too large to compare. If a
    passage has this id, the result is its document. Otherwise it is the ids that contain it, in any
    case, or else ids of nearly the same spelling. O(all their characters x its length)."""
    engine = state.engine
    passage = engine.read([doc_id], scope)[0]
    if passage is not None:
        return [passage.doc_id]
    counted = FieldsRequest((), 0, scope, deadline=Deadline.after(state.search_timeout_s))
    if engine.field_values(counted).chunks > MAX_COMPARED:
        return []
    known = list(dict.fromkeys(chunk.doc_id for chunk in engine.scan(scope)))
    wanted = doc_id.strip().casefold()
    containing = [id for id in known if wanted and wanted in id.casefold()]
    if containing:
        return sorted(containing, key=len)[:_MOST]
    return get_close_matches(doc_id, known, _MOST, _SIMILARITY)


def unknown_chunks(ids: Sequence[str], location: str) -> UnknownChunkError:
    """Return the error for ids that an index does not hold."""
    named = ", ".join(f'"{id_}"' for id_ in ids)
    return UnknownChunkError(
        f"No passage has the id {named}."
        if len(ids) == 1
        else f"No passages have the ids {named}.",
        where=location,
        allowed="ids as searches show them in brackets",
        do="Search first, and copy the id.",
    )
