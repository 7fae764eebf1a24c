"""Bare loops over Lucene and over plain strings: what our own code is measured against.

They do the essential work of a search system and nothing else, as a JPype expert would write them.
Class handles and bound methods are looked up once, strings that are used twice cross to Java once,
and byte strings are passed unchanged.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from arag_search.corpus import Chunk
from arag_search.engines import stored
from arag_search.engines.lucene.jvm import java, java_array, java_string
from arag_search.engines.lucene.writer import RAM_BUFFER_MB
from arag_search.query.fields import CONTENT, DOC_ID, FORM_FIELDS, TITLE
from arag_search.query.forms import forms_of_chunk

_DOCUMENT = "org.apache.lucene.document"
_INDEX = "org.apache.lucene.index"
_SEARCH = "org.apache.lucene.search"


# Indexing


def index_bare(chunks: Iterable[Chunk], folder: Path, language: str | None) -> None:
    """Index title and text of chunks, with the normal forms of their words in a language, and store
    only id, doc_id and title, as strings."""
    store, exact = java(f"{_DOCUMENT}.Field$Store"), java(f"{_DOCUMENT}.StringField")
    text, stream = java(f"{_DOCUMENT}.TextField"), java("arag.Words").stream
    yes, no, make_document = store.YES, store.NO, java(f"{_DOCUMENT}.Document")
    writer = _writer(folder)
    add = writer.addDocument
    for chunk in chunks:
        document = make_document()
        add_field = document.add
        add_field(exact(stored.ID, chunk.id, yes))
        add_field(exact(DOC_ID, chunk.doc_id, yes))
        add_field(text(TITLE, chunk.title, yes))
        add_field(text(CONTENT, chunk.content, no))
        if language is not None:
            forms = forms_of_chunk(chunk, language)
            for name, terms in ((TITLE, forms.title), (CONTENT, forms.content)):
                add_field(text(FORM_FIELDS[name], stream(java_array("byte", terms.encode()), True)))
        add(document)
    writer.commit()
    writer.close()


def word_counts(folder: Path) -> dict[str, int]:
    """Return the documents of a Lucene index, and how many words its fields of text have."""
    with (
        _directory(folder) as directory,
        java(f"{_INDEX}.DirectoryReader").open(directory) as reader,
    ):
        counts = {name: int(reader.getSumTotalTermFreq(name)) for name in (TITLE, CONTENT)}
        return {"documents": int(reader.numDocs()), **counts}


def _writer(folder: Path) -> Any:
    """Open a writer with our settings."""
    analyser = java("org.apache.lucene.analysis.standard.StandardAnalyzer")()
    config = java(f"{_INDEX}.IndexWriterConfig")(analyser)
    config.setRAMBufferSizeMB(RAM_BUFFER_MB)
    config.setMergePolicy(java(f"{_INDEX}.LogByteSizeMergePolicy")())
    return java(f"{_INDEX}.IndexWriter")(_directory(folder), config)


def _directory(folder: Path) -> Any:
    path = java("java.nio.file.Paths").get(str(folder))
    return java("org.apache.lucene.store.FSDirectory").open(path)


# Searching


Names = tuple[str, str, str]
"""Id, doc_id and title of a hit."""


class BareSearcher:
    """Runs prebuilt Lucene queries over an index of ``index_bare``."""

    def __init__(self, folder: Path, k1: float, b: float) -> None:
        self._directory = _directory(folder)
        self._reader = java(f"{_INDEX}.DirectoryReader").open(self._directory)
        searcher = java(f"{_SEARCH}.IndexSearcher")(self._reader)
        searcher.setQueryCache(None)
        searcher.setSimilarity(java(f"{_SEARCH}.similarities.BM25Similarity")(k1, b))
        self._search = searcher.search
        self._stored_fields = searcher.storedFields
        self._names = [java_string(name) for name in (stored.ID, DOC_ID, TITLE)]

    def search(self, query: Any, top_k: int) -> list[Names]:
        """Return the names of the best hits by score, read from stored fields."""
        document_of = self._stored_fields().document
        identifier, doc_id, title = self._names
        hits: list[Names] = []
        for hit in self._search(query, top_k).scoreDocs:
            get = document_of(hit.doc).get
            hits.append((str(get(identifier)), str(get(doc_id)), str(get(title))))
        return hits

    def scored(self, query: Any, top_k: int) -> list[tuple[str, float]]:
        """Return id and score of the best hits, for comparisons."""
        scores = [float(hit.score) for hit in self._search(query, top_k).scoreDocs]
        return list(zip([name for name, *_ in self.search(query, top_k)], scores, strict=True))

    def close(self) -> None:
        """Free files."""
        self._reader.close()
        self._directory.close()


def scan(texts: Sequence[str], keywords: Sequence[str], top_k: int) -> list[tuple[float, int]]:
    """Score every text by A-RAG's Eq. 1: (score, -place) of the best, the earlier of equals first.

    ``texts`` are lower-cased beforehand, which A-RAG's reference does anew for every search.
    """
    wanted = [(keyword.lower(), len(keyword)) for keyword in keywords]
    heap: list[tuple[float, int]] = []
    for place, text in enumerate(texts):
        score = 0
        for keyword, length in wanted:
            score += text.count(keyword) * length
        if score:
            entry = (float(score), -place)
            if len(heap) < top_k:
                heapq.heappush(heap, entry)
            elif entry > heap[0]:
                heapq.heapreplace(heap, entry)
    return sorted(heap, reverse=True)
