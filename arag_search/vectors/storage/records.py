"""Strict reading of the JSON files of vectors: any deviation from what was written is an error."""

from __future__ import annotations

from typing import Any, TypeVar

import orjson

from arag_search.errors import VectorsDamagedError, VectorsVersionError

VECTORS_VERSION = 2
"""The format version of shards and manifests. Others are not read (but see version_1.py)."""

T = TypeVar("T")


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
            do="Run arag-search embed INDEX: it checks and converts vectors of version 1, and "
            "encodes all others again.",
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
