"""FAISS indexes with inverted files: choice, training on a sample, merging on disk, search.

FAISS ids are row numbers (see mapped.py). Lists stay on disk and are mapped; only the coarse
quantiser is in memory.
"""

from __future__ import annotations

import ctypes
import errno
import importlib
import math
import os
import shutil
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arag_search.errors import ArgumentError, VectorsDamagedError
from arag_search.system.durable import replacing, sync
from arag_search.system.extras import check_extra
from arag_search.system.processes import share_cores
from arag_search.vectors.base import FloatArray
from arag_search.vectors.storage.manifest import FLAT
from arag_search.vectors.storage.shards import MappedRows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


AUTO = "auto"
MOST_FLAT_ROWS = 1_000_000
"""From this number of rows on, ``auto`` is an inverted file."""
MAX_LISTS = 1 << 16
LEAST_POINTS_A_LIST = 39
MOST_POINTS_A_LIST = 64
SEED = 1234

_OPQ_DIMENSION = 256
_SUBQUANTISERS = (64, 48, 32, 24, 16, 12, 8, 4, 2, 1)
_LEAST_SUBDIMENSION = 4
_CODES = 256  # of a subquantiser: 8 bits
_LARGE_SAMPLE_BYTES = 2 << 30
PART_BYTES = 64 << 20
"""The codes and ids that are in memory while lists are filled, if a shard has no more."""
_BLOCK_ROWS = 1 << 16
_ID_BYTES = 8
_ALLOWED = (
    "auto, flat, or a FAISS factory with an inverted file, such as IVF1024,Flat or "
    "OPQ64_256,IVF4096,PQ64"
)


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


def sample(mapped: MappedRows, factory: str) -> FloatArray:
    """Draw vectors for training, evenly from all shards, always the same.

    There are 64 per list, or 39 if that would exceed 2 GB; all rows if they are fewer.
    """
    import numpy as np

    needed = points_needed(factory, mapped.dimension)
    points = max(needed, MOST_POINTS_A_LIST * lists_in(factory, mapped.dimension))
    if points * mapped.dimension * 4 > _LARGE_SAMPLE_BYTES:
        points = needed
    generator = np.random.default_rng(SEED)
    drawn = [
        start + np.sort(generator.choice(size, share, replace=False))
        for start, size, share in _shares(mapped, min(points, mapped.rows), generator)
    ]
    return mapped.gather(np.concatenate(drawn))


def lists_in(factory: str, dimension: int) -> int:
    """Return how many lists a factory creates."""
    return int(_lists_of(_created(factory, dimension), factory).nlist)


def train(factory: str, points: FloatArray, path: Path, threads: int) -> None:
    """Train an index without rows, and write it. Raises OSError."""
    with _faiss(threads) as faiss:
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


def parts_of(mapped: MappedRows, factory: str, first_shard: int) -> list[range]:
    """Return the shards from ``first_shard`` on in parts that are filled at once: at least a shard
    each, otherwise with at most PART_BYTES of codes and ids. Each part is written with a copy of
    the centroids, which for many lists is larger than the codes of a shard."""
    row_bytes = int(_lists_of(_created(factory, mapped.dimension), factory).code_size) + _ID_BYTES
    sizes = mapped.shard_rows
    parts: list[range] = []
    rows = 0
    for shard in range(first_shard, len(sizes)):
        rows += sizes[shard]
        if parts and rows * row_bytes <= PART_BYTES:
            parts[-1] = range(parts[-1].start, shard + 1)
        else:
            parts.append(range(shard, shard + 1))
            rows = sizes[shard]
    return parts


def fill(trained: Path, mapped: MappedRows, shards: range, path: Path, threads: int) -> None:
    """Write a copy of a trained index that holds the rows of some shards. Raises OSError."""
    import numpy as np

    with _faiss(threads) as faiss:
        index = faiss.read_index(str(trained))
        for shard in shards:
            for first, vectors in mapped.blocks_of(shard, _BLOCK_ROWS):
                ids = np.arange(first, first + len(vectors), dtype=np.int64)
                index.add_with_ids(np.ascontiguousarray(vectors), ids)
        _write(faiss, index, path)


def merge(
    trained: Path,
    before: tuple[Path, Path] | None,
    filled: Sequence[Path],
    path: Path,
    lists: Path,
    threads: int,
) -> None:
    """Write the index of all rows, with its inverted lists in a file of their own, which is mapped,
    so that no list is in memory as a whole. ``before`` are the index and the lists of the first
    rows, if an earlier merge wrote them; ``filled`` are those of the others. Raises OSError.

    FAISS' own ``merge_ondisk`` does the same, but never unmaps the files that it has read.
    """
    with _faiss(threads) as faiss:
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


class IvfIndex:
    """An inverted file, open for reading. Safe to use from several threads."""

    def __init__(self, path: Path, lists: Path, rows: int, threads: int) -> None:
        """Map the index of so many rows. Raises VectorsDamagedError."""
        self._threads = threads
        self.rows = rows
        with _faiss(threads) as faiss:
            try:
                self._index = _mapped_index(faiss, path, lists)
            except (RuntimeError, AttributeError) as error:
                raise VectorsDamagedError(
                    f"FAISS cannot read the index ({_last_line(error)}).", where=str(path)
                ) from error
            self._ivf = faiss.extract_index_ivf(self._index)
        if self._index.ntotal != rows:
            raise VectorsDamagedError(
                f"The index has {self._index.ntotal:,} rows, not {rows:,}.", where=str(path)
            )
        self.lists = int(self._ivf.nlist)
        self.is_quantised = int(self._ivf.code_size) < 4 * int(self._ivf.d)

    def search(
        self, queries: FloatArray, n: int, nprobe: int, allowed: NDArray[np.uint8] | None
    ) -> tuple[FloatArray, NDArray[np.int64]]:
        """Return scores and rows of shape (queries, n); rows are -1 if too few were found.

        ``allowed`` has a bit for each row, the lowest of a byte first.
        """
        with _faiss(self._threads) as faiss:
            # A selector resets nprobe to 1 unless it is passed with it.
            if allowed is None:
                parameters = faiss.SearchParametersIVF(nprobe=nprobe)
            else:
                selector = faiss.IDSelectorBitmap(allowed)
                parameters = faiss.SearchParametersIVF(sel=selector, nprobe=nprobe)
            return self._index.search(queries, n, params=parameters)


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
def _faiss(threads: int) -> Generator[Any]:
    """Yield the library, with a limit on threads for calls from this thread."""
    faiss = _library()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(threads)
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


def _shares(
    mapped: MappedRows, points: int, generator: np.random.Generator
) -> Iterator[tuple[int, int, int]]:
    """Yield, for each shard, its first row, its rows, and how many of them are drawn."""
    sizes = mapped.shard_rows
    drawn = generator.multivariate_hypergeometric(sizes, points, method="marginals")
    start = 0
    for size, share in zip(sizes, drawn.tolist(), strict=True):
        yield start, size, share
        start += size
