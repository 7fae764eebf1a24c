"""Vectors are opened if they fit the index exactly, and closed for good."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from arag_search.corpus import Chunk
from arag_search.errors import (
    IndexClosedError,
    NotServedError,
    VectorsDamagedError,
    VectorsMismatchError,
)
from arag_search.vectors.base import VectorUnit, rows_of
from arag_search.vectors.folder import new_store
from arag_search.vectors.searching import IndexVectors, open_vectors
from arag_search.vectors.state import State, UnitTexts
from arag_search.vectors.store import Store
from tests.support.passages import chunk
from tests.support.stored_vectors import stored_vectors, with_state
from tests.support.vector_stores import (
    append,
    manifest_of,
    unit_vectors,
)
from tests.support.vector_stores import (
    new_store as store_in,
)


def _chunks_of(count: int, sentences: int = 3, first: int = 0) -> list[Chunk]:
    return [
        chunk(
            number,
            f"d{number}",
            f"Title {number}",
            *(f"Sentence {at} of {number}. " for at in range(sentences)),
            year=1900 + number,
        )
        for number in range(first, first + count)
    ]


CHUNKS = _chunks_of(12)


def _embedded(root: Path, chunks: Sequence[Chunk], store: Store) -> State:
    """Give each text a row of its own, and write the state."""
    units: dict[VectorUnit, UnitTexts] = {}
    for unit in ("sentence", "passage"):
        texts = [row for one_chunk in chunks for row in rows_of(one_chunk, unit)]
        first = store.rows(unit)
        append(store, unit, [text for _, text in texts])
        ordinals = np.array([ordinal for ordinal, _ in texts], np.int64)
        units[unit] = UnitTexts(ordinals, np.arange(first, first + len(texts)))
    return with_state(root, store, units, manifest_of(chunks).placement)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    _embedded(tmp_path, CHUNKS, store_in(tmp_path))
    return tmp_path


def _changed() -> Iterator[list[Chunk]]:
    """Yield other states of an index: one grew, one lost a passage, one has other passages at the
    same ordinals, one the same in another order, two other metadata and sentences."""
    first, second, *rest = CHUNKS
    yield [*CHUNKS[3:], *_chunks_of(4, first=12)]
    yield [*CHUNKS[1:]]
    yield _chunks_of(12, sentences=2)
    places = zip(reversed(rest), rest, strict=True)
    yield [first, second, *(replace(text, ordinal=place.ordinal) for text, place in places)]
    yield [replace(first, metadata={**first.metadata, "year": 1}), second, *rest]
    yield [first, replace(second, sentence_ends=second.sentence_ends[-1:]), *rest]


def test_vectors_fit_the_index_of_which_they_are_and_no_other(root: Path) -> None:
    vectors = open_vectors(root, manifest_of(CHUNKS), "index")
    assert len(vectors.nearest("passage", unit_vectors(1), 100)[0]) == 12
    vectors.close()
    for chunks in _changed():
        with pytest.raises(VectorsMismatchError, match=r"^The vectors do not fit the index"):
            open_vectors(root, manifest_of(chunks), "index")


def test_opening_reads_no_vectors_and_their_damage_is_found_on_demand(root: Path) -> None:
    file = root / "store-00001" / "sentence.vectors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    open_vectors(root, manifest_of(CHUNKS), "index").close()
    with pytest.raises(VectorsDamagedError) as damaged:
        Store.open(file.parent).verify()
    assert damaged.value.where == str(file.parent)


def test_a_state_that_names_rows_which_the_store_does_not_have_is_refused(root: Path) -> None:
    (state,) = root.glob("*.state")
    Store.create(root / "store-00002", Store.open(root / "store-00001").record)
    state.write_bytes(state.read_bytes().replace(b"store-00001", b"store-00002"))
    with pytest.raises(VectorsDamagedError, match=r"^The store has 0 rows, not 36\."):
        open_vectors(root, manifest_of(CHUNKS), "index")


def test_a_unit_without_texts_finds_nothing_and_one_that_was_left_out_is_not_served(
    tmp_path: Path,
) -> None:
    store = store_in(tmp_path)
    append(store, "passage", [1])
    none, zero = np.empty(0, np.int64), np.zeros(1, np.int64)
    units: dict[VectorUnit, UnitTexts] = {
        "passage": UnitTexts(zero, zero),
        "sentence": UnitTexts(none, none),
    }
    vectors = IndexVectors(with_state(tmp_path, store, units), store, 1)
    assert vectors.nearest("sentence", unit_vectors(2), 5) == [[], []]
    assert [len(texts) for texts in vectors.nearest("passage", unit_vectors(2), 5)] == [1, 1]
    del units["sentence"]
    state = with_state(tmp_path, store, units)
    vectors = IndexVectors(state, store, 1)
    assert vectors.units == ("passage",)
    with pytest.raises(NotServedError) as raised:
        vectors.nearest("sentence", unit_vectors(1), 5)
    assert str(raised.value) == (
        f"There are no vectors of the unit sentence.\nWhere: {state.path}\nAllowed: passage\n"
        "Do: Embed the index again with `unit=both`."
    )


def test_closing_frees_the_maps_and_calls_afterwards_are_refused(tmp_path: Path) -> None:
    stored = stored_vectors(tmp_path, 80)
    stored.build("IVF2,Flat")
    state, folder = stored.state.path, stored.store.folder
    del stored
    vectors = IndexVectors(State.open(state), Store.open(folder), 1)
    vectors.nearest("sentence", unit_vectors(1), 3)
    assert str(folder) in Path("/proc/self/maps").read_text()
    vectors.close()
    vectors.close()
    assert str(tmp_path) not in Path("/proc/self/maps").read_text()
    with pytest.raises(IndexClosedError):
        vectors.nearest("sentence", unit_vectors(4), 10)


def test_the_newest_vectors_are_opened_that_replace_others_again_and_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, left = State.store, [3]

    def replaced(state: State) -> Store:
        """Open the store of a state, of which a job has put the rows into another one."""
        if left[0]:
            left[0] -= 1
            moved = (root / state.record.store).rename(new_store(root))
            State.write(root, state.record, moved.name, state.texts)
        return opened(state)

    monkeypatch.setattr(State, "store", replaced)
    open_vectors(root, manifest_of(CHUNKS), "index").close()
    assert left == [0]
