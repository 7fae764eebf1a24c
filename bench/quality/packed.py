"""Corpora as they are published, and packed: several published passages to a document.

A packed document is a run of as many passages as fit the tokens, in the order of the corpus. Each
has its title on a line and its text under it, with a blank line between passages. The title of the
document joins all of their titles. The document is then indexed like any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from arag_search.corpus import Document
from arag_search.errors import SourceError
from arag_search.search.index import Index
from arag_search.system.durable import write_atomically
from arag_search.tokens import count_tokens
from arag_search.vectors.base import Encoder
from bench import BenchError
from bench.data import INDEX, own_index
from bench.quality.data_sets import open_kept, open_with_vectors
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.opening import open_sources
from index_jobs.sources.records import Fields

PUBLISHED = "published"
ALLOWED = '"published", or "packed N" with N tokens a document'

_LEVEL = re.compile(r"packed ([1-9]\d*)")
_BETWEEN = "\n\n"
_BETWEEN_TITLES = "; "


@dataclass(frozen=True, slots=True)
class Packing:
    """A packing of passages: documents of at most ``tokens`` tokens, unless a single passage has
    more."""

    tokens: int

    @staticmethod
    def of(level: str) -> Packing | None:
        """Return the packing that a level names; None means passages as published. Raises
        BenchError."""
        if level == PUBLISHED:
            return None
        match = _LEVEL.fullmatch(level)
        if match is None:
            raise BenchError(f'"{level}" is not a packing of passages.', allowed=ALLOWED)
        return Packing(int(match[1]))


def pack(documents: Iterable[Document], packing: Packing) -> Iterator[Document]:
    """Pack the documents in their order. Metadata are left out."""
    packed: list[tuple[Document, str]] = []
    tokens = number = 0
    between = count_tokens(_BETWEEN)
    for document in documents:
        text = f"{document.title}\n{document.text}" if document.title else document.text
        cost = count_tokens(text) + between
        if packed and tokens + cost > packing.tokens:
            number += 1
            yield _packed(number, packed)
            packed, tokens = [], 0
        packed.append((document, text))
        tokens += cost
    if packed:
        yield _packed(number + 1, packed)


def _packed(number: int, packed: Sequence[tuple[Document, str]]) -> Document:
    titles = [document.title for document, _ in packed if document.title]
    return Document(
        f"packed-{number}",
        _BETWEEN_TITLES.join(titles),
        _BETWEEN.join(text for _, text in packed),
    )


def packed_corpus(corpus: Path, folder: Path, packing: Packing) -> Path:
    """Write the file of a packed corpus to ``folder``, unless it has the same content already, and
    return its path. Raises SourceError."""
    path = folder / "corpus.jsonl"
    lines = [
        orjson.dumps({"id": document.id, "title": document.title, "text": document.text})
        for document in pack(documents_of(corpus), packing)
    ]
    content = b"\n".join([*lines, b""])
    if not (path.is_file() and path.read_bytes() == content):
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
    return path


def open_cut(corpus: Path, passages: str, kept: Path, encoder: Encoder | str | None) -> Index:
    """Open the index of a corpus with passages of one packing, kept below ``kept`` or built there;
    with vectors if an encoder is passed. Raises what building an index raises."""
    packing = Packing.of(passages)
    folder = kept / re.sub(r"\W+", "-", passages)
    if packing is not None:
        corpus = packed_corpus(corpus, folder / "corpus", packing)
    return open_kept(corpus, folder, encoder)


def open_set(
    folder: Path, corpus: Path, passages: str, kept: Path, encoder: Encoder | str | None
) -> Index:
    """Open the index of a data set with passages of one packing: its own if they are as published
    and it has one, else one of its corpus that is kept; see ``open_cut``."""
    location = own_index(folder)
    if location is not None and passages == PUBLISHED:
        return open_with_vectors(location, kept / INDEX, encoder)
    return open_cut(corpus, passages, kept, encoder)


def check_packable(name: str, corpus: Path, passages: str, index: str | None = None) -> None:
    """Raise BenchError if the passages of a data set are to be packed and it has no corpus, or is
    searched in a given index."""
    if passages != PUBLISHED and (index is not None or not corpus.is_file()):
        raise BenchError(
            f'The data set "{name}" has an index, and no corpus to pack.',
            where=index or str(corpus.parent),
            allowed=f'passages "{PUBLISHED}"',
        )


def documents_of(corpus: Path) -> Iterator[Document]:
    """Yield the documents of a corpus file. Raises SourceError for one that cannot be read."""
    for source in open_sources([str(corpus)], None, Fields(), MetadataReader({})):
        for _, document in source.documents():
            if isinstance(document, SourceError):
                raise document
            yield document
