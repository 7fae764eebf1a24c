"""Searching three nodes while they die: every answer is correct and in time.

Clients pause between requests, because other tests need the processor too.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from arag_search.search.index import Index
from arag_search.search.opening import open_index
from tests.support import faults
from tests.support.cluster import LocalCluster
from tests.support.examples import some_of
from tests.support.faults import Clients, Known, Outcome
from tests.support.opensearch_indexes import fresh_site
from tests.support.parity import Question
from tests.support.passages import index_of_texts
from tests.support.shared_data import DATA

CORPUS = DATA / "musique" / "corpus.jsonl"
REQUESTS = 200
PAUSE_S = 0.15


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
            for index in (site.name, f"{site.name}.sentences"):
                holders = cluster.holders(index)
                assert [len(nodes) for nodes in holders.values()] == [2, 2, 2]
            yield Searched(cluster, location, known)
    finally:
        site.remove()
        site.client.close()


@pytest.mark.shared_data
def test_each_node_in_turn_may_die_and_restart(searched: Searched) -> None:
    """Kill nodes, among them the cluster manager and, in a long run, the first host."""
    manager = searched.cluster.manager()
    for node in some_of([manager, *(set(range(faults.NODES)) - {manager})]):
        outcome = searched.ask_during(lambda node=node: faults.kill(searched.cluster, node))
        assert (outcome.wrong, outcome.failed) == ((), ())
        assert outcome.requests >= REQUESTS
        assert outcome.good


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
