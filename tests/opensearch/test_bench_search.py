"""The figure of searching OpenSearch: it runs, and sides that differ are an error."""

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from arag_search.search.index import Index, open_index
from bench import BenchError
from bench.cluster import opensearch_search
from bench.speed.queries import Query, logical_queries
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from tests.support.bench_passages import passages
from tests.support.opensearch_indexes import Site


@pytest.fixture(name="indexes")
def both_indexes(opensearch: Site, tmp_path: Path) -> Iterator[tuple[Index, Index]]:
    """Index thirty passages with the embedded engine and on the server."""
    corpus = tmp_path / "corpus.jsonl"
    lines = [
        orjson.dumps({"title": passage.title, "text": passage.content}) for passage in passages(30)
    ]
    corpus.write_bytes(b"\n".join(lines))
    for location in (tmp_path / "index", opensearch.address):
        build_index([str(corpus)], location, BuildOptions())
    with open_index(tmp_path / "index") as embedded, open_index(opensearch.address) as served:
        yield embedded, served


def queries(index: Index) -> list[Query]:
    return logical_queries(list(index.scan()), 8)


def test_every_side_is_measured(indexes: tuple[Index, Index], opensearch_url: str) -> None:
    sample_queries = queries(indexes[0])
    figure = opensearch_search.measure(indexes, opensearch_url, sample_queries, 1, 0)
    rows = {row.what: row for row in figure.rows}
    assert len(rows) == 4 + 4 + 3 * 4 * 3
    assert all(row.value > 0 for row in figure.rows)
    for label in ("1 client", "16 clients", "1 client, snippets", "16 clients, snippets"):
        assert rows[f"throughput of ours to the bare client, {label}"].target is not None
        assert rows[f"ours, {label}: P95"].value >= rows[f"ours, {label}: mean"].value / 10


def test_a_bare_client_with_different_hits_is_an_error(
    indexes: tuple[Index, Index], opensearch_url: str
) -> None:
    sample_queries = queries(indexes[0])
    bodies = [{"query": {"match_none": {}}} for _ in sample_queries]
    bare = opensearch_search.Bare(opensearch_url, indexes[1].location.rpartition("/")[2], bodies)
    with pytest.raises(BenchError) as caught:
        opensearch_search.compare(indexes[1], bare, sample_queries)
    assert caught.value.what == "The bare loop finds other passages than ours."
    bare.close()
