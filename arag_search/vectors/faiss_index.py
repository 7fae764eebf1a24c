"""FAISS indexes with inverted files: choice, training on a sample, filling, search.

An index stands beside the rows of a store and covers the first of them; FAISS ids are row numbers.
``<unit>.index.json`` names its file, which is complete before it appears. It is made in memory. To
be searched it is mapped: lists stay on disk, only the coarse quantiser is in memory.
"""

from __future__ import annotations

import hashlib
import importlib
import math
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from arag_search.errors import ArgumentError, VectorsDamagedError, VectorsError
from arag_search.system.durable import replacing, write_atomically
from arag_search.system.extras import check_extra
from arag_search.system.processes import share_cores
from arag_search.system.progress import Progress
from arag_search.vectors.base import FloatArray, VectorUnit
from arag_search.vectors.folder import VECTORS_VERSION, read_record

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

_MOST_PARTS = 64  # of a code: a byte for each four numbers
_PART_NUMBERS = 4
_CODES = 256  # of a part
_MAPPED = ("IndexIVFFlat", "IndexIVFPQ", "IndexIVFScalarQuantizer")
_LARGE_SAMPLE_BYTES = 2 << 30
_BLOCK_ROWS = 1 << 16
_BUILD_AGAIN = "Make the index again, which encodes nothing: arag-search embed INDEX"
_ALLOWED = (
    "auto, flat, or a FAISS factory with an inverted file, such as IVF1024,Flat or "
    "OPQ64_256,IVF4096,PQ64"
)


# The index beside the rows of a unit


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRecord:
    """The description of an index that ``factory`` made of the first ``rows`` rows of a unit.

    ``file`` is its name, with its size; "" if it was asked for as "flat".
    """

    format_version: int = VECTORS_VERSION
    factory: str
    rows: int = 0
    file: str = ""
    file_bytes: int = 0

    def check(self, folder: Path, dimension: int = 0) -> None:
        """Raise VectorsDamagedError for a file that is missing or has another size. With a
        ``dimension``, open the index as well. Raise the error if FAISS cannot open it, or if it is
        of other rows."""
        if not self.file:
            return
        path = folder / self.file
        size = path.stat().st_size if path.exists() else -1
        if size != self.file_bytes:
            what = f"has {size:,} bytes, not {self.file_bytes:,}" if size >= 0 else "is missing"
            raise _damaged(f"The file {what}.", path)
        if dimension:
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
    """Make the index of all rows of a unit, if that is due. Return whether anything was done.

    It is due if there is no such index, or if it is damaged. It is also due if it leaves more than
    a tenth of the rows to be searched one by one. ``index`` is "auto", "flat" or a FAISS factory;
    None keeps the earlier one, whatever its size. The quantiser stays, and only new rows are added,
    if the factory is the same. With "auto", it also stays if the index would have at most twice as
    many lists. A flat index that was asked for stays flat with "auto". ``before`` is the folder of
    a store whose index is taken likewise. The index and its training sample are in memory. An
    interrupted call leaves the earlier index in place. Raises ArgumentError for an index that
    cannot be made or trained, MissingExtraError, OSError.
    """
    folder, stored = store.folder, store.vectors(unit)
    made = _suiting(folder, unit, index, stored)
    if made and (made.factory == FLAT or stored.rows - made.rows <= DUE_SHARE * stored.rows):
        return False
    donor, source = made, folder
    if before is not None and not made:
        donor, source = _suiting(before, unit, index, stored), before
    factory = donor.factory if donor else factory_of(index or AUTO, stored.rows, stored.dimension)
    path = _record_path(folder, unit)
    record: IndexRecord | None = None
    if factory != FLAT:
        name = hashlib.blake2b(factory.encode(), digest_size=4).hexdigest()
        filled = folder / f"{unit}-{name}-{stored.rows}.faiss"
        with _faiss() as faiss:
            if donor:
                begun = faiss.read_index(str(source / donor.file))
                if not made:  # the rows of another store have other numbers
                    begun.reset()
            else:
                begun = _trained(factory, stored, f"the {unit} vectors in {folder}", progress)
            _fill(begun, stored, unit, progress)
            _write(faiss, begun, filled)
        size = filled.stat().st_size
        record = IndexRecord(factory=factory, rows=stored.rows, file=filled.name, file_bytes=size)
    elif index == FLAT or donor:
        record = IndexRecord(factory=factory)
    elif not path.exists():
        return False
    if record is not None:
        write_atomically(path, orjson.dumps(record))
    else:
        path.unlink()
    for file in folder.glob(f"{unit}-*"):
        if record is None or file.name != record.file:
            file.unlink()
    return True


