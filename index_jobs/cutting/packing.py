"""Packing: cutting and counting documents, and preparing them for the writer.

This is the expensive part of a build. It needs only the documents themselves, neither Java nor a
connection, so that worker processes can do it (see ``index_jobs/workers/pool.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from arag_search.corpus import Chunk, Document
from arag_search.engines.write import Packer
from arag_search.manifest import CorpusDigest
from index_jobs.cutting.chunking import cut


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of a batch. ``digest`` is the digest of its chunks."""

    documents: int
    chunks: int
    sentences: int
    tokens: int
    title_characters: int
    digest: CorpusDigest


@dataclass(frozen=True, slots=True)
class Packed:
    """A batch that is ready to be written: the result of its packer, and its counts."""

    packed: Any
    counts: Counts


Numbered = Sequence[tuple[int, int, Document]]
"""Documents, each with its shard and its number in the shard."""

Work = Callable[[Numbered], Packed]
"""The function that packs a batch; it is pickled for worker processes."""


def pack(documents: Numbered, packer: Packer, chunk_tokens: int) -> Packed:
    """Cut, count and pack the documents of a batch.

    Raises BuildError for a document with too many chunks, and what the packer raises.
    """
    cuts, counts = cut_all(documents, chunk_tokens)
    return Packed(packer([chunk for chunks, _ in cuts for chunk in chunks]), counts)


def cut_all(documents: Numbered, chunk_tokens: int) -> tuple[list[tuple[list[Chunk], int]], Counts]:
    """Return the chunks and the token count of each document, and the counts of all together.
    Raises BuildError for a document with too many chunks."""
    cuts: list[tuple[list[Chunk], int]] = []
    count = tokens = sentences = titles = 0
    digest = CorpusDigest()
    for shard, number, document in documents:
        chunks, cut_tokens = cut(document, shard=shard, number=number, chunk_tokens=chunk_tokens)
        for chunk in chunks:
            digest.add(chunk)
            sentences += len(chunk.sentence_ends)
        cuts.append((chunks, cut_tokens))
        count += len(chunks)
        tokens += cut_tokens
        titles += len(document.title)
    return cuts, Counts(len(documents), count, sentences, tokens, titles, digest)
