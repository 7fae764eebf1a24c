"""Cutting documents into chunks of whole sentences, of about a given number of tokens, without
losing any text, and packing batches of documents: cutting, counting and preparing for the writer.

This is the expensive part of a build. It needs only the documents themselves, neither Java nor a
connection, so that worker processes can do it (see ``index_jobs/workers/pool.py``).
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from arag_search.corpus import MAX_SENTENCES, Chunk, Document, nfc, ordinal_of
from arag_search.engines.write import Packer
from arag_search.field_counts import FieldCounts, Fields, counts_of_fields
from arag_search.manifest import CorpusDigest
from arag_search.query.fields import MetadataType
from arag_search.tokens import characters_of, count_tokens, count_up_to
from index_jobs.cutting.sentences import sentence_ends

CHUNKING_VERSION = 2
"""The version of cutting: increase it when the same document would be cut differently, so that a
resumed build never mixes two ways of cutting."""

DEFAULT_CHUNK_TOKENS = 1_000
MIN_CHUNK_TOKENS = 16
MAX_CHUNK_TOKENS = 100_000

_CHARACTERS_PER_TOKEN = 6  # a text with more is cut without counting it as a whole first
_LONGEST_TOKEN = 8  # characters per token to look ahead when a long sentence is cut
_BLANK = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of a document that becomes one chunk: offsets into the NFC text.

    ``ends`` are the offsets after each of its sentences; the last is ``end``. ``tokens`` is the
    o200k token count of the stretch by itself.
    """

    start: int
    end: int
    ends: tuple[int, ...]
    tokens: int


def cut(
    document: Document, *, shard: int, number: int, chunk_tokens: int
) -> tuple[list[Chunk], int]:
    """Return the chunks of a document in order, and their total number of tokens.

    ``shard`` and ``number`` (from 0) are the place of the document in the corpus. The contents of
    the chunks, joined, are the NFC text of the document. A chunk holds whole sentences and at most
    ``chunk_tokens`` o200k tokens; a longer sentence is cut at a blank, or within a word if it must
    be. A ``whole`` document becomes one chunk with the id of the document; a ``ready`` document
    already has its chunks. Raises BuildError for a document with more chunks than an ordinal can
    number.
    """
    if document.ready is not None:
        return list(document.ready[0]), document.ready[1]
    text = nfc(document.text)
    ends = document.sentence_ends
    if ends is None:
        ends = sentence_ends(text, nfc(document.title))
    passages = [_whole(text, ends)] if document.whole else [*passages_of(text, ends, chunk_tokens)]
    parts = len(passages)
    chunks: list[Chunk] = []
    total = 0
    for part, passage in enumerate(passages):
        start = passage.start
        chunks.append(
            Chunk(
                id=document.id if document.whole else f"{document.id}.{part + 1}",
                doc_id=document.id,
                title=document.title,
                content=text if parts == 1 else text[start : passage.end],
                part=part + 1,
                parts=parts,
                ordinal=ordinal_of(shard, number, part),
                sentence_ends=tuple(end - start for end in passage.ends) if start else passage.ends,
                metadata=document.metadata,
            )
        )
        total += passage.tokens
    return chunks, total


def passages_of(text: str, ends: Sequence[int], chunk_tokens: int) -> Iterator[Passage]:
    """Cut a text into passages. ``ends`` are the ends of its sentences.

    An empty text becomes one empty passage.
    """
    if len(ends) <= MAX_SENTENCES and len(text) <= chunk_tokens * _CHARACTERS_PER_TOKEN:
        tokens = count_tokens(text)
        if tokens <= chunk_tokens:
            yield Passage(0, len(text), tuple(ends), tokens)
            return
    yield from _packed(text, _fitting(text, ends, chunk_tokens), chunk_tokens)


def _whole(text: str, ends: Sequence[int]) -> Passage:
    """Return the text as one passage, whatever its length."""
    offsets = tuple(ends)
    if len(offsets) > MAX_SENTENCES:
        offsets = (*offsets[: MAX_SENTENCES - 1], len(text))
    return Passage(0, len(text), offsets, count_tokens(text))


