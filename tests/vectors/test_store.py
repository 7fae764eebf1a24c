"""A store of rows: what is appended exists as a whole or not at all, and damage is found."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arag_search.errors import (
    ArgumentError,
    VectorsDamagedError,
    VectorsNotFoundError,
    VectorsVersionError,
)
from arag_search.vectors.base import VECTOR_UNITS
from arag_search.vectors.folder import StoredType
from arag_search.vectors.store import Store
from tests.support.full_disks import small_files
from tests.support.vector_stores import append, keys_of, new_store, unit_vectors

AGAIN = "Do: Embed the index again: arag-search embed INDEX --overwrite"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return new_store(tmp_path)


def _found(store: Store, texts: Any) -> list[int]:
    keys = keys_of(texts)
    rows = store.find("sentence", keys)
    return [rows.get(key, -1) for key in keys]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_rows_are_read_as_they_were_appended(tmp_path: Path, dtype: StoredType) -> None:
    store = new_store(tmp_path, dtype)
    vectors = {unit: append(store, unit, range(7), seed) for seed, unit in enumerate(VECTOR_UNITS)}
    assert store.append("passage", keys_of("ab"), unit_vectors(2, 5)) == 7
    for opened in (store, Store.open(store.folder)):
        assert (opened.rows("sentence"), opened.rows("passage")) == (7, 9)
        for unit in VECTOR_UNITS:
            stored = opened.vectors(unit, 7)
            assert (stored.rows, stored.dimension) == (7, 16)
            assert stored.is_converted == (dtype == "float16")
            expected = vectors[unit].astype(dtype).astype(np.float32)
            assert (stored.gather(np.array([6, 0, 6, 3])) == expected[[6, 0, 6, 3]]).all()
            for start, block in stored.blocks(3, first=1):
                assert (block == expected[start : start + 3]).all()
            assert [key.tobytes() for key in opened.keys(unit)][:7] == keys_of(range(7))
        opened.verify()


def test_keys_are_found_in_one_scan_also_repeated_and_the_last_of_equal_ones(store: Store) -> None:
    append(store, "sentence", [1, 2, 1])
    append(store, "sentence", [2, 3])
    append(store, "passage", [9])
    assert _found(store, [3, 1, 9, 2, 1, 4]) == [4, 2, -1, 3, 2, -1]
    assert _found(store, []) == []
    assert store.find("passage", keys_of([1])) == {}


def test_keys_that_share_their_first_half_are_told_apart(store: Store) -> None:
    keys = [b"%08d%08d" % (first, second) for first in (1, 2) for second in (7, 5, 6, 9)]
    store.append("sentence", keys[:3] + keys[4:], unit_vectors(7))
    expected = {keys[number]: row for number, row in ((0, 0), (1, 1), (2, 2), (7, 6), (4, 3))}
    assert store.find("sentence", [keys[3], *expected]) == expected


def test_a_store_without_rows_finds_nothing_and_takes_blocks_without_rows(store: Store) -> None:
    assert store.append("sentence", [], np.empty((0, 16), np.float32)) == 0
    opened = Store.open(store.folder)
    assert _found(opened, [1]) == [-1]
    assert opened.vectors("sentence").gather(np.empty(0, np.int64)).shape == (0, 16)


def test_rows_that_do_not_exist_are_refused(store: Store) -> None:
    append(store, "sentence", range(3))
    for rows in ([0, 3], [-1, 0]):
        with pytest.raises(VectorsDamagedError, match=r"^A row"):
            store.vectors("sentence").gather(np.array(rows))
    with pytest.raises(VectorsDamagedError, match=r"^The store has 3 rows, not 4\."):
        store.vectors("sentence", 4)


# What an interrupted writer leaves


def _snapshot(store: Store) -> dict[Path, int]:
    return {path: path.stat().st_size for path in store.folder.iterdir()}


@pytest.mark.parametrize("role", ["sentence.vectors", "sentence.keys", "sentence.blocks"])
@pytest.mark.parametrize("kept", [0, 1, 17, -1])
def test_bytes_behind_the_last_block_are_no_rows_and_the_next_writer_cuts_them_off(
    store: Store, role: str, kept: int
) -> None:
    first = append(store, "sentence", range(5))
    before = _snapshot(store)
    append(store, "sentence", range(5, 9))
    blocks = store.folder / "sentence.blocks"
    os.truncate(blocks, before[blocks])
    torn = store.folder / role
    if torn == blocks:
        with torn.open("ab") as file:
            file.write(bytes(range(23))[:kept])
    else:
        size = torn.stat().st_size
        os.truncate(torn, (before[torn] + kept) if kept >= 0 else size - 1)
    for writer in (
        store,
        Store.open(store.folder),
    ):  # one that knows of the rows, one that does not
        assert Store.open(store.folder).rows("sentence") in (5, 8)
        append(writer, "sentence", [7, 8, 9], seed=4)
        assert _found(writer, [4, 5, 7]) == [4, -1, writer.rows("sentence") - 3]
    opened = Store.open(store.folder)
    assert (opened.vectors("sentence", 5).gather(np.arange(5)) == first).all()
    opened.verify()


@pytest.mark.parametrize("limit", [0, 330, 1_200])
def test_a_full_disk_names_the_file_and_leaves_the_rows_as_they_were(
    store: Store, limit: int
) -> None:
    append(store, "sentence", range(2))
    with small_files(limit), pytest.raises(OSError, match="File too large") as raised:
        append(store, "sentence", range(2, 90))
    assert Path(raised.value.filename).parent == store.folder
    assert Store.open(store.folder).rows("sentence") == store.rows("sentence") == 2
    append(store, "sentence", range(2, 90))
    assert _found(Store.open(store.folder), [89]) == [89]
    store.verify()


def test_a_writer_appends_behind_what_another_has_appended(store: Store) -> None:
    other = Store.open(store.folder)
    append(other, "sentence", range(3))
    assert store.append("sentence", keys_of([3]), unit_vectors(1)) == 3
    assert store.rows("sentence") == 4
    assert other.rows("sentence") == 3


def test_a_store_that_was_not_finished_does_not_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(OSError, match="disk full"):
        new_store(tmp_path)
    with pytest.raises(VectorsNotFoundError):
        Store.open(tmp_path / "store-00001")
    monkeypatch.undo()
    assert new_store(tmp_path).rows("sentence") == 0


# Damage


@pytest.mark.parametrize("role", ["sentence.vectors", "sentence.keys"])
def test_a_flipped_bit_is_found_and_not_copied(store: Store, role: str) -> None:
    for texts in (range(4), range(4, 8), range(8, 12)):
        append(store, "sentence", texts)
    path = store.folder / role
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
    store = Store.open(store.folder)
    live, copy = {"sentence": np.array([1])}, store.folder.with_name("store-00002")
    changed = f"The sentence rows 4 to 7 have changed.\nWhere: {store.folder}\n{AGAIN}"
    for act in (store.verify, lambda: store.copy_to(copy, live)):
        with pytest.raises(VectorsDamagedError) as raised:
            act()
        assert str(raised.value) == changed
    assert not copy.exists()


@pytest.mark.parametrize("role", ["sentence.vectors", "passage.keys"])
def test_a_truncated_or_missing_file_is_named(store: Store, role: str) -> None:
    for unit in VECTOR_UNITS:
        append(store, unit, range(4))
    path = store.folder / role
    size = path.stat().st_size
    os.truncate(path, size - 1)
    with pytest.raises(VectorsDamagedError) as raised:
        Store.open(store.folder)
    assert str(raised.value) == (
        f"The file has {size - 1} bytes, not {size}.\nWhere: {path}\n{AGAIN}"
    )
    path.unlink()
    with pytest.raises(VectorsDamagedError) as raised:
        Store.open(store.folder)
    assert str(raised.value) == f"A file is missing.\nWhere: {path}\n{AGAIN}"


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("}", "", "unexpected end of data: line 1 column"),
        ('"dimension":16', '"dimension":"16"', "encoder.dimension: Input should be a valid int"),
        ('"dtype":"float32"', '"dtype":"../x"', "dtype: Input should be 'float32' or 'float16'"),
        ('"dtype"', '"type"', "dtype: Field required"),
        ('"format_version"', '"version"', "'format_version'"),
    ],
)
def test_a_malformed_record_is_refused(store: Store, before: str, after: str, reason: str) -> None:
    path = store.folder / "store.json"
    path.write_text(after.join(path.read_text().rsplit(before, 1)))
    with pytest.raises(VectorsDamagedError) as raised:
        Store.open(store.folder)
    assert raised.value.what.startswith(f"The record cannot be read ({reason}")
    assert raised.value.where == str(path)
    assert raised.value.do


def test_a_record_of_another_version_is_refused(store: Store) -> None:
    path = store.folder / "store.json"
    path.write_text(path.read_text().replace('"format_version":9', '"format_version":5'))
    with pytest.raises(VectorsVersionError) as raised:
        Store.open(store.folder)
    assert str(raised.value) == (
        f"The vectors have format version 5.\nWhere: {path}\nAllowed: version 9\n{AGAIN}"
    )


@pytest.mark.parametrize(
    ("rows", "what"), [(-4, "A block has fewer than no rows."), (1 << 60, "The file has 512 bytes")]
)
def test_an_impossible_block_is_refused(store: Store, rows: int, what: str) -> None:
    for texts in (range(4), range(4, 8)):
        append(store, "sentence", texts)
    path = store.folder / "sentence.blocks"
    data = path.read_bytes()
    path.write_bytes(data[:32] + rows.to_bytes(8, "little", signed=True) + data[40:])
    with pytest.raises(VectorsDamagedError) as raised:
        Store.open(store.folder)
    assert raised.value.what.startswith(what)


def test_vectors_that_do_not_fit_the_keys_are_refused(store: Store) -> None:
    with pytest.raises(ArgumentError) as raised:
        store.append("passage", keys_of(range(5)), unit_vectors(4))
    assert raised.value.where == "unit passage"
    assert "5 keys" in raised.value.what
    with pytest.raises(ArgumentError, match="an array of 4 x 8 for"):
        store.append("passage", keys_of(range(4)), unit_vectors(4, dimension=8))
    assert store.rows("passage") == 0


@pytest.mark.parametrize(
    ("dtype", "value"), [("float32", np.nan), ("float32", np.inf), ("float16", 1e6)]
)
def test_vectors_that_are_not_finite_are_refused(
    tmp_path: Path, dtype: StoredType, value: float
) -> None:
    vectors = unit_vectors(5)
    vectors[2, 3] = value
    with pytest.raises(ArgumentError, match=r"a number is not finite\."):
        new_store(tmp_path, dtype).append("passage", keys_of(range(5)), vectors)


# Copies


def test_a_copy_has_the_live_rows_in_order(store: Store) -> None:
    vectors = np.concatenate([append(store, "sentence", range(n, n + 5), n) for n in (0, 5, 10)])
    store.append("passage", keys_of(range(3)), unit_vectors(3), cut=2)
    live = np.array([0, 3, 4, 11, 14])
    copy, moved = store.copy_to(
        store.folder.with_name("store-00002"), {"sentence": live, "passage": np.arange(2)}
    )
    assert moved["sentence"].tolist() == [0, -1, -1, 1, 2, -1, -1, -1, -1, -1, -1, 3, -1, -1, 4]
    assert (copy.vectors("sentence").gather(np.arange(5)) == vectors[live]).all()
    assert _found(copy, [0, 1, 14]) == [0, -1, 4]
    assert (store.cut_texts("passage"), copy.cut_texts("passage")) == (2, 2)
    assert copy.rows("passage") == 2
    copy.verify()
    empty, _ = store.copy_to(
        store.folder.with_name("store-00003"), {"sentence": np.empty(0, np.int64)}
    )
    assert empty.rows("sentence") == 0
