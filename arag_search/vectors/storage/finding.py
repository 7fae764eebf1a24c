"""The choice of the sidecar in a folder that serves an index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from arag_search.errors import (
    VectorsError,
    VectorsMismatchError,
    VectorsNotFoundError,
    VectorsStaleError,
)
from arag_search.manifest import Manifest
from arag_search.vectors.base import EncoderIdentity
from arag_search.vectors.identity import check_same_encoder
from arag_search.vectors.storage.layout import read_manifest
from arag_search.vectors.storage.manifest import VectorManifest
from arag_search.vectors.storage.place import embed_command, sidecar_folder, sidecars
from arag_search.vectors.storage.stale import (
    Difference,
    IndexedChunks,
    IndexPlacement,
    read_difference,
    write_difference,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class FoundSidecar:
    """A sidecar that serves an index. ``gone`` marks the chunks that the index does not have
    unchanged, None if it has all; ``note`` says what the vectors lack of the index."""

    path: Path
    manifest: VectorManifest
    gone: Mask | None = None
    note: str | None = None


def find_sidecar(
    root: Path,
    index: IndexedChunks,
    location: str,
    encoder: EncoderIdentity | None,
    *,
    allow_stale: bool,
) -> FoundSidecar:
    """Find the sidecar of an index; see ``open_vectors``."""
    command = embed_command(location, root)
    placement = index.manifest.placement
    if placement:
        exact = sidecar_folder(root, placement)
        if exact.exists():
            manifest = read_manifest(exact)
            if manifest.placement == placement:
                _check(exact, manifest, index.manifest, encoder, command)
                return FoundSidecar(exact, manifest)
    candidates = _candidates(root, index.manifest, encoder, command)
    if not placement:
        raise VectorsStaleError(
            "The index does not record which passage is where: an earlier version wrote it.",
            where=location,
            allowed="an index with a placement in its manifest",
            do=f"Run {command}: it adds the placement, and encodes only what is missing.",
        )
    return _nearest_state(candidates, index, allow_stale, command)


def _candidates(
    root: Path, index: Manifest, encoder: EncoderIdentity | None, command: str
) -> list[tuple[Path, VectorManifest]]:
    """Return the sidecars that could serve the index, the newest first. If no sidecar could, raise
    the error of the last one."""
    fitting: list[tuple[Path, VectorManifest]] = []
    refused: list[VectorsError] = []
    for path, manifest in sidecars(root):
        if isinstance(manifest, VectorsError):
            manifest.do = manifest.do.replace("arag-search embed INDEX", command)
            refused.append(manifest)
            continue
        try:
            _check(path, manifest, index, encoder, command)
        except VectorsMismatchError as error:
            refused.append(error)
        else:
            fitting.append((path, manifest))
    if fitting:
        return sorted(fitting, key=lambda pair: pair[1].created, reverse=True)
    if refused:
        raise refused[-1]
    raise VectorsNotFoundError(
        "The index has no vectors, or none that were finished.",
        where=str(root),
        do=f"Make them: {command} --encoder NAME",
    )


def _nearest_state(
    candidates: Sequence[tuple[Path, VectorManifest]],
    index: IndexedChunks,
    allow_stale: bool,
    command: str,
) -> FoundSidecar:
    """Return the newest sidecar with vectors of all passages, or the one that lacks the fewest, if
    it may be served."""
    places = IndexPlacement(index)
    stale: list[tuple[Path, VectorManifest, Difference]] = []
    for path, manifest in candidates:
        difference = _difference(path, manifest, places, index.manifest.placement)
        if not difference.missing:
            return FoundSidecar(path, manifest, difference.gone)
        stale.append((path, manifest, difference))
    path, manifest, difference = min(stale, key=lambda candidate: candidate[2].missing)
    chunks = index.manifest.chunks
    if difference.missing >= chunks:
        raise VectorsMismatchError(
            "The vectors belong to other passages, or to the same ones in another order: none of "
            f"the {chunks:,} passages of the index is where they place it.",
            where=str(path),
            allowed="vectors of the index as it is",
            do=f"Run {command}: it reuses the vectors of texts that have moved.",
        )
    lacking = f"{difference.missing:,} of {chunks:,} passages have no vectors"
    if not allow_stale:
        raise VectorsStaleError(
            f"The vectors are older than the index: {lacking}.",
            where=str(path),
            allowed="vectors of the index as it is, or of one from which passages were deleted",
            do=f"Run {command} --only-missing, or search with --allow-stale.",
        )
    note = f"the vectors are older than the index: {lacking}, and are not found by meaning."
    return FoundSidecar(path, manifest, difference.gone, note)


def _difference(
    path: Path, manifest: VectorManifest, places: IndexPlacement, placement: str
) -> Difference:
    """Return the stored difference, or compare, and store the result if the folder can be
    written."""
    try:
        stored = read_difference(path, placement, manifest.chunks)
    except VectorsError:
        stored = None  # a damaged file is created again
    if stored is not None:
        return stored
    difference = places.difference(path, manifest)
    with suppress(OSError):  # otherwise the comparison is repeated
        write_difference(path, placement, difference)
    return difference


def _check(
    path: Path,
    manifest: VectorManifest,
    index: Manifest,
    encoder: EncoderIdentity | None,
    command: str,
) -> None:
    """Raise VectorsMismatchError if encoder or metadata are not those of the sidecar."""
    if encoder is not None:
        check_same_encoder(manifest.encoder, encoder, str(path))
    if manifest.metadata != dict(index.metadata):
        raise VectorsMismatchError(
            f"The vectors have the metadata {_fields(manifest.metadata)}, the index"
            f" {_fields(index.metadata)}.",
            where=str(path),
            do=f"Run {command}: it reuses all vectors.",
        )


def _fields(metadata: Mapping[str, str]) -> str:
    return ", ".join(f"{name} ({kind})" for name, kind in sorted(metadata.items())) or "(none)"
