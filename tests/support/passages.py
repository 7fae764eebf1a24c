"""A few passages about Vivaldi, and indexes of passages in plain Python."""

from __future__ import annotations

from random import Random

from arag_search.corpus import Chunk, MetadataValue, ordinal_of
from arag_search.query.fields import Schema
from arag_search.query.filters import parse_filter
from arag_search.search.index import Index
from tests.support.oracle.engine import MemoryEngine
from tests.support.plans import scoped

SCHEMA = Schema({"year": "number", "lang": "keyword"})


def chunk(
    document: int,
    doc_id: str,
    title: str,
    *sentences: str,
    part: int = 1,
    parts: int = 1,
    **metadata: MetadataValue,
) -> Chunk:
    ends: list[int] = []
    for sentence in sentences:
        ends.append((ends[-1] if ends else 0) + len(sentence))
    return Chunk(
        id=f"{doc_id}.{part}",
        doc_id=doc_id,
        title=title,
        content="".join(sentences),
        part=part,
        parts=parts,
        ordinal=ordinal_of(0, document, part - 1),
        sentence_ends=tuple(ends),
        metadata=metadata,
    )


def index_of(*chunks: Chunk, scope: str | None = None, sentences: bool = True) -> Index:
    engine = MemoryEngine(chunks, metadata=SCHEMA.metadata, sentences=sentences)
    return Index(engine, "memory", None if scope is None else scoped(parse_filter(scope, SCHEMA)))


VIVALDI = (
    chunk(
        0,
        "vivaldi",
        "Antonio Vivaldi",
        "Antonio Vivaldi was born in Venice. ",
        "He wrote many operas. ",
        "The priest taught violin. ",
        "Each libretto was new.",
        parts=2,
        year=1678,
        lang=("en", "it"),
    ),
    chunk(
        0,
        "vivaldi",
        "Antonio Vivaldi",
        "He died in Vienna. ",
        "Vivaldi's music was forgotten.",
        part=2,
        parts=2,
        year=1678,
        lang=("en", "it"),
    ),
    chunk(
        1,
        "griselda",
        "Griselda (Vivaldi)",
        "Griselda is an opera by Antonio Vivaldi. ",
        "Its premiere was in Venice. ",
        "Its libretto was revised by the young Carlo Goldoni.",
        year=1735,
    ),
    chunk(2, "scarlatti", "Griselda (Scarlatti)", "This opera is older.", year=1721),
    chunk(3, "page", "", "A page without a title."),
)


WORDS = ("opera", "la", "東京タワー", "x" * 60, "ඞ🧿", "naïve,", "a.b.c")


def random_chunks(random: Random) -> list[Chunk]:
    def words(count: int) -> str:
        return " ".join(random.choice(WORDS) for _ in range(count))

    chunks: list[Chunk] = []
    for number in range(random.choice((1, 3, 8))):
        doc_id = f"d{number}" + random.choice(("", "", "-é" * 20))
        parts = random.choice((1, 3))
        for part in range(1, parts + 1):
            sentences = [
                f"opera {words(random.choice((0, 3, 10, 80)))}. "
                for _ in range(random.choice((0, 1, 2, 5)))
            ]
            title = f"opera {words(random.choice((0, 3, 100)))}" if random.random() < 0.8 else ""
            lang = ("y" * 300,) * random.choice((1, 9))
            metadata = {"lang": lang} if random.random() < 0.3 else {}
            chunks.append(
                chunk(
                    number, doc_id, title or "opera", *sentences, part=part, parts=parts, **metadata
                )
            )
    return chunks


def index_of_texts(*texts: str, title: str = "Venice", k1: float = 1.2) -> Index:
    chunks = [chunk(n, f"d{n}", title, text) for n, text in enumerate(texts)]
    return Index(MemoryEngine(chunks, k1=k1), "memory")
