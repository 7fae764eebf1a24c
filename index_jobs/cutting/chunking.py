"""Cutting documents into chunks of whole sentences, of about a given number of tokens, without
losing any text. Batches of documents are also cut, counted and prepared for the writer here.

This is the expensive part of a build. It needs only the documents themselves, neither Java nor a
connection, so that worker processes can do it (see ``index_jobs/workers/pool.py``).
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from operator import attrgetter
from typing import Any

from arag_search.corpus import (
    MAX_PASSAGES,
    MAX_SENTENCES,
    NO_OUTLINE,
    Chunk,
    Document,
    MetadataValue,
    PassageOutline,
    is_code,
    nfc,
    ordinal_of,
)
from arag_search.engines.write import Packer
from arag_search.errors import SourceError
from arag_search.manifest import FORMAT_VERSION
from arag_search.query.fields import MetadataType
from arag_search.query.forms import steps
from arag_search.tokens import characters_of, count_tokens, count_up_to
from index_jobs.cutting.counts import Counts, Cut
from index_jobs.cutting.sentences import sentence_ends
from index_jobs.cutting.structure import LEAST_TOKENS, Piece, Structure, ends_of_lines, line_starts

CHUNKING_VERSION = 4
"""The version of cutting: increase it when the same document would be cut differently, so that a
resumed build never mixes two ways of cutting."""


def program_version() -> list[int | str]:
    """Return the versions of all that decides how a document is cut and stored."""
    return [FORMAT_VERSION, CHUNKING_VERSION, version("sentencex"), *steps("en")]


DEFAULT_CHUNK_TOKENS = 1_000
STRUCTURE_TOKENS = 400
"""Up to how many tokens short neighbours are joined, in a document with an outline."""

PASSAGE_KIND = "passage_kind"
"""The metadata field that is "index" for a passage of links, in a document that has the field."""

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
    outline: PassageOutline = NO_OUTLINE
    is_index: bool = False


def cut(
    document: Document, *, shard: int, number: int, chunk_tokens: int
) -> tuple[list[Chunk], int]:
    """Return the chunks of a document in order, and their total number of tokens.

    ``shard`` and ``number`` (from 0) are the place of the document in the corpus. The contents of
    the chunks, joined, are the NFC text of the document. A chunk holds whole sentences and at most
    ``chunk_tokens`` o200k tokens. A longer sentence is cut at a blank, or within a word if it must
    be. A ``whole`` document becomes one chunk with the id of the document. Raises SourceError for a
    document with more than MAX_PASSAGES, and BuildError if an ordinal cannot number it.
    """
    text = nfc(document.text)
    passages = _passages(text, document, chunk_tokens)
    parts = len(passages)
    chunks: list[Chunk] = []
    total = 0
    if document.beside:
        outline = passages[0].outline._replace(beside=document.beside)
        passages[0] = replace(passages[0], outline=outline)
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
                metadata=_metadata(document, passage),
                outline=passage.outline,
            )
        )
        total += passage.tokens
    return chunks, total


def cut_up(document: Document, chunk_tokens: int) -> Document:
    """Return the document, already cut. Raises SourceError as ``cut`` does."""
    text = nfc(document.text)
    passages = _passages(text, document, chunk_tokens)
    return replace(
        document,
        text=text,
        outline=(),
        sentence_ends=tuple(end for passage in passages for end in passage.ends),
        passages=tuple((len(own.ends), own.outline, own.is_index) for own in passages),
    )


def may_be_too_long(document: Document, chunk_tokens: int) -> bool:
    """Return whether a document without an outline may have more than MAX_PASSAGES. Two passages in
    a row have more than ``chunk_tokens`` together, and a character has at most four tokens."""
    if document.passages or document.whole:
        return len(document.passages) > MAX_PASSAGES
    return len(document.text) >= MAX_PASSAGES * chunk_tokens // 16  # twice as careful


def _passages(text: str, document: Document, chunk_tokens: int) -> list[Passage]:
    starts = line_starts(text) if document.outline or document.is_file else []
    ends = document.sentence_ends
    if ends is None:
        ends = _sentence_ends(text, starts, document)
    if document.passages:
        passages = [*_given(text, ends, document)]
    elif document.whole:
        passages = [_whole(text, ends)]
    elif document.outline and text:
        passages = [*_outlined(text, starts, ends, document, chunk_tokens)]
    else:
        passages = [*passages_of(text, ends, chunk_tokens)]
        if document.is_file:
            passages = [
                replace(passage, outline=PassageOutline(line=bisect_right(starts, passage.start)))
                for passage in passages
            ]
    if len(passages) > MAX_PASSAGES:
        raise SourceError(
            f"The document has {len(passages):,} passages.",
            where=document.where or document.id,
            allowed=f"at most {MAX_PASSAGES:,} passages in one document",
            do="Split it, or raise `chunk_tokens`.",
        )
    return passages


def _metadata(document: Document, passage: Passage) -> Mapping[str, MetadataValue]:
    if passage.is_index and PASSAGE_KIND in document.metadata:
        return {**document.metadata, PASSAGE_KIND: "index"}
    return document.metadata


def _sentence_ends(text: str, starts: Sequence[int], document: Document) -> list[int]:
    """Return the ends of the sentences of a document, none of which reaches over a unit."""
    outline = document.outline
    if not outline:
        return sentence_ends(text, nfc(document.title))
    code = is_code(document.id)
    ends = [] if code else sentence_ends(text, nfc(document.title))
    return ends_of_lines(text, starts, outline, ends, code)


def passages_of(text: str, ends: Sequence[int], chunk_tokens: int) -> Iterator[Passage]:
    """Cut a text without outline into passages. ``ends`` are the ends of its sentences.

    An empty text becomes one empty passage.
    """
    if len(ends) <= MAX_SENTENCES and len(text) <= chunk_tokens * _CHARACTERS_PER_TOKEN:
        tokens = count_tokens(text)
        if tokens <= chunk_tokens:
            yield Passage(0, len(text), tuple(ends), tokens)
            return
    sentences = list(_fitting(text, ends, chunk_tokens))
    yield from _packed(text, 0, sentences, sentences, chunk_tokens, chunk_tokens)


def _outlined(
    text: str, starts: Sequence[int], ends: Sequence[int], document: Document, chunk_tokens: int
) -> Iterator[Passage]:
    """Cut the text of a document with an outline into passages that know where they stand."""
    most = min(chunk_tokens, MAX_SENTENCES)
    target = min(STRUCTURE_TOKENS, most)
    sentences = list(_fitting(text, ends, most))
    structure = Structure(starts, document.outline, sentences)
    start = first = 0
    for group in structure.groups(target, most):
        for passage in _packed(text, start, group, sentences, target, most):
            end = first + len(passage.ends)
            outline = structure.of_passage(first, end, document.title, is_file=document.is_file)
            is_index = structure.is_index(first, end)
            yield replace(passage, outline=outline, is_index=is_index)
            start, first = passage.end, end


def _whole(text: str, ends: Sequence[int]) -> Passage:
    offsets = tuple(ends)
    if len(offsets) > MAX_SENTENCES:
        offsets = (*offsets[: MAX_SENTENCES - 1], len(text))
    return Passage(0, len(text), offsets, count_tokens(text))


def _given(text: str, ends: Sequence[int], document: Document) -> Iterator[Passage]:
    start = first = 0
    for sentences, outline, is_index in document.passages:
        own = tuple(ends[first : first + sentences])
        first += sentences
        end = own[-1] if own else start
        yield Passage(start, end, own, count_tokens(text[start:end]), outline, is_index)
        start = end


def _packed(
    text: str,
    start: int,
    pieces: Sequence[Piece],
    sentences: Sequence[Piece],
    target: int,
    most: int,
) -> Iterator[Passage]:
    """Pack pieces, which follow each other from ``start``, greedily into passages of about
    ``target`` tokens and at most ``most``; the text has these ``sentences``.

    The token count of joined pieces is not exactly the sum of theirs. Therefore each passage is
    counted, and its last pieces are left to the next passage if it is too long.
    """
    waiting: list[Piece] = []
    estimate = 0
    for piece in pieces:
        while waiting and (
            estimate + piece.tokens > (target if estimate >= LEAST_TOKENS else most)
            or len(waiting) == MAX_SENTENCES
        ):
            passage, waiting = _first_passage(text, start, waiting, sentences, most)
            yield passage
            start = passage.end
            estimate = sum(piece.tokens for piece in waiting)
        waiting.append(piece)
        estimate += piece.tokens
    while waiting or not text:
        passage, waiting = _first_passage(text, start, waiting, sentences, most)
        yield passage
        start = passage.end


def _first_passage(
    text: str, start: int, pieces: list[Piece], sentences: Sequence[Piece], most: int
) -> tuple[Passage, list[Piece]]:
    count = len(pieces)
    while True:
        end = pieces[count - 1].end
        is_known = count == 1 and pieces[0].exact
        tokens = pieces[0].tokens if is_known else count_tokens(text[start:end])
        low, high = (bisect_right(sentences, at, key=_END) for at in (start, end))
        inner = sentences[low:high]
        if tokens <= most or len(inner) <= 1:
            return Passage(start, end, tuple(map(_END, inner)), tokens), pieces[count:]
        if count > 1:
            count -= 1
        else:  # a unit that is longer than the sum of its sentences
            pieces, count = [*inner, *pieces[1:]], len(inner) - 1


_END = attrgetter("end")


def _fitting(text: str, ends: Sequence[int], chunk_tokens: int) -> Iterator[Piece]:
    """Yield sentences as pieces that each fit into a chunk; cut long sentences."""
    start = 0
    for end in ends:
        while True:
            if end - start <= chunk_tokens * _LONGEST_TOKEN:
                tokens = count_up_to(text[start:end], chunk_tokens)
                if tokens is not None:
                    break
            start, tokens = _cut_off(text, start, end, chunk_tokens)
            yield Piece(start, tokens)
        # A blank at the end will be part of the token of the next word.
        is_exact = text[end - 1] != " "
        yield Piece(end, tokens if is_exact else tokens - 1, is_exact)
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
    while low and tokens_to(offsets[low - 1]) > chunk_tokens:
        high = low - 1
        low = max(0, high - step)
        step *= 2
    while high < len(offsets) and tokens_to(offsets[high]) <= chunk_tokens:
        low = high + 1
        high = min(len(offsets), high + step)
        step *= 2
    return bisect_right(offsets, chunk_tokens, low, high, key=tokens_to)


@dataclass(frozen=True, slots=True)
class Packed:
    """A batch that is ready to be written: the result of its packer, and its counts."""

    packed: Any
    counts: Counts


Numbered = Sequence[tuple[int, int, Document]]
"""Documents, each with its shard and its number in the shard."""


Work = Callable[[Numbered], Packed]
"""The function that packs a batch; it is pickled for worker processes."""


def pack(
    documents: Numbered,
    packer: Packer,
    chunk_tokens: int,
    metadata: Mapping[str, MetadataType],
) -> Packed:
    """Cut, count and pack the documents of a batch, and count the values of ``metadata``.

    Raises what ``cut`` and the packer raise.
    """
    cuts = cut_all(documents, chunk_tokens)
    packed = packer([chunk for chunks, _ in cuts for chunk in chunks])
    return Packed(packed, Counts.of(cuts, metadata))


def cut_all(documents: Numbered, chunk_tokens: int) -> list[Cut]:
    """Cut documents. Raises what ``cut`` raises."""
    return [
        cut(document, shard=shard, number=number, chunk_tokens=chunk_tokens)
        for shard, number, document in documents
    ]
