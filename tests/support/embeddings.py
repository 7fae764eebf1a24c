"""Indexes that tests embed, and the vectors of their sidecars."""

import dataclasses
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from arag_search.search.opening import open_index
from arag_search.system.progress import Progress
from arag_search.vectors.base import VECTOR_UNITS, Encoder, VectorUnit, rows_of
from arag_search.vectors.encoders.choose import open_encoder
from arag_search.vectors.storage.files import map_array
from arag_search.vectors.storage.folders import sidecars
from arag_search.vectors.storage.manifest import VectorManifest, ordinals_file
from arag_search.vectors.storage.shards import vectors_role
from index_jobs.build.new_index import build_index
from index_jobs.embedding.plan import EmbedOptions
from tests.support.builds import PLAIN, corpus

ENCODER = "hashing:16"
SMALL = EmbedOptions(sentence_titles=False, shard_rows=50, batch_size=1)

LOADING = f"Loading the encoder {ENCODER}."

Rows = tuple[NDArray[np.int64], NDArray[np.float32]]


def with_options(**changes: object) -> EmbedOptions:
    """Return options with small shards and these changes."""
    return dataclasses.replace(SMALL, **changes)  # type: ignore[arg-type]


def build_small_index(documents: int, words: int = 30, where: str = "index") -> None:
    """Build an index with a number of passages, each of one short and two long sentences."""
    build_index([corpus("index.jsonl", documents, words)], Path(where), PLAIN)


def only_sidecar(root: str | Path) -> tuple[Path, VectorManifest]:
    ((path, manifest),) = sidecars(Path(root))
    assert isinstance(manifest, VectorManifest)
    return path, manifest


def rows_in(path: Path, manifest: VectorManifest, unit: VectorUnit) -> Rows:
    """Return the ordinals and vectors of the rows of a sidecar that have a text, by ordinal."""
    ordinals = map_array(ordinals_file(path, unit))
    vectors = np.concatenate(
        [map_array(shard.file(vectors_role(unit))) for shard in manifest.shards_in(path)]
    )
    live = np.flatnonzero(ordinals >= 0)
    order = live[np.argsort(ordinals[live])]
    return ordinals[order], vectors[order]


def expected_rows(location: str, unit: VectorUnit, encoder: Encoder) -> Rows:
    """Return the ordinals and vectors that a sidecar must have, from the chunks of an index."""
    with open_index(location) as index:
        rows = [row for chunk in index.scan() for row in rows_of(chunk, unit)]
    return np.array([ordinal for ordinal, _ in rows]), encoder.encode([text for _, text in rows])


def check_embedded(location: str, root: str | Path | None = None, encoder: str = ENCODER) -> None:
    """Check that an index has one sidecar, which holds the right vector for each row."""
    path, manifest = only_sidecar(root or Path(location) / "vectors")
    open_model = open_encoder(encoder)
    for unit in VECTOR_UNITS:
        ordinals, vectors = rows_in(path, manifest, unit)
        expected_ordinals, expected_vectors = expected_rows(location, unit, open_model)
        assert ordinals.tolist() == expected_ordinals.tolist()
        np.testing.assert_allclose(vectors, expected_vectors, atol=1e-6)
        assert manifest.live_rows[unit] == len(ordinals)
    with open_index(location) as index:
        assert manifest.placement == index.manifest.placement


class NotingProgress(Progress):
    """A progress that records notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


class InterruptingProgress(NotingProgress):
    """A progress that presses Ctrl-C when a number of rows are encoded."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self._rows = rows

    def update(self, done: int, encoded: int, details: str = "") -> None:
        if encoded >= self._rows:
            raise KeyboardInterrupt


def newest_sidecar() -> tuple[Path, VectorManifest]:
    with open_index("index") as index:
        placement = index.manifest.placement
    for path, manifest in sidecars(Path("index/vectors")):
        if isinstance(manifest, VectorManifest) and manifest.placement == placement:
            return path, manifest
    raise AssertionError("none of this state")


def check_rows_of_live_chunks() -> None:
    """Check that all chunks of the index have rows, and the right ones."""
    path, manifest = newest_sidecar()
    encoder = open_encoder(ENCODER)
    for unit in VECTOR_UNITS:
        vectors = dict(zip(*rows_in(path, manifest, unit), strict=True))
        for ordinal, vector in zip(*expected_rows("index", unit, encoder), strict=True):
            np.testing.assert_allclose(vectors[ordinal], vector, atol=1e-6)
