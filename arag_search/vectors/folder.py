"""The folder of the vectors of an index: its stores, its states, and the one that fits.

Several indexes may share a folder, and find each other's rows by the keys of their texts. One job
at a time embeds or compacts; whoever appends to a store or removes one holds another lock, an
embedding only at these times. A state is published and removed without it, since deletions need no
encoder.
"""

from __future__ import annotations

import os
import shlex
import shutil
import time
from collections.abc import Collection, Generator, Iterable
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from arag_search.engines.opensearch.address import is_address
from arag_search.errors import (
    ArgumentError,
    BuildError,
    VectorsError,
    VectorsLockedError,
    VectorsMismatchError,
    VectorsNotFoundError,
    VectorsNotNamedError,
)
from arag_search.manifest import Manifest
from arag_search.system.durable import full_disk_advice
from arag_search.system.lock import HeldError, hold
from arag_search.system.paths import path_in
from arag_search.vectors.records import (
    STATE_ENDING,
    STORE_NAME,
    STORE_RECORD,
    StateRecord,
    StoreRecord,
    open_state,
    read_record,
    state_path,
)

if TYPE_CHECKING:
    from arag_search.vectors.state import State
    from arag_search.vectors.store import Store

VECTORS_VARIABLE = "ARAG_VECTORS"
FOLDER = "vectors"
"""The folder of the vectors in an index that is a folder."""

WRITING_S = 60.0
"""How long an update waits for another process that writes: a second for an embedding."""

_LOCK = "embed.lock"
_JOB_LOCK = "job.lock"
_LOOKS_S = 0.1
_OWNER = "arag-search embed, process "
_UNFINISHED_S = 3_600.0
"""The age from which the file of a state that was not finished is that of a killed process."""


def vectors_root(location: str, vectors: Path | str | None = None) -> Path:
    """Return the folder of the vectors of an index: ``vectors``, or the one in ARAG_VECTORS, or
    ``vectors`` in the folder of the index.

    It need not exist. Raises ArgumentError for an index on a server if neither is set, and for a
    folder without a name.
    """
    if vectors is not None and not str(vectors):
        raise ArgumentError(
            "The folder of the vectors has no name.", where=location, allowed="a folder"
        )
    folder = vectors or path_in(VECTORS_VARIABLE)
    if folder:
        return Path(folder)
    if is_address(location):
        raise VectorsNotNamedError(
            "The folder of the vectors is not given.",
            where=location,
            allowed="a folder; only an index in a folder has its own",
            do=f"Give --vectors DIR, or set {VECTORS_VARIABLE}.",
        )
    return Path(location) / FOLDER


def is_own_root(location: str, root: Path) -> bool:
    """Return whether a folder of vectors is the one in the folder of the index."""
    return not is_address(location) and root == Path(location) / FOLDER


def owner_of(location: str, root: Path) -> str:
    """Return the name of an index among those of a folder; none is needed in its own."""
    if is_own_root(location, root):
        return ""
    return location if is_address(location) else str(Path(location).resolve())


def embed_command(location: str, root: Path) -> str:
    """Return the command that makes the vectors of an index in a folder."""
    named = "" if is_own_root(location, root) else f" --vectors {shlex.quote(str(root))}"
    return f"arag-search embed {shlex.quote(location)}{named}"


def lock(root: Path) -> AbstractContextManager[None]:
    """Lock the folder of the vectors for a job of this process, beside which updates go on. Raises
    VectorsLockedError, BuildError."""
    return _locked(root, _JOB_LOCK, 0.0)


def writing(root: Path, wait_s: float | None = None) -> AbstractContextManager[None]:
    """Lock the folder of the vectors for writing to stores, after waiting for others, WRITING_S
    unless said otherwise. Raises VectorsLockedError, BuildError."""
    return _locked(root, _LOCK, WRITING_S if wait_s is None else wait_s)


@contextmanager
def _locked(root: Path, name: str, wait_s: float) -> Generator[None]:
    until = time.monotonic() + wait_s
    descriptor = -1
    while descriptor < 0:
        try:
            root.mkdir(parents=True, exist_ok=True)
            descriptor = hold(root / name, _OWNER)
        except HeldError as error:
            if time.monotonic() < until:
                time.sleep(_LOOKS_S)
                continue
            raise VectorsLockedError(
                f"Another process is embedding into this folder ({error.holder}).",
                where=str(root),
                do="Wait for it, or stop it; or give another --vectors.",
            ) from None
        except OSError as error:
            raise BuildError(
                f"The folder of the vectors cannot be written ({error.strerror}).",
                where=str(root),
                do=full_disk_advice(error),
            ) from error
    try:
        yield
    finally:
        os.close(descriptor)


# States


def states(root: Path) -> list[tuple[Path, StateRecord | VectorsError]]:
    """Return the states in a folder with their records, the newest first; at last those whose
    records cannot be read, with the errors."""
    readable: list[tuple[Path, StateRecord]] = []
    others: list[tuple[Path, VectorsError]] = []
    for path in sorted(root.glob(f"*{STATE_ENDING}")):
        try:
            with open_state(path) as (record, _):
                readable.append((path, record))
        except VectorsNotFoundError:
            pass  # removed in the meantime
        except VectorsError as error:
            others.append((path, error))
    readable.sort(key=lambda state: state[1].created, reverse=True)
    return [*readable, *others]


