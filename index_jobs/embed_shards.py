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
from arag_search.vectors.files import map_array
from arag_search.vectors.rows import rows_of
from arag_search.vectors.shards import (
    CHUNKS,
    FINGERPRINT_BYTES,
    FINGERPRINTS,
    ShardRecord,
    StoredType,
    shard_file,
    shard_record,
    verify_shard,
    write_shard,
)

if TYPE_CHECKING:
    from arag_search.vectors.base import FloatArray


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of a shard that are encoded together: those of a unit at ``places``."""

    unit: VectorUnit
    places: Sequence[int]
    given: Sequence[str]


@dataclass(frozen=True, slots=True)
class Known:
    """Rows of a shard that have vectors already: those of a unit from ``start`` on."""

    unit: VectorUnit
    start: int
    vectors: FloatArray


@dataclass(frozen=True, slots=True)
class CutShard:
    """Whole chunks in corpus order, the texts of their rows, and the vectors that are known."""

    number: int
    chunks: Sequence[Chunk]
    texts: Mapping[VectorUnit, Sequence[str]]
    known: Sequence[Known] = ()

    @property
    def rows(self) -> int:
        """Of all units together."""
        return sum(map(len, self.texts.values()))

    @property
    def encoded_rows(self) -> int:
        """Those without the known ones."""
        return self.rows - sum(len(each.vectors) for each in self.known)

    def pieces(self, rows: int) -> Iterator[Piece]:
        """All rows that are to be encoded, at most so many at once."""
        for unit, texts in self.texts.items():
            known = {
                place
                for each in self.known
                if each.unit == unit
                for place in range(each.start, each.start + len(each.vectors))
            }
            wanted = [place for place in range(len(texts)) if place not in known]
            for start in range(0, len(wanted), rows):
                places = wanted[start : start + rows]
                yield Piece(unit, places, [texts[place] for place in places])


def cut_shards(
    chunks: Iterable[Chunk],
    units: Sequence[VectorUnit],
    shard_rows: int,
    known: Callable[[Chunk], Mapping[VectorUnit, FloatArray] | None] = lambda _: None,
) -> Iterator[CutShard]:
    """Cut chunks into shards of at most ``shard_rows`` rows: the same chunks are always cut the
    same. A chunk with more rows is a shard of its own. ``known`` gives the vectors of a chunk that
    need not be encoded."""
    number = rows = 0
    held: list[Chunk] = []
    vectors: list[Known] = []
    texts: dict[VectorUnit, list[str]] = {unit: [] for unit in units}
    for chunk in chunks:
        found = {unit: [text for _, text in rows_of(chunk, unit)] for unit in units}
        added = sum(map(len, found.values()))
        if held and rows + added > shard_rows:
            yield CutShard(number, held, texts, vectors)
            number, rows, held, vectors = number + 1, 0, [], []
            texts = {unit: [] for unit in units}
        for unit, those in (known(chunk) or {}).items():
            vectors.append(Known(unit, len(texts[unit]), those))
        held.append(chunk)
        rows += added
        for unit in units:
            texts[unit] += found[unit]
    if held:
        yield CutShard(number, held, texts, vectors)


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


def finished_shards(folder: Path) -> int:
    """How many shards have their record there."""
    return sum(1 for _ in folder.glob("shard-*.json"))


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
        for each in shard.known:
            rows = range(each.start, each.start + len(each.vectors))
            self._put(each.unit, rows, each.vectors)

    @property
    def is_whole(self) -> bool:
        return not self._left

    def put(self, piece: Piece, vectors: FloatArray) -> None:
        """Take the vectors of a piece. Raises BuildError where they are not one for each text."""
        rows = len(piece.given)
        if vectors.ndim != 2 or len(vectors) != rows:
            raise BuildError(
                f"The encoder gave for {rows:,} texts an array of shape {vectors.shape}.",
                where=f"passages {self.shard.chunks[0].id} to {self.shard.chunks[-1].id}",
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
