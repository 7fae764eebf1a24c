"""Shards: what a run of chunks gives, in files that are mapped into memory rather than read.

A shard is there as soon as its record is, which is written last. Its files are named by its number
and a role, as ``shard-00003.sentence.npy``:

``<unit>.npy``           vectors, shape (rows, dimension), float32 or float16, in order of ordinal
``<unit>.ordinals.npy``  int64, the ordinal of each row
``chunks.npy``           int64, the ordinal of each chunk, growing
``fingerprints.npy``     uint8 of shape (chunks, 32): the fingerprint of each chunk, big-endian
``metadata.jsonl``       of each chunk a line ``[doc_id, metadata]``
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import orjson

from arag_search.corpus import Chunk
from arag_search.durable import sync_folder, write_atomically
from arag_search.errors import ArgumentError, VectorsDamagedError
from arag_search.manifest import chunk_fingerprint
from arag_search.vectors.base import VectorUnit
from arag_search.vectors.files import (
    FileRecord,
    check_contents,
    check_sizes,
    link_or_copy,
    npy_bytes,
    write_file,
)
from arag_search.vectors.records import VECTORS_VERSION, read_record
from arag_search.vectors.rows import rows_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from arag_search.vectors.base import FloatArray

StoredType = Literal["float32", "float16"]

CHUNKS = "chunks.npy"
FINGERPRINTS = "fingerprints.npy"
METADATA = "metadata.jsonl"
FINGERPRINT_BYTES = 32
_MEND = "Delete the record of the shard and embed again: it alone is embedded anew."


@dataclass(frozen=True, slots=True)
class ShardRecord:
    """One finished shard: its chunks, rows of each unit, and files by role.

    ``first_ordinal`` and ``last_ordinal`` are those of its first and last chunk.
    """

    number: int
    first_ordinal: int
    last_ordinal: int
    chunks: int
    rows: dict[VectorUnit, int]
    files: dict[str, FileRecord]
    format_version: int = VECTORS_VERSION


def vectors_role(unit: VectorUnit) -> str:
    """The role of the file with the vectors of a unit."""
    return f"{unit}.npy"


def ordinals_role(unit: VectorUnit) -> str:
    """The role of the file with the ordinals of a unit's rows."""
    return f"{unit}.ordinals.npy"


def shard_file(folder: Path, number: int, role: str) -> Path:
    """Where the file of a shard with this role lies."""
    return folder / f"shard-{number:05}.{role}"


def record_file(folder: Path, number: int) -> Path:
    """Where the record of a shard lies."""
    return shard_file(folder, number, "json")


def write_shard(
    folder: Path,
    number: int,
    chunks: Sequence[Chunk],
    vectors: Mapping[VectorUnit, FloatArray],
    *,
    dtype: StoredType,
) -> ShardRecord:
    """Write the shard of these chunks; it is there as a whole, or not, whatever happens.

    ``chunks`` are in corpus order and at least one. ``vectors`` hold for each unit the vectors of
    ``rows_of`` over the chunks, float32 of shape (rows, dimension), all of one dimension. A shard
    of this number that is there already is replaced. Raises ArgumentError for vectors that do not
    fit the chunks or are not finite, OSError.
    """
    import numpy as np

    _check_chunks(chunks)
    parts: dict[str, NDArray[Any]] = {}
    for unit, rows in vectors.items():
        ordinals = [ordinal for chunk in chunks for ordinal, _ in rows_of(chunk, unit)]
        stored = np.ascontiguousarray(rows, dtype=dtype)
        _check_vectors(unit, stored, len(ordinals))
        parts[vectors_role(unit)] = stored
        parts[ordinals_role(unit)] = np.array(ordinals, dtype=np.int64)
    parts[CHUNKS] = np.array([chunk.ordinal for chunk in chunks], dtype=np.int64)
    prints = b"".join(chunk_fingerprint(c).to_bytes(FINGERPRINT_BYTES, "big") for c in chunks)
    parts[FINGERPRINTS] = np.frombuffer(prints, np.uint8).reshape(-1, FINGERPRINT_BYTES)
    record_file(folder, number).unlink(missing_ok=True)
    files: dict[str, FileRecord] = {}
    for role, array in parts.items():
        files[role] = write_file(shard_file(folder, number, role), npy_bytes(array))
    lines = (orjson.dumps([chunk.doc_id, chunk.metadata]) + b"\n" for chunk in chunks)
    files[METADATA] = write_file(shard_file(folder, number, METADATA), lines)
    sync_folder(folder)
    record = ShardRecord(
        number=number,
        first_ordinal=chunks[0].ordinal,
        last_ordinal=chunks[-1].ordinal,
        chunks=len(chunks),
        rows={unit: len(rows) for unit, rows in vectors.items()},
        files=files,
    )
    write_record(folder, record)
    return record


