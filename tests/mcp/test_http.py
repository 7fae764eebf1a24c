"""arag-search mcp over HTTP: sessions, limits and access."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from functools import partial
from typing import Any

import anyio
import httpx2
import pytest
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Message

from arag_search.errors import ArgumentError
from arag_search.mcp_server.folders import Coming
from arag_search.mcp_server.gate import Gate
from arag_search.mcp_server.http import serve_http
from arag_search.mcp_server.listening import Listening, listen
from arag_search.mcp_server.messages import UNAVAILABLE
from tests.support.commands import Command
from tests.support.mcp_http import (
    ENVELOPE,
    HEADERS,
    INITIALIZE,
    MODERN,
    begin_session,
    connected,
    over_http,
    ping_status,
    web_client,
)
from tests.support.mcp_servers import LocalServer, MoodyEngine, text_of, until
from tests.support.patience import PATIENCE_S

TOKEN = "correct-horse-battery-staple"
SET_A_TOKEN = "Put a long random token into a variable, and name it with --token-env NAME."
READ = {"chunk_ids": ["scarlatti.1"]}


@pytest.fixture
def token(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TEST_TOKEN", TOKEN)
    return "TEST_TOKEN"


def test_two_clients_search_and_read_in_separate_sessions() -> None:
    async def talk(listening: Listening) -> None:
        async with connected(listening.url) as client, connected(listening.url) as other_client:
            assert len((await client.list_tools()).tools) == 2
            first = text_of(await client.call_tool("chunk_read", READ))
            assert "This opera is older." in first
            second_reply = text_of(await client.call_tool("chunk_read", READ))
            assert second_reply == first.replace(
                "(whole document)", "(whole document, shown before)"
            )
            assert text_of(await other_client.call_tool("chunk_read", READ)) == first
            assert (await client.call_tool("logical_search", {"query": "a OR"})).is_error

    over_http(talk)


def test_a_session_whose_client_has_vanished_is_freed() -> None:
    async def talk(listening: Listening) -> None:
        first = (await begin_session(listening)).headers["mcp-session-id"]
        await anyio.sleep(0.4)
        async with web_client() as http:
            assert await ping_status(http, listening.url, first) == 404
        assert (await begin_session(listening)).status_code == 200

    over_http(talk, idle_session_s=0.2)


def test_a_session_beyond_the_limit_is_refused_until_another_one_ends() -> None:
    async def talk(listening: Listening) -> None:
        async with web_client() as http:
            first, second = [
                (await begin_session(listening)).headers["mcp-session-id"] for _ in range(2)
            ]
            refusal = await begin_session(listening)
            assert (refusal.status_code, refusal.json()["error"]["message"]) == (
                503,
                "Too many open sessions",
            )
            for session in (first, second):
                assert await ping_status(http, listening.url, session) == 200
            headers = {**HEADERS, "Mcp-Session-Id": first}
            await http.delete(listening.url, headers=headers)
            assert (await begin_session(listening)).status_code == 200
            assert await ping_status(http, listening.url, first) == 404
            assert await ping_status(http, listening.url, second) == 200

    over_http(talk, max_sessions=2)


def test_a_session_with_a_call_or_an_open_stream_is_not_idle() -> None:
    engine = MoodyEngine()

    async def talk(listening: Listening) -> None:
        async with web_client() as http, anyio.create_task_group() as group:
            busy, streaming = [
                (await begin_session(listening)).headers["mcp-session-id"] for _ in range(2)
            ]
            call = {"name": "chunk_read", "arguments": READ}
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
            answers: list[httpx2.Response] = []

            async def ask() -> None:
                headers = {**HEADERS, "Mcp-Session-Id": busy}
                answers.append(await http.post(listening.url, json=message, headers=headers))

            engine.gate.clear()
            group.start_soon(ask)
            headers = {**HEADERS, "Mcp-Session-Id": streaming}
            async with http.stream("GET", listening.url, headers=headers) as stream:
                assert stream.status_code == 200
                await anyio.sleep(0.5)
                assert await ping_status(http, listening.url, streaming) == 200
            engine.gate.set()
            await until(lambda: bool(answers))
            assert "This opera is older." in answers[0].text

    over_http(talk, served=LocalServer(engine), idle_session_s=0.2)


# Messages


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"\xff\xfe{}", -32700),
        ('{"jsonrpc": "2.0", "id": 1, "method": "ping"}'.encode("utf-16"), -32700),
        (b"[" * 100_000 + b"]" * 100_000, -32700),
        (b'{"a": ' * 100_000, -32700),
        (b'{"jsonrpc": "2.0", "id": ' + b"1" * 5_000 + b', "method": "ping"}', -32700),
        (b"not json", -32700),
        (b"", -32700),
        (b"[]", -32600),
        (b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_a_body_that_is_not_a_message_is_a_protocol_error_and_is_not_logged(
    body: bytes, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def talk(listening: Listening) -> None:
        async with web_client() as http:
            session = (await begin_session(listening)).headers["mcp-session-id"]
            for known in ({}, {"Mcp-Session-Id": session}):
                headers = {**HEADERS, **known}
                answer = await http.post(listening.url, content=body, headers=headers)
                assert answer.status_code == 400
                assert answer.json()["error"]["code"] == code
                message = answer.json()["error"]["message"]
                assert message.startswith("The message is not valid JSON-RPC 2.0.\nAllowed: ")
            assert await ping_status(http, listening.url, session) == 200

    over_http(talk)
    assert caplog.messages == []


@pytest.mark.parametrize("is_modern", [False, True])
def test_a_message_that_is_too_long_or_too_deep_is_answered_by_its_id(is_modern: bool) -> None:
    deep = b'{"a":' * 300 + b"1" + b"}" * 300
    long = b'{"a": "' + b"x" * 50_000 + b'"}'
    bodies = (
        (b'{"jsonrpc": "2.0", "id": 7, "method": "x", "params": ' + deep + b"}", 400, 7),
        (b'{"method": "x", "params": ' + deep + b', "jsonrpc": "2.0", "id": "8"}', 400, "8"),
        (b'{"jsonrpc": "2.0", "method": "x", "id": 9, "params": ' + long + b"}", 413, 9),
        (b'{"method": "x", "params": ' + long + b', "jsonrpc": "2.0", "id": 10}', 413, 10),
        (b'{"params": {"a": ' + long + b', "id": 11}}', 413, None),
    )
    version = {"Mcp-Protocol-Version": MODERN} if is_modern else {}

    async def talk(listening: Listening) -> None:
        async with web_client({**HEADERS, **version}) as http:
            for body, status, id_ in bodies:
                answer = await http.post(listening.url, content=body)
                assert (answer.status_code, answer.json()["id"]) == (status, id_)
                assert "Allowed" in answer.text or "longer than 10,000 bytes" in answer.text

    over_http(talk, max_request_bytes=10_000)


@pytest.mark.parametrize("accept", ["text/event-stream", "*/*", "text/event-stream, */*;q=0.1"])
def test_clients_that_accept_events_or_anything_are_served(accept: str) -> None:
    listed = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": ENVELOPE}
    modern = {"Mcp-Protocol-Version": MODERN, "Mcp-Method": "tools/list"}

    async def talk(listening: Listening) -> None:
        assert (await begin_session(listening, Accept=accept)).status_code == 200
        async with web_client({**HEADERS, **modern, "Accept": accept}) as http:
            answer = await http.post(listening.url, json=listed)
            assert (answer.status_code, len(answer.json()["result"]["tools"])) == (200, 2)

    over_http(talk)


@pytest.mark.parametrize("accept", ["application/json", "application/*;q=0.9", "*/*", None])
def test_clients_that_do_not_name_events_are_answered_as_json(accept: str | None) -> None:
    headers = {"Content-Type": HEADERS["Content-Type"]} | ({"Accept": accept} if accept else {})
    search = {"name": "logical_search", "arguments": {"query": "vivaldi"}}
    progress = {"progressToken": 7}
    served = LocalServer()
    seen: list[dict[str, Any]] = []

    async def talk(listening: Listening) -> None:
        async with web_client(headers) as http:
            if accept is None:
                del http.headers["Accept"]
            begun = await http.post(listening.url, json=INITIALIZE)
            assert begun.json()["result"]["protocolVersion"] == "2025-06-18"
            modern = {"Mcp-Protocol-Version": MODERN, "Mcp-Method": "tools/call"}
            session = {"Mcp-Session-Id": begun.headers["Mcp-Session-Id"]}
            metas: list[tuple[dict[str, str], dict[str, Any]]] = [
                (session, {}),
                ({**modern, "Mcp-Name": "logical_search"}, dict(ENVELOPE["_meta"])),
            ]
            for more, meta in metas:
                building = Coming("The index is being built.", 1, 2)
                answers = iter([building, building])
                served.live.coming = lambda answers=answers: next(answers, None)
                call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
                params = {**search, "_meta": meta | progress}
                answer = await http.post(
                    listening.url, json={**call, "params": params}, headers=more
                )
                assert answer.headers["Content-Type"] == "application/json"
                seen.append(answer.json())
            note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            assert (await http.post(listening.url, json=note, headers=session)).status_code == 202
            if accept == "application/json":  # where only events can come
                assert (await http.get(listening.url, headers=session)).status_code == 406

    over_http(talk, served=served)
    for answer in seen:
        assert answer["id"] == 1
        assert " passages\n" in answer["result"]["content"][0]["text"]


def test_a_session_that_ends_in_a_call_says_so_to_a_client_that_reads_no_events() -> None:
    served = LocalServer()
    assert isinstance(served.engine, MoodyEngine)
    engine = served.engine
    engine.gate.clear()
    search = {"name": "logical_search", "arguments": {"query": "vivaldi"}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": search}

    async def talk(listening: Listening) -> None:
        async with web_client({**HEADERS, "Accept": "application/json"}) as http:
            begun = await http.post(listening.url, json=INITIALIZE)
            http.headers["Mcp-Session-Id"] = begun.headers["Mcp-Session-Id"]

            async def asks() -> None:
                answer = await http.post(listening.url, json=call)
                assert answer.status_code == 500
                assert "The session ended before the answer." in answer.json()["error"]["message"]

            async with anyio.create_task_group() as group:
                group.start_soon(asks)
                await until(lambda: engine.at_work > 0)
                assert (await http.delete(listening.url)).status_code == 200
        engine.gate.set()

    over_http(talk, served=served)


# Access


def test_pages_of_admitted_origins_may_ask_before_they_call_and_read_the_answers(
    token: str,
) -> None:
    asked = {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type,mcp-protocol-version",
    }
    own, other = "https://search.example.org", "https://evil.example.org"

    async def talk(listening: Listening) -> None:
        async with web_client() as http:
            answer = await http.options(listening.url, headers={**asked, "Origin": own})
            assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, own)
            allowed = answer.headers["access-control-allow-headers"]
            assert allowed == asked["Access-Control-Request-Headers"]
            answer = await http.options(listening.url, headers={**asked, "Origin": other})
            assert answer.status_code == 400
            assert "access-control-allow-origin" not in answer.headers
        shown = {"Authorization": f"Bearer {TOKEN}"}
        answer = await begin_session(listening, **shown, Origin=own)
        assert answer.headers["access-control-allow-origin"] == own
        assert answer.headers["access-control-expose-headers"] == "mcp-session-id"
        answer = await begin_session(listening, Origin=own)  # It may read why it is refused.
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (401, own)
        answer = await begin_session(listening, **shown, Origin=other)
        assert answer.status_code == 403
        assert "access-control-allow-origin" not in answer.headers

    over_http(talk, token_env=token, allowed_hosts=("search.example.org",))


def test_only_clients_with_the_token_are_let_in(token: str) -> None:
    async def talk(listening: Listening) -> None:
        async with connected(listening.url, TOKEN) as client:
            assert not (await client.call_tool("chunk_read", READ)).is_error
        for authorization in (
            "",
            "Bearer",
            "Bearer wrong",
            f"Basic {TOKEN}",
            f"Bearer {TOKEN}x",
            TOKEN,
        ):
            answer = await begin_session(listening, Authorization=authorization)
            assert answer.status_code == 401, authorization
            assert answer.headers["www-authenticate"] == "Bearer"
            assert answer.text == (
                "The token is missing or wrong.\nAllowed: Authorization: Bearer TOKEN\n"
                "Do: Give the client the token that the server was started with."
            )
        answer = await begin_session(listening, Authorization=f"bearer  {TOKEN}")
        assert answer.status_code == 200

    over_http(talk, token_env=token)


def test_anybody_may_ask_for_the_health_and_learns_no_name(token: str) -> None:
    async def talk(listening: Listening) -> None:
        async with web_client() as http:
            health = listening.url.replace("/mcp", "/health")
            answer = await http.get(health, headers={"Host": "10.1.2.3:8765"})
            assert (answer.status_code, answer.text) == (200, '{"status":"ok"}')
            assert (await http.head(health)).status_code == 200
            assert (await http.post(health, json={})).status_code == 405
            assert (await http.get(listening.url)).status_code == 401

    over_http(talk, token_env=token)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "localhost:1"}, 200),
        ({"Host": "[::1]:8765"}, 200),
        ({"Host": "search.example.org"}, 200),
        ({"Host": "Search.Example.ORG:443"}, 200),
        ({"Host": "evil.example.org"}, 400),
        ({"Host": "localhost:evil.com"}, 400),
        ({"Host": "localhost:"}, 400),
        ({"Host": "127.0.0.1:1@evil.com"}, 400),
        ({"Host": "127.0.0.1:80:80"}, 400),
        ({"Host": "localhost:80/evil.com"}, 400),
        ({"Host": "user@localhost"}, 400),
        ({"Host": "[::1]evil.com"}, 400),
        ({"Host": "[::1%evil.com]"}, 400),
        ({"Host": "localhost, evil.com"}, 400),
        ({"Host": ""}, 400),
        ({"Host": "localhost.evil.example.org"}, 400),
        ({"Host": "127.0.0.1.evil.example.org:8765"}, 400),
        ({"Origin": "http://localhost:6274"}, 200),
        ({"Origin": "https://Search.example.org"}, 200),
        ({"Origin": "https://evil.example.org"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": ""}, 403),
        ({"Origin": "http://localhost:evil.com"}, 403),
        ({"Origin": "http://127.0.0.1:1@evil.com"}, 403),
        ({"Origin": "http://localhost:80/evil.com"}, 403),
        ({"Origin": "http://localhost:80#@evil.com"}, 403),
        ({"Origin": "localhost"}, 403),
        ({"Origin": "ftp://localhost"}, 403),
        ({"Origin": "http://http://localhost"}, 403),
        ({"Content-Type": "application/json; charset=utf-8"}, 200),
        ({"Content-Type": "application/jsonp"}, 415),
        ({"Content-Type": "text/plain"}, 400),
        ({"Accept": "text/html"}, 406),
    ],
)
def test_pages_of_other_sites_are_kept_out_by_host_origin_and_type(
    headers: dict[str, str], status: int, token: str
) -> None:
    async def talk(listening: Listening) -> None:
        answer = await begin_session(listening, Authorization=f"Bearer {TOKEN}", **headers)
        assert answer.status_code == status

    over_http(talk, token_env=token, allowed_hosts=("search.EXAMPLE.org",))


def test_a_refusal_names_the_wrong_origin_and_says_what_to_do() -> None:
    async def talk(listening: Listening) -> None:
        origin = "https://evil.example.org/" + "x" * 80
        assert (await begin_session(listening, Origin=origin)).text == (
            "Pages of this origin may not use the server.\n"
            f"Where: Origin: https://evil.example.org/{'x' * 55}...\n"
            "Allowed: names of loopback, and those that the server was started with\n"
            "Do: To let the page in: start the server with --allow-host NAME"
        )

    over_http(talk)


def test_the_server_has_one_path() -> None:
    async def talk(listening: Listening) -> None:
        base = listening.url.removesuffix("/mcp")
        async with web_client() as http:
            for path in ("", "/", "/mcp2", "/mcp/x", "/docs"):
                answer = await http.get(f"{base}{path}")
                assert (answer.status_code, answer.text) == (
                    404,
                    "There is nothing at this path.\nAllowed: /mcp",
                )
            answer = await http.put(listening.url, json={})
            assert answer.status_code == 405

    over_http(talk)


def test_a_request_that_is_too_large_is_refused_before_it_has_arrived() -> None:
    async def talk(listening: Listening) -> None:
        head = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        piece = b"1f4\r\n" + b"x" * 500 + b"\r\n"
        async with await anyio.connect_tcp(*listening.socket.getsockname()) as stream:
            await stream.send(head + b"Transfer-Encoding: chunked\r\n\r\n" + 5 * piece)
            assert (await stream.receive()).startswith(b"HTTP/1.1 413 ")
        assert (await begin_session(listening)).status_code == 200

    over_http(talk, max_request_bytes=1_000)


# The end


@pytest.mark.parametrize("is_early", [True, False])
def test_a_request_that_arrives_while_the_server_ends_is_refused(is_early: bool) -> None:
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
    }
    messages: list[Message] = []

    async def main() -> None:
        stopping = anyio.Event()
        if is_early:
            stopping.set()

        async def receive() -> Message:
            stopping.set()  # The server stops while the request is read, or before.
            body = json.dumps(INITIALIZE).encode()
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Message) -> None:
            messages.append(message)

        manager = StreamableHTTPSessionManager(LocalServer().server)
        with listen("127.0.0.1", 0, None) as listening:
            await Gate(manager.handle_request, listening, stopping, 1_000)(scope, receive, send)

    anyio.run(main)
    headers = dict(messages[0]["headers"])
    assert (messages[0]["status"], headers[b"connection"]) == (503, b"close")
    answer = json.loads(messages[1]["body"])
    assert (answer["id"], answer["error"]) == (
        0,
        {
            "code": UNAVAILABLE,
            "message": "The server is shutting down.\nDo: Try again when it is back.",
        },
    )


def test_calls_that_are_left_or_in_flight_at_the_end_leave_no_line_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine = MoodyEngine()
    params = {**ENVELOPE, "name": "chunk_read", "arguments": READ}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    modern = {"Mcp-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "chunk_read"}
    statuses: list[int] = []

    async def main() -> None:
        stopping = anyio.Event()
        async with web_client(HEADERS) as http, anyio.create_task_group() as group:

            async def ask(headers: dict[str, str]) -> None:
                answer = await http.post(listening.url, json=message, headers=headers)
                statuses.append(answer.status_code)

            serve = partial(
                serve_http, served.server, listening, served.readiness, stopping, grace_s=0.1
            )
            group.start_soon(serve)
            session = (await begin_session(listening)).headers["mcp-session-id"]
            engine.gate.clear()
            for headers in (modern, {"Mcp-Session-Id": session}):
                with pytest.raises(httpx2.ReadTimeout):
                    await http.post(listening.url, json=message, headers=headers, timeout=0.3)
                group.start_soon(ask, headers)
            await until(lambda: engine.at_work == 4)
            stopping.set()
            await until(lambda: len(statuses) == 2)
            engine.gate.set()

    served = LocalServer(engine)
    with listen("127.0.0.1", 0, None) as listening:
        served.run(main)
    assert sorted(statuses) == [200, 503]  # The answer in the session had begun.
    assert caplog.messages == []


# Listening


def test_a_host_other_than_loopback_needs_a_token_that_is_not_weak(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for host in ("0.0.0.0", "::", "", "example.org", "10.0.0.1"):
        with pytest.raises(ArgumentError) as raised:
            listen(host, 0, None)
        assert raised.value.do == SET_A_TOKEN
    with pytest.raises(ArgumentError, match="The token in the variable NOT_SET is missing"):
        listen("127.0.0.1", 0, "NOT_SET")
    for weak_token in ("   ", "shrt", "with blanks in between them", "ünïcödé-ünïcödé-ünïcödé"):
        monkeypatch.setenv("POOR", weak_token)
        with pytest.raises(ArgumentError) as raised:
            listen("0.0.0.0", 0, "POOR")
        assert weak_token.strip() == "" or weak_token not in str(raised.value)
    monkeypatch.setenv("GOOD", TOKEN)
    listening = listen("0.0.0.0", 0, "GOOD")
    with listening:
        assert (listening.token, listening.names[-1], listening.is_local) == (
            TOKEN,
            "0.0.0.0",
            False,
        )


def test_a_name_other_than_those_of_loopback_needs_a_token_too(token: str) -> None:
    with pytest.raises(ArgumentError) as raised:
        listen("127.0.0.1", 0, None, ["LocalHost", "Search.example.org"])
    assert raised.value.where == "--allow-host"
    with listen("127.0.0.1", 0, None, ["LocalHost", "::1"]) as listening:
        assert listening.names[-3:] == ("127.0.0.1", "localhost", "[::1]")
        assert listening.is_local
    with listen("127.0.0.1", 0, token, ["Search.example.org", "[2001:DB8::7]"]) as listening:
        assert listening.names[-3:] == ("127.0.0.1", "search.example.org", "[2001:db8::7]")


@pytest.mark.parametrize(
    "name",
    [
        "", " ", "https://x.org", "x.org:443", "x.org/mcp", "*", "*.x.org", "[::1", "[::1]:80",
        "ü.de",
    ],
)  # fmt: skip
def test_an_invalid_name_of_a_host_is_refused_before_a_socket_is_opened(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.create_server", lambda *_, **__: pytest.fail("opened"))
    with pytest.raises(ArgumentError) as raised:
        listen("127.0.0.1", 0, None, ["localhost", name])
    assert raised.value.where == "--allow-host"
    assert str(name) in raised.value.what


def test_an_unavailable_port_or_address_is_reported(
    arag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = arag("mcp", "my-index", "--transport", "http", "--port", str(port))
    assert (done.code, done.out, done.err) == (
        1,
        "",
        f"arag-search: Port {port} of 127.0.0.1 is taken.\nWhere: --port\n"
        "Allowed: a free port; 0 takes any\nDo: Stop the other server, or choose another port.\n",
    )
    for port in (70_000, -1):
        with pytest.raises(ArgumentError, match=f"There is no port {port}"):
            listen("localhost", port, None)
    monkeypatch.setenv("TOKEN_OF_TEST", TOKEN)
    for host in ("203.0.113.7", "no-such-host.invalid"):
        with pytest.raises(ArgumentError, match="The server cannot listen there"):
            listen(host, 0, "TOKEN_OF_TEST")


@pytest.mark.server
@pytest.mark.usefixtures("commands_folder")
def test_the_command_says_where_it_serves_and_ctrl_c_ends_it_while_clients_are_connected() -> None:
    script = "from arag_search.cli.app import main; main()"
    arguments = ["mcp", "my-index", "--transport", "http", "--port", "0", "--token-env", "SECRET"]
    with subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "SECRET": TOKEN},
    ) as server:
        assert server.stderr is not None
        line = server.stderr.readline()
        match = re.fullmatch(
            r"Serving my-index at (http://127\.0\.0\.1:\d+/mcp); stop with Ctrl-C\.\n", line
        )
        assert match is not None, line

        async def main() -> None:
            with anyio.fail_after(PATIENCE_S):
                async with connected(match[1], TOKEN) as client:  # The client ends its session.
                    assert (await client.list_prompts()).prompts
                async with connected(match[1], TOKEN) as client:
                    reply = await client.call_tool("logical_search", {"query": "vivaldi"})
                    assert " passages\n" in text_of(reply)
                    server.send_signal(signal.SIGINT)
                    await until(lambda: server.poll() is not None)

        anyio.run(main)
        out, log = server.communicate()
        assert (server.returncode, out) == (130, "")
        assert re.fullmatch(r".* INFO call id=.*\narag-search: interrupted\.\n", log)


def test_the_status_of_a_refused_request_with_a_body_arrives(token: str) -> None:
    body = b'{"jsonrpc": "2.0", "padding": "' + b"x" * 300_000 + b'"}'

    async def talk(listening: Listening) -> None:
        for _ in range(30):
            async with web_client() as http:
                answer = await http.post(
                    listening.url,
                    content=body,
                    headers={"Authorization": "Bearer wrong", "Connection": "close"},
                )
                assert answer.status_code == 401

    over_http(talk, token_env=token)
