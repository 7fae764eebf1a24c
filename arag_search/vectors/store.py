"""A store of rows: vectors in files that only grow, beside them the keys of their texts.

A store has the rows of one encoder, stored as one type, in a folder:

``store.json``       the StoreRecord
``<unit>.vectors``   the vectors of a unit, one after the other
``<unit>.keys``      their keys in the same order, 16 bytes each
``<unit>.blocks``    for each block of rows that were appended at once: how many, of how many texts
                     the encoder did not read the end, and a checksum of vectors and keys

A row exists once its block does: bytes behind the last block are what an interrupted
writer left, and the next one cuts them off. One process at a time appends, and holds the lock of
the folder of the store (folder.py). Readers map the rows that they found, and need no lock.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from arag_search.errors import ArgumentError, VectorsNotFoundError
from arag_search.system.durable import sync, write_atomically
from arag_search.system.progress import Progress
from arag_search.vectors.base import KEY_BYTES, VECTOR_UNITS, FloatArray, VectorUnit
from arag_search.vectors.folder import STORE_RECORD, StoreRecord, damaged, read_record

_BLOCK = np.dtype([("rows", "<i8"), ("cut", "<i8"), ("checksum", "V16")])
_SCANNED_KEYS = 1 << 18
_NEAR_BITS = 22  # of a key, by which almost all others are passed
_COPIED_ROWS = 1 << 14

Keys = NDArray[np.uint8]
Rows = NDArray[np.int64]


class StoredRows:
    """The vectors of a unit as one array of shape (rows, dimension), mapped into memory."""

    def __init__(self, array: NDArray[Any], where: Path) -> None:
        self._array = array
        self._where = where
        self.rows, self.dimension = array.shape
        self.is_converted = array.dtype != np.float32
        """Whether blocks are converted copies rather than views of the mapped file."""

    def blocks(self, most_rows: int, first: int = 0) -> Iterator[tuple[int, FloatArray]]:
        """Yield the vectors from a row on as float32 in blocks, each with the number of its first
        row."""
        for start in range(first, self.rows, most_rows):
            part = self._array[start : start + most_rows]
            # a plain view: each operation on a memmap takes some microseconds longer
            yield start, np.asarray(part, np.float32).view(np.ndarray)

    def gather(self, rows: Rows) -> FloatArray:
        """Return the vectors of these rows, in their order, as float32. Raises VectorsDamagedError
        for a row that does not exist: a damaged file may name one."""
        vectors = np.empty((len(rows), self.dimension), np.float32)
        if not (rows[:-1] <= rows[1:]).all():  # in order, neighbours share a page of the file
            order = np.argsort(rows)
            vectors[order] = self.gather(rows[order])
            return vectors
        if len(rows) and not 0 <= rows[0] <= rows[-1] < self.rows:
            row = rows[-1] if rows[0] >= 0 else rows[0]
            raise damaged(
                f"A row {row} is named.", self._where, f"rows from 0 and below {self.rows}"
            )
        if self.is_converted:
            vectors[:] = self._array[rows]
        else:  # "clip" changes nothing, and lets numpy write to the array without a copy
            np.take(self._array, rows, 0, vectors, "clip")
        return vectors


class Store:
    """A store, with the rows that it had when it was opened, and rows appended since.

    Safe to use from several threads, but for appending.
    """

    def __init__(self, folder: Path, record: StoreRecord) -> None:
        """Read the blocks and map the rows; callers use ``Store.open``."""
        self.folder = folder
        self.record = record
        self._blocks: dict[VectorUnit, NDArray[Any]] = {}
        self._keys: dict[VectorUnit, Keys] = {}
        self._vectors: dict[VectorUnit, NDArray[Any]] = {}
        for unit in VECTOR_UNITS:
            self._load(unit)

    @staticmethod
    def create(folder: Path, record: StoreRecord) -> Store:
        """Create an empty store, which appears whole or not at all. Raises OSError."""
        with _appearing(folder, record):
            pass
        return Store.open(folder)

    @staticmethod
    def open(folder: Path) -> Store:
        """Open a store. The sizes of its files are checked. Raises VectorsNotFoundError,
        VectorsDamagedError, VectorsVersionError."""
        path = folder / STORE_RECORD
        try:
            data = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            raise VectorsNotFoundError(
                "There is no store of vectors.",
                where=str(folder),
                do="Embed the index, which makes only what is missing: arag-search embed INDEX",
            ) from None
        return Store(folder, read_record(StoreRecord, data, str(path)))

    # Reading

    def rows(self, unit: VectorUnit) -> int:
        """Return the number of rows of a unit."""
        return len(self._keys[unit])

    def keys(self, unit: VectorUnit) -> Keys:
        """Return the keys of the rows of a unit, of shape (rows, 16)."""
        return self._keys[unit]

    def vectors(self, unit: VectorUnit, rows: int | None = None) -> StoredRows:
        """Return the vectors of a unit, or of its first ``rows`` rows. Raises VectorsDamagedError
        if there are not so many."""
        path = self._file(unit, "vectors")
        if rows is not None and rows > self.rows(unit):
            raise damaged(f"The store has {self.rows(unit)} rows, not {rows}.", path)
        return StoredRows(self._vectors[unit][:rows], path)

    def find(self, unit: VectorUnit, keys: Collection[bytes]) -> dict[bytes, int]:
        """Return the row of each of these keys that has one.

        If several rows have the same key, the last is returned. All stored keys are read once.
        """
        wanted = set(keys)
        is_near = np.zeros(1 << _NEAR_BITS, np.bool_)
        is_near[_first_bits(np.frombuffer(b"".join(wanted), np.uint64)[::2])] = True
        rows: dict[bytes, int] = {}
        for first in range(0, self.rows(unit) if wanted else 0, _SCANNED_KEYS):
            stored = self._keys[unit][first : first + _SCANNED_KEYS].view(np.ndarray)
            near = is_near[_first_bits(stored.view(np.uint64)[:, 0])]
            for row in np.flatnonzero(near).tolist():
                if (own := stored[row].tobytes()) in wanted:
                    rows[own] = first + row
        return rows

    def cut_texts(self, unit: VectorUnit) -> int:
        """Return how many texts the encoder did not read to their end; at most so many if dead
        rows were left out since."""
        return int(self._blocks[unit]["cut"].sum())

    def verify(self, progress: Progress | None = None) -> None:
        """Read all rows. Raises VectorsDamagedError if some are not as they were written."""
        for unit, blocks in self._blocks.items():
            end = 0
            for rows, _, expected in blocks.tolist():
                first, end = end, end + rows
                parts = self._vectors[unit][first:end], self._keys[unit][first:end]
                if checksum(parts) != expected:
                    raise damaged(
                        f"The {unit} rows {first} to {end - 1} have changed.", self.folder
                    )
                if progress is not None:
                    progress.stage(f"verifying {unit} vectors", end, self.rows(unit))

    # Writing

    def append(
        self, unit: VectorUnit, keys: Sequence[bytes], vectors: FloatArray, cut: int = 0
    ) -> int:
        """Append the vectors of texts with these keys, of shape (texts, dimension), as a block;
        return the row of the first.

        The rows are on disk on return, and none of them exists after an error. ``cut`` is how many
        of the texts the encoder did not read to their end. Raises ArgumentError unless there is one
        finite vector for each key, OSError that names the file, VectorsDamagedError.
        """
        joined = np.frombuffer(b"".join(keys), np.uint8).reshape(-1, KEY_BYTES)
        shape = (len(keys), self.record.encoder.dimension)
        with np.errstate(over="ignore"):  # an overflow of float16 is not finite
            stored = np.ascontiguousarray(vectors, self.record.dtype)
        if stored.shape != shape or len(joined) != len(keys) or not np.isfinite(stored).all():
            raise ArgumentError(
                f"There are {len(joined)} keys and an array of {' x '.join(map(str, stored.shape))}"
                f" for {len(keys)} rows, or a number is not finite.",
                where=f"unit {unit}",
                allowed=f"a key of {KEY_BYTES} bytes and {shape[1]} finite numbers a row",
            )
        if self._file(unit, "blocks").stat().st_size != self._blocks[unit].nbytes:
            self._load(unit)  # another process has appended, or was interrupted
        first = self.rows(unit)
        if len(keys):
            block = np.array([(len(keys), cut, checksum((stored, joined)))], _BLOCK)
            _extend(self._file(unit, "vectors"), first * stored[0].nbytes, stored)
            _extend(self._file(unit, "keys"), first * KEY_BYTES, joined)
            _extend(self._file(unit, "blocks"), self._blocks[unit].nbytes, block)
            self._load(unit)
        return first

    def copy_to(
        self, folder: Path, live: Mapping[VectorUnit, Rows], progress: Progress | None = None
    ) -> tuple[Store, dict[VectorUnit, Rows]]:
        """Copy rows of each unit, distinct and in ascending order, to a new store, which appears
        whole or not at all.

        Return it, with an array for each unit that has the new row of each old one, -1 if it was
        left out. Memory does not grow with the vectors. Raises OSError, and VectorsDamagedError,
        since damaged rows would look sound in the copy.
        """
        self.verify(progress)
        moved: dict[VectorUnit, Rows] = {}
        with _appearing(folder, self.record) as copy:
            for unit, rows in live.items():
                moved[unit] = np.full(self.rows(unit), -1, np.int64)
                moved[unit][rows] = np.arange(len(rows))
                vectors, cut = self.vectors(unit), min(len(rows), self.cut_texts(unit))
                for start in range(0, len(rows), _COPIED_ROWS):
                    part = rows[start : start + _COPIED_ROWS]
                    keys = [key.tobytes() for key in self._keys[unit][part]]
                    copy.append(unit, keys, vectors.gather(part), 0 if start else cut)
        return Store.open(folder), moved

    # Files

    def _file(self, unit: VectorUnit, role: str) -> Path:
        return self.folder / f"{unit}.{role}"

    def _load(self, unit: VectorUnit) -> None:
        """Read the blocks of a unit, except a block that was cut short, and map its rows. Raises
        VectorsDamagedError."""
        path = self._file(unit, "blocks")
        try:
            blocks = np.fromfile(path, _BLOCK)
        except FileNotFoundError:
            raise damaged("A file is missing.", path) from None
        rows = sum(blocks["rows"].tolist())
        if (blocks["rows"] < 0).any():
            raise damaged("A block has fewer than no rows.", path)
        shape = (rows, self.record.encoder.dimension)
        vectors = _mapped(self._file(unit, "vectors"), self.record.dtype, shape)
        keys = _mapped(self._file(unit, "keys"), "uint8", (rows, KEY_BYTES))
        self._blocks[unit], self._vectors[unit], self._keys[unit] = blocks, vectors, keys


@contextmanager
def _appearing(folder: Path, record: StoreRecord) -> Generator[Store]:
    """Yield a new store beside ``folder``, and rename it to that once the block has filled it."""
    aside = folder.with_name(folder.name + ".new")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    for unit in VECTOR_UNITS:
        for role in ("vectors", "keys", "blocks"):
            (aside / f"{unit}.{role}").touch()
    write_atomically(aside / STORE_RECORD, orjson.dumps(record))
    yield Store.open(aside)
    os.rename(aside, folder)
    sync(folder.parent)


def _extend(path: Path, size: int, array: NDArray[Any]) -> None:
    """Write an array behind the first ``size`` bytes of a file, and drop its other bytes. Raises
    OSError that names the file."""
    try:
        with path.open("r+b") as file:
            file.truncate(size)
            file.seek(size)
            file.write(array.view(np.uint8).data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def checksum(parts: Iterable[Any]) -> bytes:
    """Return the BLAKE2 checksum of contiguous arrays, memory or bytes, 16 bytes."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(part)
    return digest.digest()


def _first_bits(halves: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return halves >> np.uint64(64 - _NEAR_BITS)


def _mapped(path: Path, dtype: str, shape: tuple[int, int]) -> NDArray[Any]:
    """Map the beginning of a file. Raises VectorsDamagedError if it is missing or too short."""
    needed = shape[0] * shape[1] * np.dtype(dtype).itemsize
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < needed:
                raise damaged(f"The file has {size:,} bytes, not {needed:,}.", path)
            # numpy cannot map an array without elements
            return np.memmap(file, dtype, "r", shape=shape) if needed else np.empty(shape, dtype)
    except FileNotFoundError:
        raise damaged("A file is missing.", path) from None
