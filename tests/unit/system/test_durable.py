"""Reading files in folders into which others may write."""

import os
from pathlib import Path

import pytest

from arag_search.system.durable import read_plain, write_atomically
from tests.support.hostile_files import put_hostile


@pytest.mark.parametrize("what", ["pipe", "link to a device", "link", "folder", "large"])
def test_only_a_regular_file_of_the_expected_size_is_read(tmp_path: Path, what: str) -> None:
    put_hostile(tmp_path / "file", what)
    with pytest.raises(OSError, match=r"it is|it has"):
        read_plain(tmp_path / "file", 4096)


def test_a_file_of_the_largest_size_is_read(tmp_path: Path) -> None:
    write_atomically(tmp_path / "file", bytes(4096))
    assert read_plain(tmp_path / "file", 4096) == read_plain(tmp_path / "file") == bytes(4096)


def test_writing_never_waits_for_the_reader_of_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "file.new")
    with pytest.raises(OSError, match="file"):
        write_atomically(tmp_path / "file", b"text")
