"""docker-compose.cluster.yml without TLS and roles: every answer is right while a node dies."""

from collections.abc import Iterator

import pytest

from arag_search.search.opening import open_index
from tests.support.containers import FOLDER, STAND_IN, Corpus, Stack, ask_over_mcp, docker, running
from tests.support.faults import Clients

FILES = (FOLDER / "docker-compose.cluster.yml", STAND_IN / "cluster.yml")
PORTS = ("ARAG_PORT_1", "ARAG_PORT_2", "ARAG_PORT_3")


@pytest.fixture(name="stack", scope="module")
def services_that_are_up(corpus: Corpus) -> Iterator[Stack]:
    with running(*FILES, variables={"ARAG_CORPUS": str(corpus.file)}) as stack:
        stack.compose("up", "--wait")
        yield stack


def test_an_agent_searches_a_cluster_over_mcp(stack: Stack) -> None:
    assert " passages" in ask_over_mcp(stack.mcp_url, "w1 OR w2")


def test_no_answer_is_wrong_or_partial_while_a_node_is_killed(stack: Stack, corpus: Corpus) -> None:
    def kill_and_start() -> None:
        docker("kill", "--signal", "KILL", stack.container("opensearch-1"))
        stack.compose("up", "--wait", "opensearch-1")

    with open_index(stack.location(*PORTS)) as index:
        outcome = Clients(index, corpus.known).run(kill_and_start, 200)
    assert outcome.good, outcome
    assert " passages" in ask_over_mcp(stack.mcp_url, "w1 OR w2")


def test_down_leaves_nothing_of_a_cluster(stack: Stack) -> None:
    assert len(stack.left()) >= 10
    stack.compose("down", "--volumes")
    assert stack.left() == []
