"""Publishing which text of an index has which row. Rows without a text are left out, FAISS indexes
made if they are due, and what the new state replaces is removed."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from arag_search.manifest import Manifest
from arag_search.system.progress import Progress
from arag_search.vectors.base import VectorUnit
from arag_search.vectors.faiss_index import DUE_SHARE, build
from arag_search.vectors.folder import (
    SHARED,
    RefusedTexts,
    is_own_root,
    left_behind,
    lock,
    new_store,
    owner_of,
    remove_unused,
    state_path,
    unnamed_stores,
    writing,
)
from arag_search.vectors.state import (
    State,
    Texts,
    UnitTexts,
    fitting_state,
    live_rows,
    states_of,
)
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
    refused: RefusedTexts,
) -> Published:
    """Publish the rows of the texts of an index in place of the state ``before``. Without texts
    (None), its texts stay. This process has locked the folder.

    The states that were ``left`` behind are removed. Rows that no text of any other state has are
    left out if they are more than a tenth, or if ``all_dead`` must go. ``refused`` are texts
    without a row; None for the refused texts of the state before. ``faiss`` is as in ``build``. An
    interruption leaves the states before. Raises what ``build`` raises, VectorsDamagedError,
    OSError.
    """
    is_new = texts is not None
    if texts is None:
        assert before is not None
        texts = before.texts
    removes_all = all_dead and is_own_root(location, root)
    kept = set[str]() if removes_all else unnamed_stores(root) - {store.folder.name}
    gone = (state_path(root, index.placement), *left)
    live, dead = _live(root, store, texts, gone)
    is_moved = dead > (0 if all_dead else DUE_SHARE * sum(map(store.rows, live)))
    made = [not is_moved and build(store, unit, faiss, progress) for unit in texts]
    owner = owner_of(location, root)
    if before is not None and before.record.owner != owner:
        owner = SHARED
    with writing(root, math.inf):
        if is_moved:
            source = Store.open(store.folder)  # with the rows of updates meanwhile
            live, dead = _live(root, source, texts, gone)
            rows = sum(map(source.rows, live))
            progress.note(f"Leaving out {dead:,} of {rows:,} rows, which have no text any more.")
            store, moved = source.copy_to(new_store(root), live, progress)
            for unit in texts:
                build(store, unit, faiss, progress, source.folder)
            # a deletion may write a state meanwhile, and then sees the others moved
            while others := states_of(root, source.folder.name, gone):
                for state in reversed(others):
                    own = state.record
                    State.write(
                        root,
                        own,
                        store.folder.name,
                        _moved(state.texts, moved),
                        before=own.before,
                        owner=own.owner,
                    )
            texts = _moved(texts, moved)
        if is_moved or is_new or before is None or before.record.owner != owner:
            replaced = "" if before is None else before.record.before
            before = State.write(
                root,
                index,
                store.folder.name,
                texts,
                before=replaced,
                owner=owner,
                refused=refused,
            )
        remove_unused(root, left, kept)
    has_changed = is_moved or is_new or any(made)
    return Published(before, store, dead if is_moved else 0, has_changed)


def _live(
    root: Path, store: Store, texts: Texts, gone: Collection[Path]
) -> tuple[dict[VectorUnit, Rows], int]:
    """Return the rows of a store that have a text, of these texts or of a state that is not gone.
    Return also how many other rows there are."""
    states = states_of(root, store.folder.name, gone)
    live = live_rows(store, [texts, *(state.texts for state in states)])
    return live, sum(store.rows(unit) - len(rows) for unit, rows in live.items())


def leave_out_dead(root: Path, location: str, index: Manifest, progress: Progress) -> int:
    """Leave out all rows without a text of the vectors that fit an index, and return how many they
    were. If the FAISS index of the vectors is due, make it anew. Raises VectorsLockedError and what
    ``publish`` raises."""
    with lock(root):
        state = fitting_state(root, index.placement)
        if state is None:
            return 0
        store = state.store()
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
            refused=state.record.refused,
        ).left_out


def _moved(texts: Texts, rows: Mapping[VectorUnit, Rows]) -> Texts:
    return {unit: UnitTexts(own.ordinals, rows[unit][own.rows]) for unit, own in texts.items()}