def _packed(text: str, pieces: Iterable[tuple[int, int]], chunk_tokens: int) -> Iterator[Passage]:
    """Pack pieces (end, tokens) greedily, in order.

    The token count of joined pieces is not exactly the sum of theirs. Therefore each passage is
    counted, and its last pieces are left to the next passage if it is too long.
    """
    start = 0
    waiting: list[tuple[int, int]] = []
    estimate = 0
    for piece in pieces:
        while waiting and (estimate + piece[1] > chunk_tokens or len(waiting) == MAX_SENTENCES):
            passage, waiting = _first_passage(text, start, waiting, chunk_tokens)
            yield passage
            start = passage.end
            estimate = sum(tokens for _, tokens in waiting)
        waiting.append(piece)
        estimate += piece[1]
    while waiting or not start:
        passage, waiting = _first_passage(text, start, waiting, chunk_tokens)
        yield passage
        start = passage.end or 1


def _first_passage(
    text: str, start: int, pieces: list[tuple[int, int]], chunk_tokens: int
) -> tuple[Passage, list[tuple[int, int]]]:
    """Return a passage of as many pieces as fit, and the other pieces."""
    count = len(pieces)
    while True:
        end = pieces[count - 1][0] if pieces else 0
        is_known = count == 1 and text[end - 1] != " "  # see _fitting
        tokens = pieces[0][1] if is_known else count_tokens(text[start:end])
        if tokens <= chunk_tokens or count <= 1:
            ends = tuple(end for end, _ in pieces[:count])
            return Passage(start, end, ends, tokens), pieces[count:]
        count -= 1


def _fitting(text: str, ends: Sequence[int], chunk_tokens: int) -> Iterator[tuple[int, int]]:
    """Yield sentences as pieces (end, tokens) that each fit into a chunk; cut long sentences."""
    start = 0
    for end in ends:
        while True:
            if end - start <= chunk_tokens * _LONGEST_TOKEN:
                tokens = count_up_to(text[start:end], chunk_tokens)
                if tokens is not None:
                    break
            start, tokens = _cut_off(text, start, end, chunk_tokens)
            yield start, tokens
        # A blank at the end will be part of the token of the next word.
        yield end, tokens - 1 if text[end - 1] == " " else tokens
        start = end


def _cut_off(text: str, start: int, end: int, chunk_tokens: int) -> tuple[int, int]:
    """Return the end and the token count of the longest start of a sentence that fits into a chunk.

    It ends after a blank, or within a word that is too long itself. The sentence is split into
    tokens once, which gives an approximate end. Only ends near it are counted exactly, since a
    shorter text may split into slightly different tokens.
    """

    @functools.cache
    def tokens_to(offset: int) -> int:
        tokens = count_up_to(text[start:offset], chunk_tokens)
        return chunk_tokens + 1 if tokens is None else tokens

    look = min(end, start + chunk_tokens * _LONGEST_TOKEN)
    size = 2 * chunk_tokens
    near = start + characters_of(text[start : min(look, start + size)], chunk_tokens)
    while near == start + size < look:
        size *= 2
        near = start + characters_of(text[start : min(look, start + size)], chunk_tokens)
    for offsets in (
        [match.end() for match in _BLANK.finditer(text, start, look)],
        range(start + 1, look),
    ):
        fitting = _fitting_offsets(offsets, near, chunk_tokens, tokens_to)
        if fitting:
            return offsets[fitting - 1], tokens_to(offsets[fitting - 1])
    return start + 1, count_tokens(text[start : start + 1])


def _fitting_offsets(
    offsets: Sequence[int], near: int, chunk_tokens: int, tokens_to: Callable[[int], int]
) -> int:
    """Return how many of the ascending offsets have at most ``chunk_tokens`` tokens before them.
    The search starts at ``near``."""
    low = high = bisect_right(offsets, near)
    step = 1
    if low and tokens_to(offsets[low - 1]) > chunk_tokens:
        while low and tokens_to(offsets[low - 1]) > chunk_tokens:
            high = low - 1
            low = max(0, high - step)
            step *= 2
    else:
        while high < len(offsets) and tokens_to(offsets[high]) <= chunk_tokens:
            low = high + 1
            high = min(len(offsets), high + step)
            step *= 2
    return bisect_right(offsets, chunk_tokens, low, high, key=tokens_to)


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
