"""The placement of an index in files: the ordinal and the key of every text that has a vector.

It is created by reading the index once, in corpus order, and verified by the placement in the
index's manifest. Its files:

``chunks.npy``         int64, the ordinal of each chunk, ascending
``column-*.npy``       the metadata of the chunks, see columns.py
``<unit>.ends.npy``    int64, for each chunk, the number of texts up to its end
``<unit>.texts.npy``   int64, the ordinal of each text
``<unit>.wanted.npy``  uint8 of shape (texts, 16): the key of each text
``<unit>.rows.npy``    int64, the row of each text in the shards, once known

In all of them, chunks and texts are in corpus order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from arag_search.corpus import Chunk, MetadataValue
from arag_search.manifest import CorpusDigest
from arag_search.query.fields import MetadataType
from arag_search.vectors.base import KEY_BYTES, VectorUnit, row_key, rows_of
from arag_search.vectors.storage.columns import ColumnsWriter
from arag_search.vectors.storage.files import ArrayWriter, map_array

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]
    Keys = NDArray[np.uint8]

_BLOCK_CHUNKS = 4_096
"""The number of chunks that are written at once, and form a segment of the columns."""


def chunks_file(folder: Path) -> Path:
    """Return the file with the ordinals of all chunks."""
    return folder / "chunks.npy"


def ends_file(folder: Path, unit: VectorUnit) -> Path:
    """Return the file with the ends of chunks in the texts of a unit."""
    return folder / f"{unit}.ends.npy"


def texts_file(folder: Path, unit: VectorUnit) -> Path:
    """Return the file with the ordinals of the texts of a unit."""
    return folder / f"{unit}.texts.npy"


def wanted_file(folder: Path, unit: VectorUnit) -> Path:
    """Return the file with the keys of the texts of a unit."""
    return folder / f"{unit}.wanted.npy"


def rows_file(folder: Path, unit: VectorUnit) -> Path:
    """Return the file with the rows of the texts of a unit."""
    return folder / f"{unit}.rows.npy"


class _TextWriters(NamedTuple):
    """The writers of the arrays of a unit's texts."""

    ends: ArrayWriter
    ordinals: ArrayWriter
    wanted: ArrayWriter


class PlacementWriter:
    """A writer of the placement of an index into an existing folder. A context manager.

    ``digest`` is that of the chunks so far. ``sentence_titles`` is as in ``rows_of``. Memory does
    not grow with the number of chunks.
    """

    def __init__(
        self,
        folder: Path,
        units: Sequence[VectorUnit],
        metadata: Mapping[str, MetadataType],
        *,
        sentence_titles: bool = False,
    ) -> None:
        self._sentence_titles = sentence_titles
        self.digest = CorpusDigest()
        self._pending: list[Chunk] = []
        self._chunks = ArrayWriter(chunks_file(folder), "int64")
        self._texts: dict[VectorUnit, _TextWriters] = {
            unit: _TextWriters(
                ArrayWriter(ends_file(folder, unit), "int64"),
                ArrayWriter(texts_file(folder, unit), "int64"),
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
        for writer in (self._chunks, *arrays, self._columns):
            writer.close()

    def add(self, chunk: Chunk) -> None:
        """Add the next chunk in corpus order. Raises ArgumentError for metadata that is not of its
        field's type, OSError."""
        self._pending.append(chunk)
        if len(self._pending) == _BLOCK_CHUNKS:
            self._write()

    def _write(self) -> None:
        import numpy as np

        chunks, self._pending = self._pending, []
        self._chunks.write(np.array([chunk.ordinal for chunk in chunks], np.int64))
        for chunk in chunks:
            self.digest.add(chunk)
        for unit, writers in self._texts.items():
            by_chunk = [
                rows_of(chunk, unit, sentence_titles=self._sentence_titles) for chunk in chunks
            ]
            texts = [text for texts in by_chunk for text in texts]
            writers.ends.write(writers.ordinals.length + np.cumsum(list(map(len, by_chunk))))
            writers.ordinals.write(np.array([ordinal for ordinal, _ in texts], np.int64))
            keys = b"".join(row_key(text) for _, text in texts)
            writers.wanted.write(np.frombuffer(keys, np.uint8).reshape(-1, KEY_BYTES))
        metadata: list[tuple[str, Mapping[str, MetadataValue]]] = [
            (chunk.doc_id, chunk.metadata) for chunk in chunks
        ]
        self._columns.add_segment(metadata)


def wanted_keys(folder: Path, unit: VectorUnit) -> Keys:
    """Map the keys of the texts of a unit. Raises VectorsDamagedError."""
    return map_array(wanted_file(folder, unit), "uint8", (None, KEY_BYTES))


def chunk_ends(folder: Path, unit: VectorUnit) -> Numbers:
    """Map the ends of the chunks in the texts of a unit. Raises VectorsDamagedError."""
    return map_array(ends_file(folder, unit), "int64", (None,))
