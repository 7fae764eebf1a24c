"""The description of an index's vectors in arag-search info."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from arag_search.search.index import Index
    from arag_search.vectors.storage.folders import FittingSidecar
    from arag_search.vectors.storage.manifest import VectorManifest


class DescribedSidecar(NamedTuple):
    """A sidecar as JSON and in words, and whether it is free of problems."""

    json: dict[str, Any]
    text: str
    is_sound: bool


def described_sidecars(
    opened: Index, vectors: str | None, checksums: bool
) -> list[DescribedSidecar]:
    """Describe the sidecars of an index. Sizes of files are compared; with ``checksums`` everything
    is read."""
    from arag_search.errors import VectorsError, VectorsNotNamedError
    from arag_search.vectors.storage.folders import fitting_sidecar, sidecars, vectors_root

    try:
        root = vectors_root(opened.location, vectors)
    except VectorsNotNamedError:
        return []
    try:
        fitting = fitting_sidecar(root, opened.manifest.placement)
    except VectorsError:
        fitting = None  # described as damaged below
    return [
        _damaged(path, sidecar.what)
        if isinstance(sidecar, VectorsError)
        else _described(path, sidecar, fitting, checksums)
        for path, sidecar in sidecars(root)
    ]


def _damaged(path: Path, why: str) -> DescribedSidecar:
    content = {"folder": str(path), "fits": False, "error": why}
    return DescribedSidecar(content, f"{path}: damaged: {why}", False)


def _described(
    path: Path, sidecar: VectorManifest, fitting: FittingSidecar | None, checksums: bool
) -> DescribedSidecar:
    from arag_search.errors import VectorsError
    from arag_search.system.wording import counted
    from arag_search.vectors.storage.files import check_contents, check_sizes
    from arag_search.vectors.storage.sidecar import sidecar_files

    check = check_contents if checksums else check_sizes
    try:
        check(sidecar_files(path, sidecar), "")
    except VectorsError as error:
        return _damaged(path, f"{error.what} ({error.where})")
    fits = fitting is not None and fitting.path == path
    gone = None if not fits or fitting is None else fitting.deleted
    deleted = 0 if gone is None else int(gone.sum())
    size = sum(file.stat().st_size for file in path.iterdir())
    content: dict[str, Any] = {
        "folder": str(path),
        "fits": fits,
        "encoder": sidecar.encoder.name,
        "dimension": sidecar.encoder.dimension,
        "rows": sidecar.live_rows,
        "dead_rows": sidecar.dead_rows,
        "deleted_passages": deleted,
        "index": sidecar.index,
        "dtype": sidecar.dtype,
        "bytes": size,
        "created": sidecar.created,
        "fingerprint": sidecar.fingerprint,
        "placement": sidecar.placement,
        "verified": "contents" if checksums else "sizes",
    }
    rows = ", ".join(f"{rows:,} {unit}s" for unit, rows in sidecar.live_rows.items())
    kinds = ", ".join(dict.fromkeys(sidecar.index.values()))
    state = "of the index as it is" if fits else "of another state of the index, not searched"
    state += f", {counted(deleted, 'passage')} deleted since" if deleted else ""
    read = "all files read" if checksums else "sizes of files compared"
    text = (
        f"{path}: {rows}; {sidecar.encoder.name}, {sidecar.encoder.dimension:,} dimensions;"
        f" {kinds}, {sidecar.dtype}, {size:,} bytes; {state}; {read}"
    )
    return DescribedSidecar(content, text, True)
