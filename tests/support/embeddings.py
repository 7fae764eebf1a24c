"""Indexes that tests embed, and their vectors."""

import dataclasses
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from arag_search.search.opening import open_index
from arag_search.system.progress import Progress
from arag_search.vectors.base import VECTOR_UNITS, Encoder, VectorUnit, rows_of
from arag_search.vectors.encoders.choose import open_encoder
from arag_search.vectors.folder import states, stores
from arag_search.vectors.state import State, fitting_state
from arag_search.vectors.store import Store
from index_jobs.build.new_index import build_index
from index_jobs.embedding.options import EmbedOptions
from tests.support.builds import PLAIN, corpus

ENCODER = "hashing:16"
SMALL = EmbedOptions(sentence_titles=False, batch_size=1)
PIECE = SMALL.piece_rows
"""How many rows are encoded at once."""
STOPPED = 41 + PIECE
"""How many rows of an index of 40 documents there are after Ctrl-C at 60: 41 sentences and a piece
of passages."""

LOADING = f"Loading the encoder {ENCODER}."

Rows = tuple[NDArray[np.int64], NDArray[np.float32]]


def with_options(**changes: object) -> EmbedOptions:
    """Return options with small pieces and these changes."""
    return dataclasses.replace(SMALL, **changes)  # type: ignore[arg-type]


def build_small_index(documents: int, words: int = 30, where: str = "index") -> None:
    """Build an index with a number of passages, each of one short and two long sentences. The short
    one is the same in all."""
    build_index([corpus("index.jsonl", documents, words)], Path(where), PLAIN)


def texts_of(documents: int) -> int:
    """Return how many different texts such an index has."""
    return 2 * documents + 1


def fitting(location: str = "index", root: str | Path | None = None) -> tuple[State, Store]:
    """Open the state of an index as it is, and its store."""
    root = Path(root or Path(location) / "vectors")
    with open_index(location) as index:
        state = fitting_state(root, index.manifest.placement)
    assert state is not None
    return state, state.store()


def names(root: str | Path = "index/vectors") -> tuple[list[str], list[str]]:
    """Return the names of the states, the newest first, and of the stores in a folder."""
    root = Path(root)
    return [path.name for path, _ in states(root)], sorted(path.name for path, _ in stores(root))


def rows_in(state: State, store: Store, unit: VectorUnit) -> Rows:
    """Return the ordinals and vectors of the texts of a state, by ordinal."""
    own = state.units[unit]
    return own.ordinals, store.vectors(unit).gather(own.rows.astype(np.int64))


def expected_rows(location: str, unit: VectorUnit, encoder: Encoder) -> Rows:
    """Return the ordinals and vectors that the texts of an index must have."""
    with open_index(location) as index:
        rows = [row for chunk in index.scan() for row in rows_of(chunk, unit)]
    return np.array([ordinal for ordinal, _ in rows]), encoder.encode([text for _, text in rows])


def check_embedded(
    location: str = "index", root: str | Path | None = None, encoder: str = ENCODER
) -> None:
    """Check that the state of an index has the right vector for each text, and no more."""
    state, store = fitting(location, root)
    open_model = open_encoder(encoder)
    for unit in VECTOR_UNITS:
        ordinals, vectors = rows_in(state, store, unit)
        expected_ordinals, expected_vectors = expected_rows(location, unit, open_model)
        assert ordinals.tolist() == expected_ordinals.tolist()
        np.testing.assert_allclose(vectors, expected_vectors, atol=1e-6)
    store.verify()


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
