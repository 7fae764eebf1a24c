"""OpenSearch and MemoryEngine must give the same answers to every request: with one shard on one
node, and with three shards on three nodes.

The corpora, trees and limits are those of the comparison with Lucene (test_differential.py).
"""

from collections.abc import Iterator

import pytest

from arag_search.engines.opensearch import reader
from bench.cluster.cluster import LocalCluster
from tests.support import agreement
from tests.support.agreement import Pair
from tests.support.opensearch_server import Server

SIZES = (40, 6, 60)


@pytest.fixture(name="pairs", scope="module")
def engine_pairs(opensearch_url: str, opensearch_cluster: LocalCluster) -> Iterator[list[Pair]]:
    """Index each corpus in memory, on one shard of one node, and on three shards of three nodes."""
    servers = [(1, Server(opensearch_url)), (3, Server(opensearch_cluster.url))]
    pairs: list[Pair] = []
    try:
        for number, memory in enumerate(agreement.corpora_in_memory(SIZES)):
            chunks = list(memory.scan(None))
            for shards, server in servers:
                engine = server.publish(f"parity-{number}", chunks, memory.manifest, shards)
                pairs.append((memory, engine))
        holders = opensearch_cluster.holders(f"{servers[1][1].prefix}*")
        assert set().union(*holders.values()) == {"node-1", "node-2", "node-3"}
        yield pairs
    finally:
        for _, engine in pairs:
            engine.close()
        for _, server in servers:
            server.clean()


def test_opensearch_gives_the_pages_that_memory_gives(pairs: list[Pair]) -> None:
    # Each example takes one or two requests; their number is bounded by the time for tests.
    agreement.agree_on_pages(pairs, agreement.EXAMPLES // 3)


def test_opensearch_counts_keywords_as_memory_does(pairs: list[Pair]) -> None:
    agreement.agree_on_keywords(pairs)


def test_opensearch_counts_matches_as_memory_does(pairs: list[Pair]) -> None:
    agreement.agree_on_counts(pairs)


def test_opensearch_knows_the_very_frequent_words_that_memory_knows(pairs: list[Pair]) -> None:
    agreement.agree_on_frequent_words(pairs)


def test_explanations_of_opensearch_are_those_of_memory(pairs: list[Pair]) -> None:
    agreement.agree_on_explanations(pairs)


def test_opensearch_finds_chunks_by_ordinal_as_memory_does(
    pairs: list[Pair], monkeypatch: pytest.MonkeyPatch
) -> None:
    agreement.agree_on_ordinals(pairs)
    monkeypatch.setattr(reader, "_ORDINALS_BATCH", 30)
    monkeypatch.setattr(reader, "_READ_BATCH", 5)
    agreement.agree_on_ordinals(pairs)


def test_opensearch_reads_scans_and_knows_neighbours_as_memory_does(pairs: list[Pair]) -> None:
    agreement.agree_on_reading(pairs, "\udc00")
