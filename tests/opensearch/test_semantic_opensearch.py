"""Searches by vectors over an index on a real server, compared with those in memory."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from arag_search.engines.opensearch import reader
from arag_search.query.problems import QueryError
from arag_search.search import by_vectors
from arag_search.search.index import Index
from arag_search.search.results import SearchResult
from arag_search.vectors.encoders.hashing import HashingEncoder
from arag_search.vectors.opening import VectorSource
from tests.support.opensearch_server import Server
from tests.support.oracle.engine import MemoryEngine
from tests.support.oracle.vectors import MemoryVectors
from tests.support.passages import SCHEMA, VIVALDI
from tests.support.semantic_indexes import random_corpus


@pytest.fixture(scope="module")
def indexes(opensearch_url: str) -> Iterator[tuple[Index, Index]]:
    """Index the same corpus and vectors in memory and on two shards of a server."""
    chunks = [*VIVALDI, *random_corpus(Random(3), 200)[len(VIVALDI) :]]
    encoder = HashingEncoder()
    vectors = MemoryVectors(chunks, encoder, metadata=SCHEMA.metadata)
    memory = MemoryEngine(chunks, metadata=SCHEMA.metadata)
    server = Server(opensearch_url)
    engine = server.publish("semantic", chunks, memory.manifest, 2)
    source = VectorSource.of(vectors, encoder)
    yield Index(memory, "memory", vectors=source), Index(engine, "server", vectors=source)
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


def test_a_condition_that_too_many_passages_of_a_server_meet_is_refused(
    indexes: tuple[Index, Index], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, server = indexes
    matches = memory.logical_search("opera AND year:>=0").total
    assert matches is not None
    monkeypatch.setattr(reader, "MAX_LISTED", matches)
    assert server.semantic_search("venice", where="opera", filter="year:>=0").hits
    monkeypatch.setattr(reader, "MAX_LISTED", matches - 1)
    with pytest.raises(QueryError) as refused:
        server.semantic_search("venice", where="opera", filter="year:>=0")
    assert str(refused.value) == (
        f'Query not run: 1 problem.\n1. column 1, "opera": {by_vectors.TOO_MANY}\n'
        "Where: the condition where"
    )
    assert server.semantic_search("venice", where="year:>=0").hits  # vectors evaluate metadata
    assert memory.semantic_search("venice", where="opera").hits
