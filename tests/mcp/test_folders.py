"""Folders of files served over MCP, and searched by commands: their indexes in the cache."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import anyio
import pytest
from mcp import ClientSession, MCPError

from arag_search.mcp_server import protocol
from arag_search.mcp_server.folders import Coming
from arag_search.mcp_server.workers import Workers
from arag_search.search.following import FollowedState, Follower
from arag_search.search.index import Index
from arag_search.search.standing import standing_of
from arag_search.search.state import IndexState
from index_jobs.build.new_index import build_index
from index_jobs.embedding.job import embed_index
from index_jobs.sources.folders import source as files
from index_jobs.updates.synchronisation import sync_documents
from tests.support.commands import Command
from tests.support.guides import ROOT, blocks_of, guide_text
from tests.support.mcp_servers import LocalServer, live_indexes, text_of
from tests.support.passages import VIVALDI, index_of
from tests.support.patience import PATIENCE_S
from tests.support.served_folders import passage_with, served, started
from tests.support.watched_folders import MAIN, make_notes

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture(name="notes")
def a_folder_of_notes(tmp_path: Path) -> Path:
    return make_notes(tmp_path / "notes", 5)


@pytest.mark.server
def test_an_index_is_served_with_vectors_that_follow_its_updates(tmp_path: Path) -> None:
    index = tmp_path / "i"
    make_notes(tmp_path / "notes", 5)
    build_index([str(tmp_path / "notes")], index)
    embed_index(index, "hashing:64")

    async def main() -> None:
        command = (sys.executable, "-c", MAIN, "mcp", str(index), "--preset", "arag_naive")
        async with started(*command) as client:

            async def nearest() -> str:
                query = {"query": "Quokkas nap by the harbour."}
                return text_of(await client.call_tool("naive_embedding_search", query))

            assert "quokka.md" not in await nearest()
            (tmp_path / "notes" / "quokka.md").write_text("# Nap\n\nQuokkas nap by the harbour.\n")
            assert sync_documents([str(tmp_path / "notes")], index).vectors.startswith(
                "the vectors"
            )
            assert "quokka.md" in await nearest()

    anyio.run(main)


@pytest.mark.server
def test_a_folder_is_served_from_nothing_and_follows_its_files_and_two_servers_share_an_index(
    notes: Path, arag: Command
) -> None:
    async def main() -> None:
        async with served(notes) as client, served(notes) as other:
            assert {tool.name for tool in (await client.list_tools()).tools} >= {"logical_search"}
            assert "note3.md" in await passage_with(client, "word3")
            assert "note3.md" in await passage_with(other, "word3")
            (notes / "new.md").write_text("# New\n\nThe harbour.\n")
            assert "new.md" in await passage_with(client, "harbour")
            assert "new.md" in await passage_with(other, "harbour")
            assert arag("forget", str(notes)).code == 1

    anyio.run(main)
    assert "up to date" in arag("info", str(notes)).out


@pytest.mark.server
def test_tools_that_need_vectors_are_served_once_a_folder_is_embedded_beside_the_server(
    notes: Path, arag: Command
) -> None:
    async def main() -> None:
        with anyio.fail_after(PATIENCE_S):
            async with started(
                sys.executable, "-c", MAIN, "mcp", str(notes), "--preset", "arag_naive"
            ) as client:
                assert arag("embed", str(notes), "--encoder", "hashing").code == 0
                query = {"query": "word3"}
                while (await client.call_tool("naive_embedding_search", query)).is_error:
                    await anyio.sleep(0.5)

    anyio.run(main)


@pytest.mark.long
def test_a_newcomer_is_done_after_two_lines_of_the_readme_also_without_a_clone(
    notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Install from a local address into an empty home, whose client notes its arguments."""
    uv = shutil.which("uv")
    assert uv is not None
    lines = next(b.text for b in blocks_of("README.md") if b.text.startswith("uv tool install"))
    for what in ("cache", "python"):
        folder = subprocess.run([uv, what, "dir"], capture_output=True, text=True, check=True)
        name = "UV_CACHE_DIR" if what == "cache" else "UV_PYTHON_INSTALL_DIR"
        monkeypatch.setenv(name, folder.stdout.strip())
    (programs := tmp_path / "home" / ".local" / "bin").mkdir(parents=True)
    client = programs / "claude"
    client.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > ~/arguments\n')
    client.chmod(0o755)
    notes.rename(tmp_path / "home" / "reports")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{programs}:{Path(uv).parent}:/usr/bin:/bin")
    monkeypatch.setenv("UV_PYTHON", sys.executable)
    for name in ("VIRTUAL_ENV", "XDG_DATA_HOME", "XDG_BIN_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    address = f"git+file://{ROOT}"
    named = "'arag-search[mcp,files] @ git+ADDRESS'"
    assert named in guide_text("README.md")
    install = lines.replace("'.[mcp,files]'", named.replace("git+ADDRESS", address))
    assert install != lines
    subprocess.run(["sh", "-euc", install], check=True)

    arguments = (tmp_path / "home" / "arguments").read_text().splitlines()
    command = arguments[arguments.index("--") + 1 :]

    async def main() -> None:
        async with started(*command) as session:
            assert "note3.md" in await passage_with(session, "word3")

    anyio.run(main)


def test_a_folder_is_indexed_by_the_first_search_and_brought_in_step_when_that_is_asked(
    notes: Path, own_cache: Path, arag: Command
) -> None:
    (notes / "broken.docx").write_bytes(b"no archive")
    first = arag("search", str(notes), "word3")
    assert "note3.md" in first.out
    assert "skipped: 1 bad file" in first.err
    assert (own_cache / "folders").stat().st_mode & 0o777 == 0o700
    (notes / "new.md").write_text("# New\n\nThe harbour.\n")
    assert "new.md" in arag("search", str(notes), "harbour").out
    from index_jobs.updates.folder_index import FolderIndex

    (notes / "large.md").write_text("# Large\n\n" + "The lighthouse. " * 70_000)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(files, "HELD_CHARACTERS", 5)  # it takes too long
        nothing = arag("search", str(notes), "lighthouse")
    assert (nothing.code, nothing.err) == (1, "")
    first, *_, missing, line = nothing.lines
    assert first == "No passage matches this query."
    assert missing == (
        f"1 file is not in the index (1 docx could not be read): arag-search info {notes}"
    )
    assert line.endswith(
        "; 1 file changed since, large.md among these. Reading takes long; search --fresh reads"
        " all."
    )
    for number in range(30):
        (notes / f"more{number:02}.md").write_text(f"# More {number}\n\nThe lamp.\n")
    some = arag("search", str(notes), "lamp")
    assert some.lines[0].endswith(" of 20 passages")
    assert some.lines[-1].endswith(
        "; 11 files changed since, large.md among these. The next search reads more; search --fresh"
        " reads all."
    )
    standing = standing_of(FolderIndex.of(notes).location)
    assert standing is not None
    assert (standing.changed_files, standing.slow_files) == (11, 1)
    assert "more29.md" in arag("search", str(notes), "lamp", "--fresh", "--top-k", "40").out
    assert arag("search", str(notes), "lighthouse").code == 0
    (notes / "more29.md").unlink()
    assert "new.md" in arag("search", str(notes), "harbour", "--fresh").out
    assert "new.md" in arag("read", str(notes), "new.md.1").out
    (link := notes.parent / "link").symlink_to(notes)
    described = arag("info", str(link), "--json").json
    assert described["state"]["problem"] == ""
    assert "broken.docx: " in described["state"]["left_out"][1]
    assert described["location"].startswith(str(own_cache))
    assert arag("forget", str(notes)).code == 0
    assert not list((own_cache / "folders").iterdir())
    assert "no index yet" in arag("info", str(notes)).err
    assert "no index of this folder" in arag("forget", str(notes)).err


def test_folders_of_everything_and_fresh_indexes_are_refused(notes: Path, arag: Command) -> None:
    for folder in ("/", os.path.expanduser("~")):
        Path(folder, "x" if folder != "/" else "tmp").exists() or Path(folder, "x").touch()
        assert "--yes" in arag("search", folder, "sea").err
    assert arag("index", str(notes), "--to", str(notes.parent / "i")).code == 0
    assert (
        "--fresh is given for an index"
        in arag("search", str(notes.parent / "i"), "sea", "--fresh").err
    )


def test_the_longest_unused_indexes_go_when_the_cache_is_full(
    notes: Path, tmp_path: Path, arag: Command
) -> None:
    from index_jobs.updates.folder_index import FolderIndex, folder_indexes, remove_unused

    others = [tmp_path / name for name in ("b", "c")]
    for folder in others:
        folder.mkdir()
        (folder / "x.md").write_text("The sea.")
    for folder in (notes, *others):
        arag("search", str(folder), "sea")
    for at, folder in enumerate((notes, *others)):
        os.utime(FolderIndex.of(folder).entry / "in_use.lock", (at, at))
    with FolderIndex.of(notes).held():
        os.utime(FolderIndex.of(notes).entry / "in_use.lock", (0, 0))
        remove_unused(FolderIndex.of(notes).bytes() + FolderIndex.of(others[1]).bytes())
    assert {index.folder for index in folder_indexes()} == {str(notes), str(others[1])}


def test_two_versions_of_the_program_keep_an_index_each_and_forget_removes_both(
    notes: Path, own_cache: Path, arag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "note3.md" in arag("search", str(notes), "word3").out
    with monkeypatch.context() as other:
        other.setattr("index_jobs.cutting.chunking.CHUNKING_VERSION", 99)
        (notes / "new.md").write_text("# New\n\nThe harbour.\n")
        assert "new.md" in arag("search", str(notes), "harbour").out
    assert len(list((own_cache / "folders").iterdir())) == 2
    for lost in ("in_use.lock", "folder"):
        next((own_cache / "folders").glob(f"*/{lost}")).unlink()
    assert arag("forget", str(notes)).code == 0
    assert not list((own_cache / "folders").iterdir())


@pytest.mark.long
def test_further_pages_show_each_passage_once_while_files_change_under_load(notes: Path) -> None:
    async def page(client: ClientSession, query: str, offset: int) -> tuple[str, list[str]]:
        arguments = {"query": query, "top_k": 2, "offset": offset}
        result = await client.call_tool("logical_search", arguments)
        assert not result.is_error, text_of(result)
        total = re.search(r"of ([\d,]+)", text_of(result))
        assert total is not None, text_of(result)
        return total[1], re.findall(r"^\[(\S+)\]", text_of(result), re.MULTILINE)

    async def search(client: ClientSession, busy: anyio.Event) -> None:
        while not busy.is_set():
            await page(client, "sea OR captain", 0)

    async def change(busy: anyio.Event) -> None:
        number = 0
        while not busy.is_set():
            number += 1
            new = notes / f"new{number % 4}.md"  # fewer than half, which would not be followed
            if new.exists():
                new.unlink()
            else:
                new.write_text("# New\n\n" + "The sea. " * (number % 7 + 1))
            (notes / f"note{number % 5}.md").write_text(
                "# Old\n\n" + "The sea. " * (number % 9 + 1)
            )
            await anyio.sleep(0.2)

    async def main() -> None:
        async with served(notes) as client, anyio.create_task_group() as tasks:
            await passage_with(client, "word3")
            busy = anyio.Event()
            tasks.start_soon(search, client, busy)
            tasks.start_soon(change, busy)
            totals: set[str] = set()
            paged = 0
            while paged < 20 or len(totals) < 2:
                total, shown = await page(client, "sea", 0)
                for offset in range(2, int(total), 2):
                    await anyio.sleep(0.5)
                    same, ids = await page(client, "sea", offset)
                    assert same == total
                    shown += ids
                assert len(set(shown)) == len(shown) == int(total)
                totals.add(total)
                paged += 1
            busy.set()

    anyio.run(main)


def test_an_index_that_is_coming_is_waited_for_with_progress_and_then_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(protocol, "PATIENCE_S", 0.5)
    monkeypatch.setattr(protocol, "_PROGRESS_S", 0.01)
    server = LocalServer()
    left = [Coming(f"Indexed {n} of 9 files.", n, 9) for n in range(4)]
    server.live.coming = lambda: left.pop(0) if left else None
    shown: list[str | None] = []

    async def show(progress: float, total: float | None, message: str | None) -> None:
        shown.append(message)

    async def talk(client: ClientSession) -> None:
        result = await client.call_tool(
            "logical_search", {"query": "vivaldi"}, progress_callback=show
        )
        assert "passage" in text_of(result)
        server.live.coming = lambda: Coming("Indexed 5 of 9 files.", 5, 9)
        result = await client.call_tool("logical_search", {"query": "vivaldi"})
        assert text_of(result) == "Indexed 5 of 9 files. Call again in a moment."
        monkeypatch.setattr(protocol, "PATIENCE_S", PATIENCE_S)
        server.live.coming = lambda: Coming("Indexed 5 of 301 files.", 5, 301)
        with anyio.fail_after(PATIENCE_S / 2):  # of so many files, tools are offered at once
            search, _ = (await client.list_tools()).tools
        assert search.name == "logical_search"
        assert "Fields: type, path, modified (date)." in (search.description or "")
        assert "sort" in search.input_schema["properties"]
        server.live.coming = lambda: Coming("There are no vectors.", has_failed=True)
        with anyio.fail_after(PATIENCE_S / 2):  # a failure is no reason to wait
            result = await client.call_tool("logical_search", {"query": "vivaldi"})
            with pytest.raises(MCPError, match="There are no vectors"):
                await client.list_tools()
        assert text_of(result) == "There are no vectors. Call again in a moment."
        server.live.coming = lambda: None

    server.serve(talk)
    assert shown == [f"Indexed {n} of 9 files." for n in range(4)]


def test_a_session_that_is_paging_keeps_its_state_and_another_has_the_newest() -> None:
    number = 0

    def open_newest() -> FollowedState[IndexState]:
        mine = number
        index = index_of(*(VIVALDI if mine == 0 else VIVALDI[:1]))
        return FollowedState(index.state, lambda: mine != number, index.close)

    follower = Follower(open_newest)
    live = live_indexes({"memory": Index.over(follower, follower.close)})
    session, other = protocol.Session(), protocol.Session()
    workers = Workers()

    def texts(of: protocol.Session, **more: object) -> str:
        arguments = {"query": "vivaldi OR goldoni OR opera", "top_k": 1, **more}
        call = partial(live.call, "logical_search", arguments, of, None, workers.run)
        return anyio.run(call).text

    first = texts(session)
    number = 1
    second = texts(session, offset=1)
    assert "of 4 passages" in first
    assert "of 4" in second.splitlines()[0]
    assert "1 of 1 passage" in texts(other)
    live.close()
