"""Shards: each is complete or absent, and every kind of damage has its own error."""

import os
from pathlib import Path

import numpy as np
import pytest

from arag_search.errors import ArgumentError, VectorsDamagedError, VectorsVersionError
from arag_search.vectors.base import VECTOR_UNITS
from arag_search.vectors.storage.files import map_array
from arag_search.vectors.storage.shards import (
    StoredShard,
    record_file,
    shard_file,
    shard_record,
    vectors_role,
    write_shard,
)
from tests.support.passages import VIVALDI, chunk
from tests.support.vector_shards import keys_of, unit_vectors, write_shards

AGAIN = "Do: Delete the record of the shard and embed again: only this shard is encoded again."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_shards(tmp_path, VIVALDI)
    return tmp_path


def test_a_shard_is_read_as_it_was_written(tmp_path: Path) -> None:
    vectors = write_shards(tmp_path, VIVALDI, first=3)
    record = shard_record(tmp_path, 3)
    assert record is not None
    assert (record.number, record.rows) == (3, {"sentence": 11, "passage": 5})
    assert record.all_rows == 16
    shard = StoredShard(tmp_path, record)
    for unit in VECTOR_UNITS:
        mapped = map_array(shard.file(vectors_role(unit)))
        assert isinstance(mapped, np.memmap)
        assert mapped.dtype == np.float32
        assert (mapped == vectors[unit]).all()
        assert [key.tobytes() for key in shard.keys(unit)] == keys_of(VIVALDI)[unit]
    shard.verify()


def test_a_missing_shard_has_no_record(folder: Path) -> None:
    assert shard_record(folder, 1) is None
    assert shard_record(folder / "nowhere", 0) is None


def test_a_shard_whose_record_was_not_yet_written_has_none(folder: Path) -> None:
    record_file(folder, 0).unlink()
    assert shard_record(folder, 0) is None


def test_a_shard_that_is_being_rewritten_has_no_record(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_shards(folder, VIVALDI, seed=1)
    assert shard_record(folder, 0) is None


def test_a_truncated_file_is_named_with_its_sizes(folder: Path) -> None:
    path = shard_file(folder, 0, "sentence.npy")
    size = path.stat().st_size
    os.truncate(path, size - 1)
    with pytest.raises(VectorsDamagedError) as raised:
        shard_record(folder, 0)
    assert str(raised.value) == (
        f"The file has {size - 1} bytes, not {size}.\nWhere: {path}\n{AGAIN}"
    )


def test_a_missing_file_is_named(folder: Path) -> None:
    path = shard_file(folder, 0, "sentence.keys.npy")
    path.unlink()
    with pytest.raises(VectorsDamagedError) as raised:
        shard_record(folder, 0)
    assert str(raised.value) == f"A file is missing.\nWhere: {path}\n{AGAIN}"


@pytest.mark.parametrize("role", ["sentence.npy", "passage.keys.npy"])
def test_a_flipped_bit_is_found_by_verifying(folder: Path, role: str) -> None:
    path = shard_file(folder, 0, role)
    data = bytearray(path.read_bytes())
    data[-3] ^= 4
    path.write_bytes(data)
    record = shard_record(folder, 0)  # The sizes alone do not reveal the damage.
    assert record is not None
    with pytest.raises(VectorsDamagedError) as raised:
        StoredShard(folder, record).verify()
    assert str(raised.value) == (
        f"The file has changed since it was written: its SHA-256 differs.\nWhere: {path}\n{AGAIN}"
    )


def test_a_record_of_another_version_is_refused(folder: Path) -> None:
    path = record_file(folder, 0)
    path.write_text(path.read_text().replace('"format_version":3', '"format_version":1'))
    with pytest.raises(VectorsVersionError) as raised:
        shard_record(folder, 0)
    assert raised.value.what == "The vectors have format version 1."
    assert raised.value.where == str(path)
    assert "arag-search embed INDEX" in raised.value.do


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("}", "", "unexpected end of data: line 1 column"),
        ('"number":0', '"number":"0"', "number: Input should be a valid integer"),
        ('"number":0', '"numbers":0', "number: Field required"),
        ('"format_version"', '"version"', "'format_version'"),
    ],
)
def test_a_malformed_record_is_refused(folder: Path, before: str, after: str, reason: str) -> None:
    path = record_file(folder, 0)
    path.write_text(after.join(path.read_text().rsplit(before, 1)))
    with pytest.raises(VectorsDamagedError) as raised:
        shard_record(folder, 0)
    assert raised.value.what.startswith(f"The record cannot be read ({reason}")
    assert raised.value.where == str(path)


def test_the_record_of_another_shard_is_refused(folder: Path) -> None:
    record_file(folder, 0).rename(record_file(folder, 1))
    with pytest.raises(VectorsDamagedError) as raised:
        shard_record(folder, 1)
    assert raised.value.what == "The record is that of shard 0."


def test_vectors_that_do_not_fit_the_chunks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError) as raised:
        write_shard(tmp_path, 0, keys_of(VIVALDI), {"passage": unit_vectors(4)}, dtype="float32")
    assert str(raised.value) == (
        "There are vectors of shape 4 x 16 for 5 rows.\nWhere: unit passage\n"
        "Allowed: one vector per row"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_vectors_that_are_not_finite_are_refused(tmp_path: Path, value: float) -> None:
    vectors = unit_vectors(5)
    vectors[2, 3] = value
    with pytest.raises(ArgumentError) as raised:
        write_shard(tmp_path, 0, keys_of(VIVALDI), {"passage": vectors}, dtype="float32")
    assert raised.value.what == "A vector is not finite."


def test_a_shard_without_rows_is_valid(tmp_path: Path) -> None:
    write_shards(tmp_path, [chunk(0, "a", "", "... ")])
    record = shard_record(tmp_path, 0)
    assert record is not None
    assert record.rows == {"sentence": 0, "passage": 0}
    assert map_array(shard_file(tmp_path, 0, "sentence.npy")).shape == (0, 16)
