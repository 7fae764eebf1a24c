"""Filters as data on embedded Lucene: hostile values, and lists that are empty or long."""

from pathlib import Path
from random import Random

import arag_search
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from tests.support.builds import in_own_folder  # noqa: F401
from tests.support.commands import file_of
from tests.support.hostile_values import check_filters, random_values


def test_data_and_quotes_admit_what_has_exactly_the_value(tmp_path: Path) -> None:
    check_filters(tmp_path / "index", random_values(Random(1), 60))


def test_a_value_in_another_case_is_searched_by_queries_and_not_by_filters(tmp_path: Path) -> None:
    paths = ("Projects/HeatPump", "/water/", "Tea", "tea")
    records = [
        {"id": f"d{n}", "title": "", "text": "A pump.", "path": path}
        for n, path in enumerate(paths)
    ]
    options = BuildOptions(metadata={"path": "keyword"})
    build_index([file_of("d.jsonl", *records)], tmp_path / "index", options)
    with arag_search.open_index(tmp_path / "index") as index:
        for query, doc_id in (("path:projects/heatpump", "d0"), ("pump AND path:Water", "d1")):
            result = index.logical_search(query)
            assert [hit.doc_id for hit in result.hits] == [doc_id]
            assert result.notes[-1].endswith(" was searched.")
        assert index.logical_search("path:TEA").total == 0
        assert index.logical_search("path:water", filter="doc_id:d0").total == 0
        assert index.logical_search("pump", filter="path:water").total == 0
        assert index.logical_search("pump", filter={"path": "water"}).total == 0
