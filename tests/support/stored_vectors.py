"""States of random vectors with shared and dead rows, and the neighbours of brute force."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from arag_search.corpus import SENTENCE_BITS, Chunk, ordinal_of
from arag_search.engines.base import Mask, Ordinals
from arag_search.query.tree import Term
from arag_search.system.progress import Progress
from arag_search.vectors import faiss_index
from arag_search.vectors.base import (
    PROBE_TEXTS,
    VECTOR_UNITS,
    Encoder,
    Nearest,
    Selection,
    VectorUnit,
    row_key,
    rows_of,
)
from arag_search.vectors.folder import StoredType, StoreRecord
from arag_search.vectors.searching import IndexVectors
from arag_search.vectors.state import State, UnitTexts
from arag_search.vectors.store import Store
from tests.support.plans import scoped
from tests.support.vector_stores import Vectors, append, new_store, state_of

SENTENCES = 3


@dataclass(frozen=True)
class StoredVectors:
    """A state of a store, whose texts are sentences of chunks and the chunks themselves."""

    state: State
    store: Store

    def open(self, nprobe: int | None = None) -> IndexVectors:
        """Open the vectors of this state."""
        state, store = State.open(self.state.path), Store.open(self.store.folder)
        return IndexVectors(state, store, nprobe)

    def moved(self, root: Path) -> StoredVectors:
        """Return the same vectors, whose folder is here now."""
        state = State.open(root / self.state.path.name)
        return StoredVectors(state, Store.open(root / self.store.folder.name))

    def build(self, index: str, units: Sequence[VectorUnit] = VECTOR_UNITS) -> None:
        """Make FAISS indexes of all rows."""
        for unit in units:
            faiss_index.build(self.store, unit, index, Progress())

    @property
    def chunks(self) -> Ordinals:
        """The ordinals of all chunks."""
        texts = [self.state.units[unit].ordinals for unit in self.state.units]
        return np.unique(_chunks_of(np.concatenate(texts)))

    def expected(
        self, unit: VectorUnit, query: Vectors, n: int, chunks: Ordinals | None = None
    ) -> list[Nearest]:
        """Return the nearest texts, of these chunks or of all, as numpy computes them."""
        texts = self.state.units[unit]
        every = self.store.vectors(unit).gather(np.arange(self.store.rows(unit)))
        scores = (every.astype(np.float64) @ query.astype(np.float64)).astype(np.float32)
        of_texts = scores[texts.rows]
        chosen = np.arange(len(of_texts))
        if chunks is not None:
            chosen = np.flatnonzero(
                np.isin(texts.ordinals >> SENTENCE_BITS << SENTENCE_BITS, chunks)
            )
        order = chosen[np.lexsort((texts.ordinals[chosen], -of_texts[chosen]))][:n]
        return [
            Nearest(
                int(texts.ordinals[text]),
                float(of_texts[text]),
                self.store.keys(unit)[texts.rows[text]].tobytes(),
            )
            for text in order
        ]


def _chunks_of(ordinals: Ordinals) -> Ordinals:
    return ordinals >> SENTENCE_BITS << SENTENCE_BITS


def stored_vectors(
    root: Path,
    chunks: int,
    *,
    seed: int = 0,
    spare: float = 0.0,
    repeated: float = 0.0,
    dtype: StoredType = "float32",
) -> StoredVectors:
    """Make a store, and a state in which texts have drawn rows of it.

    A share ``spare`` of the rows is dead, and a share ``repeated`` of the texts has the row of
    another text.
    """
    random = np.random.default_rng(seed)
    store = new_store(root, dtype)
    first = np.array([ordinal_of(0, number, 0) for number in range(chunks)], np.int64)
    ordinals = {"passage": first, "sentence": (first[:, None] + np.arange(SENTENCES)).reshape(-1)}
    units: dict[VectorUnit, UnitTexts] = {}
    for unit in VECTOR_UNITS:
        texts = len(ordinals[unit])
        total = max(1, round(texts * (1 - repeated) / (1 - spare)))
        append(store, unit, range(total), seed + len(unit))
        live = random.permutation(total)[: max(1, round(total * (1 - spare)))]
        rows = np.concatenate((live, random.choice(live, max(0, texts - len(live)))))
        units[unit] = UnitTexts(ordinals[unit], random.permutation(rows)[:texts])
    return StoredVectors(with_state(root, store, units), store)


def stored_chunks(
    root: Path,
    chunks: Sequence[Chunk],
    encoder: Encoder,
    placement: str = "0" * 64,
    units: Sequence[VectorUnit] = VECTOR_UNITS,
) -> StoredVectors:
    """Make a store and a state of an index of these chunks."""
    root.mkdir(parents=True, exist_ok=True)
    probes = tuple(map(tuple, encoder.encode(PROBE_TEXTS).tolist()))
    record = StoreRecord(encoder=encoder.identity, dtype="float32", probes=probes)
    store = Store.create(root / "store-00001", record)
    texts_of: dict[VectorUnit, UnitTexts] = {}
    for unit in units:
        rows = [row for chunk in chunks for row in rows_of(chunk, unit)]
        texts = [text for _, text in rows]
        store.append(unit, [row_key(text) for text in texts], encoder.encode(texts))
        ordinals = np.array([ordinal for ordinal, _ in rows], np.int64)
        texts_of[unit] = UnitTexts(ordinals, np.arange(len(rows)))
    return StoredVectors(with_state(root, store, texts_of, placement), store)


def with_state(
    root: Path, store: Store, units: Mapping[VectorUnit, UnitTexts], placement: str = "0" * 64
) -> State:
    """Write the state of an index with these texts."""
    return State.write(root, state_of(placement, "0" * 64), store.folder.name, units)


def selection(chunks: Ordinals, word: str = "opera", calls: list[int] | None = None) -> Selection:
    """Return a scope of these chunks; ``calls`` receives how many chunks were asked about."""

    def mark(asked: Ordinals) -> Mask:
        if calls is not None:
            calls.append(len(asked))
        return np.isin(asked, chunks)

    return Selection(scoped((Term(word),)), mark)


def share_found(expected: Sequence[Nearest], texts: Sequence[Nearest]) -> float:
    """Return the share of the expected texts that were found."""
    ordinals = {text.ordinal for text in texts}
    return sum(text.ordinal in ordinals for text in expected) / len(expected)


def nearly_equal(texts: Sequence[Nearest], expected: Sequence[Nearest]) -> bool:
    """Return whether ordinals and keys are equal in order, and scores to 1e-5."""
    return [(text.ordinal, text.key) for text in texts] == [
        (text.ordinal, text.key) for text in expected
    ] and all(
        abs(text.score - right.score) < 1e-5 for text, right in zip(texts, expected, strict=True)
    )
