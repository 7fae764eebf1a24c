"""The folder of the vectors of an index: its files, their records, and what is removed from it.

Several indexes may share a folder, and find each other's rows by the keys of their texts. One job
at a time embeds or compacts; whoever appends to a store or removes one holds another lock, an
embedding only at these times. A state is published and removed without it, since deletions need no
encoder. Nothing here needs numpy.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import time
from collections.abc import Collection, Generator, Iterable
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TypeVar

import orjson

from arag_search.engines.opensearch.address import is_address
from arag_search.errors import (
    ArgumentError,
    BuildError,
    VectorsDamagedError,
    VectorsError,
    VectorsLockedError,
    VectorsNotFoundError,
    VectorsNotNamedError,
    VectorsVersionError,
)
from arag_search.system.durable import full_disk_advice
from arag_search.system.lock import HeldError, hold
from arag_search.system.paths import path_in
from arag_search.system.progress import counted
from arag_search.vectors.base import EncoderIdentity, Probes, VectorUnit, differences

if TYPE_CHECKING:
    from pydantic import TypeAdapter

VECTORS_VARIABLE = "ARAG_VECTORS"
FOLDER = "vectors"
"""The folder of the vectors in an index that is a folder."""

WRITING_S = 60.0
"""How long a job or an update waits for another that writes: an embedding holds up an update for a
second."""

_LOCK = "embed.lock"
_JOB_LOCK = "job.lock"
_LOOKS_S = 0.1
_OWNER = "arag-search embed, process "
_UNFINISHED_S = 3_600.0
"""An unfinished file of a state that is older than this was left by a killed process."""

VECTORS_VERSION = 9
"""The number of the format of stores and states: every change of the stored form raises it, and
other versions are not read."""

EMBED_AGAIN = "Embed the index again: arag-search embed INDEX --overwrite"

StoredType = Literal["float32", "float16"]

STORE_NAME = re.compile(r"store-\d{5,}")
STORE_RECORD = "store.json"
STATE_ENDING = ".state"
SHARED = "*"
_NAME_DIGITS = 16
_NAMED_TEXTS = 5
_MOST_BYTES = 1 << 16

T = TypeVar("T")


def vectors_root(location: str, vectors: Path | str | None = None) -> Path:
    """Return the folder of the vectors of an index: ``vectors``, or else ARAG_VECTORS, or else
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
            do=f"Give `vectors=DIR`, or set {VECTORS_VARIABLE}.",
        )
    return Path(location) / FOLDER


def is_own_root(location: str, root: Path) -> bool:
    """Return whether a folder of vectors is the one in the folder of the index."""
    return not is_address(location) and root == Path(location) / FOLDER


def owner_of(location: str, root: Path) -> str:
    """Return the name of an index in a folder that others share; empty in its own folder."""
    if is_own_root(location, root):
        return ""
    return location if is_address(location) else str(Path(location).resolve())


def embed_command(location: str, root: Path) -> str:
    """Return the command that makes the vectors of an index in a folder."""
    named = "" if is_own_root(location, root) else f" --vectors {shlex.quote(str(root))}"
    return f"arag-search embed {shlex.quote(location)}{named}"


# Records


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRecord:
    """The description of a store: what its vectors are, and how texts were written for them.

    ``sentence_titles`` says that sentences were encoded below the title of their passage.
    ``probes`` are the vectors that the encoder gave to PROBE_TEXTS, by which it is known again.
    """

    format_version: int = VECTORS_VERSION
    encoder: EncoderIdentity
    dtype: StoredType
    sentence_titles: bool = False
    probes: Probes

    def differences(self, other: StoreRecord) -> str:
        """Describe why vectors of another store may not stand in this one; "" if they may."""
        changed = [differences(self.encoder, self.probes, other.encoder, other.probes)]
        for name in ("dtype", "sentence_titles"):
            if (before := getattr(self, name)) != (after := getattr(other, name)):
                changed.append(f"{name.replace('_', ' ')} {after!r} instead of {before!r}")
        return ", ".join(filter(None, changed))


@dataclass(frozen=True, slots=True)
class UnitRecord:
    """The sizes of the arrays of a unit: its texts, and the rows of the store at the time."""

    texts: int
    rows: int


@dataclass(frozen=True, slots=True)
class RefusedTexts:
    """The texts that have no vector, because an endpoint refused them.

    ``count``: how many there were; fewer may be left if documents were deleted since.
    ``first``: the first of them, with the words of the endpoint.
    """

    count: int = 0
    first: tuple[str, ...] = ()

    def __add__(self, more: RefusedTexts) -> RefusedTexts:
        named = (*self.first, *more.first)[:_NAMED_TEXTS]
        return RefusedTexts(self.count + more.count, named)

    def __str__(self) -> str:
        have = counted(self.count, "text has", "texts have")
        named = f"{have} no vector, refused by the endpoint: {', '.join(self.first)}"
        return named if self.count else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRecord:
    """The description of a state of an index, which ``placement`` and ``fingerprint`` identify.

    ``store`` is the name of the folder of the rows, and ``before`` the placement of the state that
    this one replaced, "" if none. ``owner`` is the index (see ``owner_of``) in a folder that is not
    its own; SHARED if several of equal content have embedded it. ``arrays`` is the BLAKE2 checksum
    of all that follows the record.
    """

    format_version: int = VECTORS_VERSION
    placement: str
    fingerprint: str
    created: str
    store: str
    before: str = ""
    owner: str = ""
    units: dict[VectorUnit, UnitRecord] = field(default_factory=dict[VectorUnit, UnitRecord])
    refused: RefusedTexts = RefusedTexts()
    arrays: str

    @property
    def texts(self) -> dict[VectorUnit, int]:
        """The number of texts of each unit."""
        return {unit: arrays.texts for unit, arrays in self.units.items()}


