"""Where an index has its texts: which ordinal belongs to which text, for every row of its vectors.

It is made by reading the index once, in corpus order, and proven by the placement in the manifest
of the index. Its files:

``chunks.npy``         int64, the ordinal of each chunk, growing
``digests.npy``        uint8 of shape (chunks, 32): ``chunk_placement`` of each
``column-*.npy``       the metadata of the chunks, see columns.py
``<unit>.ends.npy``    int64, of each chunk the number of texts up to its end
``<unit>.places.npy``  int64, the ordinal of each text
``<unit>.wanted.npy``  uint8 of shape (texts, 16): the key of each text
``<unit>.rows.npy``    int64, the row of each text in the shards, once that is known

In all of them chunks and texts are in corpus order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from arag_search.corpus import Chunk, MetadataValue
from arag_search.manifest import DIGEST_BYTES, CorpusDigest, chunk_fingerprint, chunk_placement
from arag_search.query.fields import MetadataType
from arag_search.vectors.base import VectorUnit
from arag_search.vectors.storage.columns import ColumnsWriter
from arag_search.vectors.storage.files import ArrayWriter, map_array
from arag_search.vectors.storage.rows import KEY_BYTES, row_key, rows_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]
    Keys = NDArray[np.uint8]

_BLOCK_CHUNKS = 4_096
"""So many chunks are written at once, and a segment of the columns."""


def chunks_file(folder: Path) -> Path:
    """Where the ordinals of all chunks lie."""
    return folder / "chunks.npy"


def digests_file(folder: Path) -> Path:
    """Where the placements of all chunks lie."""
    return folder / "digests.npy"


def ends_file(folder: Path, unit: VectorUnit) -> Path:
    """Where the ends of chunks in the texts of a unit lie."""
    return folder / f"{unit}.ends.npy"


def places_file(folder: Path, unit: VectorUnit) -> Path:
    """Where the ordinals of the texts of a unit lie."""
    return folder / f"{unit}.places.npy"


def wanted_file(folder: Path, unit: VectorUnit) -> Path:
    """Where the keys of the texts of a unit lie."""
    return folder / f"{unit}.wanted.npy"


def rows_file(folder: Path, unit: VectorUnit) -> Path:
    """Where the rows of the texts of a unit lie."""
    return folder / f"{unit}.rows.npy"


class _TextWriters(NamedTuple):
    """What is written of the texts of a unit."""

    ends: ArrayWriter
    places: ArrayWriter
    wanted: ArrayWriter


class PlacementWriter:
    """Writes the placement of an index into a folder that is there. A context manager.

    ``digest`` is that of the chunks so far. Memory does not grow with them.
    """

    def __init__(
        self, folder: Path, units: Sequence[VectorUnit], metadata: Mapping[str, MetadataType]
    ) -> None:
        self.digest = CorpusDigest()
        self._held: list[Chunk] = []
        self._chunks = ArrayWriter(chunks_file(folder), "int64")
        self._digests = ArrayWriter(digests_file(folder), "uint8", DIGEST_BYTES)
        self._texts: dict[VectorUnit, _TextWriters] = {
            unit: _TextWriters(
                ArrayWriter(ends_file(folder, unit), "int64"),
                ArrayWriter(places_file(folder, unit), "int64"),
                ArrayWriter(wanted_file(folder, unit), "uint8", KEY_BYTES),
            )
            for unit in units
        }
        self._columns = ColumnsWriter(folder, metadata)

    def __enter__(self) -> PlacementWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._write()
        arrays = [array for writers in self._texts.values() for array in writers]
        for writer in (self._chunks, self._digests, *arrays, self._columns):
            writer.close()

    def add(self, chunk: Chunk) -> None:
        """Take the next chunk in corpus order. Raises ArgumentError for metadata that is not of
        its field's type, OSError."""
        self._held.append(chunk)
        if len(self._held) == _BLOCK_CHUNKS:
            self._write()

    def _write(self) -> None:
        import numpy as np

        chunks, self._held = self._held, []
        self._chunks.write(np.array([chunk.ordinal for chunk in chunks], np.int64))
        digests: list[bytes] = []
        for chunk in chunks:
            fingerprint = chunk_fingerprint(chunk)
            digests.append(chunk_placement(chunk, fingerprint))
            self.digest.count(fingerprint, digests[-1])
        self._digests.write(_bytes(digests, DIGEST_BYTES))
        for unit, writers in self._texts.items():
            by_chunk = [rows_of(chunk, unit) for chunk in chunks]
            texts = [text for texts in by_chunk for text in texts]
            writers.ends.write(writers.places.length + np.cumsum(list(map(len, by_chunk))))
            writers.places.write(np.array([ordinal for ordinal, _ in texts], np.int64))
            writers.wanted.write(_bytes([row_key(text) for _, text in texts], KEY_BYTES))
        metadata: list[tuple[str, Mapping[str, MetadataValue]]] = [
            (chunk.doc_id, chunk.metadata) for chunk in chunks
        ]
        self._columns.add_segment(metadata)


def _bytes(rows: Sequence[bytes], columns: int) -> NDArray[np.uint8]:
    import numpy as np

    return np.frombuffer(b"".join(rows), np.uint8).reshape(-1, columns)


def wanted_keys(folder: Path, unit: VectorUnit) -> Keys:
    """The keys of the texts of a unit, mapped. Raises VectorsDamagedError."""
    return map_array(wanted_file(folder, unit), "uint8", (None, KEY_BYTES))


def chunk_ends(folder: Path, unit: VectorUnit) -> Numbers:
    """The ends of the chunks in the texts of a unit, mapped. Raises VectorsDamagedError."""
    return map_array(ends_file(folder, unit), "int64", (None,))
