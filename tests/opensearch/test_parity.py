"""OpenSearch and MemoryEngine must give the same answers to every request, and OpenSearch and
embedded Lucene to every question on real text: with one shard, and with three on three nodes.
Other tests ask a single node.

The corpora, trees and limits are those of the comparison with Lucene (test_differential.py).
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from arag_search.engines.base import FieldsRequest, SearchRequest
from arag_search.engines.opensearch import reader, values
from arag_search.plan.clauses import leaf_clauses
from arag_search.query.fields import DOC_ID
from arag_search.query.limits import MAX_LEAVES, MAX_WORDS
from arag_search.query.reading import parse
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from bench.data import CORPUS, SAMPLE
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from tests.support import agreement, parity
from tests.support.agreement import Pair
from tests.support.cluster import LocalCluster
from tests.support.code_folders import code_folder
from tests.support.examples import examples, is_long
from tests.support.opensearch_indexes import fresh_site
from tests.support.opensearch_server import Server
from tests.support.passages import index_of_texts
from tests.support.plans import planned
from tests.support.shared_data import DATA
from tests.support.strategies import SCHEMA

SIZES = (40, 6, 60)


@pytest.fixture(name="pairs", scope="module")
def engine_pairs(opensearch_cluster: LocalCluster) -> Iterator[list[Pair]]:
    """Index each corpus in memory, on one shard, and on three shards of three nodes."""
    servers = [(shards, Server(opensearch_cluster.url)) for shards in (1, 3)]
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
        words = [sum(map(len, leaf.words)) for leaf in leaf_clauses(plan.root)]
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


@pytest.mark.parametrize(
    "agree",
    [
        agreement.agree_on_weights_of_groups,
        agreement.agree_on_keywords,
        agreement.agree_on_counts,
        agreement.agree_on_lists,
        agreement.agree_on_words,
        agreement.agree_on_explanations,
    ],
    ids=lambda agree: agree.__name__,
)
def test_opensearch_answers_as_memory_does(pairs: list[Pair], agree: Callable[..., None]) -> None:
    agree(pairs)


def test_opensearch_finds_chunks_by_ordinal_as_memory_does(
    pairs: list[Pair], monkeypatch: pytest.MonkeyPatch
) -> None:
    agreement.agree_on_ordinals(pairs)
    monkeypatch.setattr(reader, "_ORDINALS_BATCH", 30)
    monkeypatch.setattr(reader, "_READ_BATCH", 5)
    agreement.agree_on_ordinals(pairs)


def test_opensearch_reads_scans_and_knows_neighbours_as_memory_does(pairs: list[Pair]) -> None:
    agreement.agree_on_reading(pairs, "\udc00")


# Questions on real text


@pytest.mark.parametrize(
    "corpus",
    [SAMPLE / "corpus.jsonl", pytest.param(DATA / CORPUS, marks=pytest.mark.shared_data)],
    ids=["sample", "2wikimultihopqa"],
)
def test_queries_titles_keywords_and_documents_have_the_answers_of_embedded_lucene(
    corpus: Path, opensearch_cluster: LocalCluster, tmp_path: Path
) -> None:
    source = tmp_path / "corpus.jsonl"
    with corpus.open("rb") as file:
        source.write_bytes(b"".join(itertools.islice(file, None if is_long() else 300)))
    with ExitStack() as stack:
        places = [(str(tmp_path / "index"), None)]
        for shards in (1, 3):
            site = fresh_site(opensearch_cluster.url)
            stack.callback(site.client.close)
            stack.callback(site.remove)
            places.append((site.address, shards))
        indexes: list[Index] = []
        for location, shards in places:
            build_index([str(source)], location, BuildOptions(shards=shards))
            indexes.append(stack.enter_context(open_index(location, search_timeout_s=None)))
        asked = parity.questions(list(indexes[0].scan()), examples(1000), examples(500))
        assert len(asked) >= 300
        differences = parity.compare(indexes, asked)
        assert not differences, (len(differences), differences[:3])
        assert any(question.ask(indexes[0]).feedback for question in asked if not question.patterns)


@pytest.mark.parametrize(
    ("changed", "kinds"),
    [
        (index_of_texts("opera", "opera house one"), []),
        (index_of_texts("opera house one", "opera"), ["order", "scores", "snippets"]),
        (index_of_texts("opera", "opera house one", k1=2.0), ["scores"]),
        (index_of_texts("opera", "opera house one", title="Vienna"), ["snippets"]),
        (index_of_texts("opera"), ["counts", "ids", "scores", "totals"]),
        (index_of_texts("opera", "opera house one", title=""), ["notes", "snippets"]),
        (index_of_texts("house", "one"), ["counts", "feedback", "ids", "totals"]),
    ],
)
def test_the_comparison_detects_every_kind_of_difference(changed: Index, kinds: list[str]) -> None:
    first = index_of_texts("opera", "opera house one")
    asked = [parity.Question("logical", "opera AND NOT title:rome")]
    assert sorted(of.kind for of in parity.compare([first, changed], asked)) == kinds


def test_the_comparison_detects_other_replies_of_the_tools_of_documents() -> None:
    asked = [parity.Question("documents", "opera", patterns=("house",))]
    differing = parity.compare(
        [index_of_texts("opera house"), index_of_texts("opera in a house")], asked
    )
    assert [difference.kind for difference in differing] == ["replies"]


def test_code_has_the_order_of_embedded_lucene(
    opensearch_cluster: LocalCluster, tmp_path: Path
) -> None:
    folder = code_folder(tmp_path / "files")
    with ExitStack() as stack:
        site = fresh_site(opensearch_cluster.url)
        stack.callback(site.client.close)
        stack.callback(site.remove)
        indexes: list[Index] = []
        for location in (str(tmp_path / "index"), site.address):
            build_index([str(folder)], location, BuildOptions(language="en"))
            indexes.append(stack.enter_context(open_index(location, search_timeout_s=None)))
        for query in ("parse_response", "parse response", "sessions drops", "later OR socket"):
            for offset, branches in itertools.product((0, 20, 40), (False, True)):
                pages = [
                    index.logical_search(query, top_k=20, offset=offset, branches=branches)
                    for index in indexes
                ]
                hits, others = ([(hit.id, hit.score, hit.rules) for hit in of.hits] for of in pages)
                assert hits == others
                assert offset or any(rules for *_, rules in hits)
                assert pages[0].passages == pages[1].passages
