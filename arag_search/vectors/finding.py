"""Which of the sidecars in a folder serves an index, and what of it the index holds no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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
from arag_search.vectors.files import map_array
from arag_search.vectors.identity import check_same_encoder
from arag_search.vectors.layout import chunks_file, read_manifest
from arag_search.vectors.manifest import VectorManifest
from arag_search.vectors.place import sidecar_folder, sidecars
from arag_search.vectors.stale import (
    Difference,
    IndexOrdinals,
    fingerprint_of_kept,
    read_deletions,
    write_deletions,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]

_SHOWN_DIGITS = 12


@dataclass(frozen=True, slots=True)
class FoundSidecar:
    """A sidecar that serves an index. ``deleted`` tells of each chunk whether the index holds it no
    more, None where it holds all; ``note`` what the vectors do not know of the index."""

    path: Path
    manifest: VectorManifest
    deleted: Mask | None = None
    note: str | None = None


def find_sidecar(
    root: Path,
    index: Manifest,
    ordinals: Callable[[], Iterator[int]],
    encoder: EncoderIdentity | None,
    *,
    allow_stale: bool,
) -> FoundSidecar:
    """The sidecar of an index; see ``open_vectors``."""
    exact = sidecar_folder(root, index.fingerprint)
    if exact.exists():
        manifest = read_manifest(exact)
        if manifest.fingerprint == index.fingerprint:
            _check(exact, manifest, index, encoder)
            deleted = _deletions(exact, manifest, index) if manifest.deleted_chunks else None
            return FoundSidecar(exact, manifest, deleted)
    candidates = _candidates(root, index, encoder)
    for path, manifest in candidates:
        deleted = _deletions(path, manifest, index)
        if deleted is not None:
            return FoundSidecar(path, manifest, deleted)
    return _compare(candidates, index, IndexOrdinals(ordinals), allow_stale)


def _candidates(
    root: Path, index: Manifest, encoder: EncoderIdentity | None
) -> list[tuple[Path, VectorManifest]]:
    """The sidecars that could serve, the newest first. Raises where there is none, saying why the
    last of them does not."""
    found: list[tuple[Path, VectorManifest]] = []
    refused: list[VectorsError] = []
    for path, manifest in sidecars(root):
        if isinstance(manifest, VectorsError):
            refused.append(manifest)
            continue
        try:
            _check(path, manifest, index, encoder)
        except VectorsMismatchError as error:
            refused.append(error)
        else:
            found.append((path, manifest))
    if found:
        return sorted(found, key=lambda each: each[1].created, reverse=True)
    if refused:
        raise refused[-1]
    raise VectorsNotFoundError(
        "The index has no vectors, or none that were finished.",
        where=str(root),
        do="Make them: arag-search embed INDEX --encoder NAME",
    )


def _compare(
    candidates: Sequence[tuple[Path, VectorManifest]],
    index: Manifest,
    ordinals: IndexOrdinals,
    allow_stale: bool,
) -> FoundSidecar:
    """The newest of the sidecars that lacks deletions only, else what is wrong with the newest."""
    import numpy as np

    differences: list[tuple[Path, VectorManifest, Difference]] = []
    for path, manifest in candidates:
        before = read_deletions(path, manifest.fingerprint, manifest.chunks)
        if before is None:
            before = np.zeros(manifest.chunks, np.bool_)
        difference = ordinals.difference(map_array(chunks_file(path)), before)
        if not difference.missing:
            kept = fingerprint_of_kept(path, manifest.shards, difference.deleted)
            if kept == index.fingerprint:
                _keep(path, index.fingerprint, difference.deleted)
                return FoundSidecar(path, manifest, difference.deleted)
        differences.append((path, manifest, difference))
    path, manifest, difference = min(differences, key=lambda each: each[2].missing)
    if not difference.missing:
        raise VectorsMismatchError(
            "The vectors are of another corpus: the index has other passages at the same places.",
            where=f"{path}, made {manifest.created} for fingerprint"
            f" {manifest.fingerprint[:_SHOWN_DIGITS]}; the index has"
            f" {index.fingerprint[:_SHOWN_DIGITS]}",
            do="Embed the index again: arag-search embed INDEX --encoder NAME",
        )
    lacking = f"{difference.missing:,} of {index.chunks:,} passages have no vectors"
    if not allow_stale:
        raise VectorsStaleError(
            f"The vectors are older than the index: {lacking}.",
            where=str(path),
            allowed="vectors of the index as it is, or of one from which passages were deleted",
            do="Run arag-search embed INDEX --only-missing, or search with --allow-stale.",
        )
    note = f"the vectors are older than the index: {lacking}, and are not found by meaning."
    return FoundSidecar(path, manifest, difference.deleted, note)


def _keep(path: Path, fingerprint: str, deleted: Mask) -> None:
    """Keep what was found out for the next time, where the folder can be written."""
    try:
        write_deletions(path, fingerprint, deleted)
    except OSError:
        return  # it is found out again


def _deletions(path: Path, manifest: VectorManifest, index: Manifest) -> Mask | None:
    return read_deletions(path, index.fingerprint, manifest.chunks)


def _check(
    path: Path, manifest: VectorManifest, index: Manifest, encoder: EncoderIdentity | None
) -> None:
    """Raise VectorsMismatchError where encoder or metadata are not those of the sidecar."""
    if encoder is not None:
        check_same_encoder(manifest.encoder, encoder, str(path))
    if manifest.metadata != dict(index.metadata):
        raise VectorsMismatchError(
            f"The vectors know the metadata {_fields(manifest.metadata)}, the index"
            f" {_fields(index.metadata)}.",
            where=str(path),
            do="Embed the index again.",
        )


def _fields(metadata: Mapping[str, str]) -> str:
    return ", ".join(f"{name} ({kind})" for name, kind in sorted(metadata.items())) or "(none)"
