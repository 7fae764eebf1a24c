"""The files of a sidecar, except for those of its shards and its placement."""

from __future__ import annotations

from pathlib import Path

from arag_search.errors import VectorsNotFoundError
from arag_search.vectors.base import VectorUnit
from arag_search.vectors.storage.manifest import MANIFEST, VectorManifest


def read_manifest(folder: Path) -> VectorManifest:
    """Read the manifest of a sidecar. Raises VectorsNotFoundError, VectorsDamagedError,
    VectorsVersionError."""
    try:
        data = (folder / MANIFEST).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise VectorsNotFoundError(
            "There are no vectors, or none that were finished.",
            where=str(folder),
            do="Make them: arag-search embed INDEX --encoder NAME",
        ) from None
    return VectorManifest.from_json(data.decode("utf-8", "replace"), str(folder))


def ordinals_file(folder: Path, unit: VectorUnit) -> Path:
    """Return the file with the ordinals of all rows of a unit, int64; -1 for rows without text."""
    return folder / f"{unit}.ordinals.npy"


def keys_file(folder: Path, unit: VectorUnit) -> Path:
    """Return the file with the keys of all rows of a unit, uint8 of shape (rows, 16)."""
    return folder / f"{unit}.keys.npy"


def trained_file(folder: Path, unit: VectorUnit) -> Path:
    """Return the file with the trained index of a unit, without rows."""
    return folder / f"{unit}.trained.faiss"


def index_files(folder: Path, unit: VectorUnit) -> tuple[Path, Path]:
    """Return the files with the FAISS index of a unit and its inverted lists."""
    return folder / f"{unit}.faiss", folder / f"{unit}.ivfdata"
