"""Shards: vectors with the keys of their texts, in files that are mapped rather than read.

A shard does not depend on an index, and stays valid when texts move there. It exists as soon as its
record does, which is written last. Its files are named by its number and a role, such as
``shard-00003.sentence.npy``:

``<unit>.npy``       vectors, shape (rows, dimension), float32 or float16
``<unit>.keys.npy``  uint8 of shape (rows, 16): the key of each row's text
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import orjson

from arag_search.errors import ArgumentError, VectorsDamagedError
from arag_search.system.durable import sync, write_atomically
from arag_search.vectors.base import KEY_BYTES, FloatArray, VectorUnit
from arag_search.vectors.storage.files import (
    VECTORS_VERSION,
    FileRecord,
    check_contents,
    check_sizes,
    link_or_copy,
    map_array,
    npy_bytes,
    read_record,
    write_file,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Keys = NDArray[np.uint8]

StoredType = Literal["float32", "float16"]

_REPAIR = "Delete the record of the shard and embed again: only this shard is encoded again."


@dataclass(frozen=True, slots=True)
class ShardRecord:
    """A finished shard: its number of rows for each unit, and its files by role."""

    number: int
    rows: dict[VectorUnit, int]
    files: dict[str, FileRecord]
    format_version: int = VECTORS_VERSION

    def holds(self, units: Iterable[VectorUnit]) -> bool:
        """Return whether it has rows of exactly these units, and exactly their files."""
        roles = {role(unit) for unit in units for role in (vectors_role, keys_role)}
        return set(self.rows) == set(units) and set(self.files) == roles

    @property
    def all_rows(self) -> int:
        """The number of rows of all units."""
        return sum(self.rows.values())


class StoredShard(NamedTuple):
    """A shard and the folder with its files."""

    folder: Path
    record: ShardRecord

    def file(self, role: str) -> Path:
        """Return the path of the file with this role."""
        return shard_file(self.folder, self.record.number, role)

    def keys(self, unit: VectorUnit) -> Keys:
        """Map the keys of its rows. Raises VectorsDamagedError."""
        rows = self.record.rows[unit]
        return map_array(self.file(keys_role(unit)), "uint8", (rows, KEY_BYTES))

    def verify(self) -> None:
        """Read all files. Raises VectorsDamagedError if one is not as it was written."""
        check_contents(_files_of(self.folder, self.record), _REPAIR)


def vectors_role(unit: VectorUnit) -> str:
    """Return the role of the file with the vectors of a unit."""
    return f"{unit}.npy"


def keys_role(unit: VectorUnit) -> str:
    """Return the role of the file with the keys of a unit's rows."""
    return f"{unit}.keys.npy"


def shard_file(folder: Path, number: int, role: str) -> Path:
    """Return the path of a shard's file with this role."""
    return folder / f"shard-{number:05}.{role}"


def record_file(folder: Path, number: int) -> Path:
    """Return the path of a shard's record."""
    return shard_file(folder, number, "json")


def shard_numbers(folder: Path) -> list[int]:
    """Return the numbers of all shards in a folder that have a record."""
    return sorted(int(path.stem.removeprefix("shard-")) for path in folder.glob("shard-*.json"))


def write_shard(
    folder: Path,
    number: int,
    keys: Mapping[VectorUnit, Sequence[bytes]],
    vectors: Mapping[VectorUnit, FloatArray],
    *,
    dtype: StoredType,
) -> ShardRecord:
    """Write a shard, which exists as a whole or not at all, also after a crash.

    ``keys`` has the keys of each unit's rows, ``vectors`` their vectors, float32 of shape (rows,
    dimension), all of one dimension. An existing shard with this number is replaced. Raises
    ArgumentError unless there is one finite vector for each key, OSError.
    """
    import numpy as np

    parts: dict[str, NDArray[Any]] = {}
    for unit, rows in vectors.items():
        stored = np.ascontiguousarray(rows, dtype=dtype)
        _check_vectors(unit, stored, len(keys[unit]))
        parts[vectors_role(unit)] = stored
        joined = np.frombuffer(b"".join(keys[unit]), np.uint8)
        parts[keys_role(unit)] = joined.reshape(-1, KEY_BYTES)
    record_file(folder, number).unlink(missing_ok=True)
    files = {
        role: write_file(shard_file(folder, number, role), npy_bytes(array))
        for role, array in parts.items()
    }
    sync(folder)
    record = ShardRecord(number, {unit: len(rows) for unit, rows in vectors.items()}, files)
    write_record(folder, record)
    return record


def write_record(folder: Path, record: ShardRecord) -> None:
    """Write the record of a shard whose files are complete."""
    write_atomically(record_file(folder, record.number), orjson.dumps(record))


