"""Publishing which text of an index has which row: rows without a text are left out, FAISS indexes
made where they are due, and what the new state replaces is removed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from arag_search.manifest import Manifest
from arag_search.system.progress import Progress
from arag_search.vectors.base import VectorUnit
from arag_search.vectors.faiss_index import DUE_SHARE, build
from arag_search.vectors.folder import (
    fitting_state,
    is_own_root,
    left_behind,
    lock,
    new_store,
    remove_unused,
    states_of,
    store_of,
    unnamed_stores,
)
from arag_search.vectors.records import StateRecord, state_path
from arag_search.vectors.state import State, Texts, UnitTexts, needed_rows
from arag_search.vectors.store import Rows, Store


@dataclass(frozen=True, slots=True)
class Published:
    """The state of an index, and its store; ``left_out`` counts the rows that were left out, and
    ``has_changed`` says whether anything was done."""

    state: State
    store: Store
    left_out: int
    has_changed: bool


def publish(
    root: Path,
    location: str,
    index: Manifest,
    store: Store,
    texts: Texts,
    before: State | None,
    *,
    is_new: bool,
    faiss: str | None,
    all_dead: bool,
    progress: Progress,
) -> Published:
    """Publish the rows of the texts of an index in place of the state ``before``, which has these
    rows already unless they are new. This process has locked the folder.

    Rows that no text of any state has are left out if they are more than a tenth, or if
    ``all_dead`` must go: then the state before the last is removed too. ``faiss`` is that of
    ``build``. An interruption leaves the states before. Raises what ``build`` raises,
    VectorsDamagedError, OSError.
    """
    left = left_behind(root, location, index.placement, keeps_last=not all_dead)
    kept: list[str] = []
    if not (all_dead and is_own_root(location, root)):
        kept = [
            path.name for path, record in unnamed_stores(root) if not record.is_like(store.record)
        ]
    gone = (state_path(root, index.placement), *left)
    others = states_of(root, store.folder.name, gone)
    needed = needed_rows(store, [texts, *(state.texts for state in others)])
    live: dict[VectorUnit, Rows] = {
        unit: np.flatnonzero(mask & store.sound(unit)) for unit, mask in needed.items()
    }
    rows = sum(map(len, needed.values()))
    dead = rows - sum(map(len, live.values()))
    source = store
    is_moved = dead > (0 if all_dead else DUE_SHARE * rows)
    moved: dict[VectorUnit, Rows] = {}
    if is_moved:
        progress.note(f"Leaving out {dead:,} of {rows:,} rows, which have no text any more.")
        store, moved = source.copy_to(new_store(root), live)
        texts = _moved(texts, moved)
    is_made = [build(store, unit, faiss, progress, source.folder) for unit in texts]
    # a deletion may write a state meanwhile, and then sees the others moved
    while is_moved and (others := states_of(root, source.folder.name, gone)):
        for state in reversed(others):
            of_state = _moved(state.texts, moved)
            if all((own.rows >= 0).all() for own in of_state.values()):
                _write(root, state.record, store, of_state, state)
            else:  # a row was damaged
                state.path.unlink(missing_ok=True)
    if is_moved or is_new or before is None:
        before = _write(root, index, store, texts, before)
    remove_unused(root, left, kept)
    return Published(before, store, dead if is_moved else 0, is_moved or is_new or any(is_made))


def leave_out_dead(root: Path, location: str, index: Manifest, progress: Progress) -> int:
    """Leave out all rows without a text of the vectors that fit an index, and return how many they
    were; make their FAISS index anew if it is due. Raises VectorsLockedError and what ``publish``
    raises."""
    with lock(root):
        state = fitting_state(root, index.placement)
        if state is None:
            return 0
        store, texts = store_of(root, state), state.texts
        return publish(
            root, location, index, store, texts, state,
            is_new=False, faiss=None, all_dead=True, progress=progress,
        ).left_out  # fmt: skip


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


def _moved(texts: Texts, rows: Mapping[VectorUnit, Rows]) -> Texts:
    return {unit: UnitTexts(own.ordinals, rows[unit][own.rows]) for unit, own in texts.items()}
