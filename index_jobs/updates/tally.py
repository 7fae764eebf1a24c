"""The counts of an index, and its placement, as an update adds and removes documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from arag_search.corpus import Chunk
from arag_search.engines.write import IndexUpdate
from arag_search.errors import ArgumentError
from arag_search.field_counts import include_counts, kept_counts, remove_counts
from arag_search.manifest import CorpusDigest, Manifest, fingerprint_hex
from arag_search.tokens import count_tokens
from index_jobs.cutting.chunking import Counts

LOOKUP_IDS = 64
"""The largest number of documents that are looked up at once."""

_SHOWN_IDS = 10


class Tally:
    """The counts of an index, as documents are added and removed. ``removed`` has the ordinals of
    the chunks that were removed."""

    def __init__(self, manifest: Manifest) -> None:
        """Start from the counts of ``manifest``."""
        self.removed: list[int] = []
        self.documents = manifest.documents
        self.chunks = manifest.chunks
        self.sentences = manifest.sentences
        self.tokens = manifest.tokens
        self.title_characters = manifest.title_characters
        self._metadata = manifest.metadata
        self._fields = kept_counts(manifest.field_counts)
        self._digest = CorpusDigest(int(manifest.fingerprint, 16), int(manifest.placement, 16))

    def add(self, counts: Counts) -> None:
        """Add the counts of a batch."""
        self.documents += counts.documents
        self.chunks += counts.chunks
        self.sentences += counts.sentences
        self.tokens += counts.tokens
        self.title_characters += counts.title_characters
        self._digest.include(counts.digest)
        include_counts(self._fields, counts.fields)

    def remove(self, chunk: Chunk) -> None:
        """Subtract a chunk; the first chunk of a document also subtracts the document."""
        self.removed.append(chunk.ordinal)
        self.chunks -= 1
        self.sentences -= len(chunk.sentence_ends)
        self.tokens -= count_tokens(chunk.content)
        if chunk.part == 1:
            self.documents -= 1
            self.title_characters -= len(chunk.title)
        self._digest.add(chunk, -1)
        remove_counts(self._fields, chunk, self._metadata)

    def manifest(self, before: Manifest) -> Manifest:
        """Return the manifest of the next update with these counts."""
        return replace(
            before,
            documents=self.documents,
            chunks=self.chunks,
            sentences=self.sentences,
            tokens=self.tokens,
            title_characters=self.title_characters,
            fingerprint=fingerprint_hex(self._digest.fingerprint),
            placement=fingerprint_hex(self._digest.placement),
            field_counts=kept_counts(self._fields),
            update=before.update + 1,
        )


def index_counts(manifest: Manifest) -> dict[str, Any]:
    """Return the fields with which a report describes the index after an update."""
    names = ("documents", "chunks", "sentences", "tokens", "fingerprint", "update")
    return {name: getattr(manifest, name) for name in names}


def existing_chunks(target: IndexUpdate, doc_ids: Sequence[str]) -> Iterator[Chunk]:
    """Yield the chunks that these documents have before the update."""
    for start in range(0, len(doc_ids), LOOKUP_IDS):
        yield from target.existing(doc_ids[start : start + LOOKUP_IDS])


def check_not_empty(tally: Tally, where: str) -> None:
    """Raise ArgumentError if no document would be left."""
    if not tally.documents:
        raise ArgumentError(
            "That would delete every document of the index.",
            where=where,
            allowed="deletions that leave at least one document",
            do="Build the index again from other sources with --overwrite, or remove the index"
            " itself.",
        )


def shown_ids(doc_ids: Sequence[str]) -> str:
    """Return the first ten ids in quotes, and the number of the others."""
    named = ", ".join(f'"{doc_id[:60]}"' for doc_id in doc_ids[:_SHOWN_IDS])
    more = len(doc_ids) - _SHOWN_IDS
    return f"{named} and {more:,} more" if more > 0 else named
