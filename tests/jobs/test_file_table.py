"""The table of the files that an index has read: what it takes for changed, what is read again, and
what is brought in step before an answer."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from arag_search.errors import IndexLockedError
from arag_search.search.opening import open_index
from arag_search.search.standing import Standing, standing_of
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.sources.folders import listing
from index_jobs.sources.folders import source as files
from index_jobs.sources.folders import table as file_table
from index_jobs.sources.folders.selection import FileSelection
from index_jobs.updates import synchronisation, watching
from index_jobs.updates.addition import AddReport, add_documents
from index_jobs.updates.deletion import delete_documents
from index_jobs.updates.folder_index import OPTIONS
from index_jobs.updates.options import SyncOptions
from index_jobs.updates.synchronisation import sync_documents
from index_jobs.updates.watching import Watcher
from tests.support.examples import examples, some_of
from tests.support.watched_folders import Notes, digest_of, fresh_digest, make_notes

pytestmark = pytest.mark.usefixtures("own_cache")
SKIPS = SyncOptions(files=FileSelection(skip_bad_files=True))


@pytest.fixture(name="notes")
def a_folder_of_notes(tmp_path: Path) -> Path:
    notes = make_notes(tmp_path / "notes", 10)
    build_index([str(notes)], tmp_path / "i", OPTIONS)
    return notes


@pytest.fixture(name="read")
def the_files_that_are_read(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return the set of ids of documents that synchronisations read from now on."""
    read: set[str] = set()
    finish = synchronisation.Synchronisation._finish

    def noted(self: synchronisation.Synchronisation) -> AddReport:
        read.update(self._ids)
        return finish(self)

    monkeypatch.setattr(synchronisation.Synchronisation, "_finish", noted)
    return read


def sync(notes: Path, options: SyncOptions = SKIPS) -> AddReport:
    return sync_documents([str(notes)], notes.parent / "i", options)


def compared(notes: Path) -> Standing:
    """Compare the notes before an answer, and return how the index stands."""
    Watcher([str(notes)], notes.parent / "i", OPTIONS).compare()
    standing = standing_of(notes.parent / "i")
    assert standing is not None
    return standing


def hits(notes: Path, query: str) -> int:
    with open_index(notes.parent / "i") as index:
        return index.logical_search(query).total


def test_only_the_files_whose_state_has_changed_are_read(notes: Path, read: set[str]) -> None:
    report = sync(notes)
    assert (report.unchanged, report.has_changes, read) == (10, False, set())
    times = os.stat(notes / "note1.md")
    (notes / "note1.md").write_text("# Note 1\n\nThe sea, wordX.\n")  # of the same length
    os.utime(notes / "note1.md", ns=(times.st_atime_ns, times.st_mtime_ns))
    (notes / "copy.md").write_text((notes / "note2.md").read_text())
    os.replace(notes / "copy.md", notes / "note2.md")
    (notes / "note3.md").rename(notes / "moved.md")
    (notes / "note4.md").unlink()
    (notes / "note5.md").touch()
    report = sync(notes)
    assert read == {"note1.md", "note2.md", "moved.md", "note5.md"}
    changes = report.added, report.replaced, report.unchanged, report.deleted
    assert changes == (1, 1, 7, 2)
    read.clear()
    assert not sync(notes).has_changes
    assert not read


