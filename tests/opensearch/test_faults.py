"""Searching three nodes while they die: every answer is correct and in time.

Clients pause between requests, because other tests need the processor too.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from arag_search.engines.opensearch.address import ConnectionOptions, parse_address
from arag_search.engines.opensearch.reader import OpenSearchEngine
from arag_search.search.index import Index, open_index
from bench.cluster.cluster import LocalCluster
from bench.cluster.parity import Question, differences
from tests.support import faults
from tests.support.faults import Clients, Known, Outcome
from tests.support.opensearch_indexes import fresh_site
from tests.support.passages import index_of_texts
from tests.support.shared_data import DATA

CORPUS = DATA / "musique" / "corpus.jsonl"
REQUESTS = 200
PAUSE_S = 0.15
BUDGET_S = 6.0


@dataclass(frozen=True, slots=True)
class Searched:
    """An index of three shards with a replica each, and what it should answer."""

    cluster: LocalCluster
    location: str
    known: list[Known]

    def ask_during(self, fault: faults.Fault) -> Outcome:
        """Return the outcome for clients with a new connection while the fault lasts."""
        with open_index(self.location) as index:
            outcome = Clients(index, self.known, pause_s=PAUSE_S).run(fault, REQUESTS)
        print(f"slowest answer {outcome.slowest_s:.1f} s")
        return outcome


@pytest.fixture(name="searched", scope="module")
def index_on_three_nodes(
    opensearch_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Searched]:
    cluster = opensearch_cluster
    site = fresh_site(cluster.url)
    try:
        with faults.known_answers(CORPUS, tmp_path_factory.mktemp("faults") / "i", 100) as known:
            location = faults.build_with_copies(cluster, CORPUS, site.name)
            holders = cluster.holders(f"{site.name}*")
            assert [len(nodes) for nodes in holders.values()] == [2, 2, 2]
            yield Searched(cluster, location, known)
    finally:
        site.remove()
        site.client.close()


@pytest.mark.shared_data
def test_each_node_in_turn_may_die_and_restart(searched: Searched) -> None:
    """Kill all nodes, among them the first host of the address and the cluster manager."""
    were_managers: list[bool] = []
    for node in range(faults.NODES):
        were_managers.append(searched.cluster.manager() == node)
        outcome = searched.ask_during(lambda node=node: faults.kill(searched.cluster, node))
        assert (outcome.wrong, outcome.failed) == ((), ())
        assert outcome.requests >= REQUESTS
        assert outcome.good
    assert any(were_managers)


@pytest.mark.shared_data
def test_without_any_node_there_is_one_clear_error_within_the_budget(searched: Searched) -> None:
    address = parse_address(searched.location)
    options = ConnectionOptions(request_budget_s=BUDGET_S)
    with Index(OpenSearchEngine.open(address, options), searched.location) as index:
        first = searched.known[0]
        seconds, error = faults.give_up_without_nodes(searched.cluster, first.question, index)
        assert error is not None
        assert 0 < seconds <= BUDGET_S
        assert error.what.startswith("No connection: [Errno 111] Connection refused (")
        assert error.where == address.server
        assert error.do == "Check that all nodes are running, then try again."
        assert not list(differences(first.answer, first.question.ask(index)))


# The clients


def known(answer_of: Index, query: str = "opera") -> list[Known]:
    question = Question("logical", query)
    return [Known(question, question.ask(answer_of))]


def test_a_wrong_answer_is_detected() -> None:
    outcome = Clients(index_of_texts("opera"), known(index_of_texts("opera", "opera"))).run(
        lambda: None, 20
    )
    assert outcome.requests >= 20
    assert outcome.wrong[0] == "opera: ids, scores, totals"
    assert not outcome.good


def test_an_error_is_detected() -> None:
    index, answers = index_of_texts("opera"), known(index_of_texts("opera"))
    outcome = Clients(index, answers).run(index.close, 20)
    assert "is closed" in outcome.failed[0]
    assert (outcome.wrong, outcome.good) == ((), False)
