"""Cutting the chunks of an index into shards of rows, and making a shard of vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from arag_search.corpus import Chunk
from arag_search.errors import BuildError
from arag_search.manifest import chunk_fingerprint
from arag_search.vectors.base import EncoderIdentity, VectorUnit
from arag_search.vectors.rows import rows_of
from arag_search.vectors.shards import (
    CHUNKS,
    FINGERPRINT_BYTES,
    FINGERPRINTS,
    ShardRecord,
    StoredType,
    map_array,
    shard_file,
    shard_record,
    verify_shard,
    write_shard,
)

if TYPE_CHECKING:
    from arag_search.vectors.base import FloatArray


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of a shard that are encoded together: those of a unit from ``start`` on."""

    unit: VectorUnit
    start: int
    given: Sequence[str]


@dataclass(frozen=True, slots=True)
class CutShard:
    """Whole chunks in corpus order, and the texts of their rows."""

    number: int
    chunks: Sequence[Chunk]
    texts: Mapping[VectorUnit, Sequence[str]]

    @property
    def rows(self) -> int:
        """Of all units together."""
        return sum(map(len, self.texts.values()))

    def pieces(self, rows: int) -> Iterator[Piece]:
        """All rows, at most so many at once."""
        for unit, texts in self.texts.items():
            for start in range(0, len(texts), rows):
                yield Piece(unit, start, texts[start : start + rows])


def cut_shards(
    chunks: Iterable[Chunk], units: Sequence[VectorUnit], shard_rows: int, first: int = 0
) -> Iterator[CutShard]:
    """Cut chunks into shards of at most ``shard_rows`` rows, numbered from ``first``: the same
    chunks are always cut the same. A chunk with more rows is a shard of its own."""
    held: list[Chunk] = []
    texts: dict[VectorUnit, list[str]] = {unit: [] for unit in units}
    rows = 0
    for chunk in chunks:
        found = {unit: [text for _, text in rows_of(chunk, unit)] for unit in units}
        added = sum(map(len, found.values()))
        if held and rows + added > shard_rows:
            yield CutShard(first, held, texts)
            first, rows, held = first + 1, 0, []
            texts = {unit: [] for unit in units}
        held.append(chunk)
        rows += added
        for unit in units:
            texts[unit] += found[unit]
    if held:
        yield CutShard(first, held, texts)


def steps_of(shard: CutShard) -> int:
    """How much of the index a shard is: see ``steps_of_chunk``."""
    return sum(steps_of_chunk(chunk, tuple(shard.texts)) for chunk in shard.chunks)


def steps_of_chunk(chunk: Chunk, units: Sequence[VectorUnit]) -> int:
    """How many sentences and passages of these units it has, with those that have no row."""
    return len(chunk.sentence_ends) * ("sentence" in units) + ("passage" in units)


def is_made(folder: Path, shard: CutShard) -> bool:
    """Whether a shard was written, of these chunks. All of it is read. Raises VectorsError where
    it is not what was written."""
    import numpy as np

    record = shard_record(folder, shard.number)
    if record is None:
        return False
    verify_shard(folder, record)
    if record.rows != {unit: len(texts) for unit, texts in shard.texts.items()}:
        return False
    prints = b"".join(
        chunk_fingerprint(chunk).to_bytes(FINGERPRINT_BYTES, "big") for chunk in shard.chunks
    )
    ordinals = np.array([chunk.ordinal for chunk in shard.chunks], np.int64)
    return (
        np.array_equal(map_array(shard_file(folder, record.number, CHUNKS)), ordinals)
        and map_array(shard_file(folder, record.number, FINGERPRINTS)).tobytes() == prints
    )


def remove_shards_from(folder: Path, first: int) -> None:
    """Delete the files of shards with this number and greater ones, records first."""
    found = [path for path in folder.glob("shard-*") if _number(path) >= first]
    for path in sorted(found, key=lambda path: not path.name.endswith(".json")):
        path.unlink()


def _number(path: Path) -> int:
    digits = path.name.removeprefix("shard-").partition(".")[0]
    return int(digits) if digits.isdecimal() else -1


class Gathering:
    """The vectors of a shard as they come. It has room for all of them once the first is there."""

    def __init__(self, shard: CutShard) -> None:
        self.shard = shard
        self._left = shard.rows
        self._vectors: dict[VectorUnit, FloatArray] = {}

    @property
    def is_whole(self) -> bool:
        return not self._left

    def put(self, piece: Piece, vectors: FloatArray) -> None:
        """Take the vectors of a piece. Raises BuildError where they are not one for each text."""
        import numpy as np

        rows = len(piece.given)
        if vectors.ndim != 2 or len(vectors) != rows:
            raise BuildError(
                f"The encoder gave for {rows:,} texts an array of shape {vectors.shape}.",
                where=f"passages {self.shard.chunks[0].id} to {self.shard.chunks[-1].id}",
                allowed="a vector for each",
            )
        if piece.unit not in self._vectors:
            shape = (len(self.shard.texts[piece.unit]), vectors.shape[1])
            self._vectors[piece.unit] = np.empty(shape, np.float32)
        self._vectors[piece.unit][piece.start : piece.start + rows] = vectors
        self._left -= rows

    def write(self, folder: Path, dimension: int, dtype: StoredType) -> ShardRecord:
        """Write the shard, which must be whole. Raises ArgumentError for vectors that are not
        finite, OSError."""
        import numpy as np

        for unit in self.shard.texts:
            self._vectors.setdefault(unit, np.empty((0, dimension), np.float32))
        return write_shard(folder, self.shard.number, self.shard.chunks, self._vectors, dtype=dtype)


def make_shard(
    shard: CutShard,
    encode: Callable[[Sequence[str]], FloatArray],
    identity: EncoderIdentity,
    folder: Path,
    *,
    piece_rows: int,
    dtype: StoredType,
) -> ShardRecord:
    """Encode and write a shard in one go. Raises what the encoder raises, BuildError, OSError."""
    gathering = Gathering(shard)
    for piece in shard.pieces(piece_rows):
        gathering.put(piece, encode(piece.given))
    return gathering.write(folder, identity.dimension, dtype)
