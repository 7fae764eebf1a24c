"""arag-search mcp over HTTP: sessions, limits, and who is let in."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
import httpx
import pytest
from mcp import ClientSession, McpError
from mcp.client.streamable_http import streamable_http_client

from arag_search.errors import ArgumentError
from arag_search.mcp_server.http import HttpLimits, Listening, listen, serve_http
from tests.commands import Command
from tests.mcp_servers import MoodyEngine, Served, cancel_last, text_of, until

pytestmark = pytest.mark.servers

TOKEN = "correct-horse-battery-staple"
READ = {"chunk_ids": ["scarlatti.1"]}
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@pytest.fixture
def token(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TEST_TOKEN", TOKEN)
    return "TEST_TOKEN"


def over_http(
    talk: Callable[[Listening], Awaitable[None]],
    *,
    served: Served | None = None,
    limits: HttpLimits | None = None,
    token_env: str | None = None,
    allowed_hosts: tuple[str, ...] = (),
) -> None:
    """Serve on a free port for the time of a conversation."""
    served = served or Served()
    listening = listen("127.0.0.1", 0, token_env, allowed_hosts)

    async def main() -> None:
        stopping = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(serve_http, served.server, listening, stopping, limits)
            try:
                await talk(listening)
            finally:
                stopping.set()

    with listening:
        served.run(main)


@asynccontextmanager
async def connected(url: str, token: str | None = None) -> AsyncIterator[ClientSession]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with (
        httpx.AsyncClient(headers=headers, timeout=20) as http,
        streamable_http_client(url, http_client=http) as (from_server, to_server, _),
        ClientSession(from_server, to_server) as client,
    ):
        await client.initialize()
        yield client


async def posted(listening: Listening, **headers: str) -> httpx.Response:
    """The answer to a request that begins a session."""
    async with httpx.AsyncClient(timeout=20) as http:
        return await http.post(listening.url, json=INITIALIZE, headers={**HEADERS, **headers})


def test_two_clients_search_and_read_each_in_a_session_of_its_own() -> None:
    async def talk(listening: Listening) -> None:
        async with connected(listening.url) as one, connected(listening.url) as two:
            assert len((await one.list_tools()).tools) == 3
            first = text_of(await one.call_tool("chunk_read", READ))
            assert "This opera is older." in first
            again = text_of(await one.call_tool("chunk_read", READ))
            assert again == "[scarlatti.1] This chunk has been read before."
            assert text_of(await two.call_tool("chunk_read", READ)) == first
            assert (await one.call_tool("logical_search", {"query": "a OR"})).isError

    over_http(talk)


def test_sixteen_calls_at_once_and_one_that_is_cancelled() -> None:
    engine = MoodyEngine()
    served = Served(engine)
    texts: list[str] = []

    async def talk(listening: Listening) -> None:
        async with connected(listening.url) as client:

            async def ask() -> None:
                found = await client.call_tool("logical_search", {"query": "opera AND older"})
                texts.append(text_of(found))

            async def give_up() -> None:
                with pytest.raises(McpError, match="Request cancelled"):
                    await client.call_tool("chunk_read", READ)

            engine.held.clear()
            async with anyio.create_task_group() as group:
                for _ in range(16):
                    group.start_soon(ask)
                await until(lambda: served.workers.busy == 16)
                group.start_soon(give_up)
                await until(lambda: served.workers.busy == 17)
                await cancel_last(client)
                await until(lambda: served.workers.busy == 16)
                engine.held.set()

    over_http(talk, served=served)
    assert len(texts) == 16
    assert len(set(texts)) == 1


def test_a_session_whose_client_has_vanished_is_freed() -> None:
    async def talk(listening: Listening) -> None:
        first = await posted(listening)
        assert first.status_code == 200
        assert (await posted(listening)).status_code == 503  # one session is all there may be
        await anyio.sleep(0.4)
        session = {"Mcp-Session-Id": first.headers["mcp-session-id"]}
        assert (await posted(listening, **session)).status_code == 404
        assert (await posted(listening)).status_code == 200

    over_http(talk, limits=HttpLimits(max_sessions=1, idle_session_s=0.2))


# Who is let in


def test_only_who_shows_the_token_is_let_in(token: str) -> None:
    async def talk(listening: Listening) -> None:
        async with connected(listening.url, TOKEN) as client:
            assert not (await client.call_tool("chunk_read", READ)).isError
        for shown in ("", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", TOKEN):
            answer = await posted(listening, Authorization=shown)
            assert answer.status_code == 401, shown
            assert answer.headers["www-authenticate"] == "Bearer"
            assert answer.text == (
                "The token is missing or wrong.\nAllowed: Authorization: Bearer TOKEN\n"
                "Do: Give the client the token that the server was started with."
            )
        answer = await posted(listening, Authorization=f"bearer  {TOKEN}")
        assert answer.status_code == 200

    over_http(talk, token_env=token)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "localhost:1"}, 200),
        ({"Host": "[::1]:8765"}, 200),
        ({"Host": "search.example.org"}, 200),
        ({"Host": "search.example.org:443"}, 200),
        ({"Host": "evil.example.org"}, 421),
        ({"Host": "localhost.evil.example.org"}, 421),
        ({"Host": "127.0.0.1.evil.example.org:8765"}, 421),
        ({"Origin": "http://localhost:6274"}, 200),
        ({"Origin": "https://search.example.org"}, 200),
        ({"Origin": "https://evil.example.org"}, 403),
        ({"Origin": "null"}, 403),
        ({"Content-Type": "text/plain"}, 400),
        ({"Accept": "text/html"}, 406),
    ],
)
def test_pages_of_other_sites_are_kept_out_by_host_origin_and_type(
    headers: dict[str, str], status: int
) -> None:
    async def talk(listening: Listening) -> None:
        assert (await posted(listening, **headers)).status_code == status

    over_http(talk, allowed_hosts=("search.example.org",))


def test_there_is_one_path() -> None:
    async def talk(listening: Listening) -> None:
        base = listening.url.removesuffix("/mcp")
        async with httpx.AsyncClient(timeout=20) as http:
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
        async with httpx.AsyncClient(timeout=20) as http:
            answer = await http.post(listening.url, content=b"x" * 2_000, headers=HEADERS)
            assert answer.status_code == 413

            async def endless() -> AsyncIterator[bytes]:
                while True:
                    yield b"x" * 500

            with contextlib.suppress(httpx.TransportError):  # cut off while it still sends
                answer = await http.post(listening.url, content=endless(), headers=HEADERS)
                assert answer.status_code == 413
        host, port = listening.socket.getsockname()
        async with await anyio.connect_tcp(host, port) as stream:
            await stream.send(
                b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: 500\r\n\r\n{"
            )
            received = b"".join([piece async for piece in stream])
        assert received.startswith(b"HTTP/1.1 408 ")
        assert b"connection: close" in received
        assert received.endswith(b"The request did not arrive within 0.3 s.\nDo: Try again.")
        assert (await posted(listening)).status_code == 200

    over_http(talk, limits=HttpLimits(max_request_bytes=1_000, read_timeout_s=0.3))


# Listening


def test_another_host_than_loopback_needs_a_token_and_the_token_is_no_toy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for host in ("0.0.0.0", "::", "", "example.org", "10.0.0.1"):
        with pytest.raises(ArgumentError) as raised:
            listen(host, 0, None)
        assert raised.value.do == (
            "Put a long random token into a variable, and name it with --token-env NAME."
        )
    with pytest.raises(ArgumentError, match="There is no token in the variable NOT_SET"):
        listen("127.0.0.1", 0, "NOT_SET")
    for poor in ("   ", "shrt", "with blanks in between them", "ünïcödé-ünïcödé-ünïcödé"):
        monkeypatch.setenv("POOR", poor)
        with pytest.raises(ArgumentError) as raised:
            listen("0.0.0.0", 0, "POOR")
        assert poor.strip() == "" or poor not in str(raised.value)
    monkeypatch.setenv("GOOD", TOKEN)
    listening = listen("0.0.0.0", 0, "GOOD")
    assert (listening.token, listening.names) == (TOKEN, ("0.0.0.0",))
    listening.socket.close()


def test_a_port_or_an_address_that_cannot_be_had_is_told(
    arag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = arag("mcp", "my-index", "--transport", "http", "--port", str(port))
    assert (done.code, done.out, done.err) == (
        1,
        "",
        f"arag-search: Port {port} of 127.0.0.1 is taken.\nWhere: --port\n"
        "Allowed: a free port; 0 takes any\nDo: End the other server, or name another port.\n",
    )
    for port in (70_000, -1):
        with pytest.raises(ArgumentError, match=f"There is no port {port}"):
            listen("localhost", port, None)
    monkeypatch.setenv("TOKEN_OF_TEST", TOKEN)
    for host in ("203.0.113.7", "no-such-host.invalid"):
        with pytest.raises(ArgumentError, match="The server cannot listen there"):
            listen(host, 0, "TOKEN_OF_TEST")


@pytest.mark.engine
@pytest.mark.usefixtures("commands_folder")
def test_the_command_says_where_it_serves_and_ends_with_ctrl_c_though_clients_are_there() -> None:
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
            r"Serving my-index at (http://127\.0\.0\.1:\d+/mcp); end with Ctrl-C\.\n", line
        )
        assert match is not None, line

        async def main() -> None:
            with anyio.fail_after(20):
                async with connected(match[1], TOKEN) as client:  # and ends its session
                    assert (await client.list_prompts()).prompts
                async with connected(match[1], TOKEN) as client:
                    found = await client.call_tool("logical_search", {"query": "vivaldi"})
                    assert "passages for vivaldi" in text_of(found)
                    server.send_signal(signal.SIGINT)
                    await until(lambda: server.poll() is not None)

        anyio.run(main)
        assert (server.returncode, *server.communicate()) == (
            130,
            "",
            "arag-search: interrupted.\n",
        )
