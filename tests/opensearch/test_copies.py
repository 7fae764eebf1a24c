"""Copies that a session searches while a node hangs, on servers that play nodes."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from urllib.parse import parse_qs, urlsplit

import pytest

from arag_search.engines.opensearch import copies, hosts
from arag_search.engines.opensearch.address import parse_address
from arag_search.engines.opensearch.client import Client
from arag_search.engines.opensearch.connection import ConnectionOptions
from arag_search.engines.opensearch.place import Place, Places, Searcher
from arag_search.errors import UnavailableError
from tests.support.oracle.engine import MemoryEngine
from tests.support.unruly_server import WHOLE, Answer, refusal, unruly, version

ATTEMPT_S = 0.3
QUICK = ConnectionOptions(attempt_timeout_s=ATTEMPT_S, request_budget_s=3.0, opening_budget_s=1.0)
HOLDERS = {0: ("n1", "n2"), 1: ("n2", "n3"), 2: ("n3", "n1")}
"""The nodes with a copy of each shard."""
SILENT = Answer(silent=True)
CHUNKS, SENTENCES = Place("wiki-1", 3, None), Place("wiki-1.sentences", 3, None)
PLACES = Places(CHUNKS, SENTENCES, MemoryEngine([]).manifest)


class Cluster:
    """Hosts of a cluster of three nodes. The usual preference of a session has some shard searched
    on each node, so a search waits for every node that hangs."""

    def __init__(self, stack: ExitStack, count: int) -> None:
        self.servers = [stack.enter_context(unruly()) for _ in range(count)]
        self.hung: set[str] = set()
        self.hung_hosts: set[int] = set()
        self.slow = 0
        """The number of further searches that are not answered."""
        self.layout = Answer({"shards": list(map(self._copies_of, HOLDERS))})
        self.searched: list[str] = []
        """The preferences of the searches, in order."""
        for number, server in enumerate(self.servers):
            server.rule = lambda path, body, number=number: self._answer(number, path, body)

    @property
    def url(self) -> str:
        return "http://" + ",".join(server.url.removeprefix("http://") for server in self.servers)

    @property
    def probes(self) -> int:
        """The number of probes that asked nodes whether they answer."""
        paths = [path for server in self.servers for _, path, _, _ in server.requests]
        return sum("_only_nodes" in path for path in paths)

    def _copies_of(self, shard: int) -> list[dict[str, object]]:
        location = {"index": "wiki-1", "shard": shard}
        started = [{"state": "STARTED", "node": node, **location} for node in HOLDERS[shard]]
        return [*started, {"state": "INITIALIZING", "node": "n4", **location}]

    def _answer(self, host: int, path: str, body: bytes) -> Answer:
        if host in self.hung_hosts:
            return SILENT
        parts = urlsplit(path)
        if parts.path == "/":
            return version()
        if parts.path.endswith("/_search_shards"):
            assert parts.path == "/wiki-1,wiki-1.sentences/_search_shards"
            assert parts.query == "local=true"
            return self.layout
        if parts.path == "/_msearch":
            lines = [json.loads(line) for line in body.splitlines()][::2]
            (preference,) = {line["preference"] for line in lines}
            answer = Answer({"responses": [WHOLE] * len(lines)})
        else:
            (preference,) = parse_qs(parts.query)["preference"]
            answer = Answer(WHOLE)
        kind, _, node = preference.partition("|_only_nodes:")
        if node:
            assert node in HOLDERS[int(kind.removeprefix("_shards:"))]
            return SILENT if node in self.hung else answer
        self.searched.append(preference)
        if self.slow:
            self.slow -= 1
            return SILENT
        preferred = preference.removeprefix("_prefer_nodes:")
        used = {"n1", "n2", "n3"} if preferred == preference else {*preferred.split(",")}
        return SILENT if self.hung & used else answer


@pytest.fixture(name="stack")
def closing(monkeypatch: pytest.MonkeyPatch) -> Iterator[ExitStack]:
    monkeypatch.setattr(copies, "_PROBE_S", 0.2)
    with ExitStack() as stack:
        yield stack


@pytest.fixture(name="cluster")
def three_hosts(stack: ExitStack) -> Cluster:
    return Cluster(stack, 3)


@pytest.fixture(name="searcher")
def session(stack: ExitStack, cluster: Cluster) -> Searcher:
    client = Client.connect(parse_address(f"{cluster.url}/wiki"), QUICK)
    stack.callback(client.close)
    return Searcher(client, PLACES, "here")


def search(searcher: Searcher) -> dict[str, object]:
    return searcher.search(CHUNKS, {"size": 0})


def test_all_searches_of_a_session_go_to_the_same_copies(
    cluster: Cluster, searcher: Searcher
) -> None:
    for _ in range(3):
        search(searcher)
    searcher.searches([(CHUNKS, {}), (SENTENCES, {})])
    assert len(cluster.searched) == 4
    (preference,) = set(cluster.searched)
    assert preference.startswith("arag-")


@pytest.mark.parametrize("node", ["n1", "n2", "n3"])
def test_a_node_that_hangs_is_left_out_after_one_attempt_and_from_then_on(
    cluster: Cluster, searcher: Searcher, node: str
) -> None:
    cluster.hung = {node}
    others = f"_prefer_nodes:{','.join(sorted({'n1', 'n2', 'n3'} - {node}))}"
    assert search(searcher) == WHOLE
    assert cluster.searched[0].startswith("arag-")
    assert cluster.searched[1:] == [others]
    assert searcher.searches([(CHUNKS, {}), (SENTENCES, {})]) == [WHOLE, WHOLE]
    assert cluster.searched[2:] == [others]
    assert cluster.probes == 3


def test_several_searches_at_once_leave_a_hung_node_out_too(
    cluster: Cluster, searcher: Searcher
) -> None:
    cluster.hung = {"n2"}
    assert searcher.searches([(CHUNKS, {}), (SENTENCES, {})]) == [WHOLE, WHOLE]
    assert cluster.searched[1:] == ["_prefer_nodes:n1,n3"]


@pytest.mark.parametrize("host", range(3))
def test_a_hung_node_that_is_also_a_host_gets_no_more_requests(
    cluster: Cluster, searcher: Searcher, host: int
) -> None:
    cluster.hung, cluster.hung_hosts = {"n1"}, {host}
    search(searcher)
    assert cluster.searched[-1] == "_prefer_nodes:n2,n3"
    began = time.monotonic()
    for _ in range(20):
        search(searcher)
    assert time.monotonic() - began < ATTEMPT_S


def test_a_host_that_hangs_does_not_make_nodes_suspect(
    cluster: Cluster, searcher: Searcher
) -> None:
    cluster.hung_hosts = {1}
    for _ in range(6):
        search(searcher)
    assert len(set(cluster.searched)) == 1
    assert cluster.probes == 3


def test_a_slow_search_does_not_move_the_session_to_other_copies(
    cluster: Cluster, searcher: Searcher
) -> None:
    cluster.slow = 2
    assert search(searcher) == WHOLE
    assert len(cluster.searched) == 3
    assert len(set(cluster.searched)) == 1


def test_the_usual_copies_are_searched_again_after_a_while(
    cluster: Cluster, searcher: Searcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "_EXCLUDED_S", 1.0)
    cluster.hung = {"n3"}
    search(searcher)
    cluster.hung = set()
    time.sleep(1.0)
    search(searcher)
    assert cluster.searched[1] == "_prefer_nodes:n1,n2"
    assert cluster.searched[2] == cluster.searched[0]


def test_another_node_that_hangs_later_is_left_out_instead(
    cluster: Cluster, searcher: Searcher
) -> None:
    cluster.hung = {"n1"}
    search(searcher)
    cluster.hung = {"n3"}
    search(searcher)
    assert cluster.searched[1:] == [*["_prefer_nodes:n2,n3"] * 2, "_prefer_nodes:n1,n2"]


def test_if_all_nodes_hang_the_error_is_raised_within_the_budget(
    cluster: Cluster, searcher: Searcher
) -> None:
    cluster.hung = {"n1", "n2", "n3"}
    began = time.monotonic()
    with pytest.raises(UnavailableError) as caught:
        search(searcher)
    assert time.monotonic() - began < QUICK.request_budget_s + 0.2
    assert caught.value.what.startswith("No answer within ")
    assert len(set(cluster.searched)) == 1


def test_if_all_hosts_hang_the_error_is_raised_within_the_budget(
    cluster: Cluster, searcher: Searcher
) -> None:
    cluster.hung_hosts = {0, 1, 2}
    began = time.monotonic()
    with pytest.raises(UnavailableError) as caught:
        search(searcher)
    assert time.monotonic() - began < QUICK.request_budget_s + 0.2
    assert caught.value.what.startswith("No answer within ")


def test_a_user_without_permission_to_list_nodes_gets_other_copies_by_chance(
    cluster: Cluster, searcher: Searcher
) -> None:
    cluster.layout = refusal(403, "security_exception", "no permissions for [search_shards]")
    cluster.slow = 1
    search(searcher)
    usual, other = cluster.searched
    assert usual != other
    assert other.startswith("arag-")
    assert cluster.probes == 0


def test_several_threads_look_for_the_hung_node_only_once(
    cluster: Cluster, searcher: Searcher
) -> None:
    cluster.hung = {"n2"}
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda _: search(searcher), range(8))) == [WHOLE] * 8
    assert cluster.probes == 3


def test_a_single_host_finds_the_hung_node_too(stack: ExitStack) -> None:
    cluster = Cluster(stack, 1)
    client = Client.connect(parse_address(f"{cluster.url}/wiki"), QUICK)
    stack.callback(client.close)
    cluster.hung = {"n1"}
    assert search(Searcher(client, PLACES, "here")) == WHOLE
    assert cluster.searched[1:] == ["_prefer_nodes:n2,n3"]


# Hosts


def test_a_host_set_aside_is_tried_by_one_request_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "_ASIDE_S", 0.2)
    pool = hosts.Hosts(parse_address("http://a:1,b:1,c:1/wiki"), QUICK)
    bad = pool.next()
    pool.set_aside(bad)
    assert bad not in [pool.next() for _ in range(9)]
    time.sleep(0.2)
    assert [pool.next() for _ in range(9)].count(bad) == 1
    pool.answered(bad)
    assert [pool.next() for _ in range(9)].count(bad) == 3
    pool.close()


def test_a_host_is_set_aside_for_longer_each_time() -> None:
    pool = hosts.Hosts(parse_address("http://a:1,b:1/wiki"), QUICK)
    (bad, _), asides = pool.all, []
    for _ in range(5):
        pool.set_aside(bad)
        asides.append(round(bad.free_at - time.monotonic()))
    assert asides == [5, 10, 20, 40, 40]
    pool.close()


def test_a_search_with_a_fixed_preference_sets_the_host_aside(stack: ExitStack) -> None:
    cluster = Cluster(stack, 2)
    client = Client.connect(parse_address(f"{cluster.url}/wiki"), QUICK)
    stack.callback(client.close)
    cluster.hung_hosts = {0}
    for _ in range(4):
        params = {"preference": "x"}
        assert client.call("POST", "/wiki/_search", {}, params) == WHOLE
    searches = [path for _, path, _, _ in cluster.servers[0].requests if "_search" in path]
    assert len(searches) == 1