def shard_record(folder: Path, number: int) -> ShardRecord | None:
    """Read the record of a shard; None if the shard does not exist or is not finished.

    The sizes of its files are checked; ``StoredShard.verify`` reads their content. Raises
    VectorsDamagedError, VectorsVersionError.
    """
    path = record_file(folder, number)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    record = read_record(ShardRecord, data, str(path), _REPAIR)
    if record.number != number:
        raise VectorsDamagedError(
            f"The record is that of shard {record.number}.", where=str(path), do=_REPAIR
        )
    if not record.holds(record.rows):
        raise VectorsDamagedError(
            "The record cannot be read (its files are not those of its rows).",
            where=str(path),
            do=_REPAIR,
        )
    check_sizes(_files_of(folder, record), _REPAIR)
    return record


def take_shard(shard: StoredShard, folder: Path, number: int) -> ShardRecord:
    """Link a shard of another folder into a folder, under a new number, or copy it if the file
    system has no links. The record is not written."""
    for role in shard.record.files:
        link_or_copy(shard.file(role), shard_file(folder, number, role))
    return replace(shard.record, number=number)


def _files_of(folder: Path, record: ShardRecord) -> dict[Path, FileRecord]:
    return {shard_file(folder, record.number, role): f for role, f in record.files.items()}


def _check_vectors(unit: VectorUnit, rows: NDArray[Any], expected: int) -> None:
    import numpy as np

    if rows.ndim != 2 or len(rows) != expected:
        shape = " x ".join(map(str, rows.shape))
        raise ArgumentError(
            f"There are vectors of shape {shape} for {expected} rows.",
            where=f"unit {unit}",
            allowed="one vector per row",
        )
    if not np.isfinite(rows).all():
        raise ArgumentError(
            "A vector is not finite.",
            where=f"unit {unit}",
            allowed="numbers, neither infinite nor NaN",
        )


class MappedRows:
    """The vectors of a unit in all shards as one array of shape (rows, dimension)."""

    def __init__(
        self,
        shards: Sequence[StoredShard],
        unit: VectorUnit,
        dimension: int,
        dtype: StoredType,
    ) -> None:
        """Map the shards. Raises VectorsDamagedError if an array has another shape."""
        import numpy as np

        self.dimension = dimension
        self.is_converted = dtype != "float32"
        """Whether blocks are converted copies rather than views of the mapped files."""
        self._arrays: list[NDArray[Any]] = []
        starts = [0]
        for shard in shards:
            shape = (shard.record.rows[unit], dimension)
            array = map_array(shard.file(vectors_role(unit)), dtype, shape)
            self._arrays.append(array)
            starts.append(starts[-1] + len(array))
        self._starts = np.array(starts, np.int64)
        self.rows = starts[-1]

    @property
    def shard_rows(self) -> list[int]:
        """The number of rows of each shard."""
        return [len(array) for array in self._arrays]

    def blocks(self, most_rows: int) -> Iterator[tuple[int, FloatArray]]:
        """Yield all vectors as float32 in blocks, each with the number of its first row."""
        for shard in range(len(self._arrays)):
            yield from self.blocks_of(shard, most_rows)

    def blocks_of(self, shard: int, most_rows: int) -> Iterator[tuple[int, FloatArray]]:
        """Yield the blocks of one shard, counted from 0 in the order of the shards."""
        import numpy as np

        array, start = self._arrays[shard], int(self._starts[shard])
        for first in range(0, len(array), most_rows):
            part = array[first : first + most_rows]
            # a plain view: each operation on a memmap takes some microseconds longer
            yield start + first, np.asarray(part, np.float32).view(np.ndarray)

    def gather(self, rows: NDArray[np.int64]) -> FloatArray:
        """Return the vectors of these rows, in their order, as float32. Raises IndexError."""
        import numpy as np

        if not (rows[:-1] <= rows[1:]).all():
            order = np.argsort(rows)
            return self.gather(rows[order])[np.argsort(order)]
        if len(rows) and not 0 <= rows[0] <= rows[-1] < self.rows:
            raise IndexError(f"There are {self.rows} rows.")
        vectors = np.empty((len(rows), self.dimension), np.float32)
        ends = np.searchsorted(rows, self._starts)
        for shard in np.flatnonzero(np.diff(ends)):
            first, end = ends[shard], ends[shard + 1]
            wanted = rows[first:end] - self._starts[shard]
            if self.is_converted:
                vectors[first:end] = self._arrays[shard][wanted]
            else:  # "clip" changes nothing, and lets numpy write to the array without a copy
                np.take(self._arrays[shard], wanted, 0, vectors[first:end], "clip")
        return vectors
