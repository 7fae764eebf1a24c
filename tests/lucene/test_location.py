"""Generations on disk: published at once, held by readers, built by one process at a time."""

import errno
import json
import os
import shutil
import threading
from pathlib import Path

import pytest

from arag_search.engines.lucene.location import BuildSite, folder_bytes, hold_live
from arag_search.errors import (
    AragError,
    IndexDamagedError,
    IndexExistsError,
    IndexLockedError,
    IndexNotFoundError,
)


def build_generation(location: Path, *, content: str = "first") -> str:
    with BuildSite(location, overwrite=True) as site:
        generation, _, _ = site.begin({"content": content})
        (generation / "data").write_text(content)
        site.publish(generation.name)
        return generation.name


def message(error: pytest.ExceptionInfo[AragError]) -> str:
    return str(error.value)


def test_a_published_generation_is_live_and_the_previous_one_is_removed(tmp_path: Path) -> None:
    location = tmp_path / "below" / "index"
    assert build_generation(location) == "g1"
    assert build_generation(location, content="second") == "g2"
    generation = hold_live(location)
    assert (generation.name, (generation.path / "data").read_text()) == ("g2", "second")
    generation.release()
    generation.release()
    assert sorted(os.listdir(location)) == ["build.lock", "g2", "manifest.json"]
    assert sorted(os.listdir(location / "g2")) == ["data", "in_use.lock"]
    manifest = json.loads((location / "manifest.json").read_text())
    assert len(manifest.pop("state")) == 32
    assert manifest == {
        "format": "arag-index",
        "live": "g2",
    }


def test_a_generation_that_is_read_stays_until_a_later_build(tmp_path: Path) -> None:
    build_generation(tmp_path)
    generation = hold_live(tmp_path)
    build_generation(tmp_path, content="second")
    assert (generation.path / "data").read_text() == "first"
    generation.release()
    build_generation(tmp_path, content="third")
    assert sorted(path.name for path in tmp_path.glob("g*")) == ["g3"]


def test_readers_always_find_a_complete_generation_during_consecutive_builds(
    tmp_path: Path,
) -> None:
    build_generation(tmp_path)
    stop = threading.Event()
    contents: set[str] = set()

    def read() -> None:
        while not stop.is_set():
            generation = hold_live(tmp_path)
            contents.add((generation.path / "data").read_text())
            generation.release()

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(8):
        build_generation(tmp_path, content=str(number))
    stop.set()
    reader.join()
    assert contents


def test_an_unfinished_build_is_resumed_only_with_the_same_signature(tmp_path: Path) -> None:
    with BuildSite(tmp_path) as site:
        generation, resumed, reason = site.begin({"sources": ["a"], "chunk_tokens": 1000})
        assert (generation.name, resumed, reason) == ("g1", False, "")
        (generation / "data").touch()
    with BuildSite(tmp_path) as site:
        generation, resumed, reason = site.begin({"chunk_tokens": 1000, "sources": ("a",)})
        assert (generation.name, resumed) == ("g1", True)
        assert reason == "nothing has changed since it was stopped"
    with BuildSite(tmp_path) as site:
        generation, resumed, reason = site.begin({"sources": ["a"], "chunk_tokens": 500})
        assert (generation.name, resumed) == ("g1", False)
        assert reason == "changed since it was stopped: chunk_tokens"
        assert not (generation / "data").exists()


def test_a_half_built_index_is_not_opened(tmp_path: Path) -> None:
    location = tmp_path / "index"
    with BuildSite(location) as site:
        site.begin({})
    with pytest.raises(IndexNotFoundError) as caught:
        hold_live(location)
    assert message(caught) == (
        f"A build of the index has begun and not finished.\nWhere: {location}\n"
        "Do: Run the same arag-search index command again to resume it."
    )


