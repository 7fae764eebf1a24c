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
from collections.abc import Collection, Generator, Sequence
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
from arag_search.vectors.records import CHECKED_BYTES, VECTORS_VERSION, read_record

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

_OPQ_DIMENSION = 256
_SUBQUANTISERS = (64, 48, 32, 24, 16, 12, 8, 4, 2, 1)
_LEAST_SUBDIMENSION = 4
_CODES = 256  # of a subquantiser: 8 bits
_LARGE_SAMPLE_BYTES = 2 << 30
_BLOCK_ROWS = 1 << 16
_ID_BYTES = 8
_BUILD_AGAIN = "Make the index again, which encodes nothing: arag-search embed INDEX"
_ALLOWED = (
    "auto, flat, or a FAISS factory with an inverted file, such as IVF1024,Flat or "
    "OPQ64_256,IVF4096,PQ64"
)


# The index beside the rows of a unit


@dataclass(frozen=True, slots=True)
class FileRecord:
    """The size of a file and its BLAKE2 checksum."""

    bytes: int
    checksum: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRecord:
    """The description of an index: what ``factory`` makes of the first ``rows`` rows of a unit.

    ``files`` are the index, its inverted lists, and the trained index without rows, in this order;
    none if it was asked for as "flat". A search probes ``nprobe`` lists by default.
    """

    format_version: int = VECTORS_VERSION
    factory: str
    rows: int
    nprobe: int
    files: dict[str, FileRecord]

    def paths(self, folder: Path) -> tuple[Path, Path, Path]:
        """Return the paths of index, lists and trained index."""
        index, lists, trained = (folder / name for name in self.files)
        return index, lists, trained

    def check(self, folder: Path, most_bytes: int | None = None) -> None:
        """Raise VectorsDamagedError for a file that is missing or has another size, or content;
        files of more than ``most_bytes`` are not read."""
        for name, file in self.files.items():
            path = folder / name
            size = path.stat().st_size if path.exists() else -1
            is_read = most_bytes is None or size <= most_bytes
            if size != file.bytes or (is_read and _file_record(path) != file):
                what = "is missing" if size < 0 else "has changed since it was written"
                raise VectorsDamagedError(f"The file {what}.", where=str(path), do=_BUILD_AGAIN)


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
    record = IndexRecord(factory=factory, rows=0, nprobe=0, files={})
    if factory != FLAT:
        given = donor.paths(before)[2] if donor and before and not made else None
        record = _made(store, unit, factory, made, given, progress)
    elif index != FLAT and donor is None:
        if not _record_path(folder, unit).exists():
            return False
        _record_path(folder, unit).unlink()
        _remove_all_but((), folder, unit)
        return True
    write_atomically(_record_path(folder, unit), orjson.dumps(record))
    _remove_all_but(record.files, folder, unit)
    return True


def _made(
    store: Store,
    unit: VectorUnit,
    factory: str,
    made: IndexRecord | None,
    given: Path | None,
    progress: Progress,
) -> IndexRecord:
    """Make the files of an index, behind the rows of the one that was ``made`` before, or with the
    quantiser that is ``given``."""
    folder, stored = store.folder, store.vectors(unit)
    check_rows(factory, stored.rows, stored.dimension, f"the {unit} vectors in {folder}")
    name = f"{unit}-{hashlib.blake2b(factory.encode(), digest_size=4).hexdigest()}"
    trained = folder / f"{name}.trained.faiss"
    if not trained.exists():
        progress.stage(f"training {unit} vectors", 0, 1)
        if given is not None:
            with replacing(trained) as temporary:
                shutil.copyfile(given, temporary)
        else:  # no name holds the sample, so that its memory is free while lists are filled
            _train(factory, sample(stored, factory), trained)
        progress.stage(f"training {unit} vectors", 1, 1)
    target, lists = (folder / f"{name}-{stored.rows}.{kind}" for kind in ("faiss", "ivfdata"))
    parts = _fill(trained, stored, made.rows if made else 0, target, progress)
    _merge(trained, made.paths(folder)[:2] if made else None, parts, target, lists)
    files = {path.name: _file_record(path) for path in (target, lists, trained)}
    nprobe = usual_nprobe(lists_in(factory, stored.dimension))
    return IndexRecord(factory=factory, rows=stored.rows, nprobe=nprobe, files=files)


def _suiting(
    folder: Path, unit: VectorUnit, index: str | None, stored: StoredRows
) -> IndexRecord | None:
    """Return the record of a whole index whose quantiser may stay for these rows."""
    try:
        made = read_index(folder, unit)
        if made is not None:
            made.check(folder)
    except VectorsError:
        return None
    if made is None or index not in (None, made.factory, AUTO):
        return None
    if made.factory == FLAT or index is None:
        return made
    lists = lists_in(made.factory, stored.dimension)
    return None if index == AUTO and lists_for(stored.rows) > 2 * lists else made


def _record_path(folder: Path, unit: VectorUnit) -> Path:
    return folder / f"{unit}.index.json"


def _file_record(path: Path) -> FileRecord:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16))
        return FileRecord(file.tell(), digest.hexdigest())


def _remove_all_but(kept: Collection[str], folder: Path, unit: VectorUnit) -> None:
    for path in folder.glob(f"{unit}-*"):
        if path.name not in kept:
            path.unlink()


# Factories


