"""The comparison of engines: it detects every difference, and finds none on real text."""

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import orjson
import pytest

from arag_search.search.index import Index
from arag_search.search.opening import open_index
from bench import BenchError
from bench.cluster import parity
from bench.cluster.cluster import LocalCluster
from bench.data import CORPUS
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from tests.support.examples import examples
from tests.support.opensearch_indexes import Site, fresh_site
from tests.support.passages import index_of_texts
from tests.support.shared_data import DATA

PASSAGES = 300
LOGICAL = 30
PHRASES = examples(200)


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
def test_every_kind_of_difference_is_detected(changed: Index, kinds: list[str]) -> None:
    first = index_of_texts("opera", "opera house one")
    questions = [parity.Question("logical", "opera AND NOT title:rome")]
    assert (
        sorted(difference.kind for difference in parity.compare([first, changed], questions))
        == kinds
    )


def test_keywords_are_compared_too() -> None:
    questions = [parity.Question("keywords", "opera", keywords=("opera",))]
    differences = parity.compare(
        [index_of_texts("opera"), index_of_texts("opera opera")], questions
    )
    assert [difference.kind for difference in differences] == ["scores", "snippets"]


def test_replies_of_the_tools_of_documents_are_compared_too() -> None:
    questions = [parity.Question("documents", "opera", patterns=("house",))]
    first, same = index_of_texts("opera house"), index_of_texts("opera house")
    assert parity.compare([first, same], questions) == []
    differences = parity.compare([first, index_of_texts("opera in a house")], questions)
    assert [difference.kind for difference in differences] == ["replies"]


def test_indexes_of_two_corpora_are_not_compared() -> None:
    first, second = index_of_texts("opera"), index_of_texts("opera", k1=2.0)
    with pytest.raises(BenchError) as caught:
        parity.check_same_corpus([first, second])
    assert str(caught.value) == (
        "The indexes differ in k1: 1.2, 2.0.\n"
        "Where: memory and memory\n"
        "Do: Name indexes that were built alike from one corpus."
    )


def test_one_location_alone_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert parity.main(["my-index"]) == 1
    assert capsys.readouterr().err.endswith(
        "One index alone has nothing to be compared with.\nWhere: my-index\n"
        "Do: Name two locations or more, or none to build indexes.\n"
    )


# Comparisons on real text and real servers


@pytest.fixture(name="sites", scope="module")
def sites_on_one_and_three_nodes(
    opensearch_url: str, opensearch_cluster: LocalCluster
) -> Iterator[list[Site]]:
    """Reserve a name on one node, and one on three nodes."""
    sites = [fresh_site(url) for url in (opensearch_url, opensearch_cluster.url)]
    yield sites
    for site in sites:
        site.remove()
        site.client.close()


@pytest.fixture(name="locations", scope="module")
def index_locations(sites: list[Site], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Index the first passages of 2WikiMultiHopQA on Lucene, on one shard, and on three shards."""
    workspace = tmp_path_factory.mktemp("parity")
    corpus, folder = workspace / "corpus.jsonl", str(workspace / "index")
    with (DATA / CORPUS).open("rb") as source, corpus.open("wb") as excerpt:
        excerpt.writelines(itertools.islice(source, PASSAGES))
    for location, shards in ((folder, None), (sites[0].address, 1), (sites[1].address, 3)):
        build_index([str(corpus)], location, BuildOptions(shards=shards))
    return [folder, *(site.address for site in sites)]


@pytest.mark.shared_data
def test_titles_and_queries_have_the_same_answers_on_one_shard_and_on_three(
    locations: list[str],
) -> None:
    with ExitStack() as stack:
        indexes = [stack.enter_context(open_index(location)) for location in locations]
        parity.check_same_corpus(indexes)
        questions = parity.questions(list(indexes[0].scan()), LOGICAL, 1678, phrases=PHRASES)
        kinds = [question.kind for question in questions]
        assert kinds.count("title phrase") == 2 * PHRASES
        assert kinds.count("logical") == 2 * LOGICAL
        assert kinds.count("documents") == LOGICAL // 10
        differences = parity.compare(indexes, questions)
        assert not differences, differences[:3]
        assert any(
            question.ask(indexes[0]).feedback for question in questions if question.kind == "both"
        )


@pytest.mark.shared_data
def test_the_comparison_is_printed_and_saved(
    locations: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "parity.json"
    arguments = [
        *locations[:2],
        "--queries",
        "5",
        "--phrases",
        "20",
        "--json",
        "--results",
        str(results),
    ]
    assert parity.main(arguments) == 0
    printed: dict[str, Any] = orjson.loads(capsys.readouterr().out)
    assert [row["value"] for row in printed["rows"]] == [51, *[0] * len(parity.KINDS)]
    figures = orjson.loads(results.read_bytes())["figures"]
    assert figures["lucene, opensearch, as named"]["rows"] == printed["rows"]


@pytest.mark.shared_data
def test_an_index_with_deleted_documents_is_not_compared(
    locations: list[str], sites: list[Site]
) -> None:
    site = sites[0]
    (physical, _) = site.live()
    document = site.documents(physical)[0]
    path = f"/{physical}/_doc/{document['_id']}"
    site.client.call("DELETE", path, params={"routing": document["doc_id"], "refresh": "true"})
    with open_index(site.address) as index, pytest.raises(BenchError) as caught:
        parity.check_comparable(index)
    assert str(caught.value) == (
        "The index holds deleted chunks, which change its scores.\n"
        f"Where: {site.address}\n"
        "Do: Build it again, or compact it."
    )
