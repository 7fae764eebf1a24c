"""The nearest texts of a state equal those of brute force, whatever rows it shares or left dead."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from arag_search.vectors import searching
from arag_search.vectors.base import VECTOR_UNITS
from arag_search.vectors.folder import StoredType
from arag_search.vectors.state import UnitTexts
from tests.support.stored_vectors import (
    StoredVectors,
    nearly_equal,
    selection,
    stored_vectors,
    with_state,
)
from tests.support.vector_stores import append, unit_vectors

LISTS = 8
KINDS = ("flat", f"IVF{LISTS},Flat", f"IVF{LISTS},SQ8")
STATES = [*product((0.0, 0.5), (0.0, 0.5), ("float32",)), (0.5, 0.5, "float16")]


def _grown(before: StoredVectors, root: Path) -> StoredVectors:
    """Append rows for half of the texts, which leaves their former rows dead."""
    units = {}
    for unit in VECTOR_UNITS:
        texts = before.state.units[unit]
        rows = np.array(texts.rows, np.int64)
        rows[::2] = before.store.rows(unit) + np.arange(len(rows[::2]))
        append(before.store, unit, rows[::2], seed=99)
        units[unit] = UnitTexts(texts.ordinals, rows)
    return StoredVectors(with_state(root, before.store, units, "1" * 64), before.store)


@pytest.mark.parametrize("index", KINDS)
@pytest.mark.parametrize(("spare", "repeated", "dtype"), STATES)
@pytest.mark.parametrize("gathering", [4, 1_000])
def test_neighbours_are_those_of_brute_force(
    tmp_path: Path,
    index: str,
    spare: float,
    repeated: float,
    dtype: StoredType,
    gathering: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(searching, "_GATHERING", gathering)  # 1,000: always in lists
    first = stored_vectors(tmp_path, 800, seed=7, spare=spare, repeated=repeated, dtype=dtype)
    first.build(index)
    for made in (first, _grown(first, tmp_path), first):
        vectors = made.open(nprobe=LISTS)
        queries = unit_vectors(3, seed=5)
        for unit, step in product(VECTOR_UNITS, (1, 2, 30)):
            chosen = made.chunks[::step]
            everywhere = vectors.nearest(unit, queries, 30)
            within = vectors.nearest(unit, queries, 30, selection(chosen, f"every{step}"))
            for query, of_all, of_some in zip(queries, everywhere, within, strict=True):
                assert nearly_equal(of_all, made.expected(unit, query, 30))
                assert nearly_equal(of_some, made.expected(unit, query, 30, chosen))
        vectors.close()
