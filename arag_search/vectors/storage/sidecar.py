"""The vectors of one index on disk, open for search."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from arag_search.engines.base import Calls, Ordinals
from arag_search.errors import ArgumentError, NotServedError, VectorsDamagedError
from arag_search.manifest import Manifest
from arag_search.plan.clauses import ResolvedPlan
from arag_search.system.extras import check_extra
from arag_search.system.processes import share_cores
from arag_search.vectors.base import (
    KEY_BYTES,
    EncoderIdentity,
    FloatArray,
    Nearest,
    Selection,
    VectorUnit,
)
from arag_search.vectors.storage import exact, faiss_index
from arag_search.vectors.storage.columns import Columns
from arag_search.vectors.storage.exact import Allowance, AllowedRows, TextRows
from arag_search.vectors.storage.files import (
    EMBED_AGAIN,
    check_contents,
    check_sizes,
    map_array,
)
from arag_search.vectors.storage.folders import find_sidecar
from arag_search.vectors.storage.manifest import (
    FLAT,
    VectorManifest,
    index_files,
    keys_file,
    ordinals_file,
)
from arag_search.vectors.storage.placement import chunks_file, ends_file, rows_file
from arag_search.vectors.storage.shards import MappedRows

CHECKED_BYTES = 1 << 26
"""The largest file besides those of vectors that is read and compared with its checksum when a
sidecar is opened (64 MiB); a damaged byte in one would drop hits without a word."""

_GATHERING = 2
"""The time to gather a row, as a multiple of the time to pass it in a scan of all rows."""
_PASSING = 1 / 4
"""The time to pass a row of a list that is not allowed, as a multiple of the time to score it."""


class _Unit:
    """The rows of a unit with their texts, and their FAISS index, None if flat."""

    def __init__(self, folder: Path, manifest: VectorManifest, unit: VectorUnit, threads: int):
        shards = manifest.shards_in(folder)
        self.rows = MappedRows(shards, unit, manifest.encoder.dimension, manifest.dtype)
        rows = self.rows.rows
        self.texts = exact.RowTexts(
            map_array(ordinals_file(folder, unit), "int64", (rows,)),
            map_array(keys_file(folder, unit), "uint8", (rows, KEY_BYTES)),
        )
        self.text_rows = TextRows(
            map_array(ends_file(folder, unit), "int64", (manifest.chunks,)),
            map_array(rows_file(folder, unit), "int64", (manifest.live_rows[unit],)),
            rows,
        )
        self.nprobe = manifest.nprobe[unit]
        self.ivf: faiss_index.IvfIndex | None = None
        if manifest.index[unit] != FLAT:
            self.ivf = faiss_index.IvfIndex(*index_files(folder, unit), rows, threads)


def open_vectors(
    root: Path,
    index: Manifest,
    location: str,
    *,
    threads: int | None = None,
    nprobe: int | None = None,
) -> Sidecar:
    """Open the vectors in a folder of ``root`` that fit an index; ``location`` names it in errors.

    The sizes of all files are checked, and the contents of those up to CHECKED_BYTES that hold no
    vectors, in a time that does not grow with the number of rows beyond that.
    ``threads`` limits FAISS in a search; the default is the
    number of cores. numpy uses as many as its own variables allow. ``nprobe`` is the number of
    lists that a search probes; the default is that of the vectors.

    Raises VectorsNotFoundError, VectorsMismatchError if none fit, VectorsDamagedError,
    VectorsVersionError, MissingExtraError.
    """
    check_extra("vectors", "numpy")
    path, manifest, deleted = find_sidecar(root, index, location)
    if any(factory != FLAT for factory in manifest.index.values()):
        check_extra("vectors", "faiss-cpu", "faiss")
    return Sidecar(path, manifest, deleted=deleted, threads=threads, nprobe=nprobe)


class Sidecar:
    """Vectors that are mapped into memory. Safe to use from several threads until closed.

    ``manifest`` describes them, ``path`` is their folder.
    """

    def __init__(
        self,
        path: Path,
        manifest: VectorManifest,
        *,
        deleted: NDArray[np.bool_] | None = None,
        threads: int | None = None,
        nprobe: int | None = None,
    ) -> None:
        """Map a sidecar, whose ``deleted`` chunks are never found. ``open_vectors`` verifies that
        it fits an index. Raises VectorsDamagedError."""
        self.path = path
        self._nprobe = nprobe
        self.manifest = manifest
        self._calls = Calls(str(path))
        check_sizes(manifest.files_in(path), EMBED_AGAIN)
        files = manifest.files.items()
        small = {path / name: file for name, file in files if file.bytes <= CHECKED_BYTES}
        check_contents(small, EMBED_AGAIN)
        threads = threads or share_cores()
        self._units: dict[VectorUnit, _Unit] = {
            unit: _Unit(path, manifest, unit, threads) for unit in manifest.units
        }
        texts: dict[VectorUnit, TextRows] = {
            unit: stored.text_rows for unit, stored in self._units.items()
        }
        columns = Columns(path, manifest.metadata, manifest.chunks)
        ordinals: Ordinals = map_array(chunks_file(path), "int64", (manifest.chunks,))
        self._allowance: Allowance | None = Allowance(columns, ordinals, texts, deleted)

    @property
    def encoder(self) -> EncoderIdentity:
        """The encoder that made the vectors; queries must be encoded by an equal one."""
        return self.manifest.encoder

    @property
    def probes(self) -> tuple[tuple[float, ...], ...]:
        """None were kept."""
        return ()

    @property
    def units(self) -> tuple[VectorUnit, ...]:
        """The units that have vectors."""
        return self.manifest.units

    def nearest(
        self,
        unit: VectorUnit,
        queries: FloatArray,
        n: int,
        within: ResolvedPlan | Selection | None = None,
        *,
        rescore: bool = True,
        nprobe: int | None = None,
    ) -> list[list[Nearest]]:
        """See Vectors. Search exactly if the index is flat, or if that costs less: few rows are
        within. Otherwise, rescore the candidates that FAISS finds in ``nprobe`` lists by their
        stored vectors, unless ``rescore`` is False. Of rows within, as many are scored as of all.

        If those lists have too few rows within, more lists are probed. Raises ArgumentError for
        queries of another shape or not finite, NotServedError, IndexClosedError.
        """
        with self._calls:
            if unit not in self._units or self._allowance is None:
                raise NotServedError(
                    f"There are no vectors of the unit {unit}.",
                    where=str(self.path),
                    allowed=" and ".join(self.units),
                    do="Embed the index again with --unit both.",
                )
            queries = np.ascontiguousarray(queries, np.float32)
            _check(queries, n, self.manifest.encoder.dimension)
            stored = self._units[unit]
            try:
                allowed = self._allowance.rows(unit, within)
                if stored.rows.rows == 0 or len(queries) == 0:
                    return [[] for _ in queries]
                probed = _lists(stored, allowed, nprobe or self._nprobe or stored.nprobe)
                if stored.ivf is None or not probed:
                    return _exactly(stored, queries, n, allowed)
                candidates = n * (self.manifest.rescore if rescore else 1)
                ranked = _candidates_of(stored.ivf, queries, n, candidates, allowed, probed)
                return [
                    exact.ranked(stored.rows, stored.texts, query, np.sort(rows), n)
                    if rescore
                    else exact.in_order(stored.texts, rows, scores, n)
                    for query, (scores, rows) in zip(queries, ranked, strict=True)
                ]
            except (IndexError, ValueError, MemoryError) as error:
                # numbers in damaged files point outside of them
                raise VectorsDamagedError(
                    "The vectors cannot be searched: a file has changed since it was written "
                    f"({error}).",
                    where=str(self.path),
                    do=EMBED_AGAIN,
                ) from error

    def close(self) -> None:
        """Wait for running searches, then free the maps. May be called again."""
        if self._calls.close():
            self._units.clear()
            self._allowance = None


def _lists(stored: _Unit, allowed: AllowedRows | None, nprobe: int) -> int:
    """Return how many lists to probe, ``nprobe`` if all rows are allowed: as many more as it takes
    to score as many rows, since the nearest of few are in more lists; 0 if it costs less, or is
    needed, to score all that are allowed."""
    if stored.ivf is None:
        return 0
    probed = min(nprobe, stored.ivf.lists)
    if allowed is None:
        return probed
    if not allowed.count:
        return 0
    scored = allowed.total * probed / stored.ivf.lists
    passed = min(allowed.total, scored * allowed.total / allowed.count)
    few = scored + _PASSING * (passed - scored)
    if allowed.count < (exact.FEW_ROWS if stored.ivf.is_quantised else few):
        return 0
    return min(-(-probed * allowed.total // allowed.count), stored.ivf.lists)


def _candidates_of(
    ivf: faiss_index.IvfIndex,
    queries: FloatArray,
    n: int,
    candidates: int,
    allowed: AllowedRows | None,
    probed: int,
) -> list[tuple[FloatArray, NDArray[np.int64]]]:
    """Return, for each query, the scores and the rows of candidates in so many lists. If these have
    fewer than ``n``, or than candidates if not all rows are allowed, more lists are probed."""
    bits = None if allowed is None else allowed.bitmap()
    wanted = min(n, ivf.rows) if allowed is None else min(candidates, allowed.count)
    scores, rows = ivf.search(queries, candidates, probed, bits)
    while probed < ivf.lists and (too_few := (rows[:, wanted - 1] < 0)).any():
        probed = min(4 * probed, ivf.lists)
        scores[too_few], rows[too_few] = ivf.search(queries[too_few], candidates, probed, bits)
    return [(own[row >= 0], row[row >= 0]) for own, row in zip(scores, rows, strict=True)]


def _exactly(
    stored: _Unit, queries: FloatArray, n: int, allowed: AllowedRows | None
) -> list[list[Nearest]]:
    if allowed is not None and _GATHERING * allowed.count < allowed.total:
        best = exact.best_of_rows(stored.rows, queries, n, allowed.numbers())
    else:
        best = exact.best_of_all(stored.rows, queries, n, None if allowed is None else allowed.mask)
    return [
        exact.ranked(stored.rows, stored.texts, query, rows, n)
        for query, rows in zip(queries, best, strict=True)
    ]


def _check(queries: FloatArray, n: int, dimension: int) -> None:
    if queries.ndim != 2 or queries.shape[1] != dimension:
        shape = " x ".join(map(str, queries.shape))
        raise ArgumentError(
            f"The queries have the shape {shape}.", allowed=f"a row per query, {dimension} columns"
        )
    if not np.isfinite(queries).all():
        raise ArgumentError("A query is not finite.", allowed="neither infinite nor NaN")
    if n < 1:
        raise ArgumentError(f"n is {n}.", allowed="1 or more")
