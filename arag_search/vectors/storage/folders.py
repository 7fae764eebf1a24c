"""The folder with the sidecars of an index, and the choice of the one that fits it.

A sidecar fits the placement of which it was made, and each placement that deletions have left of
it. These are recorded next to its shards, which are never changed, in a file for each placement: a
line of JSON, then a bit for each chunk of the sidecar, the lowest of a byte first, set if the chunk
was deleted. An update writes that file before it publishes the placement, so that vectors and index
change at once, and a roll back finds the vectors of the earlier placement.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import orjson

from arag_search.engines.opensearch.address import is_address
from arag_search.errors import (
    ArgumentError,
    VectorsDamagedError,
    VectorsError,
    VectorsMismatchError,
    VectorsNotFoundError,
    VectorsNotNamedError,
)
from arag_search.manifest import Manifest
from arag_search.system.durable import write_atomically
from arag_search.vectors.storage.files import (
    VECTORS_VERSION,
    map_array,
    read_record,
)
from arag_search.vectors.storage.manifest import MANIFEST, VectorManifest, read_manifest
from arag_search.vectors.storage.placement import chunks_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]
    Ordinals = NDArray[np.int64]

VECTORS_VARIABLE = "ARAG_VECTORS"
FOLDER = "vectors"
"""The folder of the vectors in an index that is a folder."""

_NAME_DIGITS = 16
_NAME = re.compile(f"[0-9a-f]{{{_NAME_DIGITS}}}")
_KEPT_DELETIONS = 8
GROWTH_S = 60.0
"""Seconds that those who follow an index wait for the vectors of its new texts."""
_EMBED = "Embed the index again: arag-search embed INDEX"


def vectors_root(location: str, vectors: Path | str | None = None) -> Path:
    """Return the folder with the sidecars of an index: ``vectors``, or the one in ARAG_VECTORS, or
    ``vectors`` in the folder of the index.

    It need not exist. Raises ArgumentError for an index on a server if neither is set, and for a
    folder without a name.
    """
    if vectors is not None and not str(vectors):
        raise ArgumentError(
            "The folder of the vectors has no name.", where=location, allowed="a folder"
        )
    folder = vectors or os.environ.get(VECTORS_VARIABLE)
    if folder:
        return Path(folder)
    if is_address(location):
        raise VectorsNotNamedError(
            "The folder of the vectors is not given.",
            where=location,
            allowed="a folder; only an index in a folder has its own",
            do=f"Give --vectors DIR, or set {VECTORS_VARIABLE}.",
        )
    return Path(location) / FOLDER


def is_own_root(location: str, root: Path) -> bool:
    """Return whether a folder of sidecars is the one in the folder of the index."""
    return not is_address(location) and root == Path(location) / FOLDER


def sidecars(root: Path) -> Iterator[tuple[Path, VectorManifest | VectorsError]]:
    """Yield the sidecars in a folder, by name, with their manifests or the errors in these."""
    for path in sorted(root.glob(f"*/{MANIFEST}")):
        if not is_sidecar_name(path.parent.name):
            continue  # being published or removed
        try:
            yield path.parent, read_manifest(path.parent)
        except VectorsError as error:
            yield path.parent, error


def readable_sidecars(root: Path) -> list[tuple[Path, VectorManifest]]:
    """Return the sidecars in a folder whose manifests can be read, the newest first."""
    readable = [
        (path, manifest)
        for path, manifest in sidecars(root)
        if isinstance(manifest, VectorManifest)
    ]
    return sorted(readable, key=lambda sidecar: sidecar[1].created, reverse=True)


def is_sidecar_name(name: str) -> bool:
    """Return whether the name is that of a sidecar, not of one being published or removed."""
    return _NAME.fullmatch(name) is not None


def sidecar_folder(root: Path, placement: str) -> Path:
    """Return the folder with the vectors of the index with this placement."""
    return root / placement[:_NAME_DIGITS]


def embed_command(location: str, root: Path) -> str:
    """Return the command that creates the vectors of an index in a folder of ``root``."""
    named = "" if is_own_root(location, root) else f" --vectors {shlex.quote(str(root))}"
    return f"arag-search embed {shlex.quote(location)}{named}"


# The sidecar that fits


class FittingSidecar(NamedTuple):
    """A sidecar that fits an index. ``deleted`` marks the chunks of the sidecar that were deleted
    from the index since; None if none were."""

    path: Path
    manifest: VectorManifest
    deleted: Mask | None = None


def fitting_sidecar(root: Path, placement: str) -> FittingSidecar | None:
    """Return the sidecar that fits an index with this placement, or None.

    Raises VectorsDamagedError and VectorsVersionError for a sidecar of this placement that cannot
    be read.
    """
    own = sidecar_folder(root, placement)
    if (own / MANIFEST).exists():
        manifest = read_manifest(own)
        if manifest.placement == placement:
            return FittingSidecar(own, manifest)
    for path in sorted(root.glob(f"*/{deletions_file(Path(), placement)}")):
        if is_sidecar_name(path.parent.name):
            manifest = read_manifest(path.parent)
            return FittingSidecar(path.parent, manifest, _read_deletions(path, placement, manifest))
    return None


def find_sidecar(root: Path, index: Manifest, location: str) -> FittingSidecar:
    """Return the sidecar that fits an index. Raises VectorsNotFoundError if there are no vectors,
    VectorsMismatchError if those there fit other states of the index or other indexes, and the
    errors of ``fitting_sidecar``."""
    command = embed_command(location, root)
    try:
        fitting = fitting_sidecar(root, index.placement)
    except VectorsError as error:
        error.do = error.do.replace("arag-search embed INDEX", command)
        raise
    if fitting is not None and fitting.manifest.metadata == dict(index.metadata):
        return fitting
    if fitting is None and not any(True for _ in sidecars(root)):
        raise VectorsNotFoundError(
            "The index has no vectors, or none that were finished.",
            where=str(root),
            do=f"Make them: {command} --encoder NAME",
        )
    raise VectorsMismatchError(
        "The vectors do not fit the index: it has changed since they were made, or they are those "
        "of another index.",
        where=str(root),
        allowed="vectors of the index as it is",
        do=f"Run {command}: it encodes new texts only.",
    )


# Deletions


@dataclass(frozen=True, slots=True)
class _DeletionsRecord:
    """The first line of a file of deletions; ``chunks`` are those of the sidecar."""

    format_version: int
    placement: str
    chunks: int
    sha256: str


def deletions_file(folder: Path, placement: str) -> Path:
    """Return the file with the deletions that have led to this placement."""
    return folder / f"deleted-{placement[:_NAME_DIGITS]}.bits"


def write_deletions(fitting: FittingSidecar, ordinals: Sequence[int], placement: str) -> None:
    """Record that the chunks with these ordinals are deleted from an index that a sidecar fits,
    which leads to the new placement. Deletes the oldest records. Reads no vectors. Raises
    VectorsDamagedError, OSError."""
    import numpy as np

    folder, manifest, before = fitting
    chunks: Ordinals = map_array(chunks_file(folder), "int64", (manifest.chunks,))
    deleted = np.zeros(len(chunks), np.bool_) if before is None else before.copy()
    deleted[np.searchsorted(chunks, np.array(ordinals, np.int64))] = True
    bits = np.packbits(deleted, bitorder="little").tobytes()
    digest = hashlib.sha256(bits).hexdigest()
    record = _DeletionsRecord(VECTORS_VERSION, placement, len(chunks), digest)
    path = deletions_file(folder, placement)
    # Several indexes of the same documents may share the sidecar.
    write_atomically(path, orjson.dumps(record) + b"\n" + bits, shared=True)
    stored = sorted(folder.glob("deleted-*.bits"), key=lambda file: file.stat().st_mtime_ns)
    for old in stored[:-_KEPT_DELETIONS]:
        old.unlink(missing_ok=True)


def mark_growth(folder: Path, placement: str) -> None:
    """Note in the folder of a sidecar that an index which it fitted grows to this placement, and is
    then embedded again. Raises OSError."""
    write_atomically(folder / _growth_name(placement), b"", shared=True)


def growing_sidecar(root: Path, placement: str) -> FittingSidecar | None:
    """Return the sidecar that fitted an index with this placement before it grew, if embedding it
    again was interrupted. Raises VectorsDamagedError, VectorsVersionError."""
    for path in sorted(root.glob(f"*/{_growth_name(placement)}")):
        if is_sidecar_name(path.parent.name):
            return FittingSidecar(path.parent, read_manifest(path.parent))
    return None


def is_growing(root: Path, placement: str) -> bool:
    """Return whether an index has grown to this placement in the last ``GROWTH_S`` seconds, and no
    vectors fit it yet. Raises VectorsDamagedError, VectorsVersionError."""
    marks = root.glob(f"*/{_growth_name(placement)}")
    age_s = min((abs(time.time() - mark.stat().st_mtime) for mark in marks), default=GROWTH_S)
    return age_s < GROWTH_S and fitting_sidecar(root, placement) is None


def outgrown_sidecars(root: Path) -> list[Path]:
    """Return the sidecars of an index that has grown since, and was embedded then; the last to be
    outgrown first."""
    marks = {
        mark.parent: mark.stat().st_mtime_ns
        for mark in root.glob(f"*/{_growth_name('*')}")
        if is_sidecar_name(mark.parent.name)
        and sidecar_folder(root, mark.name.removeprefix(_growth_name(""))).exists()
    }
    return sorted(marks, key=lambda folder: marks[folder], reverse=True)


def _growth_name(placement: str) -> str:
    return f"grown-{placement[:_NAME_DIGITS]}"


def _read_deletions(path: Path, placement: str, manifest: VectorManifest) -> Mask:
    import numpy as np

    line, _, bits = path.read_bytes().partition(b"\n")
    record = read_record(_DeletionsRecord, line, str(path), _EMBED)
    if (record.placement, record.chunks, record.sha256) != (
        placement,
        manifest.chunks,
        hashlib.sha256(bits).hexdigest(),
    ):
        raise VectorsDamagedError(
            "The file of deletions is not as it was written.", where=str(path), do=_EMBED
        )
    deleted = np.unpackbits(np.frombuffer(bits, np.uint8), count=manifest.chunks, bitorder="little")
    return deleted.astype(np.bool_)
