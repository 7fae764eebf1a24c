"""Vectors that are there before an embedding begins: those it would make, or can take over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arag_search.corpus import MAX_SENTENCES, Chunk
from arag_search.errors import VectorsError
from arag_search.manifest import chunk_fingerprint
from arag_search.vectors.base import EncoderIdentity, VectorUnit
from arag_search.vectors.files import map_array
from arag_search.vectors.manifest import MANIFEST, VectorManifest
from arag_search.vectors.place import sidecar_folder, sidecars
from arag_search.vectors.rows import rows_of
from arag_search.vectors.shards import (
    CHUNKS,
    FINGERPRINT_BYTES,
    FINGERPRINTS,
    ShardRecord,
    ordinals_role,
    shard_file,
    vectors_role,
    verify_shard,
)
from index_jobs.embed_plan import EmbedOptions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from arag_search.vectors.base import FloatArray

AUTO = "auto"
LEAST_LIVE_SHARE = 0.5
"""Of the chunks of a sidecar, for its shards to be taken over: rows of deleted chunks stay."""

_KEY_BYTES = 8
_PLACE_BITS = 32
_MAPPED_FILES = 128  # each takes a file descriptor


def published(root: Path, fingerprint: str) -> VectorManifest | None:
    """What the vectors are of the index with this fingerprint; None where there are none. Raises
    VectorsError where they cannot be read."""
    path = sidecar_folder(root, fingerprint)
    try:
        text = (path / MANIFEST).read_text()
    except FileNotFoundError:
        return None
    return VectorManifest.from_json(text, str(path))


def differences(there: VectorManifest, identity: EncoderIdentity, options: EmbedOptions) -> str:
    """What vectors are that options do not ask for, in words; empty where they are the same."""
    found: list[str] = []
    if there.encoder != identity:
        found.append(f"--encoder was {_shown(there.encoder)}, is {_shown(identity)}")
    if set(there.units) != set(options.units):
        found.append(f"--unit was {_both(there.units)}, is {_both(options.units)}")
    if there.dtype != options.dtype:
        found.append(f"--dtype was {there.dtype}, is {options.dtype}")
    return "; ".join(found)


def index_difference(there: VectorManifest, options: EmbedOptions) -> str:
    """The same for what is searched in; ``auto`` asks for nothing."""
    was = ", ".join(sorted(set(there.index.values())))
    if options.index == AUTO or was == options.index:
        return ""
    return f"--index was {was}, is {options.index}"


def newest(
    root: Path, identity: EncoderIdentity, options: EmbedOptions, note: Callable[[str], None]
) -> tuple[Path, VectorManifest] | None:
    """The sidecar that was made last of those with this encoder, these units and this dtype."""
    found: list[tuple[Path, VectorManifest]] = []
    for path, manifest in sidecars(root):
        if isinstance(manifest, VectorsError):
            note(f"Vectors that cannot be read are passed over: {path}: {manifest.what}")
        elif not differences(manifest, identity, options):
            found.append((path, manifest))
    return max(found, key=lambda each: each[1].created, default=None)


class Earlier:
    """The chunks of a sidecar whose shards are taken over, asked for in corpus order."""

    def __init__(self, path: Path, manifest: VectorManifest) -> None:
        self.path = path
        self._manifest = manifest
        self._last = max((shard.last_ordinal for shard in manifest.shards), default=-1)
        self._rewind()

    def is_worth_it(self, chunks: Iterable[Chunk]) -> bool:
        """Whether an index holds these chunks, new ones only behind them, and not so few of them
        that their rows should be copied instead."""
        held = 0
        self._rewind()
        for chunk in chunks:
            if chunk.ordinal > self._last:
                break
            if not self.holds(chunk, chunk_fingerprint(chunk)):
                return False
            held += 1
        self._rewind()
        return held >= LEAST_LIVE_SHARE * self._manifest.chunks

    def holds(self, chunk: Chunk, fingerprint: int) -> bool:
        """Whether it has the vectors of a chunk, at the same place."""
        while self._next is not None and self._next[0] < chunk.ordinal:
            self._next = next(self._chunks, None)
        return self._next is not None and self._next == (chunk.ordinal, fingerprint)

    def _rewind(self) -> None:
        self._chunks = self._read()
        self._next = next(self._chunks, None)

    def _read(self) -> Iterator[tuple[int, int]]:
        """Ordinal and fingerprint of each chunk."""
        for shard in self._manifest.shards:
            ordinals = map_array(shard_file(self.path, shard.number, CHUNKS))
            prints = map_array(shard_file(self.path, shard.number, FINGERPRINTS)).tobytes()
            for place, ordinal in enumerate(ordinals.tolist()):
                start = place * FINGERPRINT_BYTES
                yield ordinal, int.from_bytes(prints[start : start + FINGERPRINT_BYTES], "big")


class EarlierVectors:
    """The vectors of a sidecar by the fingerprint of their chunk, wherever the index has it now.

    Takes 16 bytes of memory a chunk.
    """

    def __init__(self, path: Path, manifest: VectorManifest) -> None:
        """All of it is read. Raises VectorsDamagedError for what is not what was written."""
        import numpy as np

        for shard in manifest.shards:
            verify_shard(path, shard)
        self.path = path
        self._shards = manifest.shards
        self._units = manifest.units
        self._mapped: dict[Path, NDArray[Any]] = {}
        keys = [
            self._map(shard, FINGERPRINTS)[:, :_KEY_BYTES].copy().view(">u8")[:, 0]
            for shard in self._shards
        ]
        places = [
            (number << _PLACE_BITS) + np.arange(shard.chunks, dtype=np.int64)
            for number, shard in enumerate(self._shards)
        ]
        every = np.concatenate(keys) if keys else np.empty(0, np.uint64)
        order = np.argsort(every, kind="stable")
        self._keys = every.astype(np.uint64)[order]
        self._places = (np.concatenate(places) if places else np.empty(0, np.int64))[order]

    def of(self, chunk: Chunk) -> dict[VectorUnit, FloatArray] | None:
        """The vectors of the rows of a chunk, by unit; None where it has not these rows."""
        print_of = chunk_fingerprint(chunk).to_bytes(FINGERPRINT_BYTES, "big")
        key = int.from_bytes(print_of[:_KEY_BYTES], "big")
        at = int(self._keys.searchsorted(key))
        while at < len(self._keys) and int(self._keys[at]) == key:
            number, place = divmod(int(self._places[at]), 1 << _PLACE_BITS)
            shard = self._shards[number]
            if self._map(shard, FINGERPRINTS)[place].tobytes() == print_of:
                return self._vectors(shard, int(self._map(shard, CHUNKS)[place]), chunk)
            at += 1
        return None

    def _vectors(
        self, shard: ShardRecord, was: int, chunk: Chunk
    ) -> dict[VectorUnit, FloatArray] | None:
        """Those of the chunk that had the ordinal ``was``."""
        import numpy as np

        found: dict[VectorUnit, FloatArray] = {}
        for unit in self._units:
            ordinals = self._map(shard, ordinals_role(unit))
            start, end = ordinals.searchsorted([was, was + MAX_SENTENCES])
            wanted = [ordinal - chunk.ordinal for ordinal, _ in rows_of(chunk, unit)]
            if (ordinals[start:end] - was).tolist() != wanted:
                return None  # the same text in other sentences
            found[unit] = self._map(shard, vectors_role(unit))[start:end].astype(np.float32)
        return found

    def _map(self, shard: ShardRecord, role: str) -> NDArray[Any]:
        path = shard_file(self.path, shard.number, role)
        if path not in self._mapped:
            if len(self._mapped) >= _MAPPED_FILES:
                del self._mapped[next(iter(self._mapped))]
            self._mapped[path] = map_array(path)
        return self._mapped[path]


def _shown(encoder: EncoderIdentity) -> str:
    return f"{encoder.name} (revision {encoder.revision[:12] or 'not told'})"


def _both(units: tuple[str, ...]) -> str:
    return "both" if len(units) > 1 else ", ".join(units)
