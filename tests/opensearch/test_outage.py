"""A server that ceases to answer: when it counts as down, who waits for it, and who does not."""

import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import replace
from pathlib import Path

import pytest

from arag_search.engines.base import Deadline
from arag_search.engines.opensearch import hosts
from arag_search.engines.opensearch.address import ConnectionOptions, parse_address
from arag_search.engines.opensearch.client import Client
from arag_search.errors import AragError, EngineError, QueryTimeoutError, UnavailableError
from arag_search.search.opening import open_index
from arag_search.system.calls import Call, current_call
from index_jobs.build.new_index import build_index
from tests.support.builds import corpus
from tests.support.cluster import LocalCluster
from tests.support.patience import PATIENCE_S
from tests.support.unruly_server import WHOLE, Answer, UnrulyServer, refusal, unruly, version

OPTIONS = ConnectionOptions(attempt_timeout_s=0.3, request_budget_s=60.0)
SILENT, GONE = Answer(silent=True), Answer(broken=True)
OUTAGE = r"The search server does not answer \(since \d\d:\d\d\)\."


@pytest.fixture(name="server")
def running_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[UnrulyServer]:
    monkeypatch.setattr(hosts, "LOOK_S", 0.2)
    with unruly() as server:
        server.at_root = version()
        yield server


def connected(*servers: UnrulyServer) -> Client:
    first, *others = (server.url for server in servers)
    urls = "".join("," + url.removeprefix("http://") for url in others)
    return Client.connect(parse_address(f"{first}{urls}/wiki"), OPTIONS)


def search(client: Client, *, timeout_s: float | None = None, waits: bool = False) -> object:
    deadline = Deadline.after(timeout_s)
    return client.call("POST", "/wiki/_search", {"size": 0}, deadline=deadline, waits=waits)


@pytest.mark.parametrize(
    ("of_search", "of_root", "error", "is_down"),
    [
        (SILENT, version(), QueryTimeoutError, False),  # the query is slow
        (SILENT, refusal(401, "security_exception", "who"), QueryTimeoutError, False),
        (SILENT, SILENT, UnavailableError, True),  # the node hangs
        (GONE, version(), UnavailableError, False),  # a proxy cuts slow queries off
        (GONE, GONE, UnavailableError, True),
        (Answer("<html>", 502), Answer("<html>", 502), UnavailableError, True),
        (refusal(503, "unavailable_shards_exception", "red"), version(), UnavailableError, False),
        (refusal(429, "rejected_execution_exception", "queue"), GONE, UnavailableError, False),
    ],
)  # fmt: skip
def test_a_server_is_down_if_it_does_not_answer_get_root_after_a_failure(
    server: UnrulyServer, of_search: Answer, of_root: Answer, error: type[AragError], is_down: bool
) -> None:
    client = connected(server)
    server.reply_with(of_search)
    server.at_root = of_root
    with pytest.raises(error, match=OUTAGE if is_down else "^(?!The search server)"):
        search(client, timeout_s=0.1)
    assert (client.down_since is not None) == is_down
    client.close()


def test_calls_fail_at_once_until_a_look_finds_the_server_again(
    server: UnrulyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "LOOK_EVERY_S", 1e6)
    client = connected(server)
    server.reply_with(GONE)
    server.at_root = GONE
    with ThreadPoolExecutor(8) as threads:
        failed = [threads.submit(search, client) for _ in range(40)]
        assert all(isinstance(call.exception(), UnavailableError) for call in failed)
    asked = len(server.requests)
    assert asked <= 8  # those that were on their way
    server.at_root = version()
    with pytest.raises(UnavailableError) as caught:
        search(client)
    assert caught.value.where == server.url
    assert caught.value.do == "Check that all nodes are running, then try again."
    assert len(server.requests) == asked
    server.reply_with(Answer(WHOLE))
    monkeypatch.setattr(hosts, "LOOK_EVERY_S", 0.0)
    assert search(client) == WHOLE
    assert client.down_since is None
    client.close()


