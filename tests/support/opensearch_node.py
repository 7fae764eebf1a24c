"""Real OpenSearch for all tests of a session: one node, or the cluster that is named for them; and
three nodes."""

import json
import os
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from arag_search.engines.opensearch.nodes import cluster, jars
from arag_search.engines.opensearch.nodes.cluster import ClusterStatus
from arag_search.errors import EngineError
from bench.cluster.cluster import LocalCluster, local_cluster

URL_VARIABLE = "ARAG_OPENSEARCH_URL"
"""A cluster to test against, ``http://host:port``: only ``arag-test-<uuid>-*`` is made there."""

REQUIRE_VARIABLE = "ARAG_REQUIRE_OPENSEARCH"
"""1 makes a failure of what would be a skipped test."""


@pytest.fixture(scope="session")
def opensearch_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """``http://host:port`` of a server, which ends with the session where it was started here."""
    given = os.environ.get(URL_VARIABLE)
    if given:
        yield given.rstrip("/")
        return
    data = tmp_path_factory.mktemp("opensearch")
    try:
        started = cluster.up(data, port=0, owned=True, short_lived=True)
    except EngineError as error:
        no_server(str(error))
    else:
        yield started.url
        cluster.down(data)


@pytest.fixture(scope="session")
def opensearch_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Three nodes, green, which a test that kills one has to revive."""
    with ExitStack() as stack:
        try:
            place = tmp_path_factory.mktemp("three-nodes")
            made = stack.enter_context(local_cluster(place, short_lived=True))
        except EngineError as error:
            no_server(str(error))
        else:
            yield made


@pytest.fixture(scope="session")
def own_node(
    opensearch_jars: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterStatus]:
    """A node that nobody else uses: a test may kill it and start it again, or register a
    repository of snapshots."""
    data = tmp_path_factory.mktemp("own-node")
    yield cluster.up(data, port=0, owned=True, short_lived=True)
    cluster.down(data)


@pytest.fixture(scope="session")
def opensearch_jars() -> None:
    """What nodes of a test's own need: the jars, here or downloaded now."""
    try:
        jars.class_path()
    except EngineError as error:
        no_server(str(error))


def no_server(reason: str) -> None:
    """End a test that needs a server: skipped with the reason, or failed where one is required."""
    if os.environ.get(REQUIRE_VARIABLE) == "1":
        pytest.fail(f"No OpenSearch: {reason}", pytrace=False)
    pytest.skip(f"no OpenSearch: {reason.splitlines()[0]}")


def get_json(url: str) -> Any:
    with urllib.request.urlopen(url) as reply:
        return json.load(reply)
