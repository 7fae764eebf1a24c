"""From shards to a sidecar: FAISS indexes trained and merged on disk, published as one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from arag_search.manifest import Manifest
from arag_search.vectors.base import EncoderIdentity, VectorUnit
from arag_search.vectors.manifest import VectorManifest
from arag_search.vectors.shards import StoredType


class PublishProgress(Protocol):
    """What publishing tells while it works."""

    def stage(self, name: str, done: int, total: int) -> None:
        """So many of the steps of a stage are done, as ``training sentence``."""
        ...


def publish_sidecar(
    work: Path,
    root: Path,
    *,
    encoder: EncoderIdentity,
    units: Sequence[VectorUnit],
    dtype: StoredType,
    index: str = "auto",
    manifest: Manifest,
    progress: PublishProgress | None = None,
    earlier: Path | None = None,
    ordinals: Callable[[], Iterator[int]] | None = None,
    threads: int | None = None,
) -> VectorManifest:
    """Make the shards of ``work`` the sidecar of an index, in a folder of ``root``.

    ``manifest`` is the manifest of the index. ``earlier`` is the folder of a sidecar whose shards
    and quantisers are taken over; ``ordinals`` then streams the chunks of the index, by which
    those that it holds no more are told.
    """
    raise NotImplementedError
