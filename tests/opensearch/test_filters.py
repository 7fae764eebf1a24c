"""Filters as data on OpenSearch: hostile values, and lists that are empty or long."""

from random import Random

import arag_search
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from tests.support.builds import in_own_folder  # noqa: F401
from tests.support.commands import file_of
from tests.support.hostile_values import (
    METADATA,
    check_long_lists,
    check_nothing,
    check_values,
    random_values,
    records_of,
)
from tests.support.opensearch_indexes import Site


def test_data_and_quotes_admit_what_has_exactly_the_value(opensearch: Site) -> None:
    values = random_values(Random(2), 30)
    options = BuildOptions(metadata=METADATA)
    build_index([file_of("d.jsonl", *records_of(values))], opensearch.address, options)
    with arag_search.open_index(opensearch.address) as index:
        check_values(index, values)
        check_nothing(index)
        check_long_lists(index)
