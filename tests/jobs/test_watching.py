"""An index that follows a folder: by a watcher, which is stopped, killed and kept from writing."""

import os
import resource
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from arag_search.cli.app import run
from arag_search.errors import IndexLockedError
from arag_search.search.opening import open_index
from arag_search.search.standing import standing_of
from index_jobs.updates import synchronisation, watching
from index_jobs.updates.folder_index import OPTIONS
from index_jobs.updates.watching import Watcher
from tests.support.examples import examples
from tests.support.watched_folders import (
    Notes,
    digest_of,
    eventually,
    fresh_digest,
    make_notes,
    watch_process,
)
from tests.support.watched_folders import watching as running

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture(name="notes")
def a_folder_of_notes(tmp_path: Path) -> Path:
    return make_notes(tmp_path / "notes", 10)


def count(index: Path, query: str) -> int:
    with open_index(index) as opened:
        return opened.logical_search(query).total


def problem(index: Path) -> str:
    state = standing_of(index)
    return "" if state is None else state.problem


def changes(notes: Notes, index: Path, place: Path, steps: int, every: int) -> None:
    """Change notes while processes watch them, some of which are killed or find a full disk, and
    compare the index with a new build every few steps."""
    watcher = watch_process(notes.folder, index)
    try:
        for step in range(1, steps + 1):
            notes.step()
            chance = notes.random.random()
            if chance < 1.5 / every:
                watcher.kill()
                watcher.wait()
                watcher = watch_process(notes.folder, index)
            elif chance < 2 / every:
                unlimited = resource.RLIM_INFINITY
                resource.prlimit(watcher.pid, resource.RLIMIT_FSIZE, (2_000, unlimited))
                notes.step()
                resource.prlimit(watcher.pid, resource.RLIMIT_FSIZE, (unlimited, unlimited))
            if step % every == 0:
                expected = fresh_digest(notes.folder, place)
                eventually(partial(index_is, index, expected))
                assert watcher.poll() is None
    finally:
        watcher.kill()
        watcher.wait()


def index_is(index: Path, digest: str) -> bool:
    return (index / "manifest.json").exists() and digest_of(index) == digest


@pytest.mark.server
def test_a_watched_index_equals_a_new_build_after_random_changes_kills_and_a_full_disk(
    tmp_path: Path,
) -> None:
    (tmp_path / "n").mkdir()
    changes(Notes(tmp_path / "n", seed=examples(7, 1)), tmp_path / "i", tmp_path / "new", 12, 6)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_a_watched_index_equals_a_new_build_for_a_thousand_steps(tmp_path: Path, seed: int) -> None:
    (tmp_path / "n").mkdir()
    changes(Notes(tmp_path / "n", seed), tmp_path / "i", tmp_path / "new", 250, 25)


