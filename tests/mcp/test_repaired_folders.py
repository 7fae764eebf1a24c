"""Indexes of folders in the cache that are damaged or of another version: built again by
themselves, once."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import pytest

from arag_search.engines.lucene import snapshot
from arag_search.errors import AragError, IndexDamagedError
from arag_search.mcp_server.folders import Coming, ServedFolder
from arag_search.system.progress import Progress
from index_jobs.updates import folder_index
from index_jobs.updates.folder_index import FolderIndex, KeptIndex
from tests.support.commands import Command
from tests.support.patience import PATIENCE_S
from tests.support.served_folders import passage_with, served
from tests.support.watched_folders import MAIN, eventually, make_notes

AGAIN = "is built again. "
FILES = (
    "manifest.json",
    "g1/in_use.lock",
    *(f"g1/{part}/{name}" for part in ("chunks", "sentences")
      for name in ("segments_1", "*.si", "*.cfs", "*.cfe")),
)  # fmt: skip


@pytest.fixture(name="notes")
def a_searched_folder(tmp_path: Path, own_cache: Path, arag: Command) -> Path:
    notes = make_notes(tmp_path / "notes", 5)
    assert arag("search", str(notes), "word3").code == 0
    return notes


def lose(file: Path) -> None:
    file.unlink()


def halve(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def garble(file: Path) -> None:
    file.write_bytes(random.Random(7).randbytes(file.stat().st_size))


def file_of(notes: Path, pattern: str) -> Path:
    return next(FolderIndex.of(notes).location.glob(pattern))


@pytest.mark.parametrize("name", FILES)
def test_an_index_with_a_damaged_file_is_built_again_by_the_next_search(
    name: str, notes: Path, arag: Command
) -> None:
    harms = (lose,) if name.endswith("in_use.lock") else (lose, halve, garble)
    for harm in harms:
        harm(file_of(notes, name.replace("g1", "g*")))
        repaired = arag("search", str(notes), "word3")
        assert "note3.md" in repaired.out
        # Without manifest.json, no build was ever finished, as far as anybody knows.
        assert (AGAIN in repaired.err) == ((name, harm) != ("manifest.json", lose))
        assert AGAIN not in arag("search", str(notes), "word3").err
        folder_index._withdrawn.clear()  # as in another process
    assert arag("info", str(notes), "--checksums").code == 0


@pytest.mark.parametrize(
    "command",
    [("search", "word3", "--fresh"), ("words", "word3"), ("read", "note3.md.1"), ("ask", "word3?")],
    ids=lambda command: command[0],
)
def test_every_command_on_a_folder_repairs_its_index(
    command: tuple[str, ...], notes: Path, arag: Command
) -> None:
    halve(file_of(notes, "g1/chunks/*.cfs"))
    described = arag("info", str(notes))
    assert described.code == 4
    assert f"arag-search forget {notes}" in described.err
    assert "--overwrite" not in described.err
    name, *rest = command
    result = arag(name, str(notes), *rest)
    assert "word3" in result.out
    assert result.err.count(AGAIN) == 1


@pytest.mark.parametrize("is_small", [True, False])
def test_wherever_a_file_is_wrong_the_index_is_built_again_or_its_error_says_that_the_next_one_is(
    notes: Path, arag: Command, monkeypatch: pytest.MonkeyPatch, is_small: bool
) -> None:
    if not is_small:
        monkeypatch.setattr(snapshot, "VERIFIED_BYTES", 0)
    (size, block) = (file_of(notes, "g1/chunks/*.cfs").stat().st_size, 512)
    met = 0
    for start in range(100, size - block, block // 2):
        file = file_of(notes, "g*/chunks/*.cfs")
        content = file.read_bytes()
        file.unlink()
        file.write_bytes(content[:start] + bytes(block) + content[start + block :])
        result = arag("search", str(notes), "word3")
        if result.code:
            met += 1
            assert "Do: Run the same command again: it builds the index again first." in result.err
            assert "note3.md" in arag("search", str(notes), "word3").out
        elif AGAIN in result.err:
            assert "note3.md" in result.out
        else:
            assert not is_small
            assert arag("forget", str(notes)).code == 0
            assert arag("search", str(notes), "word3").code == 0
        folder_index._withdrawn.clear()
    assert (met > 0) != is_small


def test_an_index_of_another_dictionary_is_built_again(
    notes: Path, arag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert arag("forget", str(notes)).code == 0
    with monkeypatch.context() as other:
        for module in ("arag_search.manifest", "index_jobs.build.new_index"):
            other.setattr(f"{module}.steps", lambda language: ("others",))
        assert arag("search", str(notes), "word3").code == 0
    result = arag("search", str(notes), "word3")
    assert "note3.md" in result.out
    assert f"{AGAIN}The words of the index have forms by other steps: others." in result.err


def test_an_index_is_built_again_once_and_then_the_advice_is_to_forget_it(notes: Path) -> None:
    index = FolderIndex.of(notes)
    kept = KeptIndex(index, Progress())
    tried: list[bytes | None] = []

    def refuse(location: str) -> None:
        tried.append(index.state)
        raise IndexDamagedError("Broken.", where=location, do="Build it again with --overwrite.")

    with index.held(), pytest.raises(IndexDamagedError) as caught:
        kept.opened(refuse, partial(kept.bring_in_step, fresh=False))
    assert len(set(tried)) == len(tried) == 2
    assert caught.value.do == (
        f"Remove it, so that the next search builds it again: arag-search forget {notes}"
    )


def test_an_index_that_cannot_be_built_again_is_removed_by_forget(
    notes: Path, arag: Command
) -> None:
    for name in ("manifest.json", "build.lock"):
        garble(file_of(notes, name))
    refused = arag("search", str(notes), "word3")
    assert refused.code == 2
    assert "manifest.json is not the manifest of an index." in refused.err
    assert f"arag-search forget {notes}" in refused.err
    lose(file_of(notes, "manifest.json"))
    assert f"arag-search forget {notes}" in arag("search", str(notes), "word3").err
    assert arag("forget", str(notes)).code == 0
    assert "note3.md" in arag("search", str(notes), "word3").out


@pytest.mark.server
def test_processes_that_meet_the_same_damage_build_one_index(notes: Path) -> None:
    halve(file_of(notes, "g1/chunks/*.cfs"))
    command = [sys.executable, "-c", MAIN, "search", str(notes), "word3"]
    pipe = subprocess.PIPE
    running = [subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) for _ in range(3)]
    for process in running:
        out, err = process.communicate(timeout=PATIENCE_S)
        assert "note3.md" in out, err
    assert [path.name for path in FolderIndex.of(notes).location.glob("g*")] == ["g2"]


def test_a_named_index_keeps_its_advice(notes: Path, tmp_path: Path, arag: Command) -> None:
    named = tmp_path / "named"
    assert arag("index", str(notes), "--to", str(named)).code == 0
    halve(next(named.glob("g1/chunks/*.cfs")))
    assert "--overwrite" in arag("search", str(named), "word3").err


@pytest.mark.server
@pytest.mark.parametrize(("name", "harm"), [("g1/chunks/*.cfs", halve), ("manifest.json", garble)])
def test_a_server_answers_while_it_builds_a_damaged_index_again(
    name: str, harm: Callable[[Path], None], notes: Path
) -> None:
    harm(file_of(notes, name))

    async def main() -> None:
        async with served(notes) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} >= {"logical_search"}
            assert "note3.md" in await passage_with(client, "word3")

    anyio.run(main)


@pytest.mark.server
def test_damage_that_a_call_meets_is_repaired_while_the_server_runs(notes: Path) -> None:
    file = file_of(notes, "g1/chunks/*.cfs")
    content = file.read_bytes()
    record = b'"note3.md.1"'
    assert content.count(record) == 1
    file.write_bytes(content.replace(record, bytes(len(record))))

    async def main() -> None:
        async with served(notes) as client:
            assert "note3.md" in await passage_with(client, "word3")

    anyio.run(main)
    assert FolderIndex.of(notes).location.joinpath("g2").exists()


def test_the_watcher_of_a_server_repairs_an_index_that_no_call_has_met(notes: Path) -> None:
    index = FolderIndex.of(notes)
    with ServedFolder(index, print) as folder:
        assert folder.building() is None
        before = index.state
        lose(file_of(notes, "g1/chunks/*.si"))
        (notes / "new.md").write_text("# New\n\nThe harbour.\n")
        eventually(lambda: index.state not in (before, None))
        assert folder.building() is None


def test_how_far_a_second_build_is_differs_from_the_first(notes: Path) -> None:
    folder = ServedFolder(FolderIndex.of(notes), print)
    assert folder.building() is None
    assert folder.withdraw(AragError("A bug.")) is False
    assert folder.withdraw(IndexDamagedError("Broken."))
    again = "The index is being built again: 0 of 5 files so far."
    assert folder.coming() == folder.building() == Coming(again, 0, 5)
