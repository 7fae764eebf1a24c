"""MCP servers over HTTP in this process, and clients that talk to them."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx2
from mcp import Client, ClientSession
from mcp.client.streamable_http import streamable_http_client

from arag_search.mcp_server.http import serve_http
from arag_search.mcp_server.listening import Listening, listen
from tests.support.mcp_servers import LocalServer
from tests.support.patience import PATIENCE_S

HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
MODERN = "2026-07-28"
ENVELOPE = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
}
"""What every request of a client without a session carries."""
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


def over_http(
    talk: Callable[[Listening], Awaitable[None]],
    *,
    served: LocalServer | None = None,
    token_env: str | None = None,
    allowed_hosts: tuple[str, ...] = (),
    **limits: Any,
) -> None:
    """Serve on a free port for the duration of a conversation."""
    served = served or LocalServer()
    listening = listen("127.0.0.1", 0, token_env, allowed_hosts)

    async def main() -> None:
        stopping = anyio.Event()
        async with anyio.create_task_group() as group:
            serve = partial(
                serve_http,
                served.server,
                listening,
                served.readiness,
                stopping,
                served.access,
                **limits,
            )
            group.start_soon(serve)
            try:
                await talk(listening)
            finally:
                stopping.set()

    with listening:
        served.run(main)


@contextmanager
def http_command(log: Path, *arguments: str) -> Generator[tuple[subprocess.Popen[str], str]]:
    """Run ``arag-search mcp`` over HTTP on a free port, which logs to a file, and yield the process
    and its address."""
    script = "from arag_search.cli.app import main; main()"
    command = [sys.executable, "-c", script, "mcp", *arguments, "--transport", "http", "--port=0"]
    with log.open("w") as stream, subprocess.Popen(command, stderr=stream, text=True) as server:
        try:
            until_s = time.monotonic() + PATIENCE_S
            while (address := re.search(r"http://\S+/mcp(?=;)", log.read_text())) is None:
                assert time.monotonic() < until_s, log.read_text()
                time.sleep(0.05)
            yield server, address[0]
        finally:
            server.kill()


def web_client(headers: Mapping[str, str] | None = None) -> httpx2.AsyncClient:
    """Return a client without certificates, which take longer to load than most tests take."""
    return httpx2.AsyncClient(verify=False, headers=headers, timeout=PATIENCE_S)


@asynccontextmanager
async def connected(url: str, token: str | None = None) -> AsyncIterator[ClientSession]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with (
        web_client(headers) as http,
        streamable_http_client(url, http_client=http) as (from_server, to_server),
        ClientSession(from_server, to_server) as client,
    ):
        await client.initialize()
        yield client


@asynccontextmanager
async def modern_client(url: str, token: str | None = None) -> AsyncIterator[Client]:
    """Yield a client that asks what a server can, and begins a session only if it must."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with (
        web_client(headers) as http,
        Client(streamable_http_client(url, http_client=http), mode="auto", cache=None) as client,
    ):
        yield client


async def begin_session(listening: Listening, **headers: str) -> httpx2.Response:
    """Send a request that begins a session, and return the answer."""
    async with web_client() as http:
        return await http.post(listening.url, json=INITIALIZE, headers={**HEADERS, **headers})


async def ping_status(http: httpx2.AsyncClient, url: str, session: str, id_: object = 1) -> int:
    """Send a ping in a session, and return the status of its answer."""
    ping = {"jsonrpc": "2.0", "id": id_, "method": "ping"}
    answer = await http.post(url, json=ping, headers={**HEADERS, "Mcp-Session-Id": session})
    return answer.status_code
