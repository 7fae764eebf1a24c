"""Rows stay those of their keys and states those of their texts, whatever is done to a store and
wherever it is stopped."""

import errno
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pytest

from arag_search.corpus import ordinal_of
from arag_search.vectors.base import VECTOR_UNITS, VectorUnit
from arag_search.vectors.folder import new_store, remove_unused, stores
from arag_search.vectors.state import State, UnitTexts
from arag_search.vectors.store import Rows, Store
from tests.support.examples import examples
from tests.support.stopped_writes import Killed, stopping
from tests.support.vector_stores import DIMENSION, keys_of, record_of, state_of

_STEPS = 12
_TEXTS = 40
_MOST_CALLS = 12  # of the system in one action

Texts = dict[VectorUnit, dict[int, int]]  # the number of the text of each ordinal


def _vector(row: tuple[int, int]) -> list[float]:
    """Return the vector of a text, other than those that it had before."""
    return np.random.default_rng(row).standard_normal(DIMENSION, np.float32).tolist()


class _Sequence:
    """A store, its states, and what they must hold: for each row its text and its version."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = Random(seed)
        self.root = folder / "vectors"
        self.root.mkdir()
        self.store = Store.create(new_store(self.root), record_of())
        self.rows: dict[VectorUnit, list[tuple[int, int]]] = {unit: [] for unit in VECTOR_UNITS}
        self.states: dict[str, Texts] = {}
        self.versions = self.documents = 0

    def run(self) -> None:
        actions = [self.append, self.append, self.append, self.change, self.copy]
        for _ in range(_STEPS):
            self.random.choice(actions)()
            self.store = Store.open(self.store.folder)
            self.check()

    # What is done

    def stopped(self, action: Callable[[], object]) -> bool:
        """Do something, at times to be stopped in it. Return whether it was done."""
        step = self.random.randint(1, _MOST_CALLS) if self.random.random() < 0.6 else 1_000
        full_disk = self.random.random() < 0.5
        try:
            with stopping(step, full_disk=full_disk):
                action()
        except Killed:
            return False
        except OSError as error:
            assert error.errno == errno.ENOSPC
            return False
        return True

    def append(self) -> None:
        unit = self.random.choice(VECTOR_UNITS)
        before = len(self.rows[unit])
        new: list[tuple[int, int]] = []
        for _ in range(self.random.randint(0, 9)):
            self.versions += 1
            new.append((self.random.randrange(_TEXTS), self.versions))
        keys = keys_of([text for text, _ in new])
        vectors = np.array([_vector(row) for row in new], np.float32).reshape(-1, DIMENSION)
        self.stopped(lambda: self.store.append(unit, keys, vectors))
        stored = Store.open(self.store.folder).rows(unit)  # it may be whole though it was stopped
        assert stored in (before, before + len(new))
        if new and stored > before:
            self.rows[unit] += new

    def change(self) -> None:
        """Write a state that follows another, or a first one."""
        placement = f"{self.random.getrandbits(256):064x}"
        added: Texts = {}
        self.documents += 1
        for unit in VECTOR_UNITS:
            known = sorted({row[0] for row in self.rows[unit]})
            count = self.random.randint(0, 12) if known else 0
            places = sorted(self.random.sample(range(30), count))
            added[unit] = {
                ordinal_of(0, self.documents, at // 3, at % 3): self.random.choice(known)
                for at in places
            }
        texts = added
        before = list(self.states)[-1] if self.states and self.random.random() < 0.8 else ""
        units = {unit: self.texts_with_rows(unit, part) for unit, part in added.items()}
        if before:
            state = self.opened(before)
            chunks = {at >> 11 << 11 for part in self.states[before].values() for at in part}
            gone = self.random.sample(sorted(chunks), self.random.randint(0, len(chunks)))
            units = state.changed(gone, units)
            texts = {
                unit: {at: text for at, text in old.items() if at >> 11 << 11 not in gone}
                | added[unit]
                for unit, old in self.states[before].items()
            }
        done = self.stopped(lambda: self.publish(placement, units, before))
        if done or self.path(placement).exists():
            self.states[placement] = texts

    def copy(self) -> None:
        """Leave out the rows of which the newest state has no text, as a compaction does."""
        if not self.states:
            return
        for old in list(self.states)[:-1]:
            self.opened(old).path.unlink()
            del self.states[old]
        (placement,) = self.states
        state = self.opened(placement)
        live = {unit: np.unique(state.units[unit].rows).astype(np.int64) for unit in VECTOR_UNITS}
        self.stopped(lambda: self.copied(state, live))
        remove_unused(self.root, (), ())
        ((folder, _),) = stores(self.root)
        if folder == self.store.folder:
            return
        self.store = Store.open(folder)
        for unit in VECTOR_UNITS:
            self.rows[unit] = [self.rows[unit][row] for row in live[unit]]

    def copied(self, state: State, live: dict[VectorUnit, Rows]) -> None:
        copy, moved = self.store.copy_to(new_store(self.root), live)
        units: dict[VectorUnit, UnitTexts] = {}
        for unit in VECTOR_UNITS:
            part = state.units[unit]
            units[unit] = UnitTexts(part.ordinals, moved[unit][part.rows])
        self.publish(state.record.placement, units, "", copy)

    # States

    def texts_with_rows(self, unit: VectorUnit, texts: dict[int, int]) -> UnitTexts:
        keys = keys_of(list(texts.values()))
        rows = self.store.find(unit, keys)
        return UnitTexts(
            np.array(list(texts), np.int64), np.array([rows[key] for key in keys], int)
        )

    def publish(
        self,
        placement: str,
        units: dict[VectorUnit, UnitTexts],
        before: str,
        store: Store | None = None,
    ) -> None:
        store = store or self.store
        State.write(self.root, state_of(placement), store.folder.name, units, before=before)

    def opened(self, placement: str) -> State:
        return State.open(self.path(placement))

    def path(self, placement: str) -> Path:
        return self.root / f"{placement[:16]}.state"

    # What must hold

    def check(self) -> None:
        every = keys_of(range(_TEXTS))
        for unit, rows in self.rows.items():
            assert self.store.rows(unit) == len(rows)
            last = {row[0]: number for number, row in enumerate(rows)}
            expected = {every[text]: row for text, row in last.items()}
            assert self.store.find(unit, every) == expected
            vectors = self.store.vectors(unit).gather(np.arange(len(rows)))
            for row, vector in zip(rows, vectors.tolist(), strict=True):
                assert vector == _vector(row)
        self.store.verify()
        for placement, texts in self.states.items():
            state = self.opened(placement)
            for unit in state.units:
                self.check_unit(state, unit, texts[unit])

    def check_unit(self, state: State, unit: VectorUnit, texts: dict[int, int]) -> None:
        part = state.units[unit]
        assert part.ordinals.tolist() == sorted(texts)
        keys = [self.store.keys(unit)[row].tobytes() for row in part.rows]
        assert keys == keys_of([texts[ordinal] for ordinal in part.ordinals.tolist()])
        ordinals, places = part.expand(np.arange(state.record.units[unit].rows))
        assert sorted(ordinals.tolist()) == sorted(texts)
        assert (part.rows[np.searchsorted(part.ordinals, ordinals)] == places).all()
        assert state.live_rows[unit] == len(set(part.rows.tolist()))


@pytest.mark.parametrize("seed", range(examples(300)))
def test_keys_have_their_vectors_and_states_their_texts_after_any_sequence_of_steps(
    seed: int, tmp_path: Path
) -> None:
    _Sequence(seed, tmp_path).run()
