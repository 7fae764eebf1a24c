"""Searches by vectors over an index on a real server, compared with those in memory."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from arag_search.engines.opensearch.reader import OpenSearchEngine
from arag_search.search.finding import by_vectors
from arag_search.search.index import Index
from arag_search.search.results import SearchResult
from arag_search.vectors.encoders.hashing import HashingEncoder
from arag_search.vectors.opening import VectorSource
from tests.support.opensearch_server import Server
from tests.support.oracle.engine import MemoryEngine
from tests.support.oracle.vectors import MemoryVectors
from tests.support.passages import SCHEMA, VIVALDI
from tests.support.semantic_indexes import random_corpus
from tests.support.stored_vectors import stored_chunks


@pytest.fixture(scope="module")
def indexes(opensearch_url: str) -> Iterator[tuple[Index, Index]]:
    """Index the same corpus and vectors in memory and on two shards of a server."""
    chunks = [*VIVALDI, *random_corpus(Random(3), 200)[len(VIVALDI) :]]
    encoder = HashingEncoder()
    vectors = MemoryVectors(chunks, encoder)
    memory = MemoryEngine(chunks, metadata=SCHEMA.metadata)
    server = Server(opensearch_url)
    engine = server.publish("semantic", chunks, memory.manifest, 2)
    source = VectorSource.of(vectors, encoder)
    yield Index(memory, "memory", vectors=source), Index(engine, "server", vectors=source)
    engine.close()
    server.clean()


@pytest.fixture(scope="module")
def broad(
    opensearch_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Index, Index]]:
    """Index a thousand passages in memory and on a server, with vectors in a store."""
    chunks = random_corpus(Random(5), 1_000)
    encoder = HashingEncoder()
    memory = MemoryEngine(chunks, metadata=SCHEMA.metadata)
    server = Server(opensearch_url)
    engine = server.publish("broad", chunks, memory.manifest, 2)
    stored = stored_chunks(tmp_path_factory.mktemp("vectors"), chunks, encoder)
    yield (
        Index(memory, "memory", vectors=VectorSource.of(stored.open(), encoder)),
        Index(engine, "server", vectors=VectorSource.of(stored.open(), encoder)),
    )
    engine.close()
    server.clean()


def comparable(result: SearchResult) -> SearchResult:
    """Return the result without its time, and with scores of six digits.

    Shards sum BM25 in another order.
    """
    hits = tuple(hit._replace(score=round(hit.score, 6)) for hit in result.hits)
    return replace(result, milliseconds=0.0, hits=hits)


def answers(index: Index, query: str) -> list[SearchResult]:
    """Return the comparable results of all searches by vectors."""
    results = (
        index.semantic_search(query, filter="year:>=100"),
        index.semantic_search(query, top_k=20, offset=3, snippets=False),
        index.hybrid_search(query, top_k=20, filter="NOT year:150"),
        index.hybrid_search(query, vectors="sentence"),
        index.naive_embedding_search(query),
    )
    return [comparable(result) for result in results]


@pytest.mark.parametrize("query", ["Who revised the libretto of Griselda?", "vivaldi born", "?"])
def test_a_server_answers_by_vectors_as_memory_does(
    indexes: tuple[Index, Index], query: str
) -> None:
    memory, server = indexes
    assert answers(server, query) == answers(memory, query)


@pytest.mark.parametrize(
    ("condition", "most_questions"),
    [("year:0", 2), ("year:<10", 2), ("year:<100", 4), ("year:<500", 4)],
)
def test_a_server_counts_a_scope_and_lists_it_or_is_asked_about_the_nearest(
    broad: tuple[Index, Index], condition: str, most_questions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, server = broad
    monkeypatch.setattr(by_vectors, "MAX_LISTED_ORDINALS", 60)  # of 1,000 passages
    questions: list[str] = []
    for name in ("counts", "among"):
        monkeypatch.setattr(OpenSearchEngine, name, _noting(name, questions))
    search: dict[str, Any] = {"query": "vivaldi born", "top_k": 10, "filter": condition}
    for _ in range(2):
        result = comparable(server.naive_embedding_search(**search))
        assert result == comparable(memory.naive_embedding_search(**search))
    assert questions[:2] == ["counts", "among"]
    assert len(questions) <= most_questions  # nothing is asked again


def _noting(name: str, questions: list[str]) -> Callable[..., object]:
    """Return the method of an engine, which notes that it was asked."""
    ask: Callable[..., object] = getattr(OpenSearchEngine, name)

    def noted(*arguments: object, **options: object) -> object:
        questions.append(name)
        return ask(*arguments, **options)

    return noted
