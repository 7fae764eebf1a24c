"""Chunking and loading in two stages, onto a server."""

from dataclasses import replace
from pathlib import Path

from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.stages.chunk import chunk_sources
from index_jobs.stages.load import load_chunks
from tests.support.builds import (
    corpus,
    in_own_folder,  # noqa: F401
    troublesome_corpus,
)
from tests.support.opensearch_indexes import Site, comparable, live_manifest

CHUNKS = Path("chunks")


ODD = BuildOptions(chunk_tokens=300, metadata={"year": "number"}, skip_bad_lines=True)


def test_two_stages_build_the_same_index_on_a_server(opensearch: Site) -> None:
    sources = [troublesome_corpus("a.jsonl", 60), corpus("b.jsonl", 40)]
    chunk_sources(sources, CHUNKS, ODD)
    indexes: list[object] = []
    for build in (
        lambda: build_index(sources, opensearch.address, replace(ODD, shards=2)),
        lambda: load_chunks(CHUNKS, opensearch.address, BuildOptions(shards=2, overwrite=True)),
    ):
        build()
        body = {"query": {"match": {"content": "sea opera w7"}}, "sort": ["_score", "ordinal"]}
        hits = opensearch.client.call(
            "POST",
            f"/{opensearch.name}/_search",
            body,
            params={"search_type": "dfs_query_then_fetch"},
        )["hits"]["hits"]
        scores = [hit["sort"] for hit in hits]
        assert len(scores) == 10
        indexes.append([comparable(live_manifest(opensearch)), opensearch.chunks(), scores])
    assert indexes[0] == indexes[1]