def test_the_error_of_a_missing_index_names_the_next_command(tmp_path: Path) -> None:
    with pytest.raises(IndexNotFoundError) as caught:
        hold_live(tmp_path / "none")
    assert message(caught) == (
        f"There is no index.\nWhere: {tmp_path}/none\n"
        f"Do: Build one: arag-search index SOURCE --to {tmp_path}/none"
    )
    with pytest.raises(IndexNotFoundError, match=r"^The folder holds no index\."):
        hold_live(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(IndexNotFoundError, match=r"^This is a file, not an index\."):
        hold_live(tmp_path / "file")


@pytest.mark.parametrize(
    ("manifest", "kind", "what"),
    [
        ("{}", IndexDamagedError, "manifest.json is not the manifest of an index."),
        ("half", IndexDamagedError, "manifest.json is not the manifest of an index."),
        (
            '{"format": "arag-index", "live": "../g1"}',
            IndexDamagedError,
            "manifest.json names no state.",
        ),
        (
            '{"format": "arag-index", "live": "g7"}',
            IndexDamagedError,
            "manifest.json names the state g7, which does not exist.",
        ),
    ],
)
def test_a_damaged_location_is_reported(
    tmp_path: Path, manifest: str, kind: type[AragError], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arag_search.engines.lucene.location._PAUSE_S", 0)
    build_generation(tmp_path)
    (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(kind) as caught:
        hold_live(tmp_path)
    assert caught.value.what == what
    build_generation(tmp_path, content="again")
    hold_live(tmp_path).release()


def test_a_generation_outside_of_the_location_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arag_search.engines.lucene.location._PAUSE_S", 0)
    outside, location = tmp_path / "outside", tmp_path / "index"
    build_generation(outside)
    build_generation(location)
    (location / "g2").symlink_to(outside / "g1")
    (location / "manifest.json").write_text('{"format":"arag-index","live":"g2"}')
    with pytest.raises(IndexDamagedError):
        hold_live(location)
    build_generation(location)
    assert (outside / "g1" / "data").exists()


def test_an_index_is_replaced_only_with_overwrite(tmp_path: Path) -> None:
    build_generation(tmp_path)
    with pytest.raises(IndexExistsError) as caught, BuildSite(tmp_path):
        pass
    assert message(caught).startswith(f"There is an index already.\nWhere: {tmp_path}\n")


@pytest.mark.parametrize("name", ["notes.txt", "manifest.json", "g1"])
def test_a_folder_with_other_files_is_never_touched(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"name": "web"}')
    with pytest.raises(IndexExistsError) as caught, BuildSite(tmp_path, overwrite=True):
        pass
    assert message(caught).startswith(
        f"The folder holds files that do not belong to an index.\nWhere: {tmp_path}\n"
    )
    assert os.listdir(tmp_path) == [name]
    with pytest.raises(IndexExistsError, match=r"^There is a file in the place of the index\."):
        BuildSite(tmp_path / name).__enter__()


def test_a_second_builder_is_refused_at_once(tmp_path: Path) -> None:
    location = tmp_path / "index"
    with BuildSite(location):
        with pytest.raises(IndexLockedError) as caught, BuildSite(location):
            pass
        assert message(caught) == (
            f"Another build or update is running there (process {os.getpid()}).\n"
            f"Where: {location}\n"
            "Do: Wait for it, or stop it; or name another folder."
        )
    assert not location.exists(), "nothing was built, so nothing stays"
    with BuildSite(location) as site:
        site.begin({})
    assert sorted(os.listdir(location)) == ["build.lock", "g1"]


@pytest.mark.parametrize("call", ["ftruncate", "listdir", "unlink"])
def test_an_error_after_publishing_neither_fails_nor_keeps_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    build_generation(tmp_path)
    with BuildSite(tmp_path, overwrite=True) as site:
        generation, _, _ = site.begin({})
        monkeypatch.setattr(os, call, failing)
        site.publish(generation.name)
    monkeypatch.undo()
    live = hold_live(tmp_path)
    assert live.name == "g2"
    live.release()
    build_generation(tmp_path)


def test_discarding_removes_only_generations_that_are_not_live(tmp_path: Path) -> None:
    build_generation(tmp_path)
    with BuildSite(tmp_path, overwrite=True) as site:
        site.discard(tmp_path / "g1")
        generation, _, _ = site.begin({})
        site.discard(generation)
    assert sorted(path.name for path in tmp_path.glob("g*")) == ["g1"]


def test_the_size_of_a_folder_is_counted_while_generations_come_and_go(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_bytes(bytes(100))
    stopping = threading.Event()

    def change() -> None:
        while not stopping.is_set():
            for name in ("g1", "g2", "g3"):
                (tmp_path / name / "chunks").mkdir(parents=True)
            for name in ("g1", "g2", "g3"):
                shutil.rmtree(tmp_path / name)

    changing = threading.Thread(target=change)
    changing.start()
    try:
        assert {folder_bytes(tmp_path) for _ in range(1_000)} == {100}
    finally:
        stopping.set()
        changing.join()