def test_a_file_that_may_have_changed_again_within_a_tick_is_read_again(
    notes: Path, read: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        coarse = property(lambda self: 3_600 * 10**9)
        patched.setattr(listing.SourceFile, "tick_ns", coarse)
        sync(notes)  # all notes are young
    read.clear()
    sync(notes)
    assert len(read) == 10
    read.clear()
    sync(notes)
    assert not read


@pytest.mark.parametrize("change", ["add", "delete", "other options", "records"])
def test_after_a_change_by_others_all_files_are_read(
    notes: Path, read: set[str], change: str
) -> None:
    index, options = notes.parent / "i", SKIPS
    if change == "add":
        (notes.parent / "other.md").write_text("# Other\n")
        add_documents([str(notes.parent / "other.md")], index)
    elif change == "delete":
        delete_documents(index, ["note7.md"])
    elif change == "other options":
        options = SyncOptions(files=FileSelection(skip_bad_files=True, exclude=("note7.md",)))
    else:
        (index / "files.json").write_text("{}")
    sync(notes, options)
    assert len(read) >= 9
    read.clear()
    sync(notes, options)
    assert not read


def test_a_file_that_cannot_be_read_is_tried_again_by_a_synchronisation_and_not_by_an_answer(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (notes / "broken.docx").write_bytes(b"no archive")
    assert sync(notes).skipped_files == 1
    assert sync(notes).skipped_files == 1
    monkeypatch.setattr(
        synchronisation.Synchronisation, "_finish", lambda self: pytest.fail("read again")
    )
    standing = compared(notes)
    assert not standing.line()
    assert "1 docx could not be read" in standing.missing()


def test_little_is_brought_in_step_before_an_answer(notes: Path) -> None:
    (notes / "note1.md").write_text("# Note 1\n\nThe lantern.\n")
    (notes / "note2.md").unlink()
    (notes / "new.md").write_text("# New\n\nThe lantern.\n")
    assert not compared(notes).line()
    assert (hits(notes, "lantern"), hits(notes, "sea")) == (2, 8)


@pytest.mark.parametrize("much", ["bytes", "slow", "lock"])
def test_what_takes_longer_is_named_in_the_answer(
    notes: Path, much: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*arguments: object, **options: object) -> None:
        raise IndexLockedError("Another process builds this index.")

    new = notes / ("new.html" if much == "slow" else "new.md")
    new.write_text("The lantern. " * (11_000 if much == "bytes" else 1))
    (notes / "note1.md").write_text("# Note 1\n\nThe harbour.\n")
    with monkeypatch.context() as patched:
        if much == "lock":
            patched.setattr(watching, "sync_documents", locked)
        if much != "lock":
            patched.setattr(files, "HELD_CHARACTERS", 5)
        standing = compared(notes)
    count = 2 if much == "lock" else 1
    assert (standing.changed_files, standing.slow_files) == (count, much != "lock")
    assert standing.changed[0] == new.name
    assert f"{count} file" in standing.line()
    assert (hits(notes, "lantern"), hits(notes, "harbour")) == (0, much != "lock")
    sync(notes)
    assert not compared(notes).line()


def test_more_files_than_are_compared_before_an_answer_are_said_to_be_not(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "MOST_FILES", 9)
    (notes / "new.md").write_text("# New\n\nThe lantern.\n")
    assert "not compared since: 10 files" in compared(notes).line()
    sync(notes)
    assert hits(notes, "lantern") == 1


def test_files_of_another_machine_are_compared_by_size_and_time_and_read_by_a_synchronisation(
    notes: Path, read: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_table, "is_remote", lambda path: True)
    sync(notes)
    assert len(read) == 10
    (notes / "copy.md").write_text((notes / "note2.md").read_text())
    times = os.stat(notes / "note2.md")
    os.utime(notes / "copy.md", ns=(times.st_atime_ns, times.st_mtime_ns))
    os.replace(notes / "copy.md", notes / "note2.md")  # another inode, as some systems make up
    monkeypatch.setattr(
        synchronisation.Synchronisation, "_finish", lambda self: pytest.fail("read")
    )
    assert not compared(notes).line()


def test_a_build_of_files_of_another_machine_is_in_step_with_them(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_table, "is_remote", lambda path: True)
    build_index([str(notes)], notes.parent / "i", replace(OPTIONS, overwrite=True))
    assert not compared(notes).line()


def test_a_source_that_is_gone_is_named_and_its_documents_stay(notes: Path) -> None:
    notes.rename(notes.parent / "away")
    standing = standing_of(notes.parent / "i")
    assert standing is not None
    assert standing.gone == (str(notes),)
    assert "notes is gone" in standing.line()
    assert not standing.within_scope().changed_files
    assert str(notes) not in standing.within_scope().line()
    assert hits(notes, "sea") == 10
    (notes.parent / "away").rename(notes)
    assert not compared(notes).line()


def test_records_have_no_table_and_are_in_step_after_a_synchronisation(tmp_path: Path) -> None:
    records = tmp_path / "records.jsonl"
    records.write_text('{"id": "a", "text": "The sea."}\n')
    build_index([str(records)], tmp_path / "i", BuildOptions())
    sync_documents([str(records)], tmp_path / "i")
    standing = standing_of(tmp_path / "i")
    assert standing is not None
    assert standing.in_step
    assert not (tmp_path / "i" / "files.json").exists()


@pytest.mark.parametrize("seed", some_of(range(examples(60))))
def test_an_index_that_reads_only_what_changed_equals_a_new_build(
    tmp_path: Path, seed: int
) -> None:
    (tmp_path / "n").mkdir()
    notes = Notes(tmp_path / "n", seed)
    build_index([str(notes.folder)], tmp_path / "i", OPTIONS)
    options = SyncOptions(files=OPTIONS.files, skip_bad_lines=True, allow_deletes=True)
    for step in range(10):
        for _ in range(notes.random.choice((1, 1, 3, 25))):
            notes.step()
        if step % 2:
            Watcher([str(notes.folder)], tmp_path / "i", OPTIONS).compare()
        sync_documents([str(notes.folder)], tmp_path / "i", options)
        if step % 5 == 4:
            assert digest_of(tmp_path / "i") == fresh_digest(notes.folder, tmp_path / "new")
