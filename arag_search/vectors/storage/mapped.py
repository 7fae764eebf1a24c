"""The rows of one unit, mapped from shards. Row numbers count from 0 over all shards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from arag_search.vectors.base import VectorUnit
from arag_search.vectors.storage.files import map_array
from arag_search.vectors.storage.shards import StoredShard, StoredType, vectors_role

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from arag_search.vectors.base import FloatArray


class MappedRows:
    """The vectors of all shards as one array of shape (rows, dimension)."""

    def __init__(
        self,
        shards: Sequence[StoredShard],
        unit: VectorUnit,
        dimension: int,
        dtype: StoredType,
    ) -> None:
        """Map the shards. Raises VectorsDamagedError if an array has another shape."""
        import numpy as np

        self.dimension = dimension
        self.is_converted = dtype != "float32"
        """Whether blocks are converted copies rather than views of the mapped files."""
        self._arrays: list[NDArray[Any]] = []
        starts = [0]
        for shard in shards:
            shape = (shard.record.rows[unit], dimension)
            array = map_array(shard.file(vectors_role(unit)), dtype, shape)
            self._arrays.append(array)
            starts.append(starts[-1] + len(array))
        self._starts = np.array(starts, np.int64)
        self.rows = starts[-1]

    @property
    def shard_rows(self) -> list[int]:
        """The number of rows of each shard."""
        return [len(array) for array in self._arrays]

    def blocks(self, most_rows: int) -> Iterator[tuple[int, FloatArray]]:
        """Yield all vectors as float32 in blocks, each with the number of its first row."""
        for shard in range(len(self._arrays)):
            yield from self.blocks_of(shard, most_rows)

    def blocks_of(self, shard: int, most_rows: int) -> Iterator[tuple[int, FloatArray]]:
        """Yield the blocks of one shard, counted from 0 in the order of the shards."""
        import numpy as np

        array, start = self._arrays[shard], int(self._starts[shard])
        for first in range(0, len(array), most_rows):
            part = array[first : first + most_rows]
            # a plain view: each operation on a memmap takes some microseconds longer
            yield start + first, np.asarray(part, np.float32).view(np.ndarray)

    def gather(self, rows: NDArray[np.int64]) -> FloatArray:
        """Return the vectors of these rows, in their order, as float32."""
        import numpy as np

        vectors = np.empty((len(rows), self.dimension), np.float32)
        shards = np.searchsorted(self._starts, rows, side="right") - 1
        for shard in np.unique(shards):
            here = shards == shard
            vectors[here] = self._arrays[shard][rows[here] - self._starts[shard]]
        return vectors
