"""Cutting the texts that need a vector into shards, and making a shard of vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from arag_search.errors import BuildError
from arag_search.vectors.base import EncoderIdentity, VectorUnit
from arag_search.vectors.storage.rows import row_key
from arag_search.vectors.storage.shards import ShardRecord, StoredType, write_shard

if TYPE_CHECKING:
    from arag_search.vectors.base import FloatArray

TO_ENCODE = -1
"""A marker in place of a row to copy the vector from: the text must be encoded."""

Wanted = Mapping[VectorUnit, Sequence[tuple[str, int]]]
"""The texts of a chunk that need a row, by unit, each with the row to copy its vector from, or
TO_ENCODE."""

Copying = Callable[[VectorUnit, Sequence[int]], "FloatArray"]
"""A function that returns the vectors of existing rows."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of a shard that are encoded together: the texts of a unit at ``places``."""

    unit: VectorUnit
    places: Sequence[int]
    payload: Sequence[str]


@dataclass(frozen=True, slots=True)
class Known:
    """Rows of a shard that already have vectors: the rows of a unit at ``places``."""

    places: Sequence[int]
    vectors: FloatArray


@dataclass(frozen=True, slots=True)
class CutShard:
    """The texts of the rows of a shard, and the vectors that are already known."""

    number: int
    texts: Mapping[VectorUnit, Sequence[str]]
    known: Mapping[VectorUnit, Known] = field(default_factory=dict[VectorUnit, Known])

    @property
    def rows(self) -> int:
        """The number of rows of all units together."""
        return sum(map(len, self.texts.values()))

    def pieces(self, rows: int) -> Iterator[Piece]:
        """Yield all rows that must be encoded, in pieces of at most ``rows``."""
        for unit, texts in self.texts.items():
            known = set(self.known[unit].places) if unit in self.known else set[int]()
            wanted = [place for place in range(len(texts)) if place not in known]
            for start in range(0, len(wanted), rows):
                places = wanted[start : start + rows]
                yield Piece(unit, places, [texts[place] for place in places])


def cut_shards(
    chunks: Iterable[Wanted],
    units: Sequence[VectorUnit],
    shard_rows: int,
    copying: Copying,
    first_number: int = 0,
) -> Iterator[CutShard]:
    """Divide the texts of chunks into shards of at most ``shard_rows`` rows, numbered from
    ``first_number``.

    A chunk with more texts gets a shard to itself.
    """
    number, rows = first_number, 0
    texts: dict[VectorUnit, list[tuple[str, int]]] = {unit: [] for unit in units}
    for wanted in chunks:
        added = sum(map(len, wanted.values()))
        if rows and rows + added > shard_rows:
            yield _cut(number, texts, copying)
            number, rows = number + 1, 0
            texts = {unit: [] for unit in units}
        rows += added
        for unit in units:
            texts[unit] += wanted[unit]
    if rows:
        yield _cut(number, texts, copying)


def _cut(
    number: int, texts: Mapping[VectorUnit, Sequence[tuple[str, int]]], copying: Copying
) -> CutShard:
    known: dict[VectorUnit, Known] = {}
    for unit, pairs in texts.items():
        places = [place for place, (_, row) in enumerate(pairs) if row != TO_ENCODE]
        if places:
            known[unit] = Known(places, copying(unit, [pairs[place][1] for place in places]))
    return CutShard(
        number, {unit: [text for text, _ in pairs] for unit, pairs in texts.items()}, known
    )


def finished_shards(folder: Path) -> int:
    """Return how many shards of a folder are finished: a finished shard has a record."""
    return sum(1 for _ in folder.glob("shard-*.json"))


class Gathering:
    """The vectors of a shard, collected as they are encoded. Memory for all vectors of a unit is
    allocated when the first ones arrive."""

    def __init__(self, shard: CutShard) -> None:
        self.shard = shard
        self._left = shard.rows
        self._vectors: dict[VectorUnit, FloatArray] = {}
        for unit, known in shard.known.items():
            self._put(unit, known.places, known.vectors)

    @property
    def is_whole(self) -> bool:
        return not self._left

    def put(self, piece: Piece, vectors: FloatArray) -> None:
        """Add the vectors of a piece. Raises BuildError unless there is one for each text."""
        rows = len(piece.payload)
        if vectors.ndim != 2 or len(vectors) != rows:
            raise BuildError(
                f"The encoder returned an array of shape {vectors.shape} for {rows:,} texts.",
                where=f"the {piece.unit} that begins with {piece.payload[0][:60]!r}",
                allowed="a vector for each",
            )
        self._put(piece.unit, piece.places, vectors)

    def _put(self, unit: VectorUnit, places: Sequence[int], vectors: FloatArray) -> None:
        import numpy as np

        if unit not in self._vectors:
            shape = (len(self.shard.texts[unit]), vectors.shape[1])
            self._vectors[unit] = np.empty(shape, np.float32)
        self._vectors[unit][list(places)] = vectors
        self._left -= len(places)

    def write(self, folder: Path, dimension: int, dtype: StoredType) -> ShardRecord:
        """Write the shard, which must be complete. Raises ArgumentError for vectors that are not
        finite, OSError."""
        import numpy as np

        for unit in self.shard.texts:
            self._vectors.setdefault(unit, np.empty((0, dimension), np.float32))
        keys: dict[VectorUnit, list[bytes]] = {
            unit: list(map(row_key, texts)) for unit, texts in self.shard.texts.items()
        }
        return write_shard(folder, self.shard.number, keys, self._vectors, dtype=dtype)


def make_shard(
    shard: CutShard,
    encode: Callable[[Sequence[str]], FloatArray],
    identity: EncoderIdentity,
    folder: Path,
    *,
    piece_rows: int,
    dtype: StoredType,
) -> ShardRecord:
    """Encode and write a whole shard. Raises what the encoder raises, BuildError, OSError."""
    gathering = Gathering(shard)
    for piece in shard.pieces(piece_rows):
        gathering.put(piece, encode(piece.payload))
    return gathering.write(folder, identity.dimension, dtype)
