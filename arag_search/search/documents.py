"""The documents of an index, put together from their passages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import accumulate, groupby
from typing import Any

from arag_search.corpus import Chunk, MetadataValue
from arag_search.errors import IndexDamagedError, UnknownDocumentError
from arag_search.search.results import metadata_dict

MAX_COMPARED = 5_000
"""The passages of the largest index whose ids are compared with an id that is unknown."""

_NEAREST = 3
_SIMILARITY = 0.6


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
        return sorted(containing, key=len)[:_NEAREST]
    return get_close_matches(doc_id, known, _NEAREST, _SIMILARITY)


def _quoted(doc_id: str) -> str:
    return f'"{doc_id}"'
