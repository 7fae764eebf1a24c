"""arag_search.open_index with a folder of files, whose index is kept in the cache."""

from __future__ import annotations

from pathlib import Path

import pytest

import arag_search
from arag_search.cli.options.parser import as_options
from arag_search.errors import IndexLockedError
from index_jobs import Progress, ProgressEvent
from index_jobs.updates.folder_index import FolderIndex
from tests.support.commands import Command
from tests.support.watched_folders import make_notes

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.mark.parametrize("refresh", [None, "auto"])
def test_a_folder_is_indexed_in_silence_held_while_it_is_open_and_compared_when_opened_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], refresh: None
) -> None:
    notes = make_notes(tmp_path / "notes", 3)
    with arag_search.open_index(notes, refresh=refresh) as index:
        assert index.logical_search("word1").total == 1
        with pytest.raises(IndexLockedError):
            FolderIndex.of(notes).remove()
    assert capfd.readouterr() == ("", "")
    (notes / "new.md").write_text("The harbour is closed.")
    index = arag_search.open_index(str(notes), filter={"path": "new.md"}, refresh=refresh)
    assert [hit.title for hit in index.logical_search("harbour OR word1").hits] == ["new"]
    index.close()
    index.close()
    FolderIndex.of(notes).remove()
    events: list[ProgressEvent] = []
    with arag_search.open_index(notes, fresh=True, progress=Progress(events.append)) as index:
        assert index.manifest.documents == 4
    assert events


def test_what_is_no_folder_of_files_has_the_error_of_a_search(
    tmp_path: Path, arag: Command
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.png").write_bytes(b"\x89PNG")
    (tmp_path / "a.md").write_text("The harbour is closed.")
    for name in ("empty", "images", "a.md", "nothing", ""):
        location = str(tmp_path / name) if name else ""
        with pytest.raises(arag_search.AragError) as raised:
            arag_search.open_index(location)
        assert (
            f"arag-search: {as_options(str(raised.value))}\n"
            in arag("search", location, "harbour").err
        )
    with pytest.raises(arag_search.AragError, match="This folder holds all files of a user"):
        arag_search.open_index("/")
