"""Packing: cutting and counting documents, and preparing them for the writer.

This is the expensive part of a build. It needs only the documents themselves, neither Java nor a
connection, so that worker processes can do it (see ``index_jobs/workers/pool.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from arag_search.corpus import Chunk, Document
from arag_search.engines.write import Packer
from arag_search.field_counts import FieldCounts, Fields, counts_of_fields
from arag_search.manifest import CorpusDigest
from arag_search.query.fields import MetadataType
from index_jobs.cutting.chunking import cut


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of a batch. ``digest`` is the digest of its chunks, ``fields`` their metadata."""

    documents: int
    chunks: int
    sentences: int
    tokens: int
    title_characters: int
    digest: CorpusDigest
    fields: Fields = field(default_factory=dict[str, FieldCounts])


@dataclass(frozen=True, slots=True)
class Packed:
    """A batch that is ready to be written: the result of its packer, and its counts."""

    packed: Any
    counts: Counts


Cut = tuple[list[Chunk], int]
"""The chunks of a document and the number of their tokens."""

Numbered = Sequence[tuple[int, int, Document]]
"""Documents, each with its shard and its number in the shard."""


Work = Callable[[Numbered], Packed]
"""The function that packs a batch; it is pickled for worker processes."""


def pack(
    documents: Numbered,
    packer: Packer,
    chunk_tokens: int,
    metadata: Mapping[str, MetadataType] | None = None,
) -> Packed:
    """Cut, count and pack the documents of a batch, and count the values of ``metadata``.

    Raises BuildError for a document with too many chunks, and what the packer raises.
    """
    cuts = cut_all(documents, chunk_tokens)
    packed = packer([chunk for chunks, _ in cuts for chunk in chunks])
    return Packed(packed, counts_of(cuts, metadata))


def cut_only(documents: Numbered, chunk_tokens: int) -> Packed:
    """Cut the documents of a batch without packing or counting them, for a target that takes only
    some of them. The result holds a list of Cut."""
    return Packed(cut_all(documents, chunk_tokens), counts_of(()))


def cut_all(documents: Numbered, chunk_tokens: int) -> list[Cut]:
    """Cut documents. Raises BuildError for a document with too many chunks."""
    return [
        cut(document, shard=shard, number=number, chunk_tokens=chunk_tokens)
        for shard, number, document in documents
    ]


def counts_of(cuts: Sequence[Cut], metadata: Mapping[str, MetadataType] | None = None) -> Counts:
    """Return the counts of these documents together, with the values of ``metadata``."""
    every = [chunk for chunks, _ in cuts for chunk in chunks]
    return Counts(
        documents=len(cuts),
        chunks=len(every),
        sentences=sum(len(chunk.sentence_ends) for chunk in every),
        tokens=sum(tokens for _, tokens in cuts),
        title_characters=sum(len(chunks[0].title) for chunks, _ in cuts),
        digest=CorpusDigest.of(every),
        fields=counts_of_fields(every, metadata or {}),
    )
