"""The folder of the vectors of an index: the state that fits, and what is removed from it."""

import multiprocessing
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from arag_search.errors import (
    VectorsDamagedError,
    VectorsError,
    VectorsMismatchError,
    VectorsNotFoundError,
)
from arag_search.vectors.folder import (
    StateRecord,
    left_behind,
    lock,
    new_store,
    remove_unused,
    states,
    stores,
)
from arag_search.vectors.state import State, UnitTexts, find_state, fitting_state
from arag_search.vectors.store import Store
from tests.support.passages import VIVALDI
from tests.support.vector_stores import manifest_of, record_of, state_of

PLACEMENTS = [f"{number:064x}"[::-1] for number in range(10, 20)]


def _state(
    root: Path, number: int, store: str = "store-00001", before: int | None = None, owner: str = ""
) -> State:
    """Publish a state without texts."""
    root.mkdir(parents=True, exist_ok=True)
    return State.write(
        root,
        state_of(PLACEMENTS[number]),
        store,
        {"sentence": UnitTexts(np.empty(0, np.int64), np.empty(0, np.int64))},
        before="" if before is None else PLACEMENTS[before],
        owner="" if root.name == "vectors" else owner or str(root / "index"),
    )


def _numbers(root: Path) -> list[int]:
    """Return the numbers of the states in a folder, the newest first."""
    return [
        PLACEMENTS.index(record.placement)
        for _, record in states(root)
        if isinstance(record, StateRecord)
    ]


def _names(root: Path) -> list[str]:
    return [path.name for path, _ in stores(root)]


def test_the_state_of_a_placement_fits_and_no_other(tmp_path: Path) -> None:
    assert fitting_state(tmp_path / "nowhere", PLACEMENTS[1]) is None
    _state(tmp_path, 1)
    fitting = fitting_state(tmp_path, PLACEMENTS[1])
    assert fitting is not None
    assert fitting.record.placement == PLACEMENTS[1]
    assert fitting_state(tmp_path, PLACEMENTS[2]) is None
    assert fitting_state(tmp_path, PLACEMENTS[1][:16] + "1" * 48) is None


def test_states_are_listed_the_newest_first_and_those_that_cannot_be_read_at_last(
    tmp_path: Path,
) -> None:
    for number in (4, 1, 3):
        _state(tmp_path, number)
    path = _state(tmp_path, 5).path
    path.write_bytes(b"{}")
    assert _numbers(tmp_path) == [3, 1, 4]
    assert states(tmp_path)[-1][0] == path
    assert isinstance(states(tmp_path)[-1][1], VectorsDamagedError)
    assert states(tmp_path / "nowhere") == []


def test_an_index_without_its_vectors_is_told_the_command_that_makes_them(tmp_path: Path) -> None:
    index = manifest_of(VIVALDI)
    with pytest.raises(VectorsNotFoundError) as missing:
        find_state(tmp_path, index, "index")
    command = f"arag-search embed index --vectors {tmp_path}"
    assert str(missing.value) == (
        f"The index has no vectors, or none that were finished.\nWhere: {tmp_path}\n"
        f"Do: Make them: {command} --encoder NAME"
    )
    _state(tmp_path, 1)
    with pytest.raises(VectorsMismatchError) as other:
        find_state(tmp_path, index, "index")
    assert str(other.value) == (
        "The vectors do not fit the index: it has changed since they were made, or they are those"
        f" of another index.\nWhere: {tmp_path}\nAllowed: vectors of the index as it is\n"
        f"Do: Run {command}: it encodes new texts only."
    )
    (tmp_path / f"{index.placement[:16]}.state").write_bytes(b"{")
    with pytest.raises(VectorsDamagedError) as damaged:
        find_state(tmp_path, index, "index")
    assert damaged.value.do == f"Embed the index again: {command} --overwrite"


def test_stores_are_numbered_and_one_that_is_not_finished_is_none(tmp_path: Path) -> None:
    assert (new_store(tmp_path).name, stores(tmp_path)) == ("store-00001", [])
    for _ in range(2):
        Store.create(new_store(tmp_path), record_of())
    Store.create(new_store(tmp_path), record_of()).folder.rename(tmp_path / "store-00004.new")
    (tmp_path / "store-else").mkdir()
    assert _names(tmp_path) == ["store-00002", "store-00001"]
    assert new_store(tmp_path).name == "store-00005"
    assert _state(tmp_path, 1).store().folder == tmp_path / "store-00001"
    with pytest.raises(VectorsNotFoundError):
        _state(tmp_path, 1, "store-00003").store()


# Removal


@pytest.fixture
def location(tmp_path: Path) -> str:
    return str(tmp_path / "index")


def test_the_own_folder_keeps_the_state_of_the_index_and_the_newest_other(location: str) -> None:
    root = Path(location) / "vectors"
    for number in range(4):
        _state(root, number)
    remove_unused(root, left_behind(root, location, PLACEMENTS[3]), None)
    assert _numbers(root) == [3, 2]
    _state(root, 4).path.write_bytes(b"{}")
    remove_unused(root, left_behind(root, location, PLACEMENTS[2]), None)  # after a rollback
    assert _numbers(root) == [3, 2]
    assert len(states(root)) == 2
    remove_unused(
        root, left_behind(root, location, PLACEMENTS[5]), None
    )  # a state that no vectors fit
    assert _numbers(root) == [3]