def test_a_search_that_a_server_does_not_answer_just_after_its_return_is_not_blamed_on_the_query(
    server: UnrulyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "LOOK_EVERY_S", 0.0)
    client = connected(server)
    server.reply_with(GONE)
    server.at_root = GONE
    with pytest.raises(UnavailableError, match=OUTAGE):
        search(client)
    server.reply_with(SILENT)
    server.at_root = version()
    with pytest.raises(UnavailableError, match="has just come back, and does not answer searches"):
        search(client, timeout_s=0.1)
    monkeypatch.setattr(hosts, "SETTLING_S", 0.0)
    with pytest.raises(QueryTimeoutError):
        search(client, timeout_s=0.1)
    client.close()


def test_a_job_waits_for_a_server_that_is_down(
    server: UnrulyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "LOOK_EVERY_S", 0.1)
    client = connected(server)
    server.reply_with(GONE)
    server.at_root = GONE
    with ThreadPoolExecutor(1) as threads:
        call = threads.submit(search, client, waits=True)
        while client.down_since is None:
            time.sleep(0.01)
        server.reply_with(Answer(WHOLE))
        server.at_root = version()
        assert call.result() == WHOLE
    client.close()


@pytest.mark.parametrize("hangs", [False, True])
def test_a_host_that_is_down_is_left_out_while_others_answer(
    server: UnrulyServer, hangs: bool
) -> None:
    with unruly() as other:
        other.at_root = version()
        client = connected(server, other)
        server.reply_with(Answer(WHOLE))
        other.reply_with(SILENT if hangs else GONE)
        other.at_root = SILENT if hangs else GONE
        for _ in range(20):
            assert search(client) == WHOLE
        assert (len(server.requests), len(other.requests)) == (20, 1)
        assert client.down_since is None
        client.close()


def test_retries_of_a_search_end_with_its_deadline(server: UnrulyServer) -> None:
    client = connected(server)
    server.reply_with(refusal(429, "rejected_execution_exception", "queue is full"))
    deadline = Deadline(0.3)
    with pytest.raises(UnavailableError, match=r"queue is full \(\d attempts in 0 s\)"):
        client.call("POST", "/wiki/_search", {}, deadline=deadline, waits=False)
    client.close()


def test_requests_carry_the_id_of_the_call_that_they_are_for(server: UnrulyServer) -> None:
    client = connected(server)
    server.reply_with(refusal(503, "x", "y"), Answer(WHOLE))
    call = Call("a1-b2")
    token = current_call.set(call)
    with ThreadPoolExecutor(1) as threads:
        threads.submit(copy_context().run, search, client).result()
    current_call.reset(token)
    search(client)
    assert call.round_trips == 2
    sent = [headers.get("x-opaque-id") for _, _, headers, _ in server.requests]
    assert sent == ["a1-b2", "a1-b2", None]
    client.close()


def test_a_certificate_that_is_refused_stays_the_error(server: UnrulyServer) -> None:
    address = parse_address(server.url.replace("http", "https") + "/wiki")
    with pytest.raises(EngineError, match="The server does not speak TLS"):
        Client.connect(address, replace(OPTIONS, opening_budget_s=5.0))


def test_a_real_node_that_hangs_or_dies_is_an_outage_until_it_is_back(
    own_node: LocalCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    address = f"{own_node.url}/arag-test-outage"
    build_index([corpus("c.jsonl", 300)], address)
    (node,) = own_node.nodes
    with open_index(address, search_timeout_s=1.0) as index:
        reading = index.scan()
        passages = [next(reading)]
        for stop, revive in (
            (signal.SIGSTOP, lambda: node.signal(signal.SIGCONT)),
            (signal.SIGKILL, own_node.revive),
        ):
            index.engine.check_ready()
            node.signal(stop)
            for _ in range(2):
                with pytest.raises(UnavailableError, match=OUTAGE):
                    index.logical_search("w1")
            for ask in (index.engine.check_ready, index.is_outdated):
                with pytest.raises(UnavailableError, match=OUTAGE):
                    ask()
            revive()
            until = time.monotonic() + PATIENCE_S
            while time.monotonic() < until:
                with suppress(UnavailableError):
                    index.engine.check_ready()
                    break
            assert index.logical_search("w1").total > 0
        passages += reading
        assert len(passages) == index.manifest.chunks