def _suiting(
    folder: Path, unit: VectorUnit, index: str | None, stored: StoredRows
) -> IndexRecord | None:
    """Return the record of an index that can be opened, whose quantiser may stay for these rows."""
    try:
        made = read_index(folder, unit)
        if made is None or index not in (None, made.factory, AUTO):
            return None
        if made.file:
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


# Making


def _trained(factory: str, stored: StoredRows, where: str, progress: Progress) -> Any:
    """Return an index without rows that was trained on some of these rows. They are 64 per list, or
    39 if that would exceed 2 GB; all rows if they are fewer. ``where`` names them in errors."""
    index, ivf = _created(factory, stored.dimension)
    codes = 2**ivf.pq.nbits if hasattr(ivf, "pq") else 0
    rotation = LEAST_POINTS_A_LIST * _CODES if "OPQ" in factory else 0
    needed = max(LEAST_POINTS_A_LIST * ivf.nlist, codes, rotation)
    if stored.rows < needed:
        raise ArgumentError(
            f"{factory} needs at least {needed:,} rows for training, and there are "
            f"{stored.rows:,}.",
            where=where,
            allowed=_ALLOWED,
            do="Use `index=flat`, or a factory with fewer lists.",
        )
    points = max(needed, MOST_POINTS_A_LIST * ivf.nlist)
    if points * stored.dimension * 4 > _LARGE_SAMPLE_BYTES:
        points = needed
    ivf.cp.seed = SEED
    ivf.cp.min_points_per_centroid = 1  # checked above; FAISS would print a warning
    if hasattr(ivf, "pq"):
        ivf.pq.cp.min_points_per_centroid = 1
        # It takes minutes, and serves a kind of search that we do not use.
        ivf.do_polysemous_training = False
    if rotation:
        first = _library().downcast_VectorTransform(index.chain.at(0))
        first.max_train_points = MOST_POINTS_A_LIST * _CODES
    progress.stage("training vectors", 0, 1)
    index.train(sample(stored, points))
    progress.stage("training vectors", 1, 1)
    return index


def sample(stored: StoredRows, points: int) -> FloatArray:
    """Draw vectors, evenly from all rows, always the same; all if they are fewer."""
    import numpy as np

    points = min(points, stored.rows)
    ends: NDArray[np.int64] = np.arange(points + 1, dtype=np.int64) * stored.rows // points
    rows = ends[:-1] + np.random.default_rng(SEED).integers(0, np.diff(ends))
    return stored.gather(rows)


def _fill(index: Any, stored: StoredRows, unit: VectorUnit, progress: Progress) -> None:
    """Add the rows that an index does not have yet."""
    import numpy as np

    for start, vectors in stored.blocks(_BLOCK_ROWS, index.ntotal):
        index.add(np.ascontiguousarray(vectors))
        progress.stage(f"adding {unit} vectors", start + len(vectors), stored.rows)


# Searching


class IvfIndex:
    """An inverted file, open for reading: ``rows`` rows in ``lists`` lists, of which ``nprobe`` are
    searched by default. Safe to use from several threads."""

    def __init__(self, record: IndexRecord, folder: Path, dimension: int) -> None:
        """Map an index in the folder of a store. Raises VectorsDamagedError, also if it is of other
        rows."""
        record.check(folder)
        path = folder / record.file
        with _faiss() as faiss:
            try:
                flags = faiss.IO_FLAG_MMAP | faiss.IO_FLAG_READ_ONLY
                self._index = faiss.read_index(str(path), flags)
                ivf = faiss.extract_index_ivf(self._index)
                # otherwise each search starts 32 threads
                faiss.downcast_InvertedLists(ivf.invlists).prefetch_nthread = 0
            except (RuntimeError, AttributeError) as error:
                raise _damaged(
                    f"FAISS cannot read the index ({_last_line(error)}).", path
                ) from error
            header = self._index.ntotal, self._index.d, self._index.metric_type
            if header != (record.rows, dimension, faiss.METRIC_INNER_PRODUCT):
                raise _damaged("The index is one of other rows.", path)
            self.rows = record.rows
            self.lists = int(ivf.nlist)
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
    if type(ivf).__name__ not in _MAPPED:
        raise ArgumentError(
            f'The index "{factory}" has no inverted file that can be mapped.',
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
