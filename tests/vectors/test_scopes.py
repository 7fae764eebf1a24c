"""Scopes over vectors: what an engine is asked, what is kept of its answers, lists of few rows."""

from pathlib import Path

import numpy as np
import pytest

from arag_search.engines.base import Mask, Ordinals
from arag_search.vectors import searching
from arag_search.vectors.base import Selection
from arag_search.vectors.faiss_index import IvfIndex
from tests.support.stored_vectors import StoredVectors, nearly_equal, selection, stored_vectors
from tests.support.vector_stores import unit_vectors


@pytest.fixture(scope="module", params=["flat", "IVF16,Flat"])
def stored(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> StoredVectors:
    vectors = stored_vectors(tmp_path_factory.mktemp("scopes"), 2_000, repeated=0.1, spare=0.1)
    vectors.build(request.param)
    return vectors


def test_an_engine_is_asked_once_about_a_scope_for_all_units_and_always_with_the_same_chunks(
    stored: StoredVectors,
) -> None:
    asked: list[Ordinals] = []

    def mark(chunks: Ordinals) -> Mask:
        asked.append(chunks)
        return np.ones(len(chunks), np.bool_)

    vectors = stored.open()
    for _ in range(2):
        for word in ("opera", "venice"):
            scope = selection(stored.chunks, word).scope
            for unit in vectors.units:
                vectors.nearest(unit, unit_vectors(1), 1, Selection(scope, mark))
    first, second = asked
    assert first is second
    assert first.tolist() == stored.chunks.tolist()


def test_the_eight_most_recent_scopes_are_kept(stored: StoredVectors) -> None:
    calls: list[int] = []
    vectors = stored.open()
    scopes = [selection(stored.chunks, f"word{at}", calls) for at in range(9)]
    for scope in (*scopes[:8], *scopes[:8], scopes[8], scopes[0]):
        vectors.nearest("sentence", unit_vectors(1), 1, scope)
    assert len(calls) == 10


def test_a_scope_that_admits_nothing_finds_nothing(stored: StoredVectors) -> None:
    nothing = selection(stored.chunks[:0])
    assert stored.open().nearest("sentence", unit_vectors(2), 5, nothing) == [[], []]


def test_lists_are_added_until_enough_rows_in_scope_are_found(
    stored: StoredVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "_GATHERING", 1_000)
    some = stored.chunks[::100]  # 60 sentences of 6,000, over 16 lists
    (hits,) = stored.open(nprobe=1).nearest("sentence", unit_vectors(1), 60, selection(some))
    assert len(hits) == 60


@pytest.mark.parametrize(
    ("step", "probed"),
    [
        (2, 4),  # 2 ** 0.6 times as many lists as without the scope
        (10, 0),  # 600 rows cost less than those that eight lists pass
    ],
)
def test_lists_are_probed_where_that_costs_less_than_the_rows_in_scope(
    tmp_path: Path, step: int, probed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "_GATHERING", 1)
    stored = stored_vectors(tmp_path, 2_000)
    stored.build("IVF16,Flat")
    asked: list[int] = []
    search = IvfIndex.search

    def watched(self: IvfIndex, queries, n: int, nprobe: int, rows):
        asked.append(nprobe)
        return search(self, queries, n, nprobe, rows)

    monkeypatch.setattr(IvfIndex, "search", watched)
    (query,) = unit_vectors(1, seed=2)
    chosen = stored.chunks[::step]
    (hits,) = stored.open(nprobe=2).nearest("sentence", query[None], 10, selection(chosen))
    assert asked == ([probed] if probed else [])
    if not probed:
        assert nearly_equal(hits, stored.expected("sentence", query, 10, chosen))


# Scopes of so many chunks that a server is asked about the nearest


@pytest.mark.parametrize("step", [2, 5])
def test_the_nearest_chunks_are_asked_about_until_enough_are_in_a_broad_scope(
    stored: StoredVectors, step: int
) -> None:
    calls: list[int] = []
    chosen = stored.chunks[::step]
    listed = selection(chosen, "broad", calls)
    broad = listed._replace(share=lambda: 1 / step)
    vectors = stored.open(nprobe=16)
    (query,) = unit_vectors(1, seed=6)
    (hits,) = vectors.nearest("sentence", query[None], 10, broad)
    assert nearly_equal(hits, stored.expected("sentence", query, 10, chosen))
    assert sum(calls) <= 4 * 10 * step
    asked = len(calls)
    assert vectors.nearest("sentence", query[None], 10, broad) == [hits]
    assert len(calls) == asked  # answers are kept
    (all_hits,) = vectors.nearest("sentence", query[None], 6_000, broad)
    assert len(all_hits) == 3 * len(chosen)


def test_a_broad_scope_of_chunks_that_are_all_far_is_listed_in_the_end(
    stored: StoredVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "MAX_LISTED_ORDINALS", 100)
    (query,) = unit_vectors(1, seed=6)
    nearest = stored.expected("sentence", query, 6_000)
    near = np.array([text.ordinal for text in nearest[:3_000]]) >> 11 << 11
    far = np.setdiff1d(stored.chunks, near)
    calls: list[int] = []
    broad = selection(far, "far", calls)._replace(share=lambda: 0.5)
    vectors = stored.open(nprobe=16)
    for _ in range(2):
        (hits,) = vectors.nearest("sentence", query[None], 10, broad)
        assert nearly_equal(hits, stored.expected("sentence", query, 10, far))
    assert calls[-1] == len(stored.chunks)
    assert len(calls) <= 4
