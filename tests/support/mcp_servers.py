"""MCP servers in this process over small in-memory indexes whose engines can wait or fail."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, ClientSession, types
from mcp.server.lowlevel import Server

from arag_search.corpus import Chunk
from arag_search.engines.base import Page, SearchRequest
from arag_search.errors import UnavailableError
from arag_search.mcp_server.access import AccessFile
from arag_search.mcp_server.calls import ServedCall
from arag_search.mcp_server.http import Readiness
from arag_search.mcp_server.live import LiveIndexes
from arag_search.mcp_server.protocol import build_server
from arag_search.mcp_server.workers import Workers
from arag_search.plan.clauses import ResolvedPlan
from arag_search.search.index import Index
from arag_search.tools.preset import Preset
from arag_search.tools.preset_files import load_preset
from tests.support.oracle.engine import MemoryEngine
from tests.support.passages import SCHEMA, VIVALDI
from tests.support.patience import PATIENCE_S

PRESET = load_preset("logical_read")
DOWN = UnavailableError("No node answers.", where="http://127.0.0.1:9200", do="Start it.")


class MoodyEngine(MemoryEngine):
    """An engine whose searches and reads fail while ``failure`` is set, and wait while ``gate`` is
    not set."""

    def __init__(self, chunks: Sequence[Chunk] = VIVALDI) -> None:
        super().__init__(chunks, metadata=SCHEMA.metadata)
        self.failure: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.at_work = 0
        self.most_at_work = 0
        self.looks = 0
        self._lock = threading.Lock()

    def search(self, request: SearchRequest) -> Page:
        self._wait()
        return super().search(request)

    def read(self, ids: Sequence[str], scope: ResolvedPlan | None) -> list[Chunk | None]:
        self._wait()
        return super().read(ids, scope)

    def check_ready(self) -> None:
        self.looks += 1
        if self.failure is not None:
            raise self.failure

    def _wait(self) -> None:
        with self._lock:
            self.at_work += 1
            self.most_at_work = max(self.at_work, self.most_at_work)
        try:
            assert self.gate.wait(PATIENCE_S)
            if self.failure is not None:
                raise self.failure
        finally:
            with self._lock:
                self.at_work -= 1


def live_indexes(
    indexes: Mapping[str, Index], preset: Preset = PRESET, about: Mapping[str, str] | None = None
) -> LiveIndexes:
    """Return open indexes, served under their names."""
    live = LiveIndexes(indexes, preset, about)
    for name, index in indexes.items():
        live.serve(name, index)
    return live


class LocalServer:
    """A server over one index or several, with its first engine and its workers."""

    def __init__(
        self,
        *engines: MemoryEngine,
        preset: Preset = PRESET,
        workers: Workers | None = None,
        scope: ResolvedPlan | None = None,
        indexes: Mapping[str, Index] | None = None,
        about: Mapping[str, str] | None = None,
        access: Path | None = None,
    ) -> None:
        self.engine = engines[0] if engines else MoodyEngine()
        self.workers = workers or Workers()
        if indexes is None:
            names = zip(("memory", "other"), engines or (self.engine,), strict=False)
            indexes = {name: Index(engine, name, scope) for name, engine in names}
        self.live = live_indexes(indexes, preset, about)
        self.access = None if access is None else AccessFile(access, self.live.check)
        self.readiness = Readiness(self.live, self.workers)
        self.calls: list[ServedCall] = []
        self.server: Server[Any] = build_server(
            self.live,
            preset,
            self.workers,
            by_grant=access is not None,
            on_call=self.calls.append,
        )

    def serve(self, talk: Callable[[ClientSession], Awaitable[None]]) -> None:
        """Let one client talk to the server, in memory."""

        async def main() -> None:
            async with self.client() as client:
                await talk(client)

        self.run(main)

    def run(self, main: Callable[[], Awaitable[None]]) -> None:
        """Run a conversation, and check that no call is still running."""

        async def bounded() -> None:
            with anyio.fail_after(PATIENCE_S):
                await main()

        try:
            anyio.run(bounded)
        finally:
            if isinstance(self.engine, MoodyEngine):
                self.engine.gate.set()
            assert self.workers.close(PATIENCE_S)

    @asynccontextmanager
    async def client(self, mode: str = "legacy") -> AsyncIterator[ClientSession]:
        """Yield a client of 2025, which begins a session, or of another version of the protocol."""
        async with Client(self.server, mode=mode, cache=None) as client:
            yield client.session


async def until(condition: Callable[[], bool]) -> None:
    """Wait until another thread or task makes the condition true."""
    with anyio.fail_after(PATIENCE_S):
        while not condition():
            await anyio.sleep(0.005)


async def cancelled_call(
    client: ClientSession, condition: Callable[[], bool], name: str, arguments: dict[str, object]
) -> None:
    """Call a tool, and cancel the request once the condition is true."""
    async with anyio.create_task_group() as group:
        group.start_soon(client.call_tool, name, arguments)
        await until(condition)
        group.cancel_scope.cancel()


def text_of(result: types.CallToolResult) -> str:
    """Return the text of a result, which must be its only content."""
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text
