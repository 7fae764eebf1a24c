"""The metadata of a sidecar's chunks as sorted arrays, and scopes evaluated over them.

A field has one segment for each block of chunks that is written. Within a segment, values ascend,
and each leads to the positions of the chunks that have it. Positions count from 0 over all chunks,
in corpus order. Fields are numbered: ``doc_id`` is 0, the declared ones follow by name.

``column-01.positions.npy``  uint32, the chunks of all values
``column-01.values.npy``     doubles: float64, longs: int64, one for each position
``column-01.text.npy``       terms: uint8, the UTF-8 of the values, concatenated
``column-01.ends.npy``       terms: int64, the ends of each value's text and positions
``column-01.segments.npy``   int64, the end of each segment's values
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arag_search.corpus import MetadataValue
from arag_search.plan.algebra import AllOf, AnyOf, Interval, Operation, Values
from arag_search.plan.clauses import ResolvedPlan
from arag_search.query.field_types import FieldType, MetadataType, Storage
from arag_search.query.fields import DOC_ID, type_of
from arag_search.vectors.storage.files import ArrayWriter, map_array

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]

_PARTS: Mapping[Storage, Mapping[str, str]] = {
    "term": {"positions": "uint32", "text": "uint8", "ends": "int64", "segments": "int64"},
    "double": {"positions": "uint32", "values": "float64", "segments": "int64"},
    "long": {"positions": "uint32", "values": "int64", "segments": "int64"},
}


def numbered_fields(metadata: Mapping[str, MetadataType]) -> dict[str, tuple[int, FieldType]]:
    """Return number and type of every field that a scope can name."""
    names = (DOC_ID, *sorted(metadata))
    return {name: (number, type_of(name, metadata)) for number, name in enumerate(names)}


def column_files(folder: Path, metadata: Mapping[str, MetadataType]) -> list[Path]:
    """Return all files of the columns."""
    return [
        _file(folder, number, part)
        for number, kind in numbered_fields(metadata).values()
        for part in _PARTS[kind.storage]
    ]


def _file(folder: Path, number: int, part: str) -> Path:
    return folder / f"column-{number:02}.{part}.npy"


class ColumnsWriter:
    """A writer of the columns of a folder, segment by segment; ``close`` completes them."""

    def __init__(self, folder: Path, metadata: Mapping[str, MetadataType]) -> None:
        self._fields = numbered_fields(metadata)
        self._writers: dict[str, dict[str, ArrayWriter]] = {
            name: {part: ArrayWriter(_file(folder, number, part), dtype) for part, dtype in parts}
            for name, (number, kind) in self._fields.items()
            for parts in [_PARTS[kind.storage].items()]
        }
        self._chunks = 0

    def close(self) -> None:
        """Complete the files, and wait until they are on disk."""
        for parts in self._writers.values():
            for writer in parts.values():
                writer.close()

    def add_segment(self, chunks: Iterable[tuple[str, Mapping[str, MetadataValue]]]) -> None:
        """Write a segment with doc_id and metadata of each of the next chunks.

        Raises ArgumentError for a value that is not of its field's type.
        """
        columns: dict[str, dict[str | float, list[int]]] = {name: {} for name in self._fields}
        for doc_id, metadata in chunks:
            for name, value in (*metadata.items(), (DOC_ID, doc_id)):
                if name not in self._fields or (name == DOC_ID and value is not doc_id):
                    continue
                kind = self._fields[name][1]
                for single in value if isinstance(value, list | tuple) else (value,):
                    scalar = kind.compared(single, f"document {doc_id}, field {name}")
                    columns[name].setdefault(scalar, []).append(self._chunks)
            self._chunks += 1
        for name, positions in columns.items():
            self._write_segment(name, positions)

    def _write_segment(self, name: str, column: Mapping[str | float, list[int]]) -> None:
        import numpy as np

        writers = self._writers[name]
        if "text" in writers:
            by_text = sorted(
                (str(value).encode(), positions) for value, positions in column.items()
            )
            for text, positions in by_text:
                writers["text"].write(np.frombuffer(text, np.uint8))
                writers["positions"].write(np.array(positions, np.uint32))
                ends = [writers["text"].length, writers["positions"].length]
                writers["ends"].write(np.array(ends, np.int64))
            end = writers["ends"].length // 2
        else:
            for value, positions in sorted(column.items()):
                writers["values"].write(np.full(len(positions), value))
                writers["positions"].write(np.array(positions, np.uint32))
            end = writers["positions"].length
        writers["segments"].write(np.array([end], np.int64))


class Columns:
    """The columns of a folder, mapped. ``chunks`` is the number of chunks."""

    def __init__(self, folder: Path, metadata: Mapping[str, MetadataType], chunks: int) -> None:
        """Map the columns. Raises VectorsDamagedError."""
        self._chunks = chunks
        fields = numbered_fields(metadata)
        self._storage = {name: kind.storage for name, (_, kind) in fields.items()}
        self._arrays: dict[str, dict[str, NDArray[Any]]] = {
            name: {
                part: map_array(_file(folder, number, part), dtype, (None,))
                for part, dtype in _PARTS[kind.storage].items()
            }
            for name, (number, kind) in fields.items()
        }

    def within(self, scope: ResolvedPlan | None) -> Mask:
        """Return, for each chunk, whether it is in the scope, as engines evaluate it."""
        import numpy as np

        return np.ones(self._chunks, np.bool_) if scope is None else self.matches(scope.operation)

    def matches(self, operation: Operation) -> Mask:
        """Return, for each chunk, whether it matches an operation on metadata."""
        import numpy as np

        match operation:
            case Values():
                equal = [self._equal(operation.field, value) for value in operation.values]
                return np.logical_or.reduce(equal)
            case Interval():
                return self._between(operation)
            case AllOf():
                mask = np.ones(self._chunks, np.bool_)
                for included in operation.filters:
                    mask &= self.matches(included)
                for excluded in operation.excluded:
                    mask &= ~self.matches(excluded)
                return mask
            case AnyOf():
                return np.logical_or.reduce([*map(self.matches, operation.operations)])
            case _:
                raise ValueError("an engine evaluates what searches text")

    def _equal(self, field: str, value: str) -> Mask:
        import numpy as np

        mask = np.zeros(self._chunks, np.bool_)
        if self._storage.get(field) != "term":
            return mask
        arrays = self._arrays[field]
        wanted = value.encode()
        first = 0
        for end in arrays["segments"].tolist():
            at = _bisect(arrays["text"], arrays["ends"], wanted, first, end)
            if at < end and _text(arrays["text"], arrays["ends"], at) == wanted:
                start = arrays["ends"][2 * at - 1] if at else 0
                mask[arrays["positions"][start : arrays["ends"][2 * at + 1]]] = True
            first = end
        return mask

    def _between(self, interval: Interval) -> Mask:
        import numpy as np

        mask = np.zeros(self._chunks, np.bool_)
        if self._storage.get(interval.field) != interval.storage:
            return mask
        arrays = self._arrays[interval.field]
        first = 0
        for end in arrays["segments"].tolist():
            values = arrays["values"][first:end]
            start = np.searchsorted(values, interval.lower, side="left")
            stop = np.searchsorted(values, interval.upper, side="right")
            mask[arrays["positions"][first + start : first + stop]] = True
            first = end
        return mask


def _text(text: NDArray[np.uint8], ends: NDArray[np.int64], at: int) -> bytes:
    start = ends[2 * at - 2] if at else 0
    return text[start : ends[2 * at]].tobytes()


def _bisect(
    text: NDArray[np.uint8], ends: NDArray[np.int64], wanted: bytes, low: int, high: int
) -> int:
    """Return the first value from ``low`` that is not below ``wanted``, ``high`` if all are."""
    while low < high:
        middle = (low + high) // 2
        if _text(text, ends, middle) < wanted:
            low = middle + 1
        else:
            high = middle
    return low
