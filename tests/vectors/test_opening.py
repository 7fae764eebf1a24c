"""Vectors that are opened for an index: the state that fits, the encoder, what is refused."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from arag_search.errors import (
    IndexClosedError,
    NotServedError,
    VectorsDamagedError,
    VectorsMismatchError,
    VectorsNotFoundError,
)
from arag_search.system.progress import Progress
from arag_search.vectors import faiss_index
from arag_search.vectors.encoders.hashing import HashingEncoder
from arag_search.vectors.opening import VectorSource
from arag_search.vectors.searching import open_vectors
from arag_search.vectors.state import State, UnitTexts
from arag_search.vectors.store import Store
from tests.support.oracle.engine import MemoryEngine
from tests.support.oracle.vectors import MemoryVectors
from tests.support.passages import VIVALDI
from tests.support.stored_vectors import StoredVectors, stored_chunks, stored_vectors, with_state
from tests.support.vector_stores import DIMENSION, unit_vectors


def test_the_state_of_an_index_is_opened_and_another_is_refused(tmp_path: Path) -> None:
    manifest = MemoryEngine(VIVALDI).manifest
    with pytest.raises(VectorsNotFoundError):
        open_vectors(tmp_path / "nowhere", manifest, "index")
    stored_chunks(tmp_path / "vectors", VIVALDI, HashingEncoder(), manifest.placement)
    vectors = open_vectors(tmp_path / "vectors", manifest, "index")
    assert vectors.units == ("sentence", "passage")
    query = HashingEncoder().encode_queries(["Griselda"])
    exact = MemoryVectors(VIVALDI, HashingEncoder())
    for unit in vectors.units:
        assert vectors.nearest(unit, query, 9) == exact.nearest(unit, query, 9)
    with pytest.raises(VectorsMismatchError):
        open_vectors(tmp_path / "vectors", MemoryEngine(VIVALDI[:2]).manifest, "index")


def test_a_store_that_a_job_replaces_while_it_is_opened_is_looked_for_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = MemoryEngine(VIVALDI).manifest
    stored = stored_chunks(tmp_path, VIVALDI, HashingEncoder(), manifest.placement)
    expected = stored.open().nearest("sentence", np.eye(1, 256, dtype=np.float32), 3)
    store = State.store
    opened: list[str] = []

    def slow(state: State) -> Store:
        opened.append(state.record.store)
        if len(opened) == 1:
            _compact(stored, manifest.placement)
        return store(state)

    monkeypatch.setattr(State, "store", slow)
    vectors = open_vectors(tmp_path, manifest, "index")
    assert opened == ["store-00001", "store-00002"]
    assert vectors.nearest("sentence", np.eye(1, 256, dtype=np.float32), 3) == expected
    (tmp_path / "store-00002" / "store.json").unlink()
    with pytest.raises(VectorsNotFoundError):
        open_vectors(tmp_path, manifest, "index")


def _compact(stored: StoredVectors, placement: str) -> None:
    """Move all rows to another store, and remove the first."""
    live = {unit: np.arange(stored.store.rows(unit)) for unit in stored.state.units}
    store, _ = stored.store.copy_to(stored.store.folder.with_name("store-00002"), live)
    units = {
        unit: UnitTexts(texts.ordinals, texts.rows)
        for unit in stored.state.units
        for texts in [stored.state.units[unit]]
    }
    with_state(stored.store.folder.parent, store, units, placement)
    shutil.rmtree(stored.store.folder)


def test_no_queries_no_rows_and_more_texts_than_there_are_are_answered(tmp_path: Path) -> None:
    vectors = stored_vectors(tmp_path, 2).open()
    assert vectors.nearest("sentence", np.empty((0, DIMENSION), np.float32), 3) == []
    assert len(vectors.nearest("passage", unit_vectors(1), 99)[0]) == 2
    empty = stored_chunks(tmp_path / "empty", [], HashingEncoder())
    assert empty.open().nearest("passage", np.eye(1, 256, dtype=np.float32), 3) == [[]]


def test_closed_vectors_and_a_unit_without_vectors_are_errors(tmp_path: Path) -> None:
    stored = stored_chunks(tmp_path, VIVALDI, HashingEncoder(), units=("passage",))
    vectors = stored.open()
    query = np.eye(1, 256, dtype=np.float32)
    with pytest.raises(NotServedError) as raised:
        vectors.nearest("sentence", query, 3)
    assert raised.value.allowed == "passage"
    vectors.close()
    vectors.close()
    with pytest.raises(IndexClosedError):
        vectors.nearest("passage", query, 3)


def test_a_row_beyond_the_store_is_an_error_that_names_what_to_do(tmp_path: Path) -> None:
    stored = stored_vectors(tmp_path, 50)
    faiss_index.build(stored.store, "passage", "IVF1,Flat", Progress())
    stored.store.folder.joinpath("passage.vectors").write_bytes(b"")
    with pytest.raises(VectorsDamagedError):
        stored.open()


# The encoder of queries


class _OtherModel(HashingEncoder):
    """An encoder that has the identity of another one."""

    def encode(self, texts):
        return super().encode([text[::-1] for text in texts])


def test_another_model_behind_the_name_of_the_encoder_is_refused_at_the_first_opening() -> None:
    vectors = MemoryVectors(VIVALDI, HashingEncoder())
    assert VectorSource.of(vectors, HashingEncoder()).open().vectors is vectors
    opened: list[object] = []

    def other(_: object) -> HashingEncoder:
        opened.append(_OtherModel())
        return _OtherModel()

    source = VectorSource(lambda: vectors, other, "memory")
    for _ in range(2):
        with pytest.raises(VectorsMismatchError, match="it gives texts other vectors"):
            source.open()
    assert len(opened) == 1
