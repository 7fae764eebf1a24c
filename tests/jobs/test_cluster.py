"""Builds and embeddings on a Ray cluster are those of one machine, whatever happens to it."""

import pytest

from tests.support.corpus_files import in_own_folder  # noqa: F401

ray_workers = pytest.importorskip("tests.support.ray_workers")


@pytest.mark.long
def test_a_cluster_that_loses_a_machine_builds_the_index_of_one_machine() -> None:
    ray_workers.check("a_lost_machine")


@pytest.mark.long
def test_a_build_from_all_kinds_of_sources_is_resumed_on_a_cluster_or_without_it() -> None:
    ray_workers.check("stops_and_sources")


@pytest.mark.long
def test_a_cluster_refuses_what_it_cannot_do_and_nothing_is_left_behind() -> None:
    ray_workers.check("refusals")


@pytest.mark.long
def test_a_cluster_that_loses_a_machine_makes_the_vectors_of_one_machine() -> None:
    ray_workers.check("embedded")
