"""The folders of an index's vectors."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from arag_search.engines.opensearch.address import is_address
from arag_search.errors import ArgumentError, VectorsError, VectorsNotNamedError
from arag_search.vectors.storage.layout import read_manifest
from arag_search.vectors.storage.manifest import MANIFEST, VectorManifest

VECTORS_VARIABLE = "ARAG_VECTORS"
FOLDER = "vectors"
"""The folder of the vectors in an index that is a folder."""

_NAME_DIGITS = 16
_NAME = re.compile(f"[0-9a-f]{{{_NAME_DIGITS}}}")


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


def sidecars(root: Path) -> Iterator[tuple[Path, VectorManifest | VectorsError]]:
    """Yield the sidecars in a folder, by name, with their manifests or the errors in these."""
    for path in sorted(root.glob(f"*/{MANIFEST}")):
        if not is_sidecar_name(path.parent.name):
            continue  # being published or removed
        try:
            yield path.parent, read_manifest(path.parent)
        except VectorsError as error:
            yield path.parent, error


def is_sidecar_name(name: str) -> bool:
    """Return whether the name is that of a sidecar, not of one being published or removed."""
    return _NAME.fullmatch(name) is not None


def sidecar_folder(root: Path, placement: str) -> Path:
    """Return the folder with the vectors of the index with this placement."""
    return root / placement[:_NAME_DIGITS]


def embed_command(location: str, root: Path) -> str:
    """Return the command that creates the vectors of an index in a folder of ``root``."""
    is_default = not is_address(location) and root == Path(location) / FOLDER
    named = "" if is_default else f" --vectors {shlex.quote(str(root))}"
    return f"arag-search embed {shlex.quote(location)}{named}"
