"""A state of an index: which row each of its texts has, and which texts each row has, in one file.

The file is a line of JSON, the StateRecord, and for each unit four arrays, each of them aligned:

``ordinals``  int64[texts]: the ordinal of each text, ascending
``rows``      uint32[texts]: the row of each text in the store
``starts``    uint32[rows + 1]: where the texts of each row, up to the last that has one, start in
``texts``     uint32[texts]: the numbers of the texts, ascending for each row; a dead row has none

It is published by one rename, and mapped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from arag_search.corpus import MAX_SENTENCES
from arag_search.errors import (
    ArgumentError,
    VectorsError,
    VectorsMismatchError,
    VectorsNotFoundError,
)
from arag_search.manifest import Manifest
from arag_search.system.durable import replacing, sync
from arag_search.vectors.base import VECTOR_UNITS, VectorUnit
from arag_search.vectors.folder import (
    STATE_ENDING,
    RefusedTexts,
    StateRecord,
    UnitRecord,
    damaged,
    embed_command,
    open_state,
    state_path,
    states,
)
from arag_search.vectors.store import Rows, Store, checksum

CHECKED_BYTES = 1 << 26
"""The largest state that is read and compared with its checksum when it is opened (64 MiB). A
damaged byte would drop hits without a word."""

_ALIGNED = 64
_CHANGED = "The file has changed since it was written."

Numbers = NDArray[np.int64]


class UnitTexts(NamedTuple):
    """The ordinal and the row of each text of a unit, in order of ordinal."""

    ordinals: NDArray[Any]
    rows: NDArray[Any]


Texts = Mapping[VectorUnit, UnitTexts]


class UnitState(NamedTuple):
    """The texts of a unit in a state: see the module. ``where`` names the file."""

    ordinals: Numbers
    rows: NDArray[np.uint32]
    starts: NDArray[np.uint32]
    texts: NDArray[np.uint32]
    where: Path

    def expand(self, rows: Numbers) -> tuple[Numbers, Numbers]:
        """Return the ordinals of the texts of these rows, and the place of each text's row in
        ``rows``. The texts of a row stand together, in ascending order. Raises VectorsDamagedError
        if the arrays do not agree."""
        try:
            starts = self.starts[rows].astype(np.int64)
            counts = self.starts[rows + 1].astype(np.int64) - starts
            if (counts > len(self.texts)).any():
                raise IndexError
            places = np.repeat(np.arange(len(rows)), counts)
            within = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
            return self.ordinals[self.texts[starts[places] + within]], places
        except (IndexError, ValueError) as error:
            raise damaged(_CHANGED, self.where) from error

    def live_mask(self) -> NDArray[np.bool_]:
        """Return whether each row has a text, up to the last row with a text."""
        return self.starts[1:] > self.starts[:-1]


@dataclass(frozen=True, slots=True)
class State:
    """A state that is open: ``record`` describes it, ``units`` are the units that have vectors."""

    path: Path
    record: StateRecord
    units: Mapping[VectorUnit, UnitState]

    @staticmethod
    def write(
        root: Path,
        index: Manifest | StateRecord,
        store: str,
        units: Texts,
        *,
        before: str = "",
        owner: str = "",
        refused: RefusedTexts | None = None,
    ) -> State:
        """Publish the state of an index, in place of an earlier one of its placement, and return
        it.

        ``store`` is the name of the folder of the store. ``refused`` are texts without a row; None
        keeps the texts of a record that is written again. Raises ArgumentError for ordinals that do
        not ascend and for rows below 0, OSError.
        """
        path = state_path(root, index.placement)
        stored: dict[VectorUnit, UnitState] = {
            unit: UnitState(*_both_directions(unit, own), path) for unit, own in units.items()
        }
        arrays = [array for own in stored.values() for array in own[:4]]
        record = StateRecord(
            placement=index.placement,
            fingerprint=index.fingerprint,
            created=datetime.now(UTC).isoformat(timespec="microseconds"),
            store=store,
            before=before,
            owner=owner,
            units={
                unit: UnitRecord(len(own.ordinals), len(own.starts) - 1)
                for unit, own in stored.items()
            },
            refused=refused or getattr(index, "refused", RefusedTexts()),
            arrays=checksum(_parts(arrays)).hex(),
        )
        # deletions take no lock, and several indexes of the same documents may share the folder
        with replacing(path, shared=True) as temporary, temporary.open("wb") as file:
            line = orjson.dumps(record)
            file.write(line + b" " * (-(len(line) + 1) % _ALIGNED) + b"\n")
            file.writelines(_parts(arrays))
        sync(root)
        return State(path, record, stored)

    @staticmethod
    def open(path: Path, *, is_read: bool = False) -> State:
        """Map a state. Its size is checked, and its content if it ``is_read`` or has at most
        CHECKED_BYTES. Raises VectorsNotFoundError, VectorsDamagedError, VectorsVersionError."""
        with open_state(path) as (record, file):
            first = file.tell()
            data: NDArray[np.uint8] = np.memmap(file, np.uint8, "r")[first:]
        sizes = [(length * int(kind[-1]), kind) for length, kind in _shapes(record)]
        expected = sum(_aligned(size) for size, _ in sizes)
        if len(data) != expected:
            sizes_differ = f"The file has {first + len(data):,} bytes, not {first + expected:,}."
            raise damaged(sizes_differ, path)
        if (is_read or len(data) <= CHECKED_BYTES) and checksum([data]).hex() != record.arrays:
            raise damaged(_CHANGED, path)
        ends = np.cumsum([0, *(_aligned(size) for size, _ in sizes)])
        # plain views: each operation on a memmap takes some microseconds longer
        arrays = iter(
            data[start : start + size].view(kind).view(np.ndarray)
            for start, (size, kind) in zip(ends[:-1], sizes, strict=True)
        )
        units: dict[VectorUnit, UnitState] = {
            unit: UnitState(next(arrays), next(arrays), next(arrays), next(arrays), path)
            for unit in record.units
        }
        return State(path, record, units)

    def store(self) -> Store:
        """Open the store of the rows. Raises VectorsNotFoundError, also if a job has put the rows
        into another store since the state was read, VectorsDamagedError, VectorsVersionError."""
        return Store.open(self.path.with_name(self.record.store))

    @property
    def texts(self) -> dict[VectorUnit, UnitTexts]:
        """The texts of each unit with their rows."""
        return {unit: UnitTexts(part.ordinals, part.rows) for unit, part in self.units.items()}

    @property
    def live_rows(self) -> dict[VectorUnit, int]:
        """The number of rows of each unit that have a text."""
        return {unit: int(np.count_nonzero(part.live_mask())) for unit, part in self.units.items()}

    def changed(
        self, deleted_chunks: Sequence[int], added: Mapping[VectorUnit, UnitTexts]
    ) -> dict[VectorUnit, UnitTexts]:
        """Return the texts of each unit after an update. The texts of this state stay, but for the
        deleted chunks, given by ordinal. Then come the ``added`` ones, whose ordinals are above all
        others."""
        gone = np.unique(np.array(deleted_chunks, np.int64))
        texts: dict[VectorUnit, UnitTexts] = {}
        for unit, part in self.units.items():
            starts, ends = np.searchsorted(part.ordinals, (gone, gone + MAX_SENTENCES))
            edges = np.zeros(len(part.ordinals) + 1, np.int8)
            np.add.at(edges, starts, 1)
            np.subtract.at(edges, ends, 1)
            kept = np.cumsum(edges[:-1], dtype=np.int8) == 0
            before = UnitTexts(part.ordinals[kept], part.rows[kept])
            new = added.get(unit, UnitTexts(before.ordinals[:0], before.rows[:0]))
            texts[unit] = UnitTexts(*map(np.concatenate, zip(before, new, strict=True)))
        return texts


def _both_directions(
    unit: VectorUnit, texts: UnitTexts
) -> tuple[Numbers, NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]]:
    ordinals = np.ascontiguousarray(texts.ordinals, np.int64)
    rows = np.asarray(texts.rows, np.int64)
    if len(ordinals) != len(rows) or (ordinals[:-1] >= ordinals[1:]).any() or (rows < 0).any():
        raise ArgumentError(
            "The ordinals of texts do not ascend, or have not one row each.",
            where=f"unit {unit}",
            allowed="rows from 0",
        )
    counts = np.bincount(rows)
    starts = np.zeros(len(counts) + 1, np.uint32)
    np.cumsum(counts, out=starts[1:])
    by_row = np.argsort(rows, kind="stable").astype(np.uint32)
    return ordinals, rows.astype(np.uint32), starts, by_row


def _shapes(record: StateRecord) -> Iterator[tuple[int, str]]:
    for unit in record.units.values():
        yield unit.texts, "<i8"
        for length in (unit.texts, unit.rows + 1, unit.texts):
            yield length, "<u4"


def _aligned(size: int) -> int:
    return size + -size % _ALIGNED


def _parts(arrays: Sequence[NDArray[Any]]) -> Iterator[memoryview | bytes]:
    for array in arrays:
        yield array.view(np.uint8).data
        yield bytes(-array.nbytes % _ALIGNED)


# In a folder


def fitting_state(root: Path, placement: str) -> State | None:
    """Open the state of an index with this placement; None if there is none. Raises
    VectorsDamagedError, VectorsVersionError."""
    try:
        state = State.open(state_path(root, placement))
    except VectorsNotFoundError:
        return None
    return state if state.record.placement == placement else None


def find_state(root: Path, index: Manifest, location: str) -> State:
    """Open the state of an index.

    Raises VectorsNotFoundError if there are no vectors, and the errors of ``fitting_state``. Raises
    VectorsMismatchError if all vectors are of other states of the index or of other indexes.
    """
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


def states_of(root: Path, store: str, but: Collection[Path] = ()) -> list[State]:
    """Open the states that name a store and can be read, the newest first, except at these
    paths."""
    opened: list[State] = []
    for path, record in states(root):
        if isinstance(record, StateRecord) and record.store == store and path not in but:
            with suppress(VectorsError):
                opened.append(State.open(path))
    return opened


def live_rows(store: Store, texts: Iterable[Texts]) -> dict[VectorUnit, Rows]:
    """Return the rows of a store that one of these texts has, ascending. Rows that were appended
    since it was opened are left out."""
    is_live: dict[VectorUnit, NDArray[np.bool_]] = {
        unit: np.zeros(store.rows(unit), np.bool_) for unit in VECTOR_UNITS
    }
    for units in texts:
        for unit, own in units.items():
            is_live[unit][own.rows[own.rows < store.rows(unit)]] = True
    return {unit: np.flatnonzero(mask) for unit, mask in is_live.items()}