@pytest.mark.parametrize("files", [20, pytest.param(5_000, marks=pytest.mark.long)])
def test_a_checkout_of_git_that_changes_all_files_at_once_is_followed(
    tmp_path: Path, files: int
) -> None:
    index, folder = tmp_path / "i", tmp_path / "n"

    def git(*arguments: str) -> None:
        options = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
        subprocess.run(["git", "-C", folder, *options, *arguments], check=True, capture_output=True)

    make_notes(folder, files)
    git("init", "-b", "sea")
    git("add", ".")
    git("commit", "-m", "sea")
    git("checkout", "-b", "land")
    for number in range(files):
        (folder / f"note{number}.md").write_text(f"# Note {number}\n\nThe land, word{number}.\n")
    for number in range(files // 10):
        (folder / f"note{number}.md").rename(folder / f"moved{number}.md")
    git("add", ".")
    git("commit", "-m", "land")
    with running(Watcher([str(folder)], index, OPTIONS)):
        eventually(lambda: index.exists() and standing_of(index) is not None, 600)
        eventually(lambda: count(index, "land") == files, 600)
        for branch in ("sea", "land"):
            git("checkout", branch)
            expected = fresh_digest(folder, tmp_path / "new")
            eventually(partial(index_is, index, expected), 600)
            assert count(index, branch) == files
    assert not problem(index)


def rename_of_a_temporary_file(file: Path, text: str) -> None:
    temporary = file.with_name(f"{file.name}.tmp")
    temporary.write_text(text)
    os.replace(temporary, file)


def vim(file: Path, text: str) -> None:
    """Try whether the folder can be written, keep the old file as backup, and write a new one."""
    (probe := file.with_name("4913")).touch()
    probe.unlink()
    backup = file.with_name(f"{file.name}~")
    file.rename(backup)
    file.write_text(text)
    backup.unlink()


def emacs(file: Path, text: str) -> None:
    """Lock the file with a link to nowhere, and save it also under another name meanwhile."""
    (lock := file.with_name(f".#{file.name}")).symlink_to("ann@example.org.1234:1")
    (saved := file.with_name(f"#{file.name}#")).write_text(text)
    file.rename(file.with_name(f"{file.name}~"))
    file.write_text(text)
    saved.unlink()
    lock.unlink()


def in_place(file: Path, text: str) -> None:
    """Empty the file, and write it, as VS Code does."""
    with file.open("w") as opened:
        opened.flush()
        time.sleep(0.3)
        opened.write(text)


def test_files_are_found_however_an_editor_saves_them(notes: Path, tmp_path: Path) -> None:
    index = tmp_path / "i"
    with running(Watcher([str(notes)], index, OPTIONS)):
        eventually(lambda: index.exists() and standing_of(index) is not None)
        for number, save in enumerate((rename_of_a_temporary_file, vim, emacs, in_place)):
            save(notes / f"note{number}.md", f"# Saved\n\nThe harbour of {save.__name__}.\n")
            eventually(lambda number=number: count(index, "harbour") == number + 1)
        expected = fresh_digest(notes, tmp_path / "new")
        eventually(partial(index_is, index, expected))
        assert count(index, "sea") == 6


def test_a_folder_that_vanishes_becomes_a_file_and_returns_is_followed_again(
    notes: Path, tmp_path: Path
) -> None:
    index, away = tmp_path / "i", tmp_path / "away"
    (notes / "loop").symlink_to(notes)
    with running(Watcher([str(notes)], index, OPTIONS)):
        eventually(lambda: index.exists() and standing_of(index) is not None)
        notes.rename(away)
        eventually(lambda: bool(problem(index)))
        notes.write_text("A file.")
        (away / "new.md").write_text("# New\n\nThe lantern.\n")
        time.sleep(2)
        assert count(index, "sea") == 10
        notes.unlink()
        away.rename(notes)
        eventually(lambda: count(index, "lantern") == 1)
        assert count(index, "sea") == 10
        eventually(lambda: not problem(index))


def test_only_the_files_that_changed_are_read(
    notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = tmp_path / "i"
    read: list[int] = []
    write = synchronisation.Synchronisation._write

    def counted(self: synchronisation.Synchronisation, packed: object, position: object) -> None:
        write(self, packed, position)  # type: ignore[arg-type]
        read.append(len(self._ids))

    with running(Watcher([str(notes)], index, OPTIONS)):
        eventually(lambda: index.exists() and standing_of(index) is not None)
        eventually(lambda: count(index, "sea") == 10)
        monkeypatch.setattr(synchronisation.Synchronisation, "_write", counted)
        (notes / "note3.md").write_text("# Changed\n\nThe harbour.\n")
        eventually(lambda: count(index, "harbour") == 1)
        assert read
        assert max(read) == 1


def test_a_mass_deletion_is_noted_and_not_followed_while_other_changes_are(
    notes: Path, tmp_path: Path
) -> None:
    index, away = tmp_path / "i", tmp_path / "away"
    away.mkdir()
    with running(Watcher([str(notes)], index, OPTIONS)):
        eventually(lambda: index.exists() and standing_of(index) is not None)
        for number in range(7):
            shutil.move(notes / f"note{number}.md", away)
        eventually(lambda: "no longer in it" in problem(index))
        (notes / "new.md").write_text("# New\n\nThe lantern.\n")
        eventually(lambda: count(index, "lantern") == 1)
        assert count(index, "sea") == 10
        assert "no longer in it" in problem(index)
        for number in range(7):
            shutil.move(away / f"note{number}.md", notes)
        eventually(lambda: not problem(index))
        assert count(index, "sea") == 10


def test_files_that_vanish_in_several_steps_are_a_mass_deletion_too(
    notes: Path, tmp_path: Path
) -> None:
    index = tmp_path / "i"
    with running(Watcher([str(notes)], index, OPTIONS)):
        eventually(lambda: index.exists() and standing_of(index) is not None)
        for left in (8, 6):
            for number in (left, left + 1):
                (notes / f"note{number}.md").unlink()
            eventually(lambda left=left: count(index, "sea") == left)
        for number in (4, 5):
            (notes / f"note{number}.md").unlink()
        eventually(lambda: "no longer in it" in problem(index))
        assert count(index, "sea") == 6


def test_a_moved_folder_is_followed(notes: Path, tmp_path: Path) -> None:
    index = tmp_path / "i"
    (notes / "all").mkdir()
    for file in notes.glob("*.md"):
        file.rename(notes / "all" / file.name)
    with running(Watcher([str(notes)], index, OPTIONS)):
        eventually(lambda: index.exists() and standing_of(index) is not None)
        (notes / "all").rename(notes / "other")
        eventually(lambda: count(index, "path:other/") == 10)
        eventually(lambda: count(index, "sea") == 10)
        assert not problem(index)


def test_where_nothing_is_reported_files_are_compared(
    notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching._Changes, "_listen", lambda self: None)
    monkeypatch.setattr(watching, "LOOK_S", 0.2)
    index = tmp_path / "i"
    with running(Watcher([str(notes)], index, OPTIONS)):
        eventually(lambda: index.exists() and standing_of(index) is not None)
        (notes / "note3.md").write_text("# Changed\n\nThe harbour.\n")
        eventually(lambda: count(index, "harbour") == 1)


def test_an_index_has_one_watcher(notes: Path, tmp_path: Path) -> None:
    import threading

    index = tmp_path / "i"
    with running(Watcher([str(notes)], index, OPTIONS)):
        eventually(lambda: index.exists() and standing_of(index) is not None)
        with pytest.raises(IndexLockedError, match="keeps this index up to date already"):
            Watcher([str(notes)], index, OPTIONS).run(threading.Event(), waits=False)


def test_watch_refuses_what_does_not_go_with_it(notes: Path, tmp_path: Path) -> None:
    index = str(tmp_path / "i")
    assert run(["sync", index, str(notes), "--watch"]) == 1  # there is no index
    assert not os.path.exists(index)
    assert run(["index", str(notes), "--to", index]) == 0
    assert run(["sync", index, str(notes), "--watch", "--dry-run"]) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="file systems elsewhere refuse such names")
def test_a_name_that_is_not_utf_8_neither_stops_the_listening_nor_is_missed(
    notes: Path, tmp_path: Path
) -> None:
    index = tmp_path / "i"
    with running(Watcher([str(notes)], index, OPTIONS)):
        eventually(lambda: index.exists() and standing_of(index) is not None)
        Path(os.fsdecode(os.fsencode(notes) + b"/caf\xe9.md")).write_text("# Odd\n\nThe lantern.\n")
        eventually(lambda: count(index, "lantern") == 1)
        (notes / "plain.md").write_text("# Plain\n\nThe lantern.\n")
        eventually(lambda: count(index, "lantern") == 2)
