"""Bare loops over Lucene and over plain strings: what our own code is measured against.

They do the essential work of a search system and nothing else, and are written as a JPype expert
would write them: class handles and bound methods are looked up once, strings that are used twice
cross to Java once, byte strings are passed unchanged.
"""

from __future__ import annotations

import heapq
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arag_search.corpus import Chunk
from arag_search.engines.lucene import schema
from arag_search.engines.lucene.jvm import java, java_array, java_string
from arag_search.engines.lucene.writer import RAM_BUFFER_MB
from arag_search.query.fields import CONTENT, DOC_ID, FORMS, TITLE
from arag_search.query.forms import forms_of_chunk
from arag_search.query.names import names_of

_DOCUMENT = "org.apache.lucene.document"
_INDEX = "org.apache.lucene.index"
_SEARCH = "org.apache.lucene.search"


@dataclass(frozen=True, slots=True)
class PreparedChunk:
    """A chunk with the ready-made contents of its Lucene documents.

    ``sentences`` are pairs of ordinal and text.
    """

    id: str
    doc_id: str
    title: str
    text: str
    ordinal: int
    record: bytes
    names: list[str]
    sentences: tuple[tuple[int, str], ...]


def prepared(chunk: Chunk) -> PreparedChunk:
    """Prepare a chunk for indexing."""
    return PreparedChunk(
        chunk.id,
        chunk.doc_id,
        chunk.title,
        chunk.content,
        chunk.ordinal,
        schema.encode_record(chunk),
        names_of(chunk.title, chunk.doc_id) if chunk.part == 1 else [],
        tuple((chunk.ordinal + n, text) for n, text in enumerate(chunk.sentences())),
    )


# Indexing


@dataclass(frozen=True, slots=True)
class _Classes:
    document: Any
    exact: Any
    keyword: Any
    analysed: Any
    stored: Any
    column: Any
    bytes_column: Any
    byte_array: Any
    bytes_ref: Any
    point: Any
    no: Any
    yes: Any


def _classes() -> _Classes:
    store = java(f"{_DOCUMENT}.Field$Store")
    return _Classes(
        document=java(f"{_DOCUMENT}.Document"),
        exact=java(f"{_DOCUMENT}.StringField"),
        keyword=java(f"{_DOCUMENT}.KeywordField"),
        analysed=java(f"{_DOCUMENT}.TextField"),
        stored=java(f"{_DOCUMENT}.StoredField"),
        column=java(f"{_DOCUMENT}.NumericDocValuesField"),
        bytes_column=java(f"{_DOCUMENT}.BinaryDocValuesField"),
        byte_array=type(java_array("byte", b"")),
        bytes_ref=java("org.apache.lucene.util.BytesRef"),
        point=java(f"{_DOCUMENT}.LongPoint"),
        no=store.NO,
        yes=store.YES,
    )


def index_bare(chunks: Iterable[PreparedChunk], folder: Path) -> None:
    """Index with one Lucene document for all chunks and another for all sentences, whose fields are
    reused, and commit."""
    make = _classes()
    record = make.bytes_column(schema.RECORD, make.bytes_ref())
    stored_text = make.stored(schema.TEXT, "")
    identifier = make.exact(schema.ID, "", make.no)
    chunk_fields = _fields(make)
    chunk_document = _document(make, [record, identifier, *chunk_fields, stored_text])
    sentence_fields = _fields(make)
    sentence_document = _document(make, sentence_fields)
    set_record, set_stored = record.setBytesValue, stored_text.setStringValue
    set_id = identifier.setStringValue
    set_doc_id, set_column, set_point, set_title, set_text = _setters(chunk_fields)
    of_document, column, point, of_title, set_sentence = _setters(sentence_fields)
    with _writers(folder) as (add_chunk, add_sentence):
        for chunk in chunks:
            title, text = java_string(chunk.title), java_string(chunk.text)
            set_record(chunk.record)
            set_id(chunk.id)
            set_doc_id(chunk.doc_id)
            set_column(chunk.ordinal)
            set_point(chunk.ordinal)
            set_title(title)
            set_text(text)
            set_stored(text)
            for name in chunk.names:
                chunk_document.add(make.exact(schema.NAME, name, make.no))
            add_chunk(chunk_document)
            chunk_document.removeFields(schema.NAME)
            of_document(chunk.doc_id)
            of_title(title)
            for ordinal, sentence in chunk.sentences:
                column(ordinal)
                point(ordinal)
                set_sentence(sentence)
                add_sentence(sentence_document)


