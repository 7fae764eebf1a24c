"""Files in a folder of files that have the names of our own."""

from pathlib import Path

import pytest

from arag_search.engines.lucene.location import hold_live, published_state
from arag_search.engines.open import is_folder_of_files
from arag_search.errors import IndexDamagedError
from index_jobs.sources.folders.listing import FolderListing, LeftOut
from index_jobs.sources.folders.selection import USUAL_FILES
from tests.support.hostile_files import put_hostile

HOSTILE = ["pipe", "link to a device", "link", "folder", "large", "deep"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.md").write_text("The harbour is closed.")
    return tmp_path / "sub"


def listed(folder: Path) -> list[str]:
    root = str(folder)
    return [file.relative for file in FolderListing(root, USUAL_FILES.rooted([root]))(LeftOut())]


@pytest.mark.parametrize("what", HOSTILE)
@pytest.mark.parametrize("name", ["manifest.json", "build.lock", ".gitignore"])
def test_no_file_with_a_name_of_ours_stops_a_folder(folder: Path, name: str, what: str) -> None:
    put_hostile(folder / name, what)
    assert "sub/a.md" in listed(folder.parent)
    assert is_folder_of_files(str(folder))


@pytest.mark.parametrize("what", HOSTILE)
def test_what_is_no_manifest_is_a_damaged_index_for_who_opens_it(folder: Path, what: str) -> None:
    put_hostile(folder / "manifest.json", what)
    with pytest.raises(IndexDamagedError, match=r"^manifest\.json (cannot be read|is not)"):
        hold_live(folder)
    state = published_state(folder)
    assert (state is not None) == (what == "deep")


def test_a_folder_is_an_index_only_if_its_generation_is_there(folder: Path) -> None:
    (folder / "manifest.json").write_text('{"format": "arag-index", "live": "g1"}')
    assert "sub/a.md" in listed(folder.parent)
    (folder / "g1").mkdir()
    assert listed(folder.parent) == []
