"""FAISS indexes with inverted files: choice, training on a sample, merging on disk, search.

An index stands beside the rows of a store and covers the first of them; FAISS ids are row numbers.
``<unit>.index.json`` names its files, which are complete before it appears. Lists stay on disk and
are mapped; only the coarse quantiser is in memory.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import importlib
import math
import os
import shutil
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from arag_search.errors import ArgumentError, VectorsDamagedError, VectorsError
from arag_search.system.durable import replacing, sync, write_atomically
from arag_search.system.extras import check_extra
from arag_search.system.processes import share_cores
from arag_search.system.progress import Progress
from arag_search.vectors.base import FloatArray, VectorUnit
from arag_search.vectors.records import VECTORS_VERSION, read_record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from arag_search.vectors.store import Store, StoredRows

FLAT = "flat"
AUTO = "auto"
MOST_FLAT_ROWS = 1_000_000
"""From this number of rows on, ``auto`` is an inverted file."""
MAX_LISTS = 1 << 16
LEAST_POINTS_A_LIST = 39
MOST_POINTS_A_LIST = 64
SEED = 1234
DUE_SHARE = 0.1
"""The share of rows that an index does not cover, above which it is made anew."""
PART_BYTES = 64 << 20
"""The codes and ids that are in memory while lists are filled."""

_MOST_PARTS = 64  # of a code: a byte for each four numbers
_PART_NUMBERS = 4
_CODES = 256  # of a part
_MERGED = ("IndexIVFFlat", "IndexIVFPQ", "IndexIVFScalarQuantizer")
_LARGE_SAMPLE_BYTES = 2 << 30
_BLOCK_ROWS = 1 << 16
_ID_BYTES = 8
_BUILD_AGAIN = "Make the index again, which encodes nothing: arag-search embed INDEX"
_ALLOWED = (
    "auto, flat, or a FAISS factory with an inverted file, such as IVF1024,Flat or "
    "OPQ64_256,IVF4096,PQ64"
)


# The index beside the rows of a unit


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRecord:
    """The description of an index: what ``factory`` makes of the first ``rows`` rows of a unit.

    ``files`` are the index, its inverted lists, and the trained index without rows, in this order,
    with their sizes; none if it was asked for as "flat".
    """

    format_version: int = VECTORS_VERSION
    factory: str
    rows: int
    files: dict[str, int]

    def paths(self, folder: Path) -> tuple[Path, Path, Path]:
        """Return the paths of index, lists and trained index."""
        index, lists, trained = (folder / name for name in self.files)
        return index, lists, trained

    def check(self, folder: Path, dimension: int = 0) -> None:
        """Raise VectorsDamagedError for a file that is missing or has another size, and if the
        ``dimension`` is given, for an index that FAISS cannot open or that is one of other rows."""
        for name, expected in self.files.items():
            path = folder / name
            size = path.stat().st_size if path.exists() else -1
            if size != expected:
                what = f"has {size:,} bytes, not {expected:,}" if size >= 0 else "is missing"
                raise _damaged(f"The file {what}.", path)
        if dimension and self.files:
            IvfIndex(self, folder, dimension)


def read_index(folder: Path, unit: VectorUnit) -> IndexRecord | None:
    """Read the record of the index of a unit in the folder of a store; None if it is flat for lack
    of rows. Raises VectorsDamagedError, VectorsVersionError."""
    path = _record_path(folder, unit)
    try:
        return read_record(IndexRecord, path.read_bytes(), str(path))
    except FileNotFoundError:
        return None


def build(
    store: Store,
    unit: VectorUnit,
    index: str | None,
    progress: Progress,
    before: Path | None = None,
) -> bool:
    """Make the index of all rows of a unit in place of the one before, if that is due: there is no
    such index, it is damaged, or it leaves more than a tenth of the rows to be searched one by one.
    Return whether anything was done.

    ``index`` is "auto", "flat" or a FAISS factory; None keeps the one before, whatever its size.
    The quantiser stays, and only new rows are added, if the factory is the same, or with "auto"
    would not have more than twice as many lists; a flat index that was asked for stays flat with
    "auto". ``before`` is the folder of a store whose index is taken likewise. Memory grows with the
    training sample, not with the number of rows. An interrupted call leaves the index before in
    place, and its training to the next. Raises ArgumentError for an index that cannot be made or
    trained, MissingExtraError, OSError.
    """
    folder, stored = store.folder, store.vectors(unit)
    made = _suiting(folder, unit, index, stored)
    if made and (made.factory == FLAT or stored.rows - made.rows <= DUE_SHARE * stored.rows):
        return False
    donor = made or (None if before is None else _suiting(before, unit, index, stored))
    factory = donor.factory if donor else factory_of(index or AUTO, stored.rows, stored.dimension)
    path = _record_path(folder, unit)
    record: IndexRecord | None = None
    if factory != FLAT:
        record = _made(store, unit, factory, made, before, progress)
    elif index == FLAT or donor:
        record = IndexRecord(factory=factory, rows=0, files={})
    elif not path.exists():
        return False
    if record is not None:
        write_atomically(path, orjson.dumps(record))
    else:
        path.unlink()
    for file in folder.glob(f"{unit}-*"):
        if record is None or file.name not in record.files:
            file.unlink()
    return True


def _made(
    store: Store,
    unit: VectorUnit,
    factory: str,
    made: IndexRecord | None,
    before: Path | None,
    progress: Progress,
) -> IndexRecord:
    """Make the files of an index, behind the rows of the one that was ``made`` before, if there is
    one, and with the quantiser of the folder ``before``, if that has one for this factory."""
    folder, stored = store.folder, store.vectors(unit)
    needed = points_needed(factory, stored.dimension)
    if stored.rows < needed:
        raise ArgumentError(
            f"{factory} needs at least {needed:,} rows for training, and there are "
            f"{stored.rows:,}.",
            where=f"the {unit} vectors in {folder}",
            allowed=_ALLOWED,
            do="Use --index flat, or a factory with fewer lists.",
        )
    name = f"{unit}-{hashlib.blake2b(factory.encode(), digest_size=4).hexdigest()}"
    trained = folder / f"{name}.trained.faiss"
    if not trained.exists():
        progress.stage(f"training {unit} vectors", 0, 1)
        if before is not None and (before / trained.name).exists():
            with replacing(trained) as temporary:
                shutil.copyfile(before / trained.name, temporary)
        else:  # no name holds the sample, so that its memory is free while lists are filled
            _train(factory, sample(stored, factory), trained)
        progress.stage(f"training {unit} vectors", 1, 1)
    target, lists = (folder / f"{name}-{stored.rows}.{kind}" for kind in ("faiss", "ivfdata"))
    parts = _fill(trained, stored, made.rows if made else 0, target, progress)
    _merge(trained, made.paths(folder)[:2] if made else None, parts, target, lists)
    files = {path.name: path.stat().st_size for path in (target, lists, trained)}
    return IndexRecord(factory=factory, rows=stored.rows, files=files)


def _suiting(
    folder: Path, unit: VectorUnit, index: str | None, stored: StoredRows
) -> IndexRecord | None:
    """Return the record of an index that can be opened, whose quantiser may stay for these rows."""
    try:
        made = read_index(folder, unit)
        if made is None or index not in (None, made.factory, AUTO):
            return None
        if made.files:
            lists = IvfIndex(made, folder, stored.dimension).lists
            if index == AUTO and lists_for(stored.rows) > 2 * lists:
                return None
        return made
    except VectorsError:
        return None


def _record_path(folder: Path, unit: VectorUnit) -> Path:
    return folder / f"{unit}.index.json"


# Factories


def factory_of(index: str, rows: int, dimension: int) -> str:
    """Return what ``auto`` means for a number of rows (flat below a million), or ``index``
    itself."""
    if index != AUTO:
        return index
    if rows < MOST_FLAT_ROWS:
        return FLAT
    parts = min(_MOST_PARTS, max(1, dimension // _PART_NUMBERS))
    return f"OPQ{parts}_{min(dimension, parts * _PART_NUMBERS)},IVF{lists_for(rows)},PQ{parts}"


def lists_for(rows: int) -> int:
    """Return the power of two that is nearest to 4 sqrt(rows), at most 65,536."""
    return min(MAX_LISTS, 2 ** max(0, round(math.log2(4 * math.sqrt(max(1, rows))))))


def usual_nprobe(lists: int) -> int:
    """Return how many lists are searched by default."""
    return min(lists, max(64, lists // 32))


def check_factory(index: str, dimension: int) -> None:
    """Raise ArgumentError for an ``--index`` that cannot be built for this dimension."""
    if index not in (AUTO, FLAT):
        _created(index, dimension)


def points_needed(factory: str, dimension: int) -> int:
    """Return the fewest rows that a factory can be trained on."""
    _, ivf = _created(factory, dimension)
    codes = 2**ivf.pq.nbits if hasattr(ivf, "pq") else 0
    opq = LEAST_POINTS_A_LIST * _CODES if "OPQ" in factory else 0
    return max(LEAST_POINTS_A_LIST * ivf.nlist, codes, opq)


def sample(stored: StoredRows, factory: str) -> FloatArray:
    """Draw vectors for training, evenly from all rows, always the same.

    There are 64 per list, or 39 if that would exceed 2 GB; all rows if they are fewer.
    """
    import numpy as np

    needed = points_needed(factory, stored.dimension)
    points = max(needed, MOST_POINTS_A_LIST * _created(factory, stored.dimension)[1].nlist)
    if points * stored.dimension * 4 > _LARGE_SAMPLE_BYTES:
        points = needed
    points = min(points, stored.rows)
    ends: NDArray[np.int64] = np.arange(points + 1, dtype=np.int64) * stored.rows // points
    rows = ends[:-1] + np.random.default_rng(SEED).integers(0, np.diff(ends))
    return stored.gather(rows)


# Making


def _train(factory: str, points: FloatArray, path: Path) -> None:
    with _faiss() as faiss:
        index, ivf = _created(factory, points.shape[1])
        ivf.cp.seed = SEED
        ivf.cp.min_points_per_centroid = 1  # checked earlier; FAISS would print a warning
        if hasattr(ivf, "pq"):
            ivf.pq.cp.min_points_per_centroid = 1
            # It takes minutes, and serves a kind of search that we do not use.
            ivf.do_polysemous_training = False
        if "OPQ" in factory:
            rotation = faiss.downcast_VectorTransform(index.chain.at(0))
            rotation.max_train_points = MOST_POINTS_A_LIST * _CODES
        index.train(points)
        _write(faiss, index, path)


def _fill(
    trained: Path, stored: StoredRows, first: int, target: Path, progress: Progress
) -> list[Path]:
    """Write copies of a trained index with the rows from ``first`` on, a part of them in each,
    which are named after ``target``. Each part has a copy of the centroids too. Raises OSError."""
    import numpy as np

    parts: list[Path] = []
    with _faiss() as faiss:
        index = faiss.read_index(str(trained))
        row_bytes = int(faiss.extract_index_ivf(index).code_size) + _ID_BYTES
        size = max(1, min(_BLOCK_ROWS, PART_BYTES // row_bytes))
        for start, vectors in stored.blocks(size, first):
            ids = np.arange(start, start + len(vectors), dtype=np.int64)
            index.add_with_ids(np.ascontiguousarray(vectors), ids)
            end = start + len(vectors)
            progress.stage(f"adding {target.name.partition('-')[0]} vectors", end, stored.rows)
            if index.ntotal * row_bytes >= PART_BYTES or end == stored.rows:
                parts.append(target.with_suffix(f".{start}.part"))
                _write(faiss, index, parts[-1])
                index.reset()
    return parts


def _merge(
    trained: Path,
    before: tuple[Path, Path] | None,
    filled: Sequence[Path],
    path: Path,
    lists: Path,
) -> None:
    """Write the index of all rows, with its inverted lists in a file of their own, which is mapped,
    so that no list is in memory as a whole. ``before`` are the index and the lists of the first
    rows, if an earlier merge wrote them; ``filled`` are those of the others, and are removed.
    Raises OSError.

    FAISS' own ``merge_ondisk`` does the same, but never unmaps the files that it has read.
    """
    with _faiss() as faiss:
        parts = [] if before is None else [_mapped_index(faiss, *before)]
        parts += [faiss.read_index(str(part), faiss.IO_FLAG_MMAP) for part in filled]
        pointers = faiss.InvertedListsPtrVector()
        for part in parts:
            pointers.push_back(faiss.extract_index_ivf(part).invlists)
        index = faiss.read_index(str(trained))
        ivf = faiss.extract_index_ivf(index)
        _check_room(path.parent, sum(part.ntotal for part in parts) * (ivf.code_size + _ID_BYTES))
        merged = faiss.OnDiskInvertedLists(ivf.nlist, ivf.code_size, str(lists))
        with _stdout_discarded():
            rows = merged.merge_from_multiple(pointers.data(), pointers.size(), False)
        index.ntotal = ivf.ntotal = rows
        ivf.replace_invlists(merged, True)
        merged.this.disown()
        sync(lists)
        _write(faiss, index, path)


# Searching


class IvfIndex:
    """An inverted file, open for reading: ``rows`` rows in ``lists`` lists, of which ``nprobe`` are
    searched by default. Safe to use from several threads."""

    def __init__(self, record: IndexRecord, folder: Path, dimension: int) -> None:
        """Map an index in the folder of a store. Raises VectorsDamagedError, also for one of other
        rows."""
        record.check(folder)
        path, lists, _ = record.paths(folder)
        with _faiss() as faiss:
            try:
                self._index = _mapped_index(faiss, path, lists)
            except (RuntimeError, AttributeError) as error:
                raise _damaged(
                    f"FAISS cannot read the index ({_last_line(error)}).", path
                ) from error
            header = self._index.ntotal, self._index.d, self._index.metric_type
            if header != (record.rows, dimension, faiss.METRIC_INNER_PRODUCT):
                raise _damaged("The index is one of other rows.", path)
            self.rows = record.rows
            self.lists = int(faiss.extract_index_ivf(self._index).nlist)
            self.nprobe = usual_nprobe(self.lists)

    def search(
        self, queries: FloatArray, n: int, nprobe: int, allowed: NDArray[np.uint8] | None
    ) -> NDArray[np.int64]:
        """Return the nearest rows by their codes, of shape (queries, n); -1 if too few were found.

        ``allowed`` has a bit for each row, the lowest of a byte first; rows behind are not allowed.
        """
        # One query is not worth threads, which wait for each other where others use the processors.
        with _faiss(len(queries)) as faiss:
            # A selector resets nprobe to 1 unless it is passed with it.
            if allowed is None:
                parameters = faiss.SearchParametersIVF(nprobe=nprobe)
            else:
                selector = faiss.IDSelectorBitmap(allowed)
                parameters = faiss.SearchParametersIVF(sel=selector, nprobe=nprobe)
            rows: NDArray[np.int64] = self._index.search(queries, n, params=parameters)[1]
            return rows


def _mapped_index(faiss: Any, path: Path, lists: Path) -> Any:
    """Read an index whose inverted lists are in a file of their own, which is mapped."""
    # Like IO_FLAG_ONDISK_SAME_DIR, which works in a moved folder, but without its output on stdout.
    index = faiss.read_index(str(path), faiss.IO_FLAG_SKIP_IVF_DATA | faiss.IO_FLAG_READ_ONLY)
    stored = faiss.downcast_InvertedLists(faiss.extract_index_ivf(index).invlists)
    stored.filename = str(lists)
    stored.do_mmap()
    stored.prefetch_nthread = 0  # otherwise each search starts 32 threads
    return index


def _library() -> Any:
    """Import FAISS, which flat vectors do not need. Raises MissingExtraError."""
    check_extra("vectors", "faiss-cpu", "faiss")
    share_cores()
    return importlib.import_module("faiss")


@contextmanager
def _faiss(most_threads: int | None = None) -> Generator[Any]:
    """Yield the library, with a limit on threads for calls from this thread: the cores that this
    process may use, or fewer."""
    faiss = _library()
    before, cores = faiss.omp_get_max_threads(), share_cores()
    faiss.omp_set_num_threads(min(cores, most_threads or cores))
    try:
        yield faiss
    finally:
        faiss.omp_set_num_threads(before)


@contextmanager
def _stdout_discarded() -> Generator[None]:
    """Discard what C code prints: FAISS reports each file that it enlarges, amid our results."""
    flush = ctypes.CDLL(None).fflush
    sys.stdout.flush()
    flush(None)
    kept = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        yield
        flush(None)
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def _check_room(folder: Path, needed_bytes: int) -> None:
    """Raise OSError if the disk has no room: FAISS maps the file that it writes, so a full disk
    would kill the process."""
    if shutil.disk_usage(folder).free < needed_bytes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))


def _created(factory: str, dimension: int) -> tuple[Any, Any]:
    faiss = _library()
    try:
        index = faiss.index_factory(dimension, factory, faiss.METRIC_INNER_PRODUCT)
        ivf = faiss.try_extract_index_ivf(index)
    except RuntimeError as error:
        raise ArgumentError(
            f'The index "{factory}" cannot be made for {dimension} dimensions'
            f" ({_last_line(error)}).",
            allowed=_ALLOWED,
        ) from None
    ivf = None if ivf is None else faiss.downcast_index(ivf)
    if type(ivf).__name__ not in _MERGED:
        raise ArgumentError(
            f'The index "{factory}" has no inverted file that is merged on disk.',
            allowed=_ALLOWED,
        )
    return index, ivf


def _damaged(what: str, path: Path) -> VectorsDamagedError:
    return VectorsDamagedError(what, where=str(path), do=_BUILD_AGAIN)


def _last_line(error: Exception) -> str:
    """Return the message of FAISS without the place in its code."""
    return str(error).strip().rpartition("Error: ")[2].splitlines()[-1].strip()


def _write(faiss: Any, index: Any, path: Path) -> None:
    try:
        with replacing(path) as temporary:
            faiss.write_index(index, str(temporary))
    except RuntimeError as error:
        raise OSError(f"FAISS cannot write {path} ({_last_line(error)})") from error
