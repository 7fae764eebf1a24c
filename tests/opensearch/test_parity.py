"""OpenSearch and MemoryEngine must give the same answers to every request: with one shard on one
node, and with three shards on three nodes.

The corpora, trees and limits are those of the comparison with Lucene (test_differential.py).
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import pytest

from arag_search.engines.base import FieldsRequest, SearchRequest
from arag_search.engines.opensearch import reader, values
from arag_search.plan.clauses import leaves
from arag_search.query.fields import DOC_ID
from arag_search.query.limits import MAX_LEAVES, MAX_WORDS
from arag_search.query.reading import parse
from arag_search.search.index import Index
from bench.cluster.cluster import LocalCluster
from tests.support import agreement
from tests.support.agreement import Pair
from tests.support.opensearch_server import Server
from tests.support.plans import planned
from tests.support.strategies import SCHEMA

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
    agreement.agree_on_pages(pairs, agreement.EXAMPLES * 2 // 3)


def test_opensearch_takes_queries_of_as_many_words_as_the_limits_allow(pairs: list[Pair]) -> None:
    rare = [f"w{chr(97 + number // 8)}{chr(97 + number % 8)}" for number in range(MAX_LEAVES - 5)]
    words = ["venice", "Vivaldi", "opera", "born", "in", *rare]
    threes = [f'"{first} {second} {first}"' for first, second in pairwise([*words, "w"])]
    dotted = [f"{word}.max" for word in words]  # the whole and its parts
    for text in (" ".join(threes[:MAX_LEAVES]), " ".join(dotted[:MAX_LEAVES])):
        plan = planned(parse(text, SCHEMA).tree)
        words = [sum(map(len, leaf.words)) for leaf in leaves(plan.root)]
        assert 180 <= sum(words) <= MAX_WORDS
        assert len(words) == MAX_LEAVES
        for right, tested in pairs:
            request = SearchRequest(plan)
            agreement.assert_equal(tested.search(request), right.search(request))


def test_opensearch_says_of_words_what_memory_says(pairs: list[Pair]) -> None:
    for query in (
        "vivladi",
        "opra OR venise",
        "title:librettost",
        '"rock n rolls"',
        "seasoning OR the",
        "getuserbyld",
        "word-joined",
        "cafés OR qqqq",
    ):
        for right, tested in pairs:
            notes = Index(right, "").logical_search(query).notes
            assert Index(tested, "").logical_search(query).notes == notes, query


def test_opensearch_finds_the_documents_with_names_that_memory_finds(pairs: list[Pair]) -> None:
    agreement.agree_on_names(pairs, agreement.EXAMPLES // 3)


def test_opensearch_finds_the_passages_nearest_to_a_query_that_matches_nothing(
    pairs: list[Pair],
) -> None:
    agreement.agree_on_relaxing(pairs, agreement.EXAMPLES // 3)


def test_opensearch_selects_the_passages_of_a_condition_that_memory_selects(
    pairs: list[Pair], monkeypatch: pytest.MonkeyPatch
) -> None:
    agreement.agree_on_conditions(pairs, agreement.EXAMPLES // 3)
    monkeypatch.setattr(reader, "_ORDINALS_BATCH", 7)
    agreement.agree_on_conditions(pairs, agreement.EXAMPLES // 3)


def test_opensearch_sorts_and_limits_per_document_as_memory_does(
    pairs: list[Pair], monkeypatch: pytest.MonkeyPatch
) -> None:
    agreement.agree_on_orders(pairs, agreement.EXAMPLES // 2)
    for name, number in (("_FIRST_POSITIONS", 2), ("_SPARE", 1), ("_GROWTH", 2)):
        monkeypatch.setattr(reader, name, number)
    agreement.agree_on_orders(pairs, agreement.EXAMPLES // 4)


def test_opensearch_counts_the_values_of_fields_as_memory_does(
    pairs: list[Pair], monkeypatch: pytest.MonkeyPatch
) -> None:
    agreement.agree_on_field_values(pairs)
    for name, number in (("MAX_QUICK_VALUES", 2), ("_PER_SHARD", 2), ("_PAGE", 50)):
        monkeypatch.setattr(values, name, number)
    request = FieldsRequest(("lang", "topics", DOC_ID), values=4)
    quick = replace(request, values=2, quick=True)
    for right, tested in pairs:
        assert tested.field_values(request) == right.field_values(request)
        counts = dict(right.field_values(replace(request, values=2000)).fields[0].frequent)
        for value, count in tested.field_values(quick).fields[0].frequent:
            assert count in (None, counts[value])  # never a count that a shard left incomplete


def test_opensearch_counts_keywords_as_memory_does(pairs: list[Pair]) -> None:
    agreement.agree_on_keywords(pairs)


def test_opensearch_counts_matches_as_memory_does(pairs: list[Pair]) -> None:
    agreement.agree_on_counts(pairs)


def test_opensearch_lists_passages_in_corpus_order_as_memory_does(pairs: list[Pair]) -> None:
    agreement.agree_on_lists(pairs)


def test_opensearch_counts_words_and_their_forms_as_memory_does(pairs: list[Pair]) -> None:
    agreement.agree_on_words(pairs)


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
