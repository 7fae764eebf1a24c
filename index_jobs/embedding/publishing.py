"""Publishing which text of an index has which row: rows without a text are left out, FAISS indexes
made where they are due, and what the new state replaces is removed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from arag_search.errors import VectorsError
from arag_search.manifest import Manifest
from arag_search.system.processes import share_cores
from arag_search.system.progress import Progress
from arag_search.vectors.base import VECTOR_UNITS, VectorUnit
from arag_search.vectors.faiss_index import AUTO, DUE_SHARE, FLAT, build, is_due, read_index
from arag_search.vectors.folder import (
    fitting_state,
    lock,
    new_store,
    remove_unused,
    states,
    store_of,
    stores,
)
from arag_search.vectors.records import StateRecord
from arag_search.vectors.state import State, UnitTexts
from arag_search.vectors.store import Rows, Store

Texts = Mapping[VectorUnit, UnitTexts]


class Publication:
    """The publication of the vectors of an index in a folder that this process has locked.

    Rows that no text of any state has are left out if they are more than a tenth, or if
    ``all_dead`` must go: then the state before is removed too. ``left_out`` counts them, and
    ``has_changed`` says whether anything was done.
    """

    def __init__(
        self, root: Path, location: str, index: Manifest, progress: Progress, *, all_dead: bool
    ) -> None:
        self._root = root
        self._location = location
        self._index = index
        self._progress = progress
        self._all_dead = all_dead
        self.left_out = 0
        self.has_changed = False

    def publish(
        self, store: Store, texts: Texts, before: State | None, *, is_new: bool, faiss: str | None
    ) -> tuple[State, Store]:
        """Publish the rows of texts in place of the state ``before``, which has these rows already
        unless they are new; return the state and its store. ``faiss`` is "auto", "flat" or a
        factory; None keeps what there is.

        An interruption leaves the states before. Raises what ``build`` raises, VectorsDamagedError,
        OSError.
        """
        old = {path.name for path, record in stores(self._root) if record.is_like(store.record)}
        old |= {record.store for record in self._records().values()}
        self._remove_unused(None)
        source, moved = store, self._copied(store, texts)
        if moved is not None:
            store, rows = moved
            texts = {unit: _moved(own, rows[unit]) for unit, own in texts.items()}
        for unit in texts:
            index = faiss or _factory(source, unit)
            if moved is not None or is_due(store, unit, index):
                self.has_changed = True
                build(store, unit, index, share_cores(), self._progress, source.folder)
        if moved is not None:
            self._move_others(source, *moved)
        if moved is not None or is_new or before is None:
            self.has_changed = True
            before = _write(self._root, self._index, store, texts, before)
        self._remove_unused(old)
        return before, store

    def _records(self) -> dict[Path, StateRecord]:
        """Return the records of all states, the newest first."""
        return {
            path: record for path, record in states(self._root) if isinstance(record, StateRecord)
        }

    def _others(self, store: Store) -> list[State]:
        """Open the states of other placements that name a store and can be read."""
        others: list[State] = []
        for path, record in self._records().items():
            if record.store == store.folder.name and record.placement != self._index.placement:
                with suppress(VectorsError):
                    others.append(State.open(path))
        return others

    def _copied(self, store: Store, texts: Texts) -> tuple[Store, dict[VectorUnit, Rows]] | None:
        """Copy the rows with a text to a new store if so many others are to be left out; return it
        with the new row of each."""
        live: dict[VectorUnit, NDArray[np.bool_]] = {
            unit: np.zeros(store.rows(unit), np.bool_) for unit in VECTOR_UNITS
        }
        for unit, own in texts.items():
            live[unit][own.rows] = True
        for state in self._others(store):
            for unit in state.units:
                live[unit][state.unit(unit).rows] = True
        rows = sum(map(len, live.values()))
        numbers: dict[VectorUnit, Rows] = {
            unit: np.flatnonzero(mask & store.sound(unit)) for unit, mask in live.items()
        }
        dead = rows - sum(map(len, numbers.values()))
        if dead <= (0 if self._all_dead else DUE_SHARE * rows):
            return None
        self._progress.note(f"Leaving out {dead:,} of {rows:,} rows, which have no text any more.")
        self.left_out = dead
        return store.copy_to(new_store(self._root), numbers)

    def _move_others(self, source: Store, target: Store, rows: Mapping[VectorUnit, Rows]) -> None:
        """Write the states of other placements anew, with the rows that theirs became; one with a
        damaged row goes. A deletion may write one meanwhile, and then sees the others moved."""
        while others := self._others(source):
            for state in reversed(others):
                texts: dict[VectorUnit, UnitTexts] = {
                    unit: _moved(own, rows[unit]) for unit, own in texts_of(state).items()
                }
                if all((own.rows >= 0).all() for own in texts.values()):
                    _write(self._root, state.record, target, texts, state)
                else:
                    state.path.unlink(missing_ok=True)

    def _remove_unused(self, stores: Collection[str] | None) -> None:
        remove_unused(
            self._root,
            self._location,
            self._index.placement,
            keeps_last=not self._all_dead,
            stores=stores,
        )


def texts_of(state: State) -> Texts:
    """Return the texts of a state with their rows."""
    return {
        unit: UnitTexts(state.unit(unit).ordinals, state.unit(unit).rows) for unit in state.units
    }


def leave_out_dead(root: Path, location: str, index: Manifest, progress: Progress) -> int:
    """Leave out all rows without a text of the vectors that fit an index, and return how many they
    were; make their FAISS index anew if it is due. Raises VectorsLockedError and what ``publish``
    raises."""
    with lock(root):
        state = fitting_state(root, index.placement)
        if state is None:
            return 0
        publication = Publication(root, location, index, progress, all_dead=True)
        store = store_of(root, state)
        publication.publish(store, texts_of(state), state, is_new=False, faiss=None)
        return publication.left_out


def _write(
    root: Path, index: Manifest | StateRecord, store: Store, texts: Texts, before: State | None
) -> State:
    """Write the state of an index in place of the one before, with rows of a store."""
    return State.write(
        root,
        placement=index.placement,
        fingerprint=index.fingerprint,
        chunks=index.chunks,
        store=store.folder.name,
        units=texts,
        store_rows={unit: store.rows(unit) for unit in texts},
        before="" if before is None else before.record.before,
    )


def _moved(texts: UnitTexts, rows: Rows) -> UnitTexts:
    return UnitTexts(texts.ordinals, rows[texts.rows])


def _factory(store: Store, unit: VectorUnit) -> str:
    try:
        made = read_index(store.folder, unit)
    except VectorsError:
        return AUTO
    return FLAT if made is None else made.factory
