"""The description of an index's vectors in arag-search info."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from arag_search.search.index import Index
    from arag_search.vectors.storage.manifest import VectorManifest
    from arag_search.vectors.storage.version_1 import EarlierSidecar


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
    from arag_search.engines.opensearch.address import is_address
    from arag_search.errors import VectorsError
    from arag_search.vectors.storage.place import VECTORS_VARIABLE, sidecars, vectors_root
    from arag_search.vectors.storage.version_1 import earlier_sidecars

    location = opened.location
    if vectors is None and is_address(location) and not os.environ.get(VECTORS_VARIABLE):
        return []
    root = vectors_root(location, vectors)
    earlier = dict(earlier_sidecars(root))
    described: list[DescribedSidecar] = []
    for path, sidecar in sidecars(root):
        if path in earlier:
            continue
        if isinstance(sidecar, VectorsError):
            described.append(_damaged(path, sidecar.what))
        else:
            described.append(_described(path, sidecar, opened, checksums))
    is_replaced = any(sidecar.json["fits"] for sidecar in described)
    for path, sidecar in earlier.items():
        if is_replaced:
            described.append(_replaced(path))
        elif isinstance(sidecar, VectorsError):
            described.append(_damaged(path, sidecar.what))
        else:
            described.append(_described_earlier(sidecar, opened, root, checksums))
    return described


def _damaged(path: Path, why: str) -> DescribedSidecar:
    content = {"folder": str(path), "fits": False, "error": why}
    return DescribedSidecar(content, f"{path}: damaged: {why}", False)


def _described(
    path: Path, sidecar: VectorManifest, opened: Index, checksums: bool
) -> DescribedSidecar:
    from arag_search.errors import VectorsError
    from arag_search.vectors.storage.files import check_contents, check_sizes
    from arag_search.vectors.storage.sidecar import sidecar_files

    check = check_contents if checksums else check_sizes
    try:
        check(sidecar_files(path, sidecar), "")
    except VectorsError as error:
        return _damaged(path, f"{error.what} ({error.where})")
    fits = sidecar.placement == opened.manifest.placement
    size = sum(file.stat().st_size for file in path.iterdir())
    content: dict[str, Any] = {
        "folder": str(path),
        "fits": fits,
        "encoder": sidecar.encoder.name,
        "dimension": sidecar.encoder.dimension,
        "rows": sidecar.live_rows,
        "dead_rows": sidecar.dead_rows,
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
    state = "of the index as it is" if fits else "of another state of the index"
    read = "all files read" if checksums else "sizes of files compared"
    text = (
        f"{path}: {rows}; {sidecar.encoder.name}, {sidecar.encoder.dimension:,} dimensions;"
        f" {kinds}, {sidecar.dtype}, {size:,} bytes; {state}; {read}"
    )
    return DescribedSidecar(content, text, True)


def _replaced(path: Path) -> DescribedSidecar:
    content = {"folder": str(path), "fits": False, "format_version": 1}
    text = f"{path}: format version 1, replaced by the above; the folder may be deleted"
    return DescribedSidecar(content, text, True)


def _described_earlier(
    sidecar: EarlierSidecar, opened: Index, root: Path, checksums: bool
) -> DescribedSidecar:
    """Describe a sidecar of format version 1, which is refused until it is converted. With
    ``checksums``, find out which wrong results that version has returned."""
    from arag_search.errors import VectorsError
    from arag_search.system.extras import check_extra
    from arag_search.vectors.storage.place import embed_command
    from arag_search.vectors.storage.version_1 import misplaced

    content: dict[str, Any] = {
        "folder": str(sidecar.path),
        "fits": False,
        "format_version": 1,
        "encoder": sidecar.encoder.name,
        "created": sidecar.created,
        "fingerprint": sidecar.fingerprint,
        "affected": None,
    }
    text = (
        f"{sidecar.path}: format version 1, made by {sidecar.encoder.name}; not searched until"
        f" converted: {embed_command(opened.location, root)}"
    )
    if not checksums:
        return DescribedSidecar(content, f"{text}; --checksums says whether it was wrong", True)
    check_extra("vectors", "numpy")
    try:
        affected = misplaced(sidecar, opened.scan())
    except VectorsError as error:
        return _damaged(sidecar.path, f"{error.what} ({error.where})")
    content |= {
        "affected": bool(affected.wrong),
        "wrong_passages": affected.wrong,
        "lost_passages": affected.lost,
    }
    if affected.wrong:
        text += (
            f"; AFFECTED: {affected.wrong:,} of {affected.chunks:,} passages have the vectors of"
            f" others, and {affected.lost:,} have none: searches of earlier versions were wrong"
        )
    else:
        text += f"; not affected: no passage stands in another's place, {affected.lost:,} have none"
    return DescribedSidecar(content, text, not affected.wrong)
