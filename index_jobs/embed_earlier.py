"""Vectors that are there before an embedding begins: those it would make, or can take over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from arag_search.corpus import Chunk
from arag_search.errors import VectorsError, VectorsMismatchError
from arag_search.vectors.base import EncoderIdentity
from arag_search.vectors.manifest import MANIFEST, VectorManifest
from arag_search.vectors.place import sidecar_folder, sidecars
from arag_search.vectors.shards import (
    CHUNKS,
    FINGERPRINT_BYTES,
    FINGERPRINTS,
    map_array,
    shard_file,
)
from index_jobs.embed_plan import EmbedOptions

AUTO = "auto"


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
    """The chunks of a sidecar, asked for in corpus order."""

    def __init__(self, path: Path, manifest: VectorManifest) -> None:
        self.path = path
        self.manifest = manifest
        self._last = max((shard.last_ordinal for shard in manifest.shards), default=-1)
        self._chunks = self._read()
        self._next = next(self._chunks, None)

    def holds(self, chunk: Chunk, fingerprint: int) -> bool:
        """Whether it has the vectors of a chunk. Raises VectorsMismatchError where it has not, and
        the chunk does not come behind all that it has."""
        while self._next is not None and self._next[0] < chunk.ordinal:
            self._next = next(self._chunks, None)
        if self._next is not None and self._next == (chunk.ordinal, fingerprint):
            return True
        if chunk.ordinal <= self._last:
            raise VectorsMismatchError(
                "The index was not only added to since it was embedded: it was built anew.",
                where=f"passage {chunk.id}, which {self.path} has not",
                do="Embed all of it: leave --only-missing out.",
            )
        return False

    def _read(self) -> Iterator[tuple[int, int]]:
        """Ordinal and fingerprint of each chunk."""
        for shard in self.manifest.shards:
            ordinals = map_array(shard_file(self.path, shard.number, CHUNKS))
            prints = map_array(shard_file(self.path, shard.number, FINGERPRINTS)).tobytes()
            for place, ordinal in enumerate(ordinals.tolist()):
                start = place * FINGERPRINT_BYTES
                yield ordinal, int.from_bytes(prints[start : start + FINGERPRINT_BYTES], "big")


def _shown(encoder: EncoderIdentity) -> str:
    return f"{encoder.name} (revision {encoder.revision[:12] or 'not told'})"


def _both(units: tuple[str, ...]) -> str:
    return "both" if len(units) > 1 else units[0]
