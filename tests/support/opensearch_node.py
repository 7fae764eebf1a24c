"""Real OpenSearch for all tests of a session: one node, or the cluster that the environment names;
and three nodes."""

import json
import os
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from bench import BenchError, nodes
from tests.support.absent import cannot_run
from tests.support.cluster import LocalCluster, local_cluster

URL_VARIABLE = "ARAG_OPENSEARCH_URL"
"""A cluster to test against, ``http://host:port``; tests only create ``arag-test-<uuid>-*``."""


@pytest.fixture(scope="session")
def opensearch_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Provide ``http://host:port`` of a server; one that starts here ends with the session."""
    url = os.environ.get(URL_VARIABLE)
    if url:
        yield url.rstrip("/")
        return
    data = tmp_path_factory.mktemp("opensearch")
    try:
        started = nodes.up(data, 1, nodes.SHORT_LIVED, owned=True)
    except BenchError as error:
        cannot_run(f"no OpenSearch: {error}")
    else:
        yield nodes.address(started)
        nodes.down(data, kept=False)


@pytest.fixture(scope="session")
def opensearch_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Start three nodes, green; a test that kills a node must restart it."""
    with ExitStack() as stack:
        try:
            place = tmp_path_factory.mktemp("three-nodes")
            three_nodes = stack.enter_context(local_cluster(place))
        except BenchError as error:
            cannot_run(f"no OpenSearch: {error}")
        else:
            yield three_nodes


@pytest.fixture(scope="session")
def own_node(
    opensearch_jars: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalCluster]:
    """Start a node that no other test session uses: a test may kill and restart it, or register a
    snapshot repository."""
    with local_cluster(tmp_path_factory.mktemp("own-node"), 1) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def opensearch_jars() -> None:
    """Make sure that the jars of a test's own nodes are in the cache."""
    try:
        nodes.class_path()
    except BenchError as error:
        cannot_run(f"no OpenSearch: {error}")


def get_json(url: str) -> Any:
    with urllib.request.urlopen(url) as reply:
        return json.load(reply)
