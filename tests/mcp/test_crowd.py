"""arag-search mcp over HTTP with many clients at once, or with an engine that hangs."""

from __future__ import annotations

import json
import re
import signal
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from anyio.abc import TaskGroup
from mcp import MCPError

from arag_search.errors import AccessError
from arag_search.mcp_server import http as http_module
from arag_search.mcp_server.http import serve_http
from arag_search.mcp_server.listening import Listening, listen
from arag_search.mcp_server.messages import BUSY, RETRY_AFTER_S, UNAVAILABLE
from arag_search.mcp_server.workers import Workers
from index_jobs.build.new_index import build_index
from tests.support.builds import corpus
from tests.support.cluster import LocalCluster
from tests.support.mcp_http import (
    ENVELOPE,
    HEADERS,
    MODERN,
    begin_session,
    http_command,
    modern_client,
    over_http,
    web_client,
)
from tests.support.mcp_servers import DOWN, LocalServer, MoodyEngine, until
from tests.support.patience import PATIENCE_S

READ = {"name": "chunk_read", "arguments": {"chunk_ids": ["scarlatti.1"]}}


class Crowd:
    """Clients of a server whose engine answers only when it is told to."""

    def __init__(self, **more: Any) -> None:
        self.engine = MoodyEngine()
        self.engine.gate.clear()
        self.served = LocalServer(self.engine, **more)
        self.answers: list[httpx2.Response] = []

    def asks(self, group: TaskGroup, url: str, headers: dict[str, str], count: int = 1) -> None:
        """Let a client call a tool so many times at once."""
        group.start_soon(self._ask, url, headers, count)

    async def _ask(self, url: str, headers: dict[str, str], count: int) -> None:
        async with web_client(HEADERS | headers) as http, anyio.create_task_group() as group:

            async def ask(id_: int) -> None:
                self.answers.append(await http.post(url, json=request("tools/call", READ, id_)))

            for id_ in range(count):
                group.start_soon(ask, id_)


