"""Writers on a full disk: they name the file, and keep the old one."""

import os
import resource
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from arag_search.system.durable import write_atomically
from arag_search.vectors.storage.files import link_or_copy, write_file


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


@contextmanager
def small_files(limit: int) -> Generator[None]:
    """Let no file of this process grow beyond ``limit`` bytes during the block."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    wrote_bytecode, sys.dont_write_bytecode = not sys.dont_write_bytecode, True
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        sys.dont_write_bytecode = not wrote_bytecode


def write_vectors(folder: Path) -> None:
    write_file(folder / "vectors.npy", [b"1" * 50, b"2" * 50])


def test_a_failed_write_names_its_file_and_keeps_the_old_one(tmp_path: Path) -> None:
    write_vectors(tmp_path)
    (path,) = tmp_path.iterdir()
    before = path.read_bytes()
    with small_files(10), pytest.raises(OSError, match="File too large") as caught:
        write_vectors(tmp_path)
    assert caught.value.filename == str(path)
    assert path.read_bytes() == before


def test_a_copy_that_does_not_fit_leaves_no_partial_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_link(source: Path, target: Path) -> None:
        raise OSError(18, os.strerror(18))

    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"a" * 100)
    monkeypatch.setattr(os, "link", fail_link)
    with small_files(10), pytest.raises(OSError, match="File too large"):
        link_or_copy(source, target)
    assert not target.exists()
    link_or_copy(source, target)
    assert target.read_bytes() == source.read_bytes()