def _fields(make: _Classes) -> list[Any]:
    return [
        make.keyword(DOC_ID, "", make.no),
        make.column(schema.ORDINAL, 0),
        make.point(schema.ORDINAL, java_array("long", [0])),
        make.analysed(TITLE, "", make.no),
        make.analysed(CONTENT, "", make.no),
    ]


def _setters(fields: Sequence[Any]) -> list[Any]:
    doc_id, column, point, title, content = fields
    return [
        doc_id.setStringValue,
        column.setLongValue,
        point.setLongValue,
        title.setStringValue,
        content.setStringValue,
    ]


def _document(make: _Classes, fields: Sequence[Any]) -> Any:
    document = make.document()
    for field in fields:
        document.add(field)
    return document


@contextmanager
def _writers(folder: Path) -> Generator[list[Any]]:
    """Yield ``addDocument`` of the chunk index and of the sentence index, and commit both
    afterwards.

    The folders are those of the engine, so that the same code can count their contents.
    """
    writers = [_writer(folder / name) for name in (schema.CHUNKS_FOLDER, schema.SENTENCES_FOLDER)]
    yield [writer.addDocument for writer in writers]
    for writer in writers:
        writer.commit()
    for writer in writers:
        writer.close()


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


def index_with_stored_names(chunks: Iterable[Chunk], folder: Path, language: str) -> None:
    """Index chunks with the normal forms of their words, and store only id, doc_id and title, as
    strings."""
    make = _classes()
    writer = _writer(folder)
    field = java("org.apache.lucene.document.TextField")
    stream = java("arag.Words").stream
    for chunk in chunks:
        document = make.document()
        document.add(make.exact(schema.ID, chunk.id, make.yes))
        document.add(make.exact(DOC_ID, chunk.doc_id, make.yes))
        document.add(make.analysed(TITLE, chunk.title, make.yes))
        document.add(make.analysed(CONTENT, chunk.content, make.no))
        forms = forms_of_chunk(chunk, language)
        for name, terms in ((TITLE, forms.title), (CONTENT, forms.content)):
            document.add(field(FORMS[name], stream(java_array("byte", terms.encode()), True)))
        writer.addDocument(document)
    writer.commit()
    writer.close()


Names = tuple[str, str, str]
"""Id, doc_id and title of a hit."""


class BareSearcher:
    """Runs prebuilt Lucene queries over an index of ``index_with_stored_names``."""

    def __init__(self, folder: Path, k1: float, b: float) -> None:
        self._directory = _directory(folder)
        self._reader = java(f"{_INDEX}.DirectoryReader").open(self._directory)
        searcher = java(f"{_SEARCH}.IndexSearcher")(self._reader)
        searcher.setQueryCache(None)
        searcher.setSimilarity(java(f"{_SEARCH}.similarities.BM25Similarity")(k1, b))
        self._search = searcher.search
        self._stored_fields = searcher.storedFields
        self._names = [java_string(name) for name in (schema.ID, DOC_ID, TITLE)]

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
        fields = self._stored_fields()
        docs = self._search(query, top_k).scoreDocs
        return [(str(fields.document(hit.doc).get(schema.ID)), float(hit.score)) for hit in docs]

    def close(self) -> None:
        """Free files."""
        self._reader.close()
        self._directory.close()


@contextmanager
def without_query_cache() -> Generator[None]:
    """Switch off the query cache of all searchers that are created in the block; the setting is
    that of the process."""
    searcher = java(f"{_SEARCH}.IndexSearcher")
    before = searcher.getDefaultQueryCache()
    searcher.setDefaultQueryCache(None)
    try:
        yield
    finally:
        searcher.setDefaultQueryCache(before)


# Scanning


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
