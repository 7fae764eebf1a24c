"""Filters as data on OpenSearch: hostile values, and lists that are empty or long."""

from random import Random

from tests.support.builds import in_own_folder  # noqa: F401
from tests.support.hostile_values import check_filters, random_values
from tests.support.opensearch_indexes import Site


def test_data_and_quotes_admit_what_has_exactly_the_value(opensearch: Site) -> None:
    check_filters(opensearch.address, random_values(Random(2), 30))
