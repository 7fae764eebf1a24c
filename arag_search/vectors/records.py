"""The records of vectors: what a store and a state of an index say about themselves, in JSON.

Any deviation from what was written is an error. Reading a record needs no numpy.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TypeVar

import orjson

from arag_search.errors import VectorsDamagedError, VectorsNotFoundError, VectorsVersionError
from arag_search.vectors.base import EncoderIdentity, Probes, VectorUnit, differences

if TYPE_CHECKING:
    from pydantic import TypeAdapter

VECTORS_VERSION = 9
"""The number of the format of stores and states: every change of what is stored raises it, and
others are not read."""

EMBED_AGAIN = "Embed the index again: arag-search embed INDEX --overwrite"
EMBED_MISSING = "Embed the index, which makes only what is missing: arag-search embed INDEX"

StoredType = Literal["float32", "float16"]

CHECKED_BYTES = 1 << 26
"""The largest file besides rows that is read and compared with its checksum when it is opened
(64 MiB); a damaged byte would drop hits without a word."""

STORE_NAME = re.compile(r"store-\d{5,}")
STORE_RECORD = "store.json"
STATE_ENDING = ".state"
SHARED = "*"
_NAME_DIGITS = 16
_MOST_BYTES = 1 << 16

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRecord:
    """The description of a store: what its vectors are, and how texts were written for them.

    ``sentence_titles`` says that sentences were encoded below the title of their passage.
    ``probes`` are the vectors that the encoder gave to PROBE_TEXTS, by which it is known again.
    """

    format_version: int = VECTORS_VERSION
    encoder: EncoderIdentity
    dtype: StoredType
    sentence_titles: bool = False
    probes: Probes

    def differences(self, other: StoreRecord) -> str:
        """Describe why vectors of another store may not stand in this one; "" if they may."""
        changed = [differences(self.encoder, self.probes, other.encoder, other.probes)]
        for name in ("dtype", "sentence_titles"):
            if (before := getattr(self, name)) != (after := getattr(other, name)):
                changed.append(f"{name.replace('_', ' ')} {after!r} instead of {before!r}")
        return ", ".join(filter(None, changed))


@dataclass(frozen=True, slots=True)
class UnitRecord:
    """The sizes of the arrays of a unit: its texts, and the rows of the store at the time."""

    texts: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRecord:
    """The description of a state of an index, which ``placement`` and ``fingerprint`` identify.

    ``store`` is the name of the folder of the rows, and ``before`` the placement of the state that
    this one replaced, "" if none. ``owner`` is the index (see ``owner_of``) in a folder that is not
    its own; SHARED if several of equal content have embedded it. ``arrays`` is the BLAKE2 checksum
    of all that follows the record.
    """

    format_version: int = VECTORS_VERSION
    placement: str
    fingerprint: str
    created: str
    store: str
    before: str = ""
    owner: str = ""
    units: dict[VectorUnit, UnitRecord] = field(default_factory=dict[VectorUnit, UnitRecord])
    arrays: str

    @property
    def texts(self) -> dict[VectorUnit, int]:
        """The number of texts of each unit."""
        return {unit: arrays.texts for unit, arrays in self.units.items()}


def read_record(kind: type[T], data: bytes, where: str) -> T:
    """Read a record, a dataclass that has a field ``format_version``; ``where`` names its file.

    Raises VectorsVersionError for another version, VectorsDamagedError for anything but such a
    record.
    """
    from pydantic import ValidationError

    try:
        loaded: Any = orjson.loads(data)
        version = loaded["format_version"]
    except (orjson.JSONDecodeError, KeyError, TypeError, IndexError) as error:
        raise unreadable(str(error), where) from error
    if version != VECTORS_VERSION:
        raise VectorsVersionError(
            f"The vectors have format version {version}.",
            where=where,
            allowed=f"version {VECTORS_VERSION}",
            do=EMBED_AGAIN,
        )
    try:
        return _strict(kind).validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise unreadable(f"{field}: {first['msg']}", where) from error


def state_path(root: Path, placement: str) -> Path:
    """Return the file of the state of an index with this placement."""
    return root / f"{placement[:_NAME_DIGITS]}{STATE_ENDING}"


@contextmanager
def open_state(path: Path) -> Generator[tuple[StateRecord, BinaryIO]]:
    """Open the file of a state, read its record, and yield it with the file, at its arrays.

    Raises VectorsNotFoundError, VectorsDamagedError, VectorsVersionError.
    """
    try:
        file = path.open("rb")
    except (FileNotFoundError, NotADirectoryError):
        raise VectorsNotFoundError(
            "There are no vectors of this state of the index.",
            where=str(path),
            do="Make them: arag-search embed INDEX",
        ) from None
    with file:
        yield read_record(StateRecord, file.readline(_MOST_BYTES), str(path)), file


def unreadable(why: str, where: Path | str) -> VectorsDamagedError:
    """Return the error of a record that cannot be read."""
    return damaged(f"The record cannot be read ({why}).", where)


def damaged(what: str, where: Path | str, allowed: str = "") -> VectorsDamagedError:
    """Return the error of a file that is not as it was written."""
    return VectorsDamagedError(what, where=str(where), allowed=allowed, do=EMBED_AGAIN)


@cache
def _strict(kind: type[T]) -> TypeAdapter[T]:
    from pydantic import ConfigDict, TypeAdapter, with_config

    return TypeAdapter(with_config(ConfigDict(strict=True, extra="forbid"))(kind))
