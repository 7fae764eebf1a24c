"""Shards and sidecars of random vectors, and the neighbours that numpy computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arag_search.corpus import Chunk
from arag_search.manifest import Manifest
from arag_search.query.fields import MetadataType
from arag_search.vectors.base import (
    VECTOR_UNITS,
    EncoderIdentity,
    Nearest,
    VectorUnit,
    row_key,
    rows_of,
)
from arag_search.vectors.storage.files import EMBED_AGAIN, check_contents
from arag_search.vectors.storage.manifest import VectorManifest
from arag_search.vectors.storage.publish import publish_sidecar
from arag_search.vectors.storage.shards import (
    StoredType,
    write_shard,
)
from arag_search.vectors.storage.sidecar import Sidecar, open_vectors
from bench.speed.vectors import open_placement
from bench.speed.vectors import stored_shards as shards_in
from tests.support.oracle.engine import MemoryEngine
from tests.support.passages import chunk
from tests.support.strategies import METADATA

DIMENSION = 16
ENCODER = EncoderIdentity(kind="hashing", name="words", revision="1", dimension=DIMENSION)

Vectors = NDArray[np.float32]


def unit_vectors(rows: int, seed: int = 0, dimension: int = DIMENSION) -> Vectors:
    """Draw random directions."""
    vectors = np.random.default_rng(seed).standard_normal((rows, dimension), dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def chunks_of(count: int, sentences: int = 3, first: int = 0) -> list[Chunk]:
    """Build chunks with given numbers of sentences; each chunk is a document with a year and a
    language."""
    return [
        chunk(
            number,
            f"d{number}",
            f"Title {number}",
            *(f"Sentence {at} of {number}. " for at in range(sentences)),
            year=1900 + number % 100,
            lang="en" if number % 2 else "de",
        )
        for number in range(first, first + count)
    ]


def manifest_of(
    chunks: Sequence[Chunk], metadata: Mapping[str, MetadataType] = METADATA
) -> Manifest:
    """Return the manifest of an index of these chunks."""
    return MemoryEngine(chunks, metadata=metadata).manifest


def write_shards(
    folder: Path,
    chunks: Sequence[Chunk],
    *,
    size: int = 1_000,
    dtype: StoredType = "float32",
    units: Sequence[VectorUnit] = VECTOR_UNITS,
    seed: int = 0,
    first: int = 0,
    vectors: Mapping[VectorUnit, Vectors] | None = None,
) -> Mapping[VectorUnit, Vectors]:
    """Write the chunks as shards of ``size`` chunks, by default with random vectors."""
    folder.mkdir(parents=True, exist_ok=True)
    counts = {unit: [len(rows_of(chunk, unit)) for chunk in chunks] for unit in units}
    vectors = vectors or {unit: unit_vectors(sum(counts[unit]), seed) for unit in units}
    done = dict.fromkeys(units, 0)
    for number, start in enumerate(range(0, len(chunks), size), first):
        part: dict[VectorUnit, Vectors] = {}
        for unit in units:
            end = done[unit] + sum(counts[unit][start : start + size])
            part[unit] = vectors[unit][done[unit] : end]
            done[unit] = end
        write_shard(folder, number, keys_of(chunks[start : start + size], units), part, dtype=dtype)
    return vectors


def keys_of(
    chunks: Sequence[Chunk], units: Sequence[VectorUnit] = VECTOR_UNITS
) -> dict[VectorUnit, list[bytes]]:
    """Return the keys of the rows of chunks."""
    return {
        unit: [row_key(text) for chunk in chunks for _, text in rows_of(chunk, unit)]
        for unit in units
    }


def write_placement(
    folder: Path,
    chunks: Sequence[Chunk],
    units: Sequence[VectorUnit] = VECTOR_UNITS,
    metadata: Mapping[str, MetadataType] = METADATA,
) -> Path:
    """Write the placement of an index of these chunks, whose n-th text has the n-th row."""
    with open_placement(folder, units, metadata) as writer:
        for chunk in chunks:
            writer.add(chunk)
    return folder


def publish_shards(
    work: Path,
    root: Path,
    chunks: Sequence[Chunk],
    *,
    units: Sequence[VectorUnit] = VECTOR_UNITS,
    metadata: Mapping[str, MetadataType] = METADATA,
    **options: Any,
) -> VectorManifest:
    """Publish the shards of ``work``, whose rows are those of the chunks in order."""
    defaults = {"encoder": ENCODER, "dtype": "float32", "manifest": manifest_of(chunks, metadata)}
    return publish_sidecar(
        shards_in(work),
        write_placement(work / "placement", chunks, units, metadata),
        root,
        units=units,
        **{**defaults, **options},
    )


@dataclass
class PublishedVectors:
    """Chunks whose vectors are published below ``root``."""

    root: Path
    chunks: Sequence[Chunk]
    vectors: Mapping[VectorUnit, Vectors]
    manifest: Manifest
    vector_manifest: VectorManifest
    ordinals: Mapping[VectorUnit, NDArray[np.int64]] = field(init=False)

    def __post_init__(self) -> None:
        self.ordinals = {
            unit: np.array(
                [ordinal for chunk in self.chunks for ordinal, _ in rows_of(chunk, unit)], np.int64
            )
            for unit in VECTOR_UNITS
        }

    @property
    def folder(self) -> Path:
        return self.root / self.manifest.placement[:16]

    def open(self) -> Sidecar:
        return open_vectors(self.root, self.manifest, "index")

    def expected(
        self,
        unit: VectorUnit,
        query: Vectors,
        n: int,
        allowed: NDArray[np.bool_] | None = None,
        dtype: StoredType = "float32",
    ) -> list[Nearest]:
        """Return the nearest rows as numpy computes them from all vectors."""
        stored = self.vectors[unit].astype(dtype).astype(np.float64)
        scores = (stored @ query.astype(np.float64)).astype(np.float32)
        rows = np.arange(len(scores)) if allowed is None else np.flatnonzero(allowed)
        order = np.lexsort((self.ordinals[unit][rows], -scores[rows]))[:n]
        keys = keys_of(self.chunks, (unit,))[unit]
        return [
            Nearest(int(self.ordinals[unit][row]), float(scores[row]), keys[row])
            for row in rows[order]
        ]


def publish(
    folder: Path,
    chunks: Sequence[Chunk],
    *,
    index: str = "auto",
    size: int = 1_000,
    dtype: StoredType = "float32",
    vectors: Mapping[VectorUnit, Vectors] | None = None,
    encoder: EncoderIdentity = ENCODER,
    metadata: Mapping[str, MetadataType] = METADATA,
    threads: int = 1,
) -> PublishedVectors:
    """Write shards in ``folder/work``, and publish them in ``folder/vectors``."""
    work, root = folder / "work", folder / "vectors"
    stored = write_shards(work, chunks, size=size, dtype=dtype, vectors=vectors)
    manifest = manifest_of(chunks, metadata)
    vector_manifest = publish_shards(
        work,
        root,
        chunks,
        metadata=metadata,
        encoder=encoder,
        dtype=dtype,
        index=index,
        manifest=manifest,
        threads=threads,
    )
    return PublishedVectors(root, chunks, stored, manifest, vector_manifest)


def nearly_equal(rows: Sequence[Nearest], expected: Sequence[Nearest]) -> bool:
    """Return whether ordinals and keys are equal in order, and scores to 1e-5."""
    return [(row.ordinal, row.key) for row in rows] == [
        (row.ordinal, row.key) for row in expected
    ] and all(
        abs(row.score - right.score) < 1e-5 for row, right in zip(rows, expected, strict=True)
    )


def verify(sidecar: Sidecar) -> None:
    """Read every file of a sidecar. Raises VectorsDamagedError if one is not as it was written."""
    check_contents(sidecar.manifest.files_in(sidecar.path), EMBED_AGAIN)
