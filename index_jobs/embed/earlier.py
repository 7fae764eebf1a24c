"""Vectors that are there before an embedding begins: those it would make, or can use again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from arag_search.errors import VectorsError, VectorsNotFoundError, VectorsVersionError
from arag_search.vectors.base import EncoderIdentity, VectorUnit
from arag_search.vectors.storage.files import FileRecord
from arag_search.vectors.storage.layout import read_manifest
from arag_search.vectors.storage.manifest import VectorManifest
from arag_search.vectors.storage.place import sidecar_folder, sidecars
from arag_search.vectors.storage.shards import StoredShard, vectors_role
from arag_search.vectors.storage.version_1 import EarlierShard, EarlierSidecar, earlier_sidecars
from index_jobs.embed.plan import EmbedOptions

AUTO = "auto"


def published(root: Path, placement: str) -> VectorManifest | None:
    """Return what the vectors are of the index with this placement; None where there are none.
    Raises VectorsError where they cannot be read."""
    try:
        return read_manifest(sidecar_folder(root, placement))
    except VectorsNotFoundError:
        return None


def differences(
    there: VectorManifest | EarlierSidecar, identity: EncoderIdentity, options: EmbedOptions
) -> str:
    """Return what vectors are that options do not ask for, in words; empty where they are the
    same."""
    changes: list[str] = []
    if there.encoder != identity:
        changes.append(f"--encoder was {_shown(there.encoder)}, is {_shown(identity)}")
    if set(there.units) != set(options.units):
        changes.append(f"--unit was {_both(there.units)}, is {_both(options.units)}")
    if there.dtype != options.dtype:
        changes.append(f"--dtype was {there.dtype}, is {options.dtype}")
    return "; ".join(changes)


def index_difference(there: VectorManifest, options: EmbedOptions) -> str:
    """Return the same for what is searched in; ``auto`` asks for nothing."""
    was = ", ".join(sorted(set(there.index.values())))
    if options.index == AUTO or was == options.index:
        return ""
    return f"--index was {was}, is {options.index}"


def newest_encoder(root: Path) -> EncoderIdentity | None:
    """Return what made the newest vectors in a folder; None where there are none that can be
    read."""
    made: list[tuple[str, EncoderIdentity]] = [
        (manifest.created, manifest.encoder)
        for _, manifest in sidecars(root)
        if isinstance(manifest, VectorManifest)
    ]
    made += [
        (sidecar.created, sidecar.encoder)
        for _, sidecar in earlier_sidecars(root)
        if isinstance(sidecar, EarlierSidecar)
    ]
    return max(made, key=lambda pair: pair[0])[1] if made else None


class EarlierVectors:
    """The vectors in a folder with this encoder, these units and this dtype, the newest first;
    none where they are to be made anew.

    ``shards`` serve as they are, ``to_convert`` are of format version 1. ``trained`` is the newest
    sidecar, whose trained quantisers may serve, None where there is none.
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
        fitting: list[tuple[str, Path, VectorManifest]] = []
        for path, manifest in sidecars(root):
            if isinstance(manifest, VectorManifest):
                if not differences(manifest, identity, options):
                    fitting.append((manifest.created, path, manifest))
            elif not isinstance(manifest, VectorsVersionError):
                note(f"Vectors that cannot be read are passed over: {path}: {manifest.what}")
        fitting.sort(key=lambda entry: entry[0], reverse=True)
        self.trained = fitting[0][1] if fitting else None
        shared: set[frozenset[str]] = set()  # what several sidecars have in common
        for _, path, manifest in fitting:
            for shard in manifest.shards_in(path):
                checksums = _checksums(shard.record.files, shard.record.files)
                if checksums not in shared:
                    shared |= {checksums, _checksums(shard.record.files, _vectors(manifest.units))}
                    self.shards.append(shard)
        old: list[EarlierSidecar] = []
        for path, sidecar in earlier_sidecars(root):
            if isinstance(sidecar, VectorsError):
                note(f"Vectors that cannot be read are passed over: {path}: {sidecar.what}")
            elif not differences(sidecar, identity, options):
                old.append(sidecar)
        for sidecar in sorted(old, key=lambda sidecar: sidecar.created, reverse=True):
            for shard in sidecar.shards:
                checksums = _checksums(shard.files, _vectors(sidecar.units))
                if checksums not in shared:
                    shared.add(checksums)
                    self.to_convert.append(shard)


def _vectors(units: Iterable[VectorUnit]) -> list[str]:
    return [vectors_role(unit) for unit in units]


def _checksums(files: Mapping[str, FileRecord], roles: Iterable[str]) -> frozenset[str]:
    """Return what identifies a shard: the checksums of its files with these roles."""
    return frozenset(f"{role} {files[role].sha256}" for role in roles)


def _shown(encoder: EncoderIdentity) -> str:
    return f"{encoder.name} (revision {encoder.revision[:12] or 'not told'})"


def _both(units: tuple[str, ...]) -> str:
    return "both" if len(units) > 1 else ", ".join(units)
