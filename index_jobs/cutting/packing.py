"""Packing: documents are cut, counted and made ready for the writer, in this process or others.

The expensive part of a build happens here, and needs nothing but the documents themselves, so that
worker processes can do it (``workers.py``). No Java and no connection is needed for it.
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
    """The counts of a batch. ``digest`` is that of its chunks."""

    documents: int
    chunks: int
    sentences: int
    tokens: int
    title_characters: int
    digest: CorpusDigest


@dataclass(frozen=True, slots=True)
class Packed:
    """A batch made ready: what its packer returned, and what it holds."""

    packed: Any
    counts: Counts


Numbered = Sequence[tuple[int, int, Document]]
"""Documents, each with its shard and its number in the shard."""

Work = Callable[[Numbered], Packed]
"""What is done with a batch; pickled where there are worker processes."""


def pack(documents: Numbered, packer: Packer, chunk_tokens: int) -> Packed:
    """Cut, count and pack the documents of a batch.

    Raises BuildError for a document of too many chunks, and what the packer raises.
    """
    cuts, counts = cut_all(documents, chunk_tokens)
    return Packed(packer([chunk for chunks, _ in cuts for chunk in chunks]), counts)


def cut_all(documents: Numbered, chunk_tokens: int) -> tuple[list[tuple[list[Chunk], int]], Counts]:
    """Return the chunks and tokens of each document, and what there is altogether. Raises
    BuildError for a document of too many chunks."""
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