def test_another_folder_keeps_the_states_of_other_indexes_and_those_that_cannot_be_read(
    tmp_path: Path, location: str
) -> None:
    _state(tmp_path, 0)
    _state(tmp_path, 1, owner="other")
    _state(tmp_path, 2)  # of an earlier build
    for number, before in ((3, 0), (4, 3)):
        _state(tmp_path, number, before=before)
    damaged = _state(tmp_path, 5).path
    damaged.write_bytes(b"{}")
    remove_unused(tmp_path, left_behind(tmp_path, location, PLACEMENTS[4]), None)
    assert _numbers(tmp_path) == [4, 3, 1]
    assert damaged.exists()


def test_the_state_before_stays_and_not_one_that_a_killed_update_has_left(location: str) -> None:
    root = Path(location) / "vectors"
    _state(root, 0)
    _state(root, 1, before=0)  # of an update that was undone
    _state(root, 2, before=0)
    remove_unused(root, left_behind(root, location, PLACEMENTS[2]), None)
    assert _numbers(root) == [2, 0]


def test_what_another_index_of_the_folder_has_replaced_is_left_to_it(
    tmp_path: Path, location: str
) -> None:
    for number, before in ((0, None), (1, 0), (2, 1), (3, None), (4, 3)):
        _state(tmp_path, number, before=before, owner="other" if number < 3 else "")
    remove_unused(tmp_path, left_behind(tmp_path, location, PLACEMENTS[4], keeps_last=False), None)
    assert _numbers(tmp_path) == [4, 2, 1, 0]


def test_a_state_that_another_index_has_embedded_too_is_not_removed(
    tmp_path: Path, location: str
) -> None:
    for number, owner in ((0, "other"), (1, "*"), (2, ""), (3, "")):
        _state(tmp_path, number, before=number - 1 if number else None, owner=owner)
    remove_unused(tmp_path, left_behind(tmp_path, location, PLACEMENTS[3], keeps_last=False), None)
    assert _numbers(tmp_path) == [3, 1, 0]


def test_an_own_folder_keeps_no_other_state_if_not_even_the_last_may_stay(location: str) -> None:
    root = Path(location) / "vectors"
    for number in range(3):
        _state(root, number)
    remove_unused(root, left_behind(root, location, PLACEMENTS[1], keeps_last=False), None)
    assert _numbers(root) == [1]


def test_stores_that_no_state_names_are_removed_if_all_states_can_be_read(
    tmp_path: Path, location: str
) -> None:
    for _ in range(3):
        Store.create(new_store(tmp_path), record_of())
    _state(tmp_path, 1, "store-00002")
    kept = ["store-00001"]  # of an interrupted embedding
    for unfinished in ("store-00004.new", "store-00005", "other"):
        (tmp_path / unfinished).mkdir()
    remove_unused(tmp_path, left_behind(tmp_path, location, PLACEMENTS[1]), None)
    assert len(_names(tmp_path)) == 3
    other = _state(tmp_path, 2)
    data = other.path.read_bytes()
    other.path.write_bytes(b"{}")
    remove_unused(tmp_path, (), kept)
    assert len(_names(tmp_path)) == 3
    other.path.write_bytes(data)
    remove_unused(tmp_path, (), kept)
    assert _names(tmp_path) == ["store-00002", "store-00001"]
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == [
        "other",
        "store-00001",
        "store-00002",
    ]


def test_a_file_that_a_killed_process_left_is_removed_and_one_being_written_is_not(
    tmp_path: Path,
) -> None:
    left, written = (tmp_path / f"0.state.{process}-1.new" for process in (1, 2))
    left.touch()
    written.touch()
    os.utime(left, (1, 1))
    remove_unused(tmp_path, (), ())
    assert not left.exists()
    assert written.exists()


def test_a_store_that_is_being_removed_is_whole_or_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Store.create(new_store(tmp_path), record_of())
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)  # killed before
    remove_unused(tmp_path, (), ())
    assert stores(tmp_path) == []
    with pytest.raises(VectorsNotFoundError):
        Store.open(tmp_path / "store-00001")


# The lock


def _try_lock(root: Path) -> str:
    try:
        with lock(root):
            return "locked"
    except VectorsError as error:
        return str(error)


def _try_lock_soon(root: Path) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("arag_search.vectors.folder.WRITING_S", 0.2)
        return _try_lock(root)


def test_a_folder_that_another_process_writes_to_is_refused_and_its_process_named(
    tmp_path: Path,
) -> None:
    root = tmp_path / "vectors"
    with lock(root):
        assert _try_lock_soon(root)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            refused = pool.apply(_try_lock_soon, (root,))
        (root / "store-00001").mkdir()
    assert refused == (
        f"Another process is embedding into this folder (process {os.getpid()}).\nWhere: {root}\n"
        "Do: Wait for it, or stop it; or give other `vectors`."
    )
    assert _try_lock(root) == "locked"
