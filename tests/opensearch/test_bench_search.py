"""The rates on OpenSearch: ours and the bare client are measured, and find the same."""

from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest

from arag_search.search.opening import open_index
from bench.replay import rates
from bench.replay.recorded import drawn_queries
from bench.workbench import set_up
from index_jobs.build.options import BuildOptions
from tests.support.bench_passages import passages
from tests.support.opensearch_indexes import Site


def test_ours_on_a_node_is_compared_with_the_bare_client(
    opensearch: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, _, name = opensearch.address.rpartition("/")
    monkeypatch.setattr(rates, "_NAME", name)
    corpus = tmp_path / "corpus.jsonl"
    lines = [orjson.dumps({"title": of.title, "text": of.content}) for of in passages(30)]
    corpus.write_bytes(b"\n".join(lines))
    with ExitStack() as stack, set_up(corpus, tmp_path) as bench, open_index(bench.index) as index:
        rivals = rates.Rivals(stack, tmp_path, (), "")
        rivals.cluster = cast(Any, SimpleNamespace(url=url, set=lambda *_: None))
        asked = drawn_queries(index, bench.chunks, 8)
        asked_of = rates.Passages(index, corpus, BuildOptions(), asked, tmp_path)
        rows = rates.measure(asked_of, rivals, (1, 16), 1, 0).rows
    row, many = [row for row in rows if "over bare OpenSearch" in row.what]
    assert row.what == "rate of ours on OpenSearch over bare OpenSearch, 1 client"
    assert row.value > 0 < many.value