def fitting_state(root: Path, placement: str) -> State | None:
    """Open the state of an index with this placement; None if there is none. Raises
    VectorsDamagedError, VectorsVersionError."""
    from arag_search.vectors.state import State

    try:
        state = State.open(state_path(root, placement))
    except VectorsNotFoundError:
        return None
    return state if state.record.placement == placement else None


def find_state(root: Path, index: Manifest, location: str) -> State:
    """Open the state of an index. Raises VectorsNotFoundError if there are no vectors,
    VectorsMismatchError if those there are of other states of the index or of other indexes, and
    the errors of ``fitting_state``."""
    command = embed_command(location, root)
    try:
        state = fitting_state(root, index.placement)
    except VectorsError as error:
        error.do = error.do.replace("arag-search embed INDEX", command)
        raise
    if state is not None:
        return state
    if not any(root.glob(f"*{STATE_ENDING}")):
        raise VectorsNotFoundError(
            "The index has no vectors, or none that were finished.",
            where=str(root),
            do=f"Make them: {command} --encoder NAME",
        )
    raise VectorsMismatchError(
        "The vectors do not fit the index: it has changed since they were made, or they are those "
        "of another index.",
        where=str(root),
        allowed="vectors of the index as it is",
        do=f"Run {command}: it encodes new texts only.",
    )


# Stores


def stores(root: Path) -> list[tuple[Path, StoreRecord]]:
    """Return the stores in a folder whose records can be read, the newest first."""
    readable: list[tuple[Path, StoreRecord]] = []
    for path in sorted(root.glob(f"store-*/{STORE_RECORD}"), reverse=True):
        if not STORE_NAME.fullmatch(path.parent.name):
            continue  # one that is being made
        with suppress(VectorsError, FileNotFoundError):
            readable.append((path.parent, read_record(StoreRecord, path.read_bytes(), str(path))))
    return readable


def store_of(root: Path, state: State) -> Store:
    """Open the store with the rows of a state. Raises VectorsNotFoundError, also if a job has put
    the rows into another store since the state was read, VectorsDamagedError,
    VectorsVersionError."""
    from arag_search.vectors.store import Store

    return Store.open(root / state.record.store)


def new_store(root: Path) -> Path:
    """Return the path of a new store, with a name that follows those of the others."""
    numbers = [int(path.name[6:].removesuffix(".new")) for path in _store_folders(root)]
    return root / f"store-{max(numbers, default=0) + 1:05}"


def _store_folders(root: Path) -> list[Path]:
    """Return the folders of stores, also of those being made or removed."""
    return [
        path
        for path in root.glob("store-*")
        if STORE_NAME.fullmatch(path.name.removesuffix(".new"))
    ]


# Removal


def states_of(root: Path, store: str, but: Collection[Path] = ()) -> list[State]:
    """Open the states that name a store and can be read, the newest first, but those at these
    paths."""
    from arag_search.vectors.state import State

    opened: list[State] = []
    for path, record in states(root):
        if isinstance(record, StateRecord) and record.store == store and path not in but:
            with suppress(VectorsError):
                opened.append(State.open(path))
    return opened


def unnamed_stores(root: Path) -> list[tuple[Path, StoreRecord]]:
    """Return the stores that no state names: those of embeddings that were interrupted."""
    named = {record.store for _, record in states(root) if isinstance(record, StateRecord)}
    return [(path, record) for path, record in stores(root) if path.name not in named]


def left_behind(
    root: Path, location: str, placement: str, *, keeps_last: bool = True
) -> list[Path]:
    """Return the states that an index with this placement has left behind, the oldest first.

    In the index's own folder these are all but its own, in another folder those that its own has
    replaced, one after the other, to which no rollback leads, and that no other index has embedded.
    If it ``keeps_last``, the one before its own stays, since readers that opened the index before
    may still open it.
    """
    known = states(root)
    records = {path: record for path, record in known if isinstance(record, StateRecord)}
    path = own = state_path(root, placement)
    left: list[Path] = []
    while path in records and (path := state_path(root, records[path].before)) in records:
        if path in (own, *left) or records[path].owner != owner_of(location, root):
            break
        left.append(path)
    if is_own_root(location, root):
        left += [path for path, _ in known if path not in (own, *left)]
    last = next((path for path in left if path in records), None) if keeps_last else None
    return [path for path in reversed(left) if path != last]


def remove_unused(root: Path, left: Iterable[Path], kept: Collection[str] | None) -> None:
    """Remove the states that were ``left`` behind and, which needs the lock, the stores that no
    state names, but for those with the names ``kept``; None keeps all."""
    for path in left:
        path.unlink(missing_ok=True)
    if kept is None:
        return
    for path in root.glob(f"*{STATE_ENDING}.*.new"):
        with suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > _UNFINISHED_S:
                path.unlink()
    used = set(kept)
    for _, record in states(root):
        if isinstance(record, VectorsError):
            return  # it may name any store
        used.add(record.store)
    for path in _store_folders(root):
        if path.name not in used or not (path / STORE_RECORD).exists():
            (path / STORE_RECORD).unlink(missing_ok=True)  # first: a store is whole or not there
            shutil.rmtree(path, ignore_errors=True)
