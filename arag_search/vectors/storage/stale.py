"""The difference between a sidecar and a changed index: which passages are still in place.

A passage is verified by its placement (see ``chunk_placement``): ordinal, text, sentence ends and
metadata are unchanged. The result is stored in a file next to the shards, which are never changed:
a line of JSON, then a bit for each chunk of the sidecar, the lowest of a byte first, set if the
index with a given placement does not have it.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import orjson

from arag_search.corpus import Chunk
from arag_search.errors import VectorsDamagedError
from arag_search.manifest import (
    DIGEST_BYTES,
    CorpusDigest,
    Manifest,
    chunk_fingerprint,
    chunk_placement,
    fingerprint_hex,
)
from arag_search.query.tree import Scope
from arag_search.system.durable import write_atomically
from arag_search.vectors.storage.files import map_array
from arag_search.vectors.storage.manifest import VectorManifest
from arag_search.vectors.storage.placement import chunks_file, digests_file
from arag_search.vectors.storage.records import VECTORS_VERSION, read_record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]
    Numbers = NDArray[np.int64]
    Digests = NDArray[np.uint8]

_REPAIR = "Delete the file: it is created again when it is needed."
_NAME_DIGITS = 16
_KEPT_DIFFERENCES = 8
_READ_CHUNKS = 1_000


class IndexedChunks(Protocol):
    """The methods of an index that are used for a comparison; see SearchEngine."""

    @property
    def manifest(self) -> Manifest: ...

    def ordinals(self) -> Iterator[int]: ...

    def chunks_at(self, ordinals: Sequence[int], scope: Scope | None) -> list[Chunk | None]: ...

    def scan(self, scope: Scope | None) -> Iterator[Chunk]: ...


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of an index from a sidecar: the chunks of the sidecar that the index does not
    have unchanged (``gone``), and the number of its chunks without vectors (``missing``)."""

    gone: Mask
    missing: int


@dataclass(frozen=True, slots=True)
class DifferenceRecord:
    """The first line of a file of a difference; ``chunks`` are those of the sidecar."""

    format_version: int
    placement: str
    chunks: int
    gone: int
    missing: int
    sha256: str


def difference_file(folder: Path, placement: str) -> Path:
    """Return the file with the difference from an index with this placement."""
    return folder / f"served-{placement[:_NAME_DIGITS]}.bits"


def write_difference(folder: Path, placement: str, difference: Difference) -> Path:
    """Store a difference, and delete the oldest ones. Raises OSError."""
    import numpy as np

    bits = np.packbits(difference.gone, bitorder="little").tobytes()
    record = DifferenceRecord(
        format_version=VECTORS_VERSION,
        placement=placement,
        chunks=len(difference.gone),
        gone=int(difference.gone.sum()),
        missing=difference.missing,
        sha256=hashlib.sha256(bits).hexdigest(),
    )
    path = difference_file(folder, placement)
    # Several processes may compare the same index at the same time.
    write_atomically(path, orjson.dumps(record) + b"\n" + bits, shared=True)
    stored = sorted(folder.glob("served-*.bits"), key=lambda file: file.stat().st_mtime_ns)
    for old in stored[:-_KEPT_DIFFERENCES]:
        old.unlink(missing_ok=True)
    return path


def read_difference(folder: Path, placement: str, chunks: int) -> Difference | None:
    """Read the difference of a sidecar with ``chunks`` chunks from an index; None if unknown.

    Raises VectorsDamagedError, VectorsVersionError.
    """
    import numpy as np

    path = difference_file(folder, placement)
    try:
        line, _, bits = path.read_bytes().partition(b"\n")
    except FileNotFoundError:
        return None
    record = read_record(DifferenceRecord, line, str(path), _REPAIR)
    if (record.placement, record.chunks) != (placement, chunks):
        raise VectorsDamagedError("The file is that of another index.", where=str(path), do=_REPAIR)
    if hashlib.sha256(bits).hexdigest() != record.sha256:
        raise VectorsDamagedError(
            "The file has changed since it was written: its SHA-256 differs.",
            where=str(path),
            do=_REPAIR,
        )
    gone = np.unpackbits(np.frombuffer(bits, np.uint8), count=chunks, bitorder="little")
    return Difference(gone.astype(np.bool_), record.missing)


