"""The files of vectors: replaced as a whole, verified by their SHA-256, mapped as arrays; and their
records in JSON, where any deviation from what was written is an error."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import orjson

from arag_search.errors import VectorsDamagedError, VectorsVersionError
from arag_search.system.durable import replacing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EMBED_AGAIN = "Embed the index again: arag-search embed INDEX --overwrite"

VECTORS_VERSION = 3
"""The number of the format of shards and manifests: every change of what is stored raises it, and
others are not read."""

_READ_BYTES = 1 << 20

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FileRecord:
    """The size and checksum of a file; ``sha256`` has 64 hexadecimal digits."""

    bytes: int
    sha256: str


def link_or_copy(source: Path, target: Path) -> None:
    """Replace ``target`` by a hard link, or by a copy if the link cannot be made.

    The copy is whole or absent, also after a crash. Raises OSError.
    """
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        with replacing(target) as temporary:
            shutil.copyfile(source, temporary)


def npy_header(shape: tuple[int, ...], dtype: np.dtype[Any]) -> bytes:
    """Return the header of a .npy file with this shape and type."""
    import numpy as np

    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header,
        {
            "descr": np.lib.format.dtype_to_descr(dtype),
            "fortran_order": False,
            "shape": shape,
        },
    )
    return header.getvalue()


def npy_bytes(array: NDArray[Any]) -> Iterable[bytes | memoryview]:
    """Return the parts of a .npy file for a contiguous array."""
    return npy_header(array.shape, array.dtype), _raw(array)


def _raw(array: NDArray[Any]) -> memoryview:
    """Return the bytes of a contiguous array without copying them."""
    import numpy as np

    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def write_file(path: Path, parts: Iterable[bytes | memoryview]) -> FileRecord:
    """Replace a file once all parts are on disk. Raises OSError that names the file."""
    digest = hashlib.sha256()
    size = 0
    with replacing(path) as temporary, temporary.open("wb") as file:
        for part in parts:
            file.write(part)
            digest.update(part)
            size += len(part)
    return FileRecord(size, digest.hexdigest())


def file_record(path: Path) -> FileRecord:
    """Return size and checksum of a file, all of which is read."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(_READ_BYTES):
            digest.update(part)
        return FileRecord(file.tell(), digest.hexdigest())


def map_array(
    path: Path, dtype: str | None = None, shape: tuple[int | None, ...] | None = None
) -> NDArray[Any]:
    """Map the array of a .npy file for reading.

    Raises VectorsDamagedError if it cannot be read, or does not have this type and shape; None in a
    shape allows any length.
    """
    array = _mapped(path)
    if (dtype is not None and array.dtype != dtype) or (
        shape is not None
        and (
            len(array.shape) != len(shape)
            or any(
                expected not in (None, length)
                for length, expected in zip(array.shape, shape, strict=True)
            )
        )
    ):
        raise VectorsDamagedError(
            f"The array is {array.dtype} of shape {array.shape}.",
            where=str(path),
            allowed=f"{dtype or 'any type'} of shape {shape or 'any'}",
            do=EMBED_AGAIN,
        )
    return array


def _mapped(path: Path) -> NDArray[Any]:
    import numpy as np

    try:
        # This fails for an array without elements, which numpy cannot map.
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError as error:
        raise VectorsDamagedError("A file is missing.", where=str(path), do=EMBED_AGAIN) from error
    except OSError:
        raise
    except Exception as error:  # numpy evaluates the header, so a damaged one may raise anything
        try:
            array: NDArray[Any] = np.load(path, allow_pickle=False)
        except Exception:
            array = np.empty(1)
        if array.size == 0:
            return array
        raise VectorsDamagedError(
            f"The array cannot be read ({error}).", where=str(path), do=EMBED_AGAIN
        ) from error


def check_sizes(files: Mapping[Path, FileRecord], do: str) -> None:
    """Raise VectorsDamagedError for a file that is missing or has another size."""
    for path, record in files.items():
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            raise VectorsDamagedError("A file is missing.", where=str(path), do=do) from None
        if size != record.bytes:
            raise VectorsDamagedError(
                f"The file has {size:,} bytes, not {record.bytes:,}.", where=str(path), do=do
            )


def check_contents(files: Mapping[Path, FileRecord], do: str) -> None:
    """Raise VectorsDamagedError for a file whose content is not what was written."""
    check_sizes(files, do)
    for path, record in files.items():
        if file_record(path) != record:
            raise VectorsDamagedError(
                "The file has changed since it was written: its SHA-256 differs.",
                where=str(path),
                do=do,
            )


class ArrayWriter:
    """A writer of a .npy file of unknown length; ``close`` sets its shape.

    A context manager that closes. An existing file is overwritten at once, so the file must be in a
    folder that is not yet published.
    """

    def __init__(self, path: Path, dtype: str, columns: int | None = None) -> None:
        """Create the file. ``dtype`` is numpy's name of the type. The array has one dimension, or
        two with so many ``columns``."""
        import numpy as np

        self._dtype = np.dtype(dtype)
        self._row = () if columns is None else (columns,)
        self._file: BinaryIO = path.open("wb")
        self._header = npy_header((0, *self._row), self._dtype)
        self._file.write(self._header)
        self.length = 0

    def __enter__(self) -> ArrayWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, array: NDArray[Any]) -> None:
        """Append rows. Raises OSError."""
        import numpy as np

        self._file.write(_raw(np.asarray(array, self._dtype)))
        self.length += len(array)

    def close(self) -> None:
        """Write the length into the header, which has room for any, and sync the file."""
        header = npy_header((self.length, *self._row), self._dtype)
        if len(header) != len(self._header):
            raise VectorsDamagedError("The header of an array has no room for its length.")
        self._file.seek(0)
        self._file.write(header)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()


def read_record(kind: type[T], data: bytes, where: str, do: str) -> T:
    """Read the dataclass in a file, which has a field ``format_version``.

    ``where`` names the file and ``do`` says how to repair it. Raises VectorsVersionError for
    another version, VectorsDamagedError for anything but such a record.
    """
    from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config

    try:
        loaded: Any = orjson.loads(data)
        version = loaded["format_version"]
    except (orjson.JSONDecodeError, KeyError, TypeError, IndexError) as error:
        raise _damaged(str(error), where, do) from error
    if version != VECTORS_VERSION:
        raise VectorsVersionError(
            f"The vectors have format version {version}.",
            where=where,
            allowed=f"version {VECTORS_VERSION}",
            do=EMBED_AGAIN,
        )
    strict = TypeAdapter(with_config(ConfigDict(strict=True, extra="forbid"))(kind))
    try:
        return strict.validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise _damaged(f"{field}: {first['msg']}", where, do) from error


def _damaged(why: str, where: str, do: str) -> VectorsDamagedError:
    return VectorsDamagedError(f"The record cannot be read ({why}).", where=where, do=do)
