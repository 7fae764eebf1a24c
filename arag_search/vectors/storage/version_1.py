"""Vectors of format version 1, which are checked and converted, and never searched.

Version 1 bound rows to passages by ordinals alone, and compared only which passages an index holds.
If these were in another order, it showed the text of other passages. Its shards have fingerprints
of the passages of their rows, from which a conversion derives the keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from arag_search.corpus import MAX_SENTENCES, Chunk
from arag_search.errors import VectorsDamagedError, VectorsError
from arag_search.manifest import DIGEST_BYTES, chunk_fingerprint
from arag_search.vectors.base import EncoderIdentity, VectorUnit
from arag_search.vectors.storage.files import (
    EMBED_AGAIN,
    FileRecord,
    check_contents,
    file_record,
    link_or_copy,
    map_array,
    npy_header,
)
from arag_search.vectors.storage.manifest import MANIFEST
from arag_search.vectors.storage.place import is_sidecar_name
from arag_search.vectors.storage.rows import KEY_BYTES, row_key, rows_of
from arag_search.vectors.storage.shards import (
    ShardRecord,
    StoredShard,
    StoredType,
    keys_role,
    shard_file,
    vectors_role,
    write_record,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]
    Prints = NDArray[np.uint8]

VERSION = 1
_PLACE_BITS = 32
_PREFIX_BYTES = 8


@dataclass(frozen=True, slots=True)
class EarlierShard:
    """A shard of version 1: consecutive chunks with their rows."""

    folder: Path
    number: int
    chunks: int
    rows: dict[VectorUnit, int]
    files: dict[str, FileRecord]
    created: str

    def ordinals(self) -> Numbers:
        """Map the ordinals of its chunks. Raises VectorsDamagedError."""
        return map_array(self._file("chunks.npy"), "int64", (self.chunks,))

    def fingerprints(self) -> Prints:
        """Map the fingerprints of its chunks. Raises VectorsDamagedError."""
        return map_array(self._file("fingerprints.npy"), "uint8", (self.chunks, DIGEST_BYTES))

    def row_ordinals(self, unit: VectorUnit) -> Numbers:
        """Map the ordinals of its rows, which ascend. Raises VectorsDamagedError."""
        return map_array(self._file(f"{unit}.ordinals.npy"), "int64", (self.rows[unit],))

    def check(self) -> None:
        """Read all files. Raises VectorsDamagedError if one is not as it was written."""
        check_contents({self._file(role): f for role, f in self.files.items()}, EMBED_AGAIN)

    def _file(self, role: str) -> Path:
        return shard_file(self.folder, self.number, role)


@dataclass(frozen=True, slots=True)
class EarlierSidecar:
    """A sidecar of version 1."""

    path: Path
    created: str
    encoder: EncoderIdentity
    dtype: StoredType
    units: tuple[VectorUnit, ...]
    fingerprint: str
    shards: tuple[EarlierShard, ...]


def earlier_sidecars(root: Path) -> Iterator[tuple[Path, EarlierSidecar | VectorsError]]:
    """Yield the sidecars of version 1 in a folder, or the error of one that cannot be read."""
    for path in sorted(root.glob(f"*/{MANIFEST}")):
        if not is_sidecar_name(path.parent.name):
            continue
        try:
            loaded: Any = orjson.loads(path.read_bytes())
            if loaded["format_version"] != VERSION:
                continue
        except (ValueError, KeyError, TypeError):
            continue  # reading it as the current version reports the problem
        try:
            yield path.parent, _sidecar(path.parent, loaded)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            what = f"The record cannot be read ({error!r})."
            yield path.parent, VectorsDamagedError(what, where=str(path), do=EMBED_AGAIN)


def _sidecar(path: Path, loaded: Any) -> EarlierSidecar:
    return EarlierSidecar(
        path,
        str(loaded["created"]),
        EncoderIdentity(**loaded["encoder"]),
        loaded["dtype"],
        tuple(loaded["units"]),
        str(loaded["fingerprint"]),
        tuple(
            EarlierShard(
                path,
                int(shard["number"]),
                int(shard["chunks"]),
                {unit: int(rows) for unit, rows in shard["rows"].items()},
                {role: FileRecord(**record) for role, record in shard["files"].items()},
                str(loaded["created"]),
            )
            for shard in loaded["shards"]
        ),
    )


@dataclass(frozen=True, slots=True)
class Misplaced:
    """The errors that version 1 may have made in an index of ``chunks``: ``wrong`` passages shown
    for the vectors of others, and ``lost`` passages without vectors at their place."""

    wrong: int
    lost: int
    chunks: int


def misplaced(sidecar: EarlierSidecar, chunks: Iterable[Chunk]) -> Misplaced:
    """Compare the places of a sidecar with the chunks of an index, all of which are read, as the
    files of the sidecar are. Raises VectorsDamagedError."""
    import numpy as np

    for shard in sidecar.shards:
        shard.check()
    ordinals = np.concatenate([np.empty(0, np.int64), *(s.ordinals() for s in sidecar.shards)])
    nothing = np.empty((0, DIGEST_BYTES), np.uint8)
    prints = np.concatenate([nothing, *(s.fingerprints() for s in sidecar.shards)])
    order = np.argsort(ordinals, kind="stable")
    ordinals, prints = ordinals[order], prints[order]
    wrong = lost = count = 0
    for chunk in chunks:
        count += 1
        at = int(ordinals.searchsorted(chunk.ordinal))
        if at == len(ordinals) or int(ordinals[at]) != chunk.ordinal:
            lost += 1
        elif prints[at].tobytes() != chunk_fingerprint(chunk).to_bytes(DIGEST_BYTES, "big"):
            wrong += 1
    return Misplaced(wrong, lost, count)


def convert(
    shards: Sequence[EarlierShard],
    chunks: Iterable[Chunk],
    folder: Path,
    first_number: int,
    *,
    built: str,
) -> list[StoredShard]:
    """Convert shards of version 1 into a folder, as shards numbered from ``first_number``.

    Vectors are linked. A row gets the key of a text if a chunk (``chunks`` are those of an index
    ``built`` at this time) has the fingerprint of the row's chunk; all others get a key that no
    text has. A fingerprint does not cover where sentences end. So rows of sentences are used only
    for chunks of one sentence, and for a chunk at the same place in an index that was built before
    the rows were made, which is the same stored chunk. The files of the shards must have been
    checked. Takes 16 bytes of memory per chunk of the shards. Raises OSError.
    """
    import numpy as np

    keys: list[dict[VectorUnit, NDArray[np.uint8]]] = [
        {
            unit: _empty_keys(shard_file(folder, number, keys_role(unit)), rows)
            for unit, rows in shard.rows.items()
        }
        for number, shard in enumerate(shards, first_number)
    ]
    table = _ChunkTable(shards)
    for chunk in chunks:
        place = table.find(chunk)
        if place is not None:
            number, was = place
            is_same = built < shards[number].created and was == chunk.ordinal
            for unit, unit_keys in keys[number].items():
                if unit == "sentence" and not is_same and len(chunk.sentence_ends) > 1:
                    continue
                _write_keys(unit_keys, shards[number].row_ordinals(unit), was, chunk, unit)
    converted: list[StoredShard] = []
    for number, shard in enumerate(shards, first_number):
        files: dict[str, FileRecord] = {}
        for unit in shard.rows:
            array = keys[number - first_number][unit]
            if isinstance(array, np.memmap):
                array.flush()
            vectors = shard_file(folder, number, vectors_role(unit))
            link_or_copy(shard_file(shard.folder, shard.number, vectors_role(unit)), vectors)
            files[vectors_role(unit)] = shard.files[vectors_role(unit)]
            files[keys_role(unit)] = file_record(shard_file(folder, number, keys_role(unit)))
        record = ShardRecord(number, dict(shard.rows), files)
        write_record(folder, record)
        converted.append(StoredShard(folder, record))
    return converted


def _empty_keys(path: Path, rows: int) -> NDArray[np.uint8]:
    """Create a file of keys that no text has, mapped for writing."""
    import numpy as np

    with path.open("wb") as file:
        file.write(npy_header((rows, KEY_BYTES), np.dtype(np.uint8)))
        file.truncate(file.tell() + rows * KEY_BYTES)
    return np.load(path, mmap_mode="r+") if rows else np.empty((0, KEY_BYTES), np.uint8)


def _write_keys(
    keys: NDArray[np.uint8], ordinals: Numbers, was: int, chunk: Chunk, unit: VectorUnit
) -> None:
    """Write the keys of the rows of a chunk that had the ordinal ``was``."""
    import numpy as np

    start, end = ordinals.searchsorted([was, was + MAX_SENTENCES])
    rows = rows_of(chunk, unit)
    if (ordinals[start:end] - was).tolist() == [ordinal - chunk.ordinal for ordinal, _ in rows]:
        joined = b"".join(row_key(text) for _, text in rows)
        keys[start:end] = np.frombuffer(joined, np.uint8).reshape(-1, KEY_BYTES)


class _ChunkTable:
    """A table of the chunks of shards, by fingerprint."""

    def __init__(self, shards: Sequence[EarlierShard]) -> None:
        import numpy as np

        self._shards = shards
        self._prints = [shard.fingerprints() for shard in shards]
        self._ordinals = [shard.ordinals() for shard in shards]
        prefixes = [
            prints[:, :_PREFIX_BYTES].copy().view(">u8")[:, 0].astype(np.uint64)
            for prints in self._prints
        ]
        places = [
            (number << _PLACE_BITS) + np.arange(shard.chunks, dtype=np.int64)
            for number, shard in enumerate(shards)
        ]
        every = np.concatenate([np.empty(0, np.uint64), *prefixes])
        order = np.argsort(every, kind="stable")
        self._prefixes = every[order]
        self._places = np.concatenate([np.empty(0, np.int64), *places])[order]

    def find(self, chunk: Chunk) -> tuple[int, int] | None:
        """Return the number of the shard with a chunk, and the chunk's ordinal there, if any."""
        print_of = chunk_fingerprint(chunk).to_bytes(DIGEST_BYTES, "big")
        prefix = int.from_bytes(print_of[:_PREFIX_BYTES], "big")
        at = int(self._prefixes.searchsorted(prefix))
        while at < len(self._prefixes) and int(self._prefixes[at]) == prefix:
            number, place = divmod(int(self._places[at]), 1 << _PLACE_BITS)
            if self._prints[number][place].tobytes() == print_of:
                return number, int(self._ordinals[number][place])
            at += 1
        return None