def factory_of(index: str, rows: int, dimension: int) -> str:
    """Return what ``auto`` means for a number of rows (flat below a million), or ``index``
    itself."""
    if index != AUTO:
        return index
    if rows < MOST_FLAT_ROWS:
        return FLAT
    lists = lists_for(rows)
    if dimension >= _OPQ_DIMENSION:
        return f"OPQ64_{_OPQ_DIMENSION},IVF{lists},PQ64"
    parts = next(
        number
        for number in _SUBQUANTISERS
        if dimension >= _LEAST_SUBDIMENSION * number or number == 1
    )
    return f"OPQ{parts}_{dimension // parts * parts},IVF{lists},PQ{parts}"


def lists_for(rows: int) -> int:
    """Return the power of two that is nearest to 4 sqrt(rows), at most 65,536."""
    return min(MAX_LISTS, 2 ** max(0, round(math.log2(4 * math.sqrt(max(1, rows))))))


def usual_nprobe(lists: int) -> int:
    """Return how many lists are searched by default."""
    return min(lists, max(64, lists // 32))


def check_factory(index: str, dimension: int) -> None:
    """Raise ArgumentError for an ``--index`` that cannot be built for this dimension."""
    if index not in (AUTO, FLAT):
        _lists_of(_created(index, dimension), index)


def points_needed(factory: str, dimension: int) -> int:
    """Return the fewest rows that a factory can be trained on."""
    index = _created(factory, dimension)
    ivf = _lists_of(index, factory)
    needed = LEAST_POINTS_A_LIST * ivf.nlist
    if hasattr(ivf, "pq"):
        needed = max(needed, 2**ivf.pq.nbits)
    if "OPQ" in factory:
        needed = max(needed, LEAST_POINTS_A_LIST * _CODES)
    return needed


def check_rows(index: str, rows: int, dimension: int, where: str) -> None:
    """Raise ArgumentError if there are too few rows to train ``index``."""
    factory = factory_of(index, rows, dimension)
    if factory != FLAT and rows < (needed := points_needed(factory, dimension)):
        raise ArgumentError(
            f"{factory} needs at least {needed:,} rows for training, and there are {rows:,}.",
            where=where,
            allowed=_ALLOWED,
            do="Use --index flat, or a factory with fewer lists.",
        )


def sample(stored: StoredRows, factory: str) -> FloatArray:
    """Draw vectors for training, evenly from all rows, always the same.

    There are 64 per list, or 39 if that would exceed 2 GB; all rows if they are fewer.
    """
    import numpy as np

    needed = points_needed(factory, stored.dimension)
    points = max(needed, MOST_POINTS_A_LIST * lists_in(factory, stored.dimension))
    if points * stored.dimension * 4 > _LARGE_SAMPLE_BYTES:
        points = needed
    points = min(points, stored.rows)
    ends: NDArray[np.int64] = np.arange(points + 1, dtype=np.int64) * stored.rows // points
    rows = ends[:-1] + np.random.default_rng(SEED).integers(0, np.diff(ends))
    return stored.gather(rows)


def lists_in(factory: str, dimension: int) -> int:
    """Return how many lists a factory creates."""
    return int(_lists_of(_created(factory, dimension), factory).nlist)


# Making


def _train(factory: str, points: FloatArray, path: Path) -> None:
    """Train an index without rows, and write it. Raises OSError."""
    with _faiss() as faiss:
        index = _created(factory, points.shape[1])
        ivf = _lists_of(index, factory)
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
    """An inverted file, open for reading. Safe to use from several threads."""

    def __init__(self, record: IndexRecord, folder: Path) -> None:
        """Map an index in the folder of a store. Raises VectorsDamagedError."""
        self.rows = record.rows
        record.check(folder, CHECKED_BYTES)
        path, lists, _ = record.paths(folder)
        with _faiss() as faiss:
            try:
                self._index = _mapped_index(faiss, path, lists)
            except (RuntimeError, AttributeError) as error:
                raise VectorsDamagedError(
                    f"FAISS cannot read the index ({_last_line(error)}).",
                    where=str(path),
                    do=_BUILD_AGAIN,
                ) from error
            self.lists = int(faiss.extract_index_ivf(self._index).nlist)

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
    try:
        kept = os.dup(1)
    except OSError:  # it is closed, as in a daemon
        yield
        return
    flush = ctypes.CDLL(None).fflush
    sys.stdout.flush()
    flush(None)
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


def _created(factory: str, dimension: int) -> Any:
    faiss = _library()
    try:
        return faiss.index_factory(dimension, factory, faiss.METRIC_INNER_PRODUCT)
    except RuntimeError as error:
        raise ArgumentError(
            f'The index "{factory}" cannot be made for {dimension} dimensions'
            f" ({_last_line(error)}).",
            allowed=_ALLOWED,
        ) from None


def _lists_of(index: Any, factory: str) -> Any:
    """Return the inverted file of an index. Raises ArgumentError if it has none to merge."""
    faiss = _library()
    ivf = faiss.try_extract_index_ivf(index)
    kinds = (faiss.IndexIVFFlat, faiss.IndexIVFPQ, faiss.IndexIVFScalarQuantizer)
    if ivf is not None:
        ivf = faiss.downcast_index(ivf)
    if not isinstance(ivf, kinds) or isinstance(ivf, faiss.IndexIVFPQR):
        raise ArgumentError(
            f'The index "{factory}" has no inverted file that is merged on disk.',
            allowed=_ALLOWED,
        )
    return ivf


def _last_line(error: Exception) -> str:
    """Return the message of FAISS without the place in its code."""
    return str(error).strip().rpartition("Error: ")[2].splitlines()[-1].strip()


def _write(faiss: Any, index: Any, path: Path) -> None:
    try:
        with replacing(path) as temporary:
            faiss.write_index(index, str(temporary))
    except RuntimeError as error:
        raise OSError(f"FAISS cannot write {path} ({_last_line(error)})") from error
