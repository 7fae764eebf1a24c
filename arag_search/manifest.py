"""The manifest of an index, and the fingerprints that prove which corpus it holds."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import orjson

from arag_search.corpus import PATH_MARK, Chunk
from arag_search.errors import IndexDamagedError, IndexVersionError
from arag_search.field_counts import FieldCounts
from arag_search.query.fields import MetadataType, Schema
from arag_search.query.forms import steps

FORMAT_VERSION = 8
"""The number of the format: every change of what is stored raises it."""

FOLD_CHARACTERS = 200
"""The length at which lines are folded."""

_MODULUS = 1 << 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The description of an index: everything needed to search it and to trust it.

    ``fingerprint`` is the hexadecimal sum of chunk fingerprints (see ``chunk_fingerprint``) and
    identifies the passages. ``placement`` is the sum of chunk placements (see ``chunk_placement``)
    and identifies the ordinal of every passage. Longer lines than ``fold_characters`` are folded
    where the lines of a document are numbered. ``file_metadata`` names the fields in ``metadata``
    that documents from files have without a declaration. ``shard_sources`` has the source of each
    source shard, the real path of a folder or file; it is empty where that is not known.
    ``reading`` says which sources were built from and how they were read, by the names of options.
    ``field_counts`` has the values of each field in ``metadata``. ``update`` counts published
    changes and is the same in the chunk and the sentence index. ``language`` is the language of the
    normal forms of words, empty for an index without them. ``forms`` are the steps that made them
    (see ``steps``).
    """

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
    fold_characters: int = FOLD_CHARACTERS
    already_chunked: bool = False
    k1: float = 1.2
    b: float = 0.75
    language: str = ""
    forms: tuple[str, ...] = ()
    metadata: dict[str, MetadataType] = field(default_factory=dict[str, MetadataType])
    file_metadata: tuple[str, ...] = ()
    undeclared_metadata: dict[str, int] = field(default_factory=dict[str, int])
    without: tuple[str, ...] = ()
    skipped_lines: int = 0
    fingerprint: str
    placement: str
    shard_sources: tuple[str, ...] = ()
    reading: dict[str, Any] = field(default_factory=dict[str, Any])
    field_counts: dict[str, FieldCounts] = field(default_factory=dict[str, FieldCounts])
    update: int = 1

    @property
    def query_schema(self) -> Schema:
        """The fields that queries may name."""
        return Schema(metadata=self.metadata, language=self.language)

    @property
    def has_sentences(self) -> bool:
        """Whether the index can search at sentence granularity."""
        return "sentences" not in self.without

    @property
    def has_titles(self) -> bool:
        """Whether any document has a title."""
        return self.title_characters > 0

    def to_json(self) -> str:
        """Return the manifest as one line of JSON."""
        return orjson.dumps(self).decode()

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
                do="Build the index again with `overwrite=True`.",
            ) from error
        if version != FORMAT_VERSION:
            raise IndexVersionError(
                f"The index has format version {version}.",
                where=where,
                allowed=f"version {FORMAT_VERSION}",
                do=f"Build the index again: arag-search index SOURCE --to {where} --overwrite",
            )
        try:
            values: dict[str, Any] = {
                name: tuple(cast(list[str], value)) if isinstance(value, list) else value
                for name, value in loaded.items()
            }
            counts: dict[str, Any] = values["field_counts"]
            values["field_counts"] = {
                name: FieldCounts.from_json(of_field) for name, of_field in counts.items()
            }
            manifest = Manifest(**values)
        except (AttributeError, KeyError, TypeError) as error:
            raise IndexDamagedError(
                f"The manifest cannot be read ({error}).",
                where=where,
                do="Build the index again with `overwrite=True`.",
            ) from error
        if manifest.language and manifest.forms != steps(manifest.language):
            raise IndexVersionError(
                f"The words of the index have forms by other steps: {', '.join(manifest.forms)}.",
                where=where,
                allowed=", ".join(steps(manifest.language)),
                do=f"Build the index again: arag-search index SOURCE --to {where} --overwrite",
            )
        return manifest


def chunk_fingerprint(chunk: Chunk) -> int:
    """Return the SHA-256 of a chunk's id, title with path, content and metadata, as an integer."""
    heading = PATH_MARK.join(chunk.heading)
    return fingerprint_of(chunk.id, heading, chunk.content, chunk.metadata)


def fingerprint_of(chunk_id: str, title: str, content: str, metadata: Mapping[str, Any]) -> int:
    """Return the SHA-256 of the JSON array of the four parts, metadata keys sorted."""
    record = orjson.dumps([chunk_id, title, content, metadata], option=orjson.OPT_SORT_KEYS)
    return int.from_bytes(hashlib.sha256(record).digest(), "big")


def chunk_placement(chunk: Chunk, fingerprint: int) -> int:
    """Return the SHA-256 of a chunk's ordinal, fingerprint and sentence ends, as an integer.

    Two indexes with an equal sum of these give every ordinal, of a chunk or of a sentence, to the
    same text and metadata. ``fingerprint`` is the value of ``chunk_fingerprint``.
    """
    ends = chunk.sentence_ends
    digest = fingerprint.to_bytes(32, "big")
    packed = struct.pack(f">q32s{len(ends)}I", chunk.ordinal, digest, *ends)
    return int.from_bytes(hashlib.sha256(packed).digest(), "big")


@dataclass(slots=True)
class CorpusDigest:
    """The fingerprint and placement of a corpus, updated as chunks are added and removed.

    They are the sums modulo 2^256, in any order, of chunk fingerprints and of chunk placements.
    """

    fingerprint: int = 0
    placement: int = 0

    @staticmethod
    def of(chunks: Iterable[Chunk]) -> CorpusDigest:
        """Return the digest of these chunks."""
        digest = CorpusDigest()
        for chunk in chunks:
            digest.add(chunk)
        return digest

    def add(self, chunk: Chunk, sign: int = 1) -> None:
        """Add a chunk, or subtract it if ``sign`` is -1."""
        fingerprint = chunk_fingerprint(chunk)
        placement = chunk_placement(chunk, fingerprint)
        self.fingerprint = (self.fingerprint + sign * fingerprint) % _MODULUS
        self.placement = (self.placement + sign * placement) % _MODULUS

    def include(self, other: CorpusDigest) -> None:
        """Add the chunks of another digest."""
        self.fingerprint = (self.fingerprint + other.fingerprint) % _MODULUS
        self.placement = (self.placement + other.placement) % _MODULUS


def fingerprint_hex(fingerprint: int) -> str:
    """Return a fingerprint as 64 hexadecimal digits."""
    return f"{fingerprint:064x}"
