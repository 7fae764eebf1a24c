"""Clients of servers that serve a folder of files over stdio."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.support.mcp_servers import text_of
from tests.support.patience import PATIENCE_S
from tests.support.watched_folders import MAIN


def served(folder: Path) -> AbstractAsyncContextManager[ClientSession]:
    return started(sys.executable, "-c", MAIN, "mcp", str(folder))


@asynccontextmanager
async def started(command: str, *arguments: str) -> AsyncIterator[ClientSession]:
    server = StdioServerParameters(command=command, args=[*arguments], env={**os.environ})
    with open(os.devnull, "w") as errors:
        async with stdio_client(server, errors) as streams, ClientSession(*streams) as client:
            await client.initialize()
            yield client


async def passage_with(client: ClientSession, word: str) -> str:
    """Search until a word is found."""
    with anyio.fail_after(PATIENCE_S):
        while True:
            result = await client.call_tool("logical_search", {"query": word})
            assert not result.is_error or "Call again in a moment" in text_of(result)
            if " of 1 passage\n" in text_of(result):
                return text_of(result)
            await anyio.sleep(0.1)
