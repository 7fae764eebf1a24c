"""Vectors that exist before an embedding begins: up to date already, or reusable."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from arag_search.errors import VectorsError, VectorsNotFoundError, VectorsVersionError
from arag_search.search.index import Index
from arag_search.vectors.base import VECTOR_UNITS, EncoderIdentity, VectorUnit
from arag_search.vectors.storage.files import FileRecord
from arag_search.vectors.storage.layout import read_manifest
from arag_search.vectors.storage.manifest import VectorManifest
from arag_search.vectors.storage.place import sidecar_folder, sidecars
from arag_search.vectors.storage.rows import row_key, rows_of
from arag_search.vectors.storage.shards import StoredShard, vectors_role
from arag_search.vectors.storage.version_1 import EarlierShard, EarlierSidecar, earlier_sidecars
from index_jobs.embedding.plan import TITLES, EmbedOptions, planned_encoder, planned_titles

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.uint64]

AUTO = "auto"
_COMPARED_CHUNKS = 200
_KEY_BEGINNING = 8
"""Bytes of a key that are compared to find the vectors of an index among others."""


def published(root: Path, placement: str) -> VectorManifest | None:
    """Return the manifest of the vectors of the index with this placement, or None if it has none.

    Raises VectorsError if the manifest cannot be read."""
    try:
        return read_manifest(sidecar_folder(root, placement))
    except VectorsNotFoundError:
        return None


def differences(
    existing: VectorManifest | EarlierSidecar, identity: EncoderIdentity, options: EmbedOptions
) -> str:
    """Describe how existing vectors differ from those that the options specify; return an empty
    text if they do not."""
    changes: list[str] = []
    if existing.encoder != identity:
        changes.append(f"--encoder was {_shown(existing.encoder)}, is {_shown(identity)}")
    if set(existing.units) != set(options.units):
        changes.append(f"--unit was {_unit_names(existing.units)}, is {_unit_names(options.units)}")
    if existing.dtype != options.dtype:
        changes.append(f"--dtype was {existing.dtype}, is {options.dtype}")
    wanted, titled = options.sentence_titles, has_titles(existing)
    if "sentence" in options.units and wanted is not None and wanted != titled:
        changes.append(f"{TITLES} was {titled}, is {wanted}")
    return "; ".join(changes)


def has_titles(existing: VectorManifest | EarlierSidecar) -> bool:
    """Return whether the sentences of existing vectors were encoded below their titles."""
    return isinstance(existing, VectorManifest) and existing.sentence_titles


def existing_titles(root: Path, work: Path, index: Index, encoder: EncoderIdentity) -> bool | None:
    """Return whether an index's existing vectors by this encoder are of sentences with titles; None
    if there are no such vectors. An interrupted embedding comes first, then the vectors of the
    index as it is now, then the newest."""
    planned = planned_titles(work)
    if planned is not None:
        return planned
    candidates: list[tuple[bool, str, bool]] = []
    for path, manifest in sidecars(root):
        if isinstance(manifest, VectorManifest) and manifest.encoder == encoder:
            is_own = path == sidecar_folder(root, index.manifest.placement)
            candidates.append((is_own, manifest.created, manifest.sentence_titles))
    candidates += [
        (False, sidecar.created, False)
        for _, sidecar in earlier_sidecars(root)
        if isinstance(sidecar, EarlierSidecar) and sidecar.encoder == encoder
    ]
    return max(candidates)[2] if candidates else None


def index_difference(existing: VectorManifest, options: EmbedOptions) -> str:
    """Describe how the vector index differs from the one that the options specify; return an empty
    text if it does not. ``auto`` accepts every index."""
    was = ", ".join(sorted(set(existing.index.values())))
    if options.index == AUTO or was == options.index:
        return ""
    return f"--index was {was}, is {options.index}"


def existing_encoder(root: Path, work: Path, index: Index) -> EncoderIdentity | None:
    """Return the encoder of the vectors that an index has, or None if there are none to read.

    An interrupted embedding in the folder ``work`` comes first, then the vectors of the index as it
    is now. Several indexes may share the folder ``root``, each with an encoder of its own. Among
    other vectors, those with most of the index's first texts are chosen, then the newest of these.
    Reads keys of all rows only if encoders differ: O(rows).
    """
    planned = planned_encoder(work)
    if planned is not None:
        return planned
    candidates: list[tuple[str, EncoderIdentity, list[StoredShard]]] = []
    for path, manifest in sidecars(root):
        if isinstance(manifest, VectorManifest):
            if path == sidecar_folder(root, index.manifest.placement):
                return manifest.encoder
            candidates.append((manifest.created, manifest.encoder, manifest.shards_in(path)))
    candidates += [
        (sidecar.created, sidecar.encoder, [])
        for _, sidecar in earlier_sidecars(root)
        if isinstance(sidecar, EarlierSidecar)
    ]
    if len({encoder for _, encoder, _ in candidates}) > 1:
        keys = _first_keys(index)
        candidates.sort(key=lambda entry: (_held_keys(entry[2], keys), entry[0]))
    else:
        candidates.sort(key=lambda entry: entry[0])
    return candidates[-1][1] if candidates else None


def _first_keys(index: Index) -> dict[VectorUnit, Numbers]:
    """Return the beginnings of the keys of the first texts of an index, by unit."""
    import numpy as np

    chunks = list(itertools.islice(index.scan(), _COMPARED_CHUNKS))
    return {
        unit: np.frombuffer(
            b"".join(
                row_key(text)[:_KEY_BEGINNING]
                for chunk in chunks
                for _, text in rows_of(chunk, unit)
            ),
            np.uint64,
        )
        for unit in VECTOR_UNITS
    }


def _held_keys(shards: Iterable[StoredShard], keys: Mapping[VectorUnit, Numbers]) -> int:
    """Return how many rows of the shards have one of the keys; damaged shards have none."""
    import numpy as np

    held = 0
    for shard in shards:
        for unit, wanted in keys.items():
            with suppress(VectorsError, KeyError):
                rows = np.ascontiguousarray(shard.keys(unit)[:, :_KEY_BEGINNING])
                held += int(np.isin(rows.view(np.uint64), wanted).sum())
    return held


class EarlierVectors:
    """The vectors in a folder with this encoder, these units and this dtype, the newest first;
    none if ``--overwrite`` is given.

    ``shards`` can be reused without conversion; ``to_convert`` are in format version 1.
    ``trained`` is the newest sidecar, whose trained quantisers may be reused, or None.
    """

    def __init__(
        self,
        root: Path,
        identity: EncoderIdentity,
        options: EmbedOptions,
        note: Callable[[str], None],
    ) -> None:
        self.shards: list[StoredShard] = []
        self.to_convert: list[EarlierShard] = []
        self.trained: Path | None = None
        if options.overwrite:
            return
        matching: list[tuple[str, Path, VectorManifest]] = []
        for path, manifest in sidecars(root):
            if isinstance(manifest, VectorManifest):
                if not differences(manifest, identity, options):
                    matching.append((manifest.created, path, manifest))
            elif not isinstance(manifest, VectorsVersionError):
                note(f"Skipping vectors that cannot be read: {path}: {manifest.what}")
        matching.sort(key=lambda entry: entry[0], reverse=True)
        self.trained = matching[0][1] if matching else None
        known: set[frozenset[str]] = set()  # sidecars may share shards
        for _, path, manifest in matching:
            for shard in manifest.shards_in(path):
                checksums = _checksums(shard.record.files, shard.record.files)
                if checksums not in known:
                    known |= {checksums, _checksums(shard.record.files, _roles(manifest.units))}
                    self.shards.append(shard)
        old: list[EarlierSidecar] = []
        for path, sidecar in earlier_sidecars(root):
            if isinstance(sidecar, VectorsError):
                note(f"Skipping vectors that cannot be read: {path}: {sidecar.what}")
            elif not differences(sidecar, identity, options):
                old.append(sidecar)
        for sidecar in sorted(old, key=lambda sidecar: sidecar.created, reverse=True):
            for shard in sidecar.shards:
                checksums = _checksums(shard.files, _roles(sidecar.units))
                if checksums not in known:
                    known.add(checksums)
                    self.to_convert.append(shard)


def _roles(units: Iterable[VectorUnit]) -> list[str]:
    return [vectors_role(unit) for unit in units]


def _checksums(files: Mapping[str, FileRecord], roles: Iterable[str]) -> frozenset[str]:
    """Return the checksums of a shard's files with these roles, which identify the shard."""
    return frozenset(f"{role} {files[role].sha256}" for role in roles)


def _shown(encoder: EncoderIdentity) -> str:
    return f"{encoder.name} (revision {encoder.revision[:12] or 'unknown'})"


def _unit_names(units: tuple[str, ...]) -> str:
    return "both" if len(units) > 1 else ", ".join(units)
