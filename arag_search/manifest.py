"""What an index is, and the proof that two things belong together."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from arag_search.corpus import Chunk
from arag_search.errors import IndexDamagedError, IndexVersionError
from arag_search.query.fields import MetadataType, Schema

FORMAT_VERSION = 1
_MODULUS = 1 << 256


class Manifest(BaseModel):
    """Everything one must know of an index to search it and to trust it.

    ``fingerprint`` is the hexadecimal sum of chunk fingerprints (see ``chunk_fingerprint``).
    ``update`` counts published changes and is the same in the chunk and the sentence index.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format_version: int = FORMAT_VERSION
    engine: str
    engine_version: str
    analyser: str = "standard"
    created: str
    sources: tuple[str, ...] = ()
    source_format: str = ""
    documents: int
    chunks: int
    sentences: int
    tokens: int
    title_characters: int = 0
    chunk_tokens: int
    already_chunked: bool = False
    k1: float = 1.2
    b: float = 0.75
    metadata: dict[str, MetadataType] = Field(default_factory=dict[str, MetadataType])
    undeclared_metadata: dict[str, int] = Field(default_factory=dict[str, int])
    without: tuple[str, ...] = ()
    skipped_lines: int = 0
    fingerprint: str
    update: int = 1

    @property
    def query_schema(self) -> Schema:
        """The fields that queries may name."""
        return Schema(metadata=self.metadata)

    @property
    def has_sentences(self) -> bool:
        """Whether sentence granularity is served."""
        return "sentences" not in self.without

    @property
    def has_titles(self) -> bool:
        """Whether any document has a title."""
        return self.title_characters > 0

    def to_json(self) -> str:
        """The manifest as one line of JSON."""
        return self.model_dump_json()

    @staticmethod
    def from_json(text: str, where: str) -> Manifest:
        """Read a manifest. ``where`` names the index in errors.

        Raises IndexVersionError for another format version, IndexDamagedError for anything that is
        not a manifest.
        """
        try:
            loaded: Any = orjson.loads(text)
            version = loaded["format_version"]
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise IndexDamagedError(
                f"The manifest cannot be read ({error}).",
                where=where,
                do="Build the index again with --overwrite.",
            ) from error
        if version != FORMAT_VERSION:
            raise IndexVersionError(
                f"The index has format version {version}.",
                where=where,
                allowed=f"version {FORMAT_VERSION}",
                do="Build it again with --overwrite, or use the release that wrote it.",
            )
        try:
            return Manifest.model_validate(loaded)
        except ValidationError as error:
            raise IndexDamagedError(
                f"The manifest cannot be read ({error.error_count()} wrong fields).",
                where=where,
                do="Build the index again with --overwrite.",
            ) from error


def chunk_fingerprint(chunk: Chunk) -> int:
    """SHA-256 of id, title, content and metadata, as an integer."""
    return fingerprint_of(chunk.id, chunk.title, chunk.content, chunk.metadata)


def fingerprint_of(chunk_id: str, title: str, content: str, metadata: Mapping[str, Any]) -> int:
    """SHA-256 over the JSON array of the four parts, metadata keys sorted."""
    record = orjson.dumps([chunk_id, title, content, metadata], option=orjson.OPT_SORT_KEYS)
    return int.from_bytes(hashlib.sha256(record).digest(), "big")


def add_fingerprints(first: int, second: int) -> int:
    """The fingerprint of two corpora together: the sum modulo 2^256, in any order."""
    return (first + second) % _MODULUS


def fingerprint_hex(fingerprint: int) -> str:
    """64 hexadecimal digits."""
    return f"{fingerprint:064x}"