def read_record(kind: type[T], data: bytes, where: str) -> T:
    """Read a record, a dataclass that has a field ``format_version``; ``where`` names its file.

    Raises VectorsVersionError for another version, VectorsDamagedError for anything but such a
    record.
    """
    from pydantic import ValidationError

    try:
        loaded: Any = orjson.loads(data)
        version = loaded["format_version"]
    except (orjson.JSONDecodeError, KeyError, TypeError, IndexError) as error:
        raise _unreadable(str(error), where) from error
    if version != VECTORS_VERSION:
        raise VectorsVersionError(
            f"The vectors have format version {version}.",
            where=where,
            allowed=f"version {VECTORS_VERSION}",
            do=EMBED_AGAIN,
        )
    try:
        return _strict(kind).validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise _unreadable(f"{field}: {first['msg']}", where) from error


def state_path(root: Path, placement: str) -> Path:
    """Return the file of the state of an index with this placement."""
    return root / f"{placement[:_NAME_DIGITS]}{STATE_ENDING}"


@contextmanager
def open_state(path: Path) -> Generator[tuple[StateRecord, BinaryIO]]:
    """Open the file of a state, read its record, and yield it with the file, at its arrays.

    Raises VectorsNotFoundError, VectorsDamagedError, VectorsVersionError.
    """
    try:
        file = path.open("rb")
    except (FileNotFoundError, NotADirectoryError):
        raise VectorsNotFoundError(
            "There are no vectors of this state of the index.",
            where=str(path),
            do="Make them: arag-search embed INDEX",
        ) from None
    with file:
        yield read_record(StateRecord, file.readline(_MOST_BYTES), str(path)), file


def _unreadable(why: str, where: str) -> VectorsDamagedError:
    return damaged(f"The record cannot be read ({why}).", where)


def damaged(what: str, where: Path | str, allowed: str = "") -> VectorsDamagedError:
    """Return the error of a file that is not as it was written."""
    return VectorsDamagedError(what, where=str(where), allowed=allowed, do=EMBED_AGAIN)


@cache
def _strict(kind: type[T]) -> TypeAdapter[T]:
    from pydantic import ConfigDict, TypeAdapter, with_config

    return TypeAdapter(with_config(ConfigDict(strict=True, extra="forbid"))(kind))


# Locks


def lock(root: Path) -> AbstractContextManager[None]:
    """Lock the folder of the vectors for a job of this process, beside which updates go on, after
    waiting for another job for WRITING_S. Raises VectorsLockedError, BuildError."""
    return _locked(root, _JOB_LOCK, WRITING_S)


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
                do="Wait for it, or stop it; or give other `vectors`.",
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


# States and stores


def states(root: Path) -> list[tuple[Path, StateRecord | VectorsError]]:
    """Return the states in a folder with their records, the newest first. States whose records
    cannot be read come last, with the errors."""
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


def stores(root: Path) -> list[tuple[Path, StoreRecord]]:
    """Return the stores in a folder whose records can be read, the newest first."""
    readable: list[tuple[Path, StoreRecord]] = []
    for path in sorted(root.glob(f"store-*/{STORE_RECORD}"), reverse=True):
        if not STORE_NAME.fullmatch(path.parent.name):
            continue  # one that is being made
        with suppress(VectorsError, FileNotFoundError):
            readable.append((path.parent, read_record(StoreRecord, path.read_bytes(), str(path))))
    return readable


def new_store(root: Path) -> Path:
    """Return the path of a new store, with a name that follows the names of the others."""
    numbers = [int(path.name[6:].removesuffix(".new")) for path in _store_folders(root)]
    return root / f"store-{max(numbers, default=0) + 1:05}"


def _store_folders(root: Path) -> list[Path]:
    """Return the folders of stores, also of stores being made or removed."""
    return [
        path
        for path in root.glob("store-*")
        if STORE_NAME.fullmatch(path.name.removesuffix(".new"))
    ]


# Removal


def named_stores(root: Path) -> set[str]:
    """Return the names of the stores that a state names."""
    return {record.store for _, record in states(root) if isinstance(record, StateRecord)}


def unnamed_stores(root: Path) -> set[str]:
    """Return the names of the stores of embeddings that were interrupted."""
    return {path.name for path, _ in stores(root)} - named_stores(root)


def left_behind(
    root: Path, location: str, placement: str, *, keeps_last: bool = True
) -> list[Path]:
    """Return the states that an index with this placement has left behind: all but its own.

    In a folder that other indexes share, they are states that it alone has embedded. If it
    ``keeps_last``, the state before its own stays. Readers that opened the index before may still
    open it, and the alias of an index on a server may be moved back to it.
    """
    known = dict(states(root))
    own = known.pop(state_path(root, placement), None)
    if not is_own_root(location, root):
        mine = owner_of(location, root)
        for path, record in [*known.items()]:
            if not isinstance(record, StateRecord) or record.owner != mine:
                del known[path]
    readable = [path for path, record in known.items() if isinstance(record, StateRecord)]
    if keeps_last and readable:
        before = state_path(root, own.before) if isinstance(own, StateRecord) else None
        del known[before if before in readable else readable[0]]
    return list(known)


def remove_unused(root: Path, left: Iterable[Path], kept: Collection[str] | None) -> None:
    """Remove the states that were ``left`` behind, and the stores that no state names, which needs
    the lock. Stores with the names ``kept`` stay; None keeps all."""
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
