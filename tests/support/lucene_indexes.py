"""Small corpora, and generations of a Lucene index that are built from them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from arag_search.corpus import Chunk, MetadataValue, ordinal_of
from arag_search.engines.lucene.reader import LuceneEngine
from arag_search.engines.lucene.writer import LuceneWriter
from arag_search.manifest import Manifest
from arag_search.query.fields import MetadataType
from arag_search.query.forms import steps
from tests.support.oracle.engine import LANGUAGE

METADATA: Mapping[str, MetadataType] = {
    "lang": "keyword", "year": "number", "published": "date", "draft": "boolean"
}  # fmt: skip


def chunk(
    document: int,
    content: str,
    *,
    title: str = "",
    doc_id: str = "",
    part: int = 1,
    parts: int = 1,
    metadata: Mapping[str, MetadataValue] | None = None,
) -> Chunk:
    """Build a chunk whose sentences are the lines of its content."""
    ends: list[int] = []
    for line in content.splitlines(keepends=True):
        ends.append((ends[-1] if ends else 0) + len(line))
    name = doc_id or f"d{document}"
    ordinal = ordinal_of(0, document, part - 1)
    fields = metadata or {}
    return Chunk(f"{name}.{part}", name, title, content, part, parts, ordinal, tuple(ends), fields)


def manifest_of(
    chunks: Sequence[Chunk], *, sentences: bool = True, already_chunked: bool = False
) -> Manifest:
    """Return the manifest that finishes a build of these chunks."""
    return Manifest(
        engine="lucene",
        engine_version="10.5.1",
        created="2001-05-31T12:00:00+00:00",
        documents=len({chunk.doc_id for chunk in chunks}),
        chunks=len(chunks),
        sentences=sum(len(chunk.sentence_ends) for chunk in chunks),
        tokens=0,
        chunk_tokens=1000,
        already_chunked=already_chunked,
        language=LANGUAGE,
        forms=steps(LANGUAGE),
        metadata=dict(METADATA),
        without=() if sentences else ("sentences",),
        fingerprint="0",
        placement="0" * 64,
    )


def build(
    folder: Path,
    chunks: Sequence[Chunk],
    *,
    segments: int = 1,
    sentences: bool = True,
    already_chunked: bool = False,
) -> LuceneEngine:
    """Index the chunks into ``folder``, in about ``segments`` segments, and open it."""
    out = writer(folder, resume=False, sentences=sentences)
    size = max(1, -(-len(chunks) // segments))
    for start in range(0, len(chunks), size):
        if start:
            out.commit({})
        out.add(chunks[start : start + size])
    out.finish(manifest_of(chunks, sentences=sentences, already_chunked=already_chunked), {})
    return LuceneEngine.open(folder, "the test index")


CHUNKS = [
    chunk(
        number,
        f"Opera number {number}.\nBorn in Venice.\n",
        title=f"Title {number % 3}",
        metadata={"year": number, "lang": ("en", "de")[: 1 + number % 2]},
    )
    for number in range(12)
]


def writer(folder: Path, *, resume: bool, sentences: bool = True) -> LuceneWriter:
    return LuceneWriter(
        folder, metadata=METADATA, language=LANGUAGE, sentences=sentences, resume=resume
    )
