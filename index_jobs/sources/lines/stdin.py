"""Standard input as a source. It can be read only once, so it is stored in a temporary file."""

from __future__ import annotations

import hashlib
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, TextIO
from weakref import WeakKeyDictionary

from arag_search.errors import SourceError

_PIECE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class SpooledInput:
    """Standard input, stored in a file that is removed with this object or when the process ends.

    Equal input has an equal signature, so that a build resumes if the same input is given again.
    """

    path: Path
    size: int
    sha256: str
    file: Any = field(repr=False, compare=False)

    id = "stdin"
    where = "standard input"

    def signature(self) -> dict[str, Any]:
        """Return a value that changes when the input changes."""
        return {"source": self.where, "size": self.size, "sha256": self.sha256}


_spools: WeakKeyDictionary[TextIO, SpooledInput] = WeakKeyDictionary()


def spooled_input() -> SpooledInput:
    """Return standard input, which the first call reads to its end.

    The file is in the folder of temporary files (TMPDIR), and as large as the input. Raises
    SourceError if there is no input, or no room for it.
    """
    if sys.stdin is None or sys.stdin.closed:  # pyright: ignore[reportUnnecessaryComparison]
        raise SourceError("There is no standard input.", do="Name files or folders.")
    if sys.stdin not in _spools:
        _spools[sys.stdin] = _spool(sys.stdin.buffer)
    return _spools[sys.stdin]


def _spool(stream: IO[bytes]) -> SpooledInput:
    digest = hashlib.sha256()
    size = 0
    try:
        file = tempfile.NamedTemporaryFile(prefix="arag-search-stdin-")  # noqa: SIM115
        while piece := stream.read(_PIECE_BYTES):
            file.write(piece)
            digest.update(piece)
            size += len(piece)
        file.flush()
    except OSError as error:
        raise SourceError(
            f"Standard input cannot be stored ({error.strerror}).",
            where=tempfile.gettempdir(),
            do="Make room there, or name another folder with the variable TMPDIR.",
        ) from error
    if not size:
        raise SourceError("Standard input is empty.")
    return SpooledInput(Path(file.name), size, digest.hexdigest(), file)
