"""The rows of one unit, mapped from the shards of a sidecar. A row number counts from 0 over all
shards; with the shards in corpus order, rows are in order of ordinal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arag_search.errors import VectorsDamagedError
from arag_search.vectors.base import VectorUnit
from arag_search.vectors.files import map_array
from arag_search.vectors.shards import ShardRecord, StoredType, shard_file, vectors_role

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from arag_search.vectors.base import FloatArray


class MappedRows:
    """The vectors of all shards as one array of shape (rows, dimension)."""

    def __init__(
        self,
        folder: Path,
        shards: Sequence[ShardRecord],
        unit: VectorUnit,
        dimension: int,
        dtype: StoredType,
    ) -> None:
        """Raises VectorsDamagedError where a file is not an array of the shape that it must be."""
        import numpy as np

        self.dimension = dimension
        self.is_converted = dtype != "float32"
        """Whether blocks are made rather than mapped."""
        self._arrays: list[NDArray[Any]] = []
        starts = [0]
        for shard in shards:
            path = shard_file(folder, shard.number, vectors_role(unit))
            array = map_array(path)
            expected = (shard.rows[unit], dimension)
            if array.shape != expected or array.dtype != dtype:
                raise VectorsDamagedError(
                    f"The array is {array.dtype} of shape {array.shape}.",
                    where=str(path),
                    allowed=f"{dtype} of shape {expected}",
                )
            self._arrays.append(array)
            starts.append(starts[-1] + len(array))
        self._starts = np.array(starts, np.int64)
        self.rows = starts[-1]

    @property
    def shard_rows(self) -> list[int]:
        """How many rows each shard has."""
        return [len(array) for array in self._arrays]

    def blocks(self, most_rows: int) -> Iterator[tuple[int, FloatArray]]:
        """All vectors as float32, with the number of the first row, so many rows at once."""
        for shard in range(len(self._arrays)):
            yield from self.blocks_of(shard, most_rows)

    def blocks_of(self, shard: int, most_rows: int) -> Iterator[tuple[int, FloatArray]]:
        """The same for one shard, counted from 0 in the order given."""
        import numpy as np

        array, start = self._arrays[shard], int(self._starts[shard])
        for first in range(0, len(array), most_rows):
            part = array[first : first + most_rows]
            # a plain view, for each operation on a memmap costs some microseconds more
            yield start + first, np.asarray(part, np.float32).view(np.ndarray)

    def gather(self, rows: NDArray[np.int64]) -> FloatArray:
        """The vectors of these rows, in their order, as float32."""
        import numpy as np

        found = np.empty((len(rows), self.dimension), np.float32)
        shards = np.searchsorted(self._starts, rows, side="right") - 1
        for shard in np.unique(shards):
            here = shards == shard
            found[here] = self._arrays[shard][rows[here] - self._starts[shard]]
        return found