def write_record(folder: Path, record: ShardRecord) -> None:
    """Write the record of a shard whose files are there."""
    write_atomically(record_file(folder, record.number), orjson.dumps(record))


def shard_record(folder: Path, number: int) -> ShardRecord | None:
    """The record of a shard, or None where it is not there or was not finished.

    The files are looked for, and their sizes compared; ``verify_shard`` reads them. Raises
    VectorsDamagedError, VectorsVersionError.
    """
    path = record_file(folder, number)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    record = read_record(ShardRecord, data, str(path), _MEND)
    if record.number != number:
        raise VectorsDamagedError(
            f"The record is that of shard {record.number}.", where=str(path), do=_MEND
        )
    check_sizes(_files_of(folder, record), _MEND)
    return record


def verify_shard(folder: Path, record: ShardRecord) -> None:
    """Read all files of a shard. Raises VectorsDamagedError for one that is not as written."""
    check_contents(_files_of(folder, record), _MEND)


def take_shard(source: Path, record: ShardRecord, folder: Path, number: int) -> ShardRecord:
    """Let a folder have a shard of another under a new number: linked where the file system can,
    else copied. The record is not written."""
    for role in record.files:
        link_or_copy(shard_file(source, record.number, role), shard_file(folder, number, role))
    return replace(record, number=number)


def load_metadata(folder: Path, record: ShardRecord) -> list[tuple[str, dict[str, Any]]]:
    """Of each chunk of a shard its doc_id and metadata. Raises VectorsDamagedError."""
    path = shard_file(folder, record.number, METADATA)
    lines = path.read_bytes().splitlines()
    try:
        found: list[tuple[str, dict[str, Any]]] = [(a, b) for a, b in map(orjson.loads, lines)]
    except (ValueError, TypeError) as error:
        raise VectorsDamagedError(f"The metadata cannot be read ({error}).", where=str(path)) from (
            error
        )
    if len(found) != record.chunks:
        raise VectorsDamagedError(
            f"There is metadata of {len(found)} chunks, not of {record.chunks}.", where=str(path)
        )
    return found


def _files_of(folder: Path, record: ShardRecord) -> dict[Path, FileRecord]:
    return {shard_file(folder, record.number, role): f for role, f in record.files.items()}


def _check_chunks(chunks: Sequence[Chunk]) -> None:
    if not chunks:
        raise ArgumentError("A shard without chunks.", allowed="1 chunk or more")
    for before, after in itertools.pairwise(chunks):
        if before.ordinal >= after.ordinal:
            raise ArgumentError(
                "The chunks of a shard are not in corpus order.",
                where=f"chunk {after.id}",
                allowed="growing ordinals",
            )


def _check_vectors(unit: VectorUnit, rows: NDArray[Any], expected: int) -> None:
    import numpy as np

    if rows.ndim != 2 or len(rows) != expected:
        shape = " x ".join(map(str, rows.shape))
        raise ArgumentError(
            f"There are vectors of shape {shape} for {expected} rows.",
            where=f"unit {unit}",
            allowed="one vector a row",
        )
    if not np.isfinite(rows).all():
        raise ArgumentError(
            "A vector is not finite.",
            where=f"unit {unit}",
            allowed="numbers, neither infinite nor NaN",
        )