class IndexPlacement:
    """The ordinals and placements of the chunks of an index, read once and only when needed."""

    def __init__(self, index: IndexedChunks) -> None:
        self._index = index
        self._ordinals: Numbers | None = None
        self._all: tuple[Numbers, Digests] | None = None

    def difference(self, folder: Path, sidecar: VectorManifest) -> Difference:
        """Compare a sidecar with the index. Raises VectorsDamagedError.

        O(chunks): the ordinals of the index are streamed. Only chunks at new ordinals are read,
        unless their digests do not prove that the others are unchanged; then all are.
        """
        chunks: Numbers = map_array(chunks_file(folder), "int64", (sidecar.chunks,))
        shape = (sidecar.chunks, DIGEST_BYTES)
        digests: Digests = map_array(digests_file(folder), "uint8", shape)
        ordinals = self._get_ordinals()
        held = _among(ordinals, chunks)
        new = ordinals[~_among(chunks, ordinals)]
        if 2 * len(new) <= len(ordinals):
            digest = CorpusDigest.of(self._read(new))
            digest.include(CorpusDigest(placement=digest_sum(digests, held)))
            if fingerprint_hex(digest.placement) == self._index.manifest.placement:
                return Difference(~held, len(new))
        return self._compared(chunks, digests)

    def _compared(self, chunks: Numbers, digests: Digests) -> Difference:
        """Compare all chunks one by one."""
        import numpy as np

        if self._all is None:
            placed, joined = array("q"), bytearray()
            for chunk in self._index.scan(None):
                placed.append(chunk.ordinal)
                joined += chunk_placement(chunk, chunk_fingerprint(chunk))
            held_digests = np.frombuffer(joined, np.uint8).reshape(-1, DIGEST_BYTES)
            self._all = np.frombuffer(placed, np.int64), held_digests
        ordinals, theirs = self._all
        same = np.zeros(len(chunks), np.bool_)
        held = np.flatnonzero(_among(ordinals, chunks))
        at = np.searchsorted(ordinals, chunks[held])
        same[held] = (digests[held] == theirs[at]).all(axis=1)
        return Difference(~same, len(ordinals) - int(same.sum()))

    def _get_ordinals(self) -> Numbers:
        import numpy as np

        if self._ordinals is None:
            self._ordinals = np.unique(np.fromiter(self._index.ordinals(), np.int64))
        return self._ordinals

    def _read(self, ordinals: Numbers) -> Iterator[Chunk]:
        for start in range(0, len(ordinals), _READ_CHUNKS):
            batch: list[int] = ordinals[start : start + _READ_CHUNKS].tolist()
            yield from filter(None, self._index.chunks_at(batch, None))


def _among(values: Numbers, wanted: Numbers) -> Mask:
    """Return, for each wanted number, whether it is one of the values, which ascend."""
    import numpy as np

    present = np.zeros(len(wanted), np.bool_)
    at = np.searchsorted(values, wanted)
    inside = at < len(values)
    present[inside] = values[at[inside]] == wanted[inside]
    return present


def digest_sum(digests: Digests, kept: Mask) -> int:
    """Return the sum modulo 2^256 of the ``kept`` digests, each a big-endian number."""
    import numpy as np

    rows = np.ascontiguousarray(digests[kept])
    words: list[int] = rows.view(">u4").sum(axis=0, dtype=np.uint64).tolist()
    total = 0
    for word in words:
        total = (total << 32) + word
    return total % (1 << (8 * DIGEST_BYTES))
