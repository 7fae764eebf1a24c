"""Long documents in memory: cut into passages of several sentences, as a build cuts them."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from arag_search.corpus import Chunk, MetadataValue, ordinal_of
from arag_search.search.index import Index
from tests.support.passages import index_of
from tests.support.semantic_indexes import vector_index

NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def long_document(
    number: int, doc_id: str, title: str, text: str, passage: int = 300, **metadata: MetadataValue
) -> list[Chunk]:
    """Return the passages of a text of about a given number of characters; a sentence ends after
    each period or line feed, and at the end."""
    ends = [at + 1 for at, character in enumerate(text) if character in ".\n"]
    if text and (not ends or ends[-1] < len(text)):
        ends.append(len(text))
    pieces: list[list[tuple[int, int]]] = [[]]
    start = 0
    for end in ends:
        pieces[-1].append((start, end))
        start = end
        if end - pieces[-1][0][0] >= passage:
            pieces.append([])
    pieces = [piece for piece in pieces if piece] or [[]]
    chunks: list[Chunk] = []
    for part, piece in enumerate(pieces):
        begin, stop = (piece[0][0], piece[-1][1]) if piece else (0, 0)
        chunks.append(
            Chunk(
                id=f"{doc_id}.{part + 1}",
                doc_id=doc_id,
                title=title,
                content=text[begin:stop],
                part=part + 1,
                parts=len(pieces),
                ordinal=ordinal_of(0, number, part),
                sentence_ends=tuple(end - begin for _, end in piece),
                metadata=metadata,
            )
        )
    return chunks


def report(name: str, lines: int, marks: dict[int, str] | None = None) -> str:
    """Return the text of a report: numbered lines, with some lines of one's own."""
    texts = [f"The {name} report says {NUMBERS[n % 10]} on line {n}." for n in range(lines)]
    for number, text in (marks or {}).items():
        texts[number] = text
    return "\n".join(texts)


def index_of_documents(*documents: Sequence[Chunk], vectors: bool = False) -> Index:
    """Return an index in memory of documents, with vectors that hash words if wanted."""
    chunks = [chunk for document in documents for chunk in document]
    return vector_index(*chunks) if vectors else index_of(*chunks)


def random_text(random: Random, words: Sequence[str], count: int) -> str:
    """Return words with blanks, line feeds and periods between them."""
    return "".join(
        f"{random.choice(words)}{random.choice((' ', ' ', '. ', chr(10)))}" for _ in range(count)
    )
