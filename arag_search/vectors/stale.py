"""What of a sidecar its index holds no more, told by ordinals and proven by fingerprints.

A deletion file has a line of JSON and then a bit for each chunk, the lowest of a byte first: set
where the index with a given fingerprint does not hold it. It stands beside the shards, which are
never changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from arag_search.durable import write_atomically
from arag_search.errors import VectorsDamagedError
from arag_search.manifest import add_fingerprints, fingerprint_hex
from arag_search.vectors.files import map_array
from arag_search.vectors.records import VECTORS_VERSION, read_record
from arag_search.vectors.shards import FINGERPRINTS, ShardRecord, shard_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]

_MEND = "Delete the file: it is made anew where it is needed."
_NAME_DIGITS = 16


@dataclass(frozen=True, slots=True)
class DeletionRecord:
    """The first line of a deletion file: the index it is of, its chunks in all and deleted."""

    format_version: int
    fingerprint: str
    chunks: int
    deleted: int
    sha256: str


def deletion_file(folder: Path, fingerprint: str) -> Path:
    """Where the deletions lie that lead to an index with this fingerprint."""
    return folder / f"deleted-{fingerprint[:_NAME_DIGITS]}.bits"


def write_deletions(folder: Path, fingerprint: str, deleted: Mask) -> Path:
    """Keep which chunks an index does not hold. Raises OSError."""
    import numpy as np

    bits = np.packbits(deleted, bitorder="little").tobytes()
    record = DeletionRecord(
        format_version=VECTORS_VERSION,
        fingerprint=fingerprint,
        chunks=len(deleted),
        deleted=int(deleted.sum()),
        sha256=hashlib.sha256(bits).hexdigest(),
    )
    path = deletion_file(folder, fingerprint)
    write_atomically(path, orjson.dumps(record) + b"\n" + bits)
    return path


def read_deletions(folder: Path, fingerprint: str, chunks: int) -> Mask | None:
    """Which chunks of a sidecar with so many an index does not hold; None where it is not known.

    Raises VectorsDamagedError, VectorsVersionError.
    """
    import numpy as np

    path = deletion_file(folder, fingerprint)
    try:
        line, _, bits = path.read_bytes().partition(b"\n")
    except FileNotFoundError:
        return None
    record = read_record(DeletionRecord, line, str(path), _MEND)
    if (record.fingerprint, record.chunks) != (fingerprint, chunks):
        raise VectorsDamagedError(
            "The deletions are those of another index.", where=str(path), do=_MEND
        )
    if hashlib.sha256(bits).hexdigest() != record.sha256:
        raise VectorsDamagedError(
            "The file is not what was written: its SHA-256 differs.", where=str(path), do=_MEND
        )
    return np.unpackbits(np.frombuffer(bits, np.uint8), count=chunks, bitorder="little").astype(
        np.bool_
    )


@dataclass(frozen=True, slots=True)
class Difference:
    """How an index differs from a sidecar: which of its chunks are gone, and how many came."""

    deleted: Mask
    missing: int


class IndexOrdinals:
    """The ordinals of the chunks of an index, streamed once, when they are first needed."""

    def __init__(self, stream: Callable[[], Iterator[int]]) -> None:
        self._stream = stream
        self._sorted: NDArray[np.int64] | None = None

    def difference(self, chunks: NDArray[np.int64], deleted: Mask) -> Difference:
        """What changed since: ``chunks`` are the ordinals of a sidecar, ``deleted`` tells which of
        them were gone when it was made."""
        import numpy as np

        index = self._get()
        at = np.searchsorted(index, chunks)
        held = np.zeros(len(chunks), np.bool_)
        inside = at < len(index)
        held[inside] = index[at[inside]] == chunks[inside]
        held &= ~deleted
        return Difference(~held, len(index) - int(held.sum()))

    def _get(self) -> NDArray[np.int64]:
        import numpy as np

        if self._sorted is None:
            self._sorted = np.unique(np.fromiter(self._stream(), np.int64))
        return self._sorted


def fingerprint_of_kept(folder: Path, shards: Sequence[ShardRecord], deleted: Mask) -> str:
    """The fingerprint of the chunks of these shards without those that are deleted."""
    import numpy as np

    total = 0
    start = 0
    for shard in shards:
        prints = map_array(shard_file(folder, shard.number, FINGERPRINTS))
        kept = prints[~deleted[start : start + shard.chunks]]
        total = add_fingerprints(total, _sum(np.ascontiguousarray(kept)))
        start += shard.chunks
    return fingerprint_hex(total)


def _sum(prints: NDArray[np.uint8]) -> int:
    """The sum of big-endian numbers of 32 bytes, one a row."""
    import numpy as np

    words: Iterable[int] = prints.view(">u4").sum(axis=0, dtype=np.uint64).tolist()
    total = 0
    for word in words:
        total = (total << 32) + word
    return total