def request(method: str, params: dict[str, Any], id_: int = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": {**ENVELOPE, **params}}


def modern(method: str, name: str = "") -> dict[str, str]:
    named = {"Mcp-Name": name} if name else {}
    return {"Mcp-Protocol-Version": MODERN, "Mcp-Method": method, **named}


async def session(listening: Listening) -> dict[str, str]:
    """Begin a session, and return the header of its requests."""
    return {"Mcp-Session-Id": (await begin_session(listening)).headers["mcp-session-id"]}


BROKEN = "The search failed.\nWhere: request ID\nDo: Report it: the log has the cause."
CALL = modern("tools/call", "chunk_read")


def test_a_client_with_many_calls_leaves_a_worker_and_is_alone_refused_beyond_its_bound() -> None:
    crowd = Crowd(workers=Workers(is_shared=True, waiting=20))

    async def talk(listening: Listening) -> None:
        async with anyio.create_task_group() as group:
            crowd.asks(group, listening.url, await session(listening), 7 + 20 + 3)
            await until(lambda: len(crowd.answers) == 3)
            assert all("Too many calls of this client" in answer.text for answer in crowd.answers)
            await until(lambda: crowd.engine.at_work == 7)
            crowd.asks(group, listening.url, await session(listening))
            await until(lambda: crowd.engine.at_work == 8)
            crowd.asks(group, listening.url, CALL)  # by its address
            await until(lambda: crowd.served.workers.busy == 7 + 20 + 2)
            crowd.engine.gate.set()
        assert crowd.engine.most_at_work == 8
        assert len(crowd.answers) == 32
        assert sum("This opera is older." in answer.text for answer in crowd.answers) == 29

    over_http(talk, served=crowd.served)


def test_two_sessions_of_one_token_are_one_client(tmp_path: Path) -> None:
    tokens = [f"Bearer a-token-of-somebody-{number}" for number in range(2)]
    hashes = [sha256(token.removeprefix("Bearer ").encode()).hexdigest() for token in tokens]
    file = tmp_path / "access.yaml"
    file.write_text("".join(f"{digest}: NOT year:1\n" for digest in hashes))
    crowd = Crowd(workers=Workers(2, is_shared=True), access=file)

    async def talk(listening: Listening) -> None:
        async with anyio.create_task_group() as group:
            for number in (0, 0, 1):
                shown = {"Authorization": tokens[number]}
                begun = await begin_session(listening, **shown)
                known = {"Mcp-Session-Id": begun.headers["mcp-session-id"]}
                crowd.asks(group, listening.url, shown | known)
            await until(lambda: crowd.served.workers.busy == 3 and crowd.engine.at_work == 2)
            assert sorted(crowd.served.workers.turns.running) == sorted(hashes)
            crowd.engine.gate.set()

    over_http(talk, served=crowd.served)


@pytest.mark.parametrize("is_modern", [True, False])
def test_lists_prompts_and_pings_are_answered_while_all_workers_hang(is_modern: bool) -> None:
    crowd = Crowd(workers=Workers(2, waiting=1))
    asked = {
        "tools/list": {},
        "prompts/list": {},
        "prompts/get": {"name": "logical_read"},
        "resources/list": {},
        "resources/templates/list": {},
        "server/discover" if is_modern else "ping": {},
    }

    async def talk(listening: Listening) -> None:
        async with anyio.create_task_group() as group:
            crowd.asks(group, listening.url, CALL, 4)
            await until(lambda: crowd.engine.at_work == 2 and len(crowd.answers) == 1)
            known = {} if is_modern else await session(listening)
            async with web_client(HEADERS) as http:
                for method, params in asked.items():
                    headers = modern(method, params.get("name", "")) if is_modern else known
                    body = request(method, params)
                    answer = await http.post(listening.url, json=body, headers=headers)
                    assert answer.status_code == 200
                    assert '"result"' in answer.text
            crowd.engine.gate.set()

    over_http(talk, served=crowd.served)


# Failures


@pytest.mark.parametrize(
    ("failure", "status", "code", "message"),
    [
        (DOWN, 503, UNAVAILABLE, "The search is not available now.\nDo: Try again in a moment."),
        (
            AccessError("The server 10.1.2.3 refuses.", where="https://a.b:9200"),
            500,
            -32603,
            BROKEN,
        ),
        (ZeroDivisionError("127.0.0.1"), 500, -32603, BROKEN),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_failure_over_http_has_its_code_and_status_and_names_no_server(
    failure: Exception, status: int, code: int, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    crowd = Crowd()
    crowd.engine.failure = failure
    crowd.engine.gate.set()

    async def talk(listening: Listening) -> None:
        async with anyio.create_task_group() as group:
            crowd.asks(group, listening.url, CALL)
            await until(lambda: len(crowd.answers) == 1)
            crowd.asks(group, listening.url, await session(listening))

    over_http(talk, served=crowd.served)
    alone, in_session = crowd.answers
    assert alone.status_code == status
    assert alone.headers.get("retry-after") == (str(RETRY_AFTER_S) if status == 503 else None)
    # Clients of 2025 would end the session, or lose the text.
    assert in_session.status_code == 200
    for error in (
        alone.json()["error"],
        json.loads(in_session.text.partition("data:")[2])["error"],
    ):
        shown = re.sub(r"[0-9a-f]{16}", "ID", error["message"])
        assert (error["code"], shown) == (code, message)
        assert error["data"].get("retry_after_s") == (RETRY_AFTER_S if status == 503 else None)
    assert str(failure) in caplog.text
    outcome = "unavailable" if status == 503 else "broken"
    assert [(call.tool, call.outcome) for call in crowd.served.calls] == 2 * [
        (READ["name"], outcome)
    ]


def test_a_busy_server_says_when_to_try_again() -> None:
    crowd = Crowd(workers=Workers(1, waiting=1))

    async def talk(listening: Listening) -> None:
        async with anyio.create_task_group() as group:
            crowd.asks(group, listening.url, CALL, 3)
            await until(lambda: len(crowd.answers) == 1)
            crowd.engine.gate.set()
        (refusal, *answers) = crowd.answers
        assert (refusal.status_code, refusal.headers["retry-after"]) == (429, "5")
        error = refusal.json()["error"]
        assert (error["code"], error["data"]) == (BUSY, {"error": "BusyError", "retry_after_s": 5})
        assert [answer.status_code for answer in answers] == [200, 200]
        async with modern_client(listening.url) as client:  # the official one shows all of it
            crowd.engine.failure = DOWN
            with pytest.raises(MCPError, match="The search is not available now") as raised:
                await client.call_tool(READ["name"], READ["arguments"])
            assert raised.value.code == UNAVAILABLE

    over_http(talk, served=crowd.served)


# Probes, figures and the log


def test_probes_are_answered_while_all_workers_hang_and_ready_is_red_without_an_index(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    crowd = Crowd(workers=Workers(2))
    now_s = time.monotonic()

    async def talk(listening: Listening) -> None:
        nonlocal now_s
        async with anyio.create_task_group() as group, web_client() as http:
            crowd.asks(group, listening.url, CALL, 3)
            await until(lambda: crowd.engine.at_work == 2)

            async def probe(path: str) -> tuple[int, str]:
                answer = await http.get(listening.url.replace("/mcp", path))
                return answer.status_code, answer.json()["status"]

            monkeypatch.setattr(http_module, "monotonic", lambda: now_s)
            for _ in range(9):
                assert await probe("/health") == (200, "ok")
                assert await probe("/ready") == (200, "ok")
            assert crowd.engine.looks == 1
            crowd.engine.failure = DOWN
            assert await probe("/ready") == (200, "ok")  # as of then
            now_s += http_module.KEPT_S
            for _ in range(2):
                assert await probe("/ready") == (503, "unavailable")
            assert await probe("/health") == (200, "ok")
            now_s += http_module.KEPT_S
            crowd.engine.failure = None
            assert await probe("/ready") == (200, "ok")
            assert crowd.engine.looks == 3
            crowd.engine.gate.set()

    over_http(talk, served=crowd.served)
    assert caplog.messages == [f"An index cannot be searched. {DOWN}"]


@pytest.mark.server
@pytest.mark.usefixtures("commands_folder")
def test_the_command_logs_a_line_for_each_call_and_ends_with_its_last(tmp_path: Path) -> None:
    search = {"name": "logical_search", "arguments": {"query": "vivaldi\n"}}

    async def main(url: str) -> None:
        async with web_client(HEADERS | modern("tools/call", "logical_search")) as http:
            assert (await http.post(url, json=request("tools/call", search))).status_code == 200
            assert (await http.get(url.replace("/mcp", "/ready"))).status_code == 200

    log = tmp_path / "log"
    with http_command(log, "my-index", "--log", "json", "--log-queries") as (server, url):
        anyio.run(main, url)
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE_S) == 143
    _, line = log.read_text().splitlines()
    read = json.loads(line)
    assert (read["tool"], read["index"], read["outcome"]) == ("logical_search", "my-index", "ok")
    assert (read["query"], read["round_trips"]) == ("vivaldi\n", 0)
    assert {"time", "id", "queue_ms", "ms", "hits", "tokens"} <= read.keys()


@pytest.mark.server
def test_a_node_that_hangs_is_an_outage_for_calls_and_ready_and_not_for_lists(
    own_node: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (node,) = own_node.nodes
    address = f"{own_node.url}/arag-test-crowd"
    build_index([corpus("c.jsonl", 30)], address)
    search = request("tools/call", {"name": "logical_search", "arguments": {"query": "w1"}})

    async def main(url: str) -> None:
        async with web_client(HEADERS | modern("tools/call", "logical_search")) as http:

            async def status(path: str) -> int:
                return (await http.get(url.replace("/mcp", path))).status_code

            assert (await http.post(url, json=search)).status_code == 200
            assert await status("/ready") == 200
            node.signal(signal.SIGSTOP)
            while (await http.post(url, json=search)).status_code == 200:
                pass
            assert (await status("/ready"), await status("/health")) == (503, 200)
            refusal = await http.post(url, json=search)
            assert (refusal.status_code, refusal.json()["error"]["code"]) == (503, UNAVAILABLE)
            assert own_node.url.rpartition(":")[2] not in refusal.text
            listed = request("tools/list", {})
            answer = await http.post(url, json=listed, headers=modern("tools/list"))
            assert len(answer.json()["result"]["tools"]) == 2
            node.signal(signal.SIGCONT)
            with anyio.fail_after(PATIENCE_S):
                while await status("/ready") != 200:
                    await anyio.sleep(0.2)
            assert (await http.post(url, json=search)).status_code == 200

    log = tmp_path / "log"
    with http_command(log, f"wiki={address}", "--log", "json") as (_, url):
        anyio.run(main, url)
    calls = [json.loads(line) for line in log.read_text().splitlines()[1:]]
    outcomes = [call["outcome"] for call in calls if call["message"] == "call"]
    assert (outcomes[0], outcomes[-1], {*outcomes}) == ("ok", "ok", {"ok", "unavailable"})
    assert calls[0]["round_trips"] >= 1


# The end


def test_calls_that_run_or_wait_when_the_server_is_stopped_are_answered_and_new_ones_refused() -> (
    None
):
    crowd = Crowd(workers=Workers(2))

    async def main() -> None:
        stopping = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(
                serve_http, crowd.served.server, listening, crowd.served.readiness, stopping
            )
            crowd.asks(group, listening.url, CALL, 3)
            crowd.asks(group, listening.url, await session(listening))
            await until(lambda: crowd.served.workers.busy == 4 and crowd.engine.at_work == 2)
            stopping.set()
            async with web_client(HEADERS | CALL) as http:
                late = await http.post(listening.url, json=request("tools/call", READ))
            assert (late.status_code, late.headers["connection"]) == (503, "close")
            assert late.json()["error"]["code"] == UNAVAILABLE
            crowd.engine.gate.set()

    with listen("127.0.0.1", 0, None) as listening:
        crowd.served.run(main)
    assert len(crowd.answers) == 4
    for answer in crowd.answers:
        assert (answer.status_code, "This opera is older." in answer.text) == (200, True)
    assert sum(answer.headers.get("connection") == "close" for answer in crowd.answers) >= 3


@pytest.mark.server
@pytest.mark.usefixtures("commands_folder")
def test_sigterm_under_load_loses_no_call_that_had_begun(tmp_path: Path) -> None:
    search = {"name": "logical_search", "arguments": {"query": "vivaldi OR opera"}}
    headers = HEADERS | modern("tools/call", "logical_search")
    outcomes: list[tuple[float, object]] = []

    async def client(url: str) -> None:
        async with web_client(headers) as http:
            while True:
                begun_s = anyio.current_time()
                try:
                    answer = await http.post(url, json=request("tools/call", search))
                except httpx2.TransportError as error:
                    outcomes.append((begun_s, type(error).__name__))
                    return
                outcomes.append((begun_s, answer.status_code))
                if answer.status_code != 200:
                    return

    async def main() -> None:
        nonlocal stopped_s
        async with anyio.create_task_group() as group:
            for _ in range(16):
                group.start_soon(client, url)
            await until(lambda: len(outcomes) > 200)
            stopped_s = anyio.current_time()
            server.send_signal(signal.SIGTERM)

    stopped_s = 0.0
    log = tmp_path / "log"
    with http_command(log, "my-index") as (server, url):
        anyio.run(main)
        assert server.wait(PATIENCE_S) == 143
    # What had been sent, and had not begun, may be refused.
    assert {outcome for begun_s, outcome in outcomes if begun_s < stopped_s} <= {200, 503}
    answered = [outcome for _, outcome in outcomes].count(200)
    lines = [line for line in log.read_text().splitlines() if " INFO call " in line]
    assert [line for line in lines if 'outcome="cancelled"' in line] == []
    assert len(lines) == answered > 200
