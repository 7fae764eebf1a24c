"""Writers on a full disk: they name the file, and keep the old one."""

import os
from pathlib import Path

import pytest

from arag_search.system.durable import write_atomically
from tests.support.full_disks import small_files


def test_a_failed_atomic_write_names_the_file_and_keeps_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_fsync(descriptor: int) -> None:
        raise OSError(28, os.strerror(28))

    path = tmp_path / "file"
    write_atomically(path, b"old")
    monkeypatch.setattr(os, "fsync", fail_fsync)
    with pytest.raises(OSError, match="No space left") as caught:
        write_atomically(path, b"new")
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"old"


def test_a_failed_write_names_its_file_and_keeps_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")
    with small_files(10), pytest.raises(OSError, match="File too large") as caught:
        write_atomically(path, b"1" * 100)
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"old"
