"""Builds and embeddings on a Ray cluster are those of one machine, whatever happens to it."""

import pytest

from tests.support.corpus_files import in_own_folder  # noqa: F401


@pytest.mark.long
@pytest.mark.parametrize("check", ["a_lost_machine", "stops_and_sources", "refusals", "embedded"])
def test_a_cluster_builds_resumes_and_embeds_as_one_machine_and_leaves_nothing(check: str) -> None:
    pytest.importorskip("tests.support.ray_workers").check(check)
