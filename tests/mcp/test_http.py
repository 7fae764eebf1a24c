"""arag-search mcp over HTTP: sessions, limits and access."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys

import anyio
import httpx
import pytest
from anyio.abc import SocketStream
from mcp import McpError
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Message

from arag_search.errors import ArgumentError
from arag_search.mcp_server.gate import Gate
from arag_search.mcp_server.http import HttpLimits
from arag_search.mcp_server.listening import Listening, listen
from arag_search.mcp_server.sessions import Sessions
from tests.support.commands import Command
from tests.support.mcp_http import (
    HEADERS,
    INITIALIZE,
    begin_session,
    connected,
    over_http,
    ping_status,
    web_client,
)
from tests.support.mcp_servers import LocalServer, MoodyEngine, cancel_last, text_of, until

TOKEN = "correct-horse-battery-staple"
SET_A_TOKEN = "Put a long random token into a variable, and name it with --token-env NAME."
READ = {"chunk_ids": ["scarlatti.1"]}


@pytest.fixture
def token(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TEST_TOKEN", TOKEN)
    return "TEST_TOKEN"


async def connected_socket(listening: Listening) -> SocketStream:
    host, port = listening.socket.getsockname()
    return await anyio.connect_tcp(host, port)


async def raw_answer(listening: Listening, request: bytes) -> bytes:
    """Send a request, and return all bytes until the server closes the connection."""
    async with await connected_socket(listening) as stream:
        await stream.send(request)
        return b"".join([piece async for piece in stream])


def test_two_clients_search_and_read_in_separate_sessions() -> None:
    async def talk(listening: Listening) -> None:
        async with connected(listening.url) as client, connected(listening.url) as other_client:
            assert len((await client.list_tools()).tools) == 4
            first = text_of(await client.call_tool("chunk_read", READ))
            assert "This opera is older." in first
            second_reply = text_of(await client.call_tool("chunk_read", READ))
            assert second_reply == first.replace(
                "(whole document)", "(whole document, shown before)"
            )
            assert text_of(await other_client.call_tool("chunk_read", READ)) == first
            assert (await client.call_tool("logical_search", {"query": "a OR"})).isError

    over_http(talk)


def test_sixteen_calls_at_once_are_answered_beside_one_that_is_cancelled() -> None:
    engine = MoodyEngine()
    served = LocalServer(engine)
    texts: list[str] = []

    async def talk(listening: Listening) -> None:
        async with connected(listening.url) as client:

            async def ask() -> None:
                reply = await client.call_tool("logical_search", {"query": "opera AND older"})
                texts.append(text_of(reply))

            async def give_up() -> None:
                with pytest.raises(McpError, match="Request cancelled"):
                    await client.call_tool("chunk_read", READ)

            engine.gate.clear()
            async with anyio.create_task_group() as group:
                for _ in range(16):
                    group.start_soon(ask)
                await until(lambda: served.workers.busy == 16)
                group.start_soon(give_up)
                await until(lambda: served.workers.busy == 17)
                await cancel_last(client)
                await until(lambda: served.workers.busy == 16)
                engine.gate.set()

    over_http(talk, served=served)
    assert len(texts) == 16
    assert len(set(texts)) == 1


def test_a_session_whose_client_has_vanished_is_freed() -> None:
    async def talk(listening: Listening) -> None:
        first = (await begin_session(listening)).headers["mcp-session-id"]
        await anyio.sleep(0.4)
        async with web_client() as http:
            assert await ping_status(http, listening.url, first) == 404
        assert (await begin_session(listening)).status_code == 200

    over_http(talk, limits=HttpLimits(idle_session_s=0.2))


def test_a_newcomer_takes_the_place_of_the_session_that_has_been_idle_the_longest() -> None:
    async def talk(listening: Listening) -> None:
        async with web_client() as http:
            first, second = [
                (await begin_session(listening)).headers["mcp-session-id"] for _ in range(2)
            ]
            assert await ping_status(http, listening.url, first) == 200
            for _ in range(5):
                # It replaces the second session, and then the third one of the last round.
                third = await begin_session(listening)
                assert third.status_code == 200
                assert await ping_status(http, listening.url, first) == 200
            assert await ping_status(http, listening.url, second) == 404
            assert await ping_status(http, listening.url, third.headers["mcp-session-id"]) == 200

    over_http(talk, limits=HttpLimits(max_sessions=2))


def test_a_session_with_a_call_or_an_open_stream_keeps_its_place_and_ends_by_its_client() -> None:
    engine = MoodyEngine()

    async def talk(listening: Listening) -> None:
        async with web_client() as http, anyio.create_task_group() as group:
            busy, streaming = [
                (await begin_session(listening)).headers["mcp-session-id"] for _ in range(2)
            ]
            call = {"name": "chunk_read", "arguments": READ}
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
            answers: list[httpx.Response] = []

            async def ask() -> None:
                headers = {**HEADERS, "Mcp-Session-Id": busy}
                answers.append(await http.post(listening.url, json=message, headers=headers))

            engine.gate.clear()
            group.start_soon(ask)
            await until(lambda: engine.at_work == 1)
            headers = {**HEADERS, "Mcp-Session-Id": streaming}
            async with http.stream("GET", listening.url, headers=headers) as stream:
                assert stream.status_code == 200
                refusal = await begin_session(listening)
                assert (refusal.status_code, refusal.text) == (
                    503,
                    "All 2 sessions are in use.\nAllowed: at most 2 with a request in flight or an"
                    " open stream\nDo: Try again in a moment, or end a session.",
                )
            await http.delete(listening.url, headers=headers)
            assert (await begin_session(listening)).status_code == 200
            engine.gate.set()
            await until(lambda: bool(answers))
            assert "This opera is older." in answers[0].text

    over_http(talk, served=LocalServer(engine), limits=HttpLimits(max_sessions=2))


@pytest.mark.parametrize(
    "beginning",
    [
        b"",
        b"GET /mcp HTTP/1.1\r\nX-Slow: ",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 500\r\n\r\n{",
        b"PUT /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
    ids=["nothing", "half a head", "half a body", "an answered request"],
)
def test_a_newcomer_takes_the_place_of_the_connection_that_has_waited_the_longest(
    beginning: bytes,
) -> None:
    async def talk(listening: Listening) -> None:
        async with connected(listening.url) as client, contextlib.AsyncExitStack() as stack:
            for _ in range(20):
                stream = await stack.enter_async_context(await connected_socket(listening))
                await stream.send(beginning)
                if beginning.startswith(b"PUT"):
                    await stream.receive()
            assert (await begin_session(listening)).status_code == 200
            assert not (await client.call_tool("chunk_read", READ)).isError

    over_http(talk, limits=HttpLimits(max_connections=4))


def test_a_newcomer_is_refused_while_every_connection_is_being_answered() -> None:
    engine = MoodyEngine()

    async def talk(listening: Listening) -> None:
        async with connected(listening.url) as client, anyio.create_task_group() as group:

            async def ask() -> None:
                assert not (await client.call_tool("chunk_read", READ)).isError

            engine.gate.clear()
            for _ in range(3):
                group.start_soon(ask)
            await until(lambda: engine.at_work == 3)
            # The stream of the client is the fourth connection.
            assert (await begin_session(listening)).status_code == 503
            engine.gate.set()

    over_http(talk, served=LocalServer(engine), limits=HttpLimits(max_connections=4))


# Messages


def test_several_requests_of_the_same_id_in_flight_are_all_answered() -> None:
    engine = MoodyEngine()
    call = {"name": "chunk_read", "arguments": READ}
    answers: list[httpx.Response] = []

    async def talk(listening: Listening) -> None:
        async with web_client() as http, anyio.create_task_group() as group:
            session = (await begin_session(listening)).headers["mcp-session-id"]
            headers = {**HEADERS, "Mcp-Session-Id": session}

            async def ask(id_: object) -> None:
                message = {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": call}
                answers.append(await http.post(listening.url, json=message, headers=headers))

            engine.gate.clear()
            group.start_soon(ask, 7)
            await until(lambda: engine.at_work == 1)
            for id_ in (7, "7", 7, 7):
                group.start_soon(ask, id_)
            await until(lambda: len(answers) == 4)
            engine.gate.set()
            await until(lambda: len(answers) == 5)
            # The id is free again.
            assert await ping_status(http, listening.url, session, 7) == 200

    over_http(talk, served=LocalServer(engine))
    assert [answer.status_code for answer in answers] == [400] * 4 + [200]
    assert sorted(str(answer.json()["id"]) for answer in answers[:4]) == ["7"] * 4
    assert answers[0].json()["error"] == {
        "code": -32600,
        "message": "Another request of this session has the same id, and is not answered yet.\n"
        "Allowed: an id that no other request of the session has\n"
        "Do: Number the requests of a session.",
    }
    assert "This opera is older." in answers[4].text


def test_the_answer_to_a_request_whose_client_left_goes_to_no_other_request_of_its_id() -> None:
    engine = MoodyEngine()
    call = {"name": "chunk_read", "arguments": READ}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}

    async def talk(listening: Listening) -> None:
        async with web_client() as http:
            session = (await begin_session(listening)).headers["mcp-session-id"]
            headers = {**HEADERS, "Mcp-Session-Id": session}
            engine.gate.clear()
            with pytest.raises(httpx.ReadTimeout):
                await http.post(listening.url, json=message, headers=headers, timeout=0.3)
            await anyio.sleep(0.1)
            assert await ping_status(http, listening.url, session, 1) == 400
            engine.gate.set()
            assert await ping_status(http, listening.url, session, 2) == 200

    over_http(talk, served=LocalServer(engine))


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"\xff\xfe{}", -32700),
        ('{"jsonrpc": "2.0", "id": 1, "method": "ping"}'.encode("utf-16"), -32600),
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


# Access


def test_only_clients_with_the_token_are_let_in(token: str) -> None:
    async def talk(listening: Listening) -> None:
        async with connected(listening.url, TOKEN) as client:
            assert not (await client.call_tool("chunk_read", READ)).isError
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
            assert (await http.post(health, json={})).status_code == 404
            assert (await http.get(listening.url)).status_code == 401

    over_http(talk, token_env=token)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "localhost:1"}, 200),
        ({"Host": "[::1]:8765"}, 200),
        ({"Host": "search.example.org"}, 200),
        ({"Host": "Search.Example.ORG:443"}, 200),
        ({"Host": "[0:0::1]:8765"}, 200),
        ({"Host": "evil.example.org"}, 421),
        ({"Host": "localhost:evil.com"}, 421),
        ({"Host": "localhost:"}, 421),
        ({"Host": "localhost:65536"}, 421),
        ({"Host": "127.0.0.1:1@evil.com"}, 421),
        ({"Host": "127.0.0.1:80:80"}, 421),
        ({"Host": "localhost:80/evil.com"}, 421),
        ({"Host": "user@localhost"}, 421),
        ({"Host": "[::1]evil.com"}, 421),
        ({"Host": "[::1%evil.com]"}, 421),
        ({"Host": "localhost, evil.com"}, 421),
        ({"Host": ""}, 421),
        ({"Host": "localhost.evil.example.org"}, 421),
        ({"Host": "127.0.0.1.evil.example.org:8765"}, 421),
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
        ({"Content-Type": "application/jsonp"}, 400),
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


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        (
            {"Host": "10.0.0.7:8765"},
            "The server is not known by this host name.\nWhere: Host: 10.0.0.7:8765\n"
            "Allowed: names of loopback, and those that the server was started with\n"
            "Do: If clients use this name: start the server with --allow-host NAME",
        ),
        (
            {"Origin": "https://evil.example.org/" + "x" * 80},
            "Pages of this origin may not use the server.\n"
            f"Where: Origin: https://evil.example.org/{'x' * 55}...\n"
            "Allowed: names of loopback, and those that the server was started with\n"
            "Do: To let the page in: start the server with --allow-host NAME",
        ),
        (
            {"Content-Type": "text/plain"},
            "The content type of the request is not JSON.\nWhere: Content-Type: text/plain\n"
            "Allowed: Content-Type: application/json\nDo: Send JSON, with this content type.",
        ),
    ],
)
def test_a_refusal_names_the_wrong_header_and_says_what_to_do(
    headers: dict[str, str], text: str
) -> None:
    async def talk(listening: Listening) -> None:
        assert (await begin_session(listening, **headers)).text == text

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


def test_a_request_that_is_too_large_or_too_slow_is_ended() -> None:
    async def talk(listening: Listening) -> None:
        async with web_client() as http:
            answer = await http.post(listening.url, content=b"x" * 2_000, headers=HEADERS)
            assert answer.status_code == 413
        head = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        piece = b"1f4\r\n" + b"x" * 500 + b"\r\n"
        received = await raw_answer(
            listening, head + b"Transfer-Encoding: chunked\r\n\r\n" + 3 * piece
        )
        assert received.startswith(b"HTTP/1.1 413 ")
        assert b"connection: close" in received
        received = await raw_answer(listening, head + b"Content-Length: 500\r\n\r\n{")
        assert received.startswith(b"HTTP/1.1 408 ")
        assert b"connection: close" in received
        assert received.endswith(b"The request did not arrive within 0.3 s.\nDo: Try again.")
        assert (await begin_session(listening)).status_code == 200

    over_http(talk, limits=HttpLimits(max_request_bytes=1_000, read_timeout_s=0.3))


@pytest.mark.parametrize(
    "beginning",
    [
        b"",
        b"GET /mcp HTTP/1.1\r\nX-Slow: ",
        b"PUT /mcp HTTP/1.1\r\nHost: localhost\r\n\r\nGET /mcp HTTP/1.1\r\nX-Slow: ",
    ],
    ids=["nothing", "a first head", "a second head"],
)
def test_a_connection_that_never_ends_the_head_of_a_request_is_closed_at_the_limit(
    beginning: bytes,
) -> None:
    async def talk(listening: Listening) -> None:
        async with await connected_socket(listening) as stream, anyio.create_task_group() as group:

            async def trickle() -> None:
                with contextlib.suppress(anyio.BrokenResourceError):
                    await stream.send(beginning)
                    while beginning:
                        await anyio.sleep(0.05)
                        await stream.send(b"x")

            start = anyio.current_time()
            group.start_soon(trickle)
            with contextlib.suppress(anyio.BrokenResourceError), anyio.fail_after(3):
                async for _ in stream:
                    pass
            assert 0.25 < anyio.current_time() - start < 2
            group.cancel_scope.cancel()

    over_http(talk, limits=HttpLimits(read_timeout_s=0.3))


def test_a_call_may_take_longer_than_a_request_to_arrive() -> None:
    engine = MoodyEngine()

    async def talk(listening: Listening) -> None:
        async with connected(listening.url) as client, anyio.create_task_group() as group:
            engine.gate.clear()

            async def let_go() -> None:
                await anyio.sleep(0.5)
                engine.gate.set()

            group.start_soon(let_go)
            assert not (await client.call_tool("chunk_read", READ)).isError

    over_http(talk, served=LocalServer(engine), limits=HttpLimits(read_timeout_s=0.2))


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

        sessions = Sessions(StreamableHTTPSessionManager(LocalServer().server), 1)
        with listen("127.0.0.1", 0, None) as listening:
            await Gate(sessions, listening, stopping, 5)(scope, receive, send)

    anyio.run(main)
    assert (messages[0]["status"], messages[1]["body"]) == (
        503,
        b"The server is shutting down.\nDo: Try again when it is back.",
    )
    assert (b"connection", b"close") in messages[0]["headers"]


def test_the_log_reports_failures_and_not_streams_that_ended(
    caplog: pytest.LogCaptureFixture,
) -> None:
    closed, broken = anyio.ClosedResourceError(), anyio.BrokenResourceError()

    async def talk(listening: Listening) -> None:
        await begin_session(listening)
        for number, error in enumerate(
            [
                closed,
                broken,
                ExceptionGroup("", [closed, ExceptionGroup("", [broken])]),
                OSError(),
                ExceptionGroup("", [closed, OSError()]),
            ]
        ):
            logging.getLogger("mcp.server.streamable_http").error(
                "Failure %d.", number, exc_info=error
            )
        logging.getLogger("mcp.server.streamable_http").error("No exception.")

    over_http(talk)
    assert caplog.messages == ["Failure 3.", "Failure 4.", "No exception."]


# Listening


def test_a_host_other_than_loopback_needs_a_token_that_is_not_weak(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for host in ("0.0.0.0", "::", "", "example.org", "10.0.0.1"):
        with pytest.raises(ArgumentError) as raised:
            listen(host, 0, None)
        assert raised.value.do == SET_A_TOKEN
    with pytest.raises(ArgumentError, match="There is no token in the variable NOT_SET"):
        listen("127.0.0.1", 0, "NOT_SET")
    for weak_token in ("   ", "shrt", "with blanks in between them", "ünïcödé-ünïcödé-ünïcödé"):
        monkeypatch.setenv("POOR", weak_token)
        with pytest.raises(ArgumentError) as raised:
            listen("0.0.0.0", 0, "POOR")
        assert weak_token.strip() == "" or weak_token not in str(raised.value)
    monkeypatch.setenv("GOOD", TOKEN)
    listening = listen("0.0.0.0", 0, "GOOD")
    assert (listening.token, listening.names) == (TOKEN, ("0.0.0.0",))
    listening.socket.close()


def test_a_name_other_than_those_of_loopback_needs_a_token_too(token: str) -> None:
    with pytest.raises(ArgumentError) as raised:
        listen("127.0.0.1", 0, None, ["LocalHost", "Search.example.org"])
    assert str(raised.value) == (
        "Other machines could reach the server as search.example.org, and no token is set.\n"
        "Where: --allow-host\n"
        "Allowed: names of loopback; any other one with --token-env or --access\n"
        f"Do: {SET_A_TOKEN}"
    )
    with listen("127.0.0.1", 0, None, ["LocalHost", "::1"]) as listening:
        assert listening.names == ("127.0.0.1", "localhost", "[::1]")
    with listen("127.0.0.1", 0, token, ["Search.example.org", "[2001:DB8::7]"]) as listening:
        assert listening.names == ("127.0.0.1", "search.example.org", "[2001:db8::7]")


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "https://x.org",
        "x.org:443",
        "x.org/mcp",
        "*",
        "*.x.org",
        "[::1",
        "[::1]:80",
        "ü.de",
    ],
)
def test_an_invalid_name_of_a_host_is_refused_before_a_socket_is_opened(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.create_server", lambda *_, **__: pytest.fail("opened"))
    with pytest.raises(ArgumentError) as raised:
        listen("127.0.0.1", 0, None, ["localhost", name])
    assert str(raised.value) == (
        f'"{name}" is not a host name.\nWhere: --allow-host\n'
        "Allowed: a name or an IP address, without scheme, port and path\n"
        "Do: Write it like this: --allow-host search.example.org"
    )


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
            with anyio.fail_after(20):
                async with connected(match[1], TOKEN) as client:  # The client ends its session.
                    assert (await client.list_prompts()).prompts
                async with connected(match[1], TOKEN) as client:
                    reply = await client.call_tool("logical_search", {"query": "vivaldi"})
                    assert "passages for vivaldi" in text_of(reply)
                    server.send_signal(signal.SIGINT)
                    await until(lambda: server.poll() is not None)

        anyio.run(main)
        assert (server.returncode, *server.communicate()) == (
            130,
            "",
            "arag-search: interrupted.\n",
        )


def test_the_status_of_a_refused_request_with_a_body_arrives(token: str) -> None:
    body = b'{"jsonrpc": "2.0", "padding": "' + b"x" * 300_000 + b'"}'

    async def talk(listening: Listening) -> None:
        for _ in range(30):
            async with web_client() as http:
                answer = await http.post(
                    listening.url,
                    content=body,
                    headers={"Authorization": "Bearer wrong", "Content-Type": "application/json"},
                )
                assert answer.status_code == 401

    over_http(talk, token_env=token)
