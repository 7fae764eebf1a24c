"""Publishing which text of an index has which row: rows without a text are left out, FAISS indexes
made where they are due, and what the new state replaces is removed."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
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
    owner_of,
    remove_unused,
    states_of,
    store_of,
    unnamed_stores,
    writing,
)
from arag_search.vectors.records import SHARED, StateRecord, state_path
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
    texts: Texts | None,
    before: State | None,
    left: Collection[Path],
    *,
    faiss: str | None,
    all_dead: bool,
    progress: Progress,
) -> Published:
    """Publish the rows of the texts of an index in place of the state ``before``. Without texts
    (None), those of that state stay. This process has locked the folder.

    The states that were ``left`` behind are removed. Rows that no text of any other state has are
    left out if they are more than a tenth, or if ``all_dead`` must go. ``faiss`` is that of
    ``build``. An interruption leaves the states before. Raises what ``build`` raises,
    VectorsDamagedError, OSError.
    """
    is_new = texts is not None
    if texts is None:
        assert before is not None
        texts = before.texts
    kept: list[str] = []
    if not (all_dead and is_own_root(location, root)):
        kept = [
            path.name for path, record in unnamed_stores(root) if record.differences(store.record)
        ]
    gone = (state_path(root, index.placement), *left)
    dead, rows = _dead(_live(root, store, texts, gone), store)
    is_moved = dead > (0 if all_dead else DUE_SHARE * rows)
    made = [not is_moved and build(store, unit, faiss, progress) for unit in texts]
    owner = owner_of(location, root)
    if before is not None and before.record.owner != owner:
        owner = SHARED
    with writing(root, math.inf):
        if is_moved:
            source = Store.open(store.folder)  # with the rows of updates meanwhile
            live = _live(root, source, texts, gone)
            dead, rows = _dead(live, source)
            progress.note(f"Leaving out {dead:,} of {rows:,} rows, which have no text any more.")
            store, moved = source.copy_to(new_store(root), live, progress)
            for unit in texts:
                build(store, unit, faiss, progress, source.folder)
            _move_others(root, source, store, moved, gone)
            texts = _moved(texts, moved)
        if is_moved or is_new or before is None or before.record.owner != owner:
            replaced = "" if before is None else before.record.before
            before = _write(root, index, store, texts, replaced, owner)
        remove_unused(root, left, kept)
    has_changed = is_moved or is_new or any(made)
    return Published(before, store, dead if is_moved else 0, has_changed)


def _live(root: Path, store: Store, texts: Texts, gone: Collection[Path]) -> dict[VectorUnit, Rows]:
    """Return the rows of a store that these texts have, or those of a state that is not gone."""
    states = states_of(root, store.folder.name, gone)
    needed = needed_rows(store, [texts, *(state.texts for state in states)])
    return {unit: np.flatnonzero(mask) for unit, mask in needed.items()}


def _dead(live: Mapping[VectorUnit, Rows], store: Store) -> tuple[int, int]:
    rows = sum(map(store.rows, live))
    return rows - sum(map(len, live.values())), rows


def _move_others(
    root: Path,
    source: Store,
    target: Store,
    rows: Mapping[VectorUnit, Rows],
    gone: Collection[Path],
) -> None:
    """Write the states of other placements anew, with the rows that theirs became. A deletion may
    write one meanwhile, and then sees the others moved."""
    while others := states_of(root, source.folder.name, gone):
        for state in reversed(others):
            record = state.record
            texts = _moved(state.texts, rows)
            _write(root, record, target, texts, record.before, record.owner)


def leave_out_dead(root: Path, location: str, index: Manifest, progress: Progress) -> int:
    """Leave out all rows without a text of the vectors that fit an index, and return how many they
    were; make their FAISS index anew if it is due. Raises VectorsLockedError and what ``publish``
    raises."""
    with lock(root):
        state = fitting_state(root, index.placement)
        if state is None:
            return 0
        store = store_of(root, state)
        left = left_behind(root, location, index.placement, keeps_last=False)
        return publish(
            root,
            location,
            index,
            store,
            None,
            state,
            left,
            faiss=None,
            all_dead=True,
            progress=progress,
        ).left_out


def _write(
    root: Path, index: Manifest | StateRecord, store: Store, texts: Texts, before: str, owner: str
) -> State:
    return State.write(
        root,
        placement=index.placement,
        fingerprint=index.fingerprint,
        store=store.folder.name,
        units=texts,
        store_rows={unit: store.rows(unit) for unit in texts},
        before=before,
        owner=owner,
    )


def _moved(texts: Texts, rows: Mapping[VectorUnit, Rows]) -> Texts:
    return {unit: UnitTexts(own.ordinals, rows[unit][own.rows]) for unit, own in texts.items()}
