"""Servers say in their replies how an index stands beside its files."""

from __future__ import annotations

import sys
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

import anyio
import pytest
from mcp import Client, ClientSession, types

from arag_search.mcp_server.listening import Listening
from arag_search.search.index import Index
from index_jobs.build.new_index import build_index
from tests.support.mcp_http import connected, modern_client, over_http
from tests.support.mcp_servers import LocalServer, text_of
from tests.support.oracle.engine import MemoryEngine
from tests.support.parts import METADATA
from tests.support.passages import chunk
from tests.support.served_folders import started
from tests.support.standings import LINE, MISSING, SECRET, note
from tests.support.watched_folders import MAIN, make_notes

pytestmark = pytest.mark.usefixtures("own_cache")

TOKEN = "token-of-ann-0123456789"


async def told(client: ClientSession | Client, query: str = "opera") -> str:
    """Return the last line of the reply to a search."""
    return text_of(await client.call_tool("logical_search", {"query": query})).splitlines()[-1]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_replies_of_both_eras_end_with_the_line_where_files_have_changed(mode: str) -> None:
    server = LocalServer()

    async def main() -> None:
        async with server.client(mode) as client:
            before = await told(client)
            note("memory", changed=False)
            assert await told(client) == before
            assert (await told(client, "nowhere")).startswith(MISSING)
            note("memory")
            assert (await told(client)).endswith(LINE)
            address = f"arag://memory/chunk/{quote('vivaldi.1')}"
            (content,) = (await client.read_resource(address)).contents
            assert isinstance(content, types.TextResourceContents)
            assert content.text.endswith(LINE)

    server.run(main)


def test_replies_over_http_end_with_the_line_and_a_part_has_no_name_and_no_number(
    tmp_path: Path,
) -> None:
    documents = (
        chunk(0, "menu", "The menu", "The opera has a kitchen. ", acl="everyone", owner="bob"),
        chunk(1, "pay", "The pay", "Singers of the opera earn more. ", acl="hr", owner="eve"),
    )
    index = Index(MemoryEngine(documents, metadata=METADATA), "memory")
    access = tmp_path / "access.yaml"
    access.write_text(f"{sha256(TOKEN.encode()).hexdigest()}: acl:everyone\n")

    async def open_to_all(listening: Listening) -> None:
        async with connected(listening.url) as old, modern_client(listening.url) as new:
            for client in (old, new):
                assert (await told(client)).endswith(LINE)

    async def by_token(listening: Listening) -> None:
        async with connected(listening.url, TOKEN) as client:
            for query in ("opera", "nowhere"):
                reply = text_of(await client.call_tool("logical_search", {"query": query}))
                assert reply.endswith("; not since: see arag-search info.")
                assert SECRET not in reply
                assert "3 files" not in reply

    note("memory")
    over_http(open_to_all, served=LocalServer(indexes={"memory": index}))
    over_http(by_token, served=LocalServer(indexes={"memory": index}, access=access))


@pytest.mark.server
def test_a_served_index_by_name_says_that_its_source_is_gone_or_why_it_does_not_follow(
    tmp_path: Path,
) -> None:
    notes, index = make_notes(tmp_path / "notes", 5), tmp_path / "i"
    build_index([str(notes)], index)

    async def main() -> None:
        async with started(sys.executable, "-c", MAIN, "mcp", str(index)) as client:
            assert "up to date" not in await told(client, "word3")
            notes.rename(tmp_path / "moved")
            assert (await told(client, "word3")).endswith("notes is gone.")
            assert "up to date" in (await told(client, "nowhere"))
            note(str(index), changed=False, problem="It would delete most of its documents. " * 3)
            assert (await told(client, "word3")).endswith("; not since: see arag-search info.")

    anyio.run(main)
