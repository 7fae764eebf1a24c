"""The vectors of one index on disk, open for search."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from arag_search.manifest import Manifest
from arag_search.query.tree import Scope
from arag_search.vectors.base import EncoderIdentity, Nearest, VectorUnit
from arag_search.vectors.manifest import VectorManifest

if TYPE_CHECKING:
    from arag_search.vectors.base import FloatArray


class Sidecar:
    """Vectors that are mapped into memory. Safe to use from several threads until closed.

    ``manifest`` is what they are, ``stale`` a note for each reply where they are of an older state
    of the index, else None, ``path`` their folder.
    """

    manifest: VectorManifest
    stale: str | None
    path: Path

    @property
    def encoder(self) -> EncoderIdentity:
        """What made them; queries must be encoded by an equal one."""
        return self.manifest.encoder

    @property
    def units(self) -> tuple[VectorUnit, ...]:
        """What there are vectors of."""
        return self.manifest.units

    def nearest(
        self,
        unit: VectorUnit,
        queries: FloatArray,
        n: int,
        scope: Scope | None = None,
        *,
        rescore: bool = True,
        nprobe: int | None = None,
    ) -> list[list[Nearest]]:
        """See Vectors."""
        raise NotImplementedError

    def verify(self) -> None:
        """Read every file. Raises VectorsDamagedError for one that is not what was written."""
        raise NotImplementedError

    def close(self) -> None:
        """Wait for searches in flight, then free the maps."""
        raise NotImplementedError


def open_vectors(
    root: Path,
    index: Manifest,
    ordinals: Callable[[], Iterator[int]],
    *,
    encoder: EncoderIdentity | None = None,
    allow_stale: bool = False,
    threads: int | None = None,
) -> Sidecar:
    """Open the vectors of an index, which lie in a folder of ``root``."""
    raise NotImplementedError
