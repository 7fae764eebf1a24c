"""The counts of documents and their chunks, of a batch, of a build and of an index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from arag_search.corpus import Chunk
from arag_search.field_counts import (
    FieldCounts,
    Fields,
    counts_of_fields,
    include_counts,
    kept_counts,
    remove_counts,
)
from arag_search.manifest import CorpusDigest, Manifest, fingerprint_hex
from arag_search.query.fields import MetadataType
from arag_search.tokens import count_tokens

Cut = tuple[list[Chunk], int]
"""The chunks of a document and the number of their tokens."""

_NUMBERS = ("documents", "chunks", "sentences", "tokens", "title_characters")


@dataclass(slots=True)
class Counts:
    """The counts of documents. ``digest`` is the digest of their chunks, ``fields`` has the values
    of their metadata."""

    documents: int = 0
    chunks: int = 0
    sentences: int = 0
    tokens: int = 0
    title_characters: int = 0
    digest: CorpusDigest = field(default_factory=CorpusDigest)
    fields: Fields = field(default_factory=dict[str, FieldCounts])

    @staticmethod
    def of(cuts: Sequence[Cut], metadata: Mapping[str, MetadataType]) -> Counts:
        """Count documents, with the values of ``metadata``."""
        chunks = [chunk for chunks, _ in cuts for chunk in chunks]
        return Counts(
            documents=len(cuts),
            chunks=len(chunks),
            sentences=sum(len(chunk.sentence_ends) for chunk in chunks),
            tokens=sum(tokens for _, tokens in cuts),
            title_characters=sum(len(chunks[0].title) for chunks, _ in cuts),
            digest=CorpusDigest.of(chunks),
            fields=counts_of_fields(chunks, metadata),
        )

    @staticmethod
    def of_index(manifest: Manifest) -> Counts:
        """Return the counts that an index has."""
        return Counts(
            **{name: getattr(manifest, name) for name in _NUMBERS},
            digest=CorpusDigest(int(manifest.fingerprint, 16), int(manifest.placement, 16)),
            fields=kept_counts(manifest.field_counts),
        )

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> Counts:
        """Return the counts that ``dataclasses.asdict`` and JSON have turned into ``values``."""
        fields = {name: FieldCounts.from_json(counts) for name, counts in values["fields"].items()}
        numbers = {name: values[name] for name in _NUMBERS}
        return Counts(**numbers, digest=CorpusDigest(**values["digest"]), fields=fields)

    def include(self, more: Counts) -> None:
        """Add the counts of other documents, of the fields that these counts have."""
        for name in _NUMBERS:
            setattr(self, name, getattr(self, name) + getattr(more, name))
        self.digest.include(more.digest)
        include_counts(self.fields, more.fields)

    def remove(self, chunk: Chunk, metadata: Mapping[str, MetadataType]) -> None:
        """Subtract a chunk; the first chunk of a document also subtracts the document."""
        self.chunks -= 1
        self.sentences -= len(chunk.sentence_ends)
        self.tokens -= count_tokens(chunk.content)
        if chunk.part == 1:
            self.documents -= 1
            self.title_characters -= len(chunk.title)
        self.digest.add(chunk, -1)
        remove_counts(self.fields, chunk, metadata)

    def in_manifest(self) -> dict[str, Any]:
        """Return the counts as fields of a manifest."""
        return {
            **{name: getattr(self, name) for name in _NUMBERS},
            "fingerprint": fingerprint_hex(self.digest.fingerprint),
            "placement": fingerprint_hex(self.digest.placement),
            "field_counts": kept_counts(self.fields),
        }
