"""Stores of random vectors, and states that name their rows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from arag_search.corpus import Chunk
from arag_search.manifest import Manifest
from arag_search.query.fields import MetadataType
from arag_search.vectors.base import PROBE_TEXTS, EncoderIdentity, VectorUnit, row_key
from arag_search.vectors.encoders.hashing import HashingEncoder
from arag_search.vectors.folder import StateRecord, StoredType, StoreRecord
from arag_search.vectors.store import Store
from tests.support.oracle.engine import MemoryEngine
from tests.support.strategies import METADATA

DIMENSION = 16
ENCODER = EncoderIdentity(kind="hashing", name="words", dimension=DIMENSION)

Vectors = NDArray[np.float32]


def unit_vectors(rows: int, seed: int = 0, dimension: int = DIMENSION) -> Vectors:
    """Draw random directions."""
    vectors = np.random.default_rng(seed).standard_normal((rows, dimension), dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def keys_of(texts: Sequence[object]) -> list[bytes]:
    """Return the keys of texts that print so."""
    return [row_key(str(text)) for text in texts]


def record_of(dtype: StoredType = "float32", dimension: int = DIMENSION) -> StoreRecord:
    """Return the record of a store of such vectors."""
    probes = tuple(map(tuple, HashingEncoder(dimension).encode(PROBE_TEXTS).tolist()))
    return StoreRecord(encoder=replace(ENCODER, dimension=dimension), dtype=dtype, probes=probes)


def state_of(placement: str, fingerprint: str = "") -> StateRecord:
    """Return the record of the index that has a placement."""
    return StateRecord(
        placement=placement, fingerprint=fingerprint, created="", store="", arrays=""
    )


def new_store(root: Path, dtype: StoredType = "float32", dimension: int = DIMENSION) -> Store:
    """Create an empty store."""
    root.mkdir(parents=True, exist_ok=True)
    return Store.create(root / "store-00001", record_of(dtype, dimension))


def append(store: Store, unit: VectorUnit, texts: Sequence[object], seed: int = 0) -> Vectors:
    """Append rows of random vectors with the keys of these texts, and return the vectors."""
    vectors = unit_vectors(len(texts), seed)
    store.append(unit, keys_of(texts), vectors)
    return vectors


def manifest_of(
    chunks: Sequence[Chunk], metadata: Mapping[str, MetadataType] = METADATA
) -> Manifest:
    """Return the manifest of an index of these chunks."""
    return MemoryEngine(chunks, metadata=metadata).manifest
