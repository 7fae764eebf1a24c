"""Loading from all machines of a Ray cluster: each document arrives once."""

import pytest

from tests.support.corpus_files import in_own_folder  # noqa: F401


@pytest.mark.long
def test_a_cluster_that_loses_a_machine_loads_the_index_of_one_machine(opensearch_url: str) -> None:
    ray_workers = pytest.importorskip("tests.support.ray_workers")
    ray_workers.check("a_lost_machine_and_a_server", opensearch_url)
