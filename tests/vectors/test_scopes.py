"""Scopes over vectors: they mean the same as in engines, and results in them are exact."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arag_search.corpus import Chunk, chunk_ordinal
from arag_search.plan.clauses import ResolvedPlan
from arag_search.query.tree import (
    KeywordEquals,
    Node,
    Or,
    Range,
    Scope,
    Term,
)
from arag_search.vectors import exact as allowed
from arag_search.vectors.base import Selection, rows_of
from arag_search.vectors.faiss_index import IvfIndex
from arag_search.vectors.storage.columns import Columns, ColumnsWriter
from tests.support.examples import examples
from tests.support.oracle.documents import Documents
from tests.support.plans import scoped
from tests.support.strategies import METADATA, corpora, scopes
from tests.support.vector_shards import (
    PublishedVectors,
    chunks_of,
    nearly_equal,
    publish,
    unit_vectors,
)

ENGLISH = KeywordEquals("lang", "en")


def _columns(folder: Path, chunks: list[Chunk], size: int) -> Columns:
    writer = ColumnsWriter(folder, METADATA)
    for start in range(0, len(chunks), size):
        writer.add_segment((chunk.doc_id, chunk.metadata) for chunk in chunks[start : start + size])
    writer.close()
    return Columns(folder, METADATA, len(chunks))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("columns")


@settings(max_examples=examples(60))
@given(
    chunks=corpora(30),
    tested_scopes=st.lists(scopes(), min_size=1, max_size=8),
    size=st.sampled_from((3, 50)),
)
def test_a_scope_means_the_same_to_columns_as_to_engines(
    folder: Path, chunks: list[Chunk], tested_scopes: list[Scope], size: int
) -> None:
    columns = _columns(folder, chunks, size)
    engine = Documents(chunks, [chunk.content for chunk in chunks], {}, METADATA)
    for scope in map(scoped, tested_scopes):
        rows = set(np.flatnonzero(columns.within(scope)).tolist())
        assert rows == engine.within(scope), str(scope)


# Searches


@pytest.fixture(scope="module", params=["flat", "IVF16,Flat"])
def published(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> PublishedVectors:
    return publish(
        tmp_path_factory.mktemp("scopes"), chunks_of(2_000), size=700, index=request.param
    )


def _in_scope(published: PublishedVectors, chunks: list[Chunk]) -> np.ndarray:
    ids = {chunk.id for chunk in chunks}
    return np.array(
        [chunk.id in ids for chunk in published.chunks for _ in rows_of(chunk, "sentence")]
    )


@pytest.mark.parametrize("few_rows", [50_000, 1_000, 10])
@pytest.mark.parametrize("queries", [1, 9])
@pytest.mark.parametrize(
    ("scope", "holds"),
    [
        (scoped(Scope((ENGLISH,))), lambda at: at % 2 == 1),
        (scoped(Scope((), (ENGLISH,))), lambda at: at % 2 == 0),
        (scoped(Scope((Range("year", "number", "1901", "1901"),))), lambda at: at % 100 == 1),
        (
            scoped(Scope((Or(tuple(KeywordEquals("doc_id", f"d{at}") for at in range(3, 10))),))),
            lambda at: 3 <= at < 10,
        ),
    ],
    ids=["half", "the other half", "one in a hundred", "21 sentences"],
)
def test_results_in_a_scope_are_exact(
    published: PublishedVectors, scope: Scope, holds, queries: int, few_rows: int, monkeypatch
) -> None:
    monkeypatch.setattr(allowed, "FEW_ROWS", few_rows)
    sidecar = published.open()
    inside = _in_scope(published, [chunk for at, chunk in enumerate(published.chunks) if holds(at)])
    query_vectors = unit_vectors(queries, seed=3)
    nprobe = None if published.vector_manifest.index["sentence"] == "flat" else 16
    results = sidecar.nearest("sentence", query_vectors, 30, scope, nprobe=nprobe)
    for query, hits in zip(query_vectors, results, strict=True):
        assert nearly_equal(hits, published.expected("sentence", query, 30, inside))
    sidecar.close()


@pytest.mark.parametrize("few_rows", [50_000, 10])
@pytest.mark.parametrize("step", [1, 2, 1_000])
def test_results_among_the_chunks_that_an_engine_selected_are_exact(
    published: PublishedVectors, step: int, few_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allowed, "FEW_ROWS", few_rows)
    selected = published.chunks[::step]
    ordinals = [chunk.ordinal for chunk in selected]
    inside = _in_scope(published, selected)
    query_vectors = unit_vectors(2, seed=5)
    sidecar = published.open()
    nprobe = None if published.vector_manifest.index["sentence"] == "flat" else 16
    opera, rose = scoped(Scope((Term("opera"),))), scoped(Scope((Term("rose"),)))
    chosen = Selection(opera, lambda known: np.isin(known, ordinals))
    results = sidecar.nearest("sentence", query_vectors, 30, chosen, nprobe=nprobe)
    for query, hits in zip(query_vectors, results, strict=True):
        assert nearly_equal(hits, published.expected("sentence", query, 30, inside))
    nothing = Selection(rose, lambda known: np.zeros(len(known), np.bool_))
    assert sidecar.nearest("sentence", query_vectors, 30, nothing) == [[], []]
    assert sidecar.nearest("sentence", query_vectors, 30, chosen, nprobe=nprobe) == results


def test_an_engine_evaluates_a_condition_once_for_a_sidecar_and_each_scope(
    published: PublishedVectors,
) -> None:
    calls: list[int] = []

    def selection(*clauses: Node) -> Selection:
        def mark(known: np.ndarray) -> np.ndarray:
            calls.append(len(known))
            return np.ones(len(known), np.bool_)

        return Selection(scoped(Scope(clauses)), mark)

    sidecar = published.open()
    for _ in range(2):
        for clauses in ((Term("opera"),), (Term("opera"), ENGLISH)):
            sidecar.nearest("sentence", unit_vectors(1), 1, selection(*clauses))
    assert calls == [len(published.chunks)] * 2


def test_a_selector_does_not_reset_the_number_of_lists_to_search(
    published: PublishedVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allowed, "FEW_ROWS", 10)
    sidecar = published.open()
    query = unit_vectors(1, seed=4)
    inside = _in_scope(
        published, [chunk for chunk in published.chunks if chunk.metadata["lang"] == "en"]
    )
    expected = published.expected("sentence", query[0], 10, inside)
    assert nearly_equal(
        sidecar.nearest("sentence", query, 10, scoped(Scope((ENGLISH,))))[0], expected
    )


def test_lists_are_added_until_enough_rows_in_scope_are_found(
    published: PublishedVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allowed, "FEW_ROWS", 10)
    scope = scoped(
        Scope((Range("year", "number", "1901", "1901"),))
    )  # 60 sentences of 6,000, over 16 lists
    (hits,) = published.open().nearest("sentence", unit_vectors(1), 60, scope, nprobe=1)
    assert len(hits) == 60


@pytest.mark.parametrize(
    ("index", "share", "probed"),
    [
        ("IVF16,Flat", 0.5, 4),  # twice as many lists as without the scope
        ("IVF16,Flat", 0.1, 0),  # 600 rows are fewer than the 750 of two lists
        ("IVF16,Flat", 0.2, 0),  # 1,200 rows cost less than 750 in ten lists, and passing 3,000
        ("IVF16,SQ8", 0.5, 0),  # codes are no vectors: few rows are exact
    ],
)
def test_lists_are_probed_where_that_costs_less_than_the_rows_in_scope(
    tmp_path: Path, index: str, share: float, probed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    published = publish(tmp_path, chunks_of(2_000), index=index)
    chosen = published.chunks[:: round(1 / share)]
    ordinals = [chunk.ordinal for chunk in chosen]
    within = Selection(scoped(Scope((Term("opera"),))), lambda known: np.isin(known, ordinals))
    asked: list[int] = []
    search = IvfIndex.search

    def watched(self: IvfIndex, queries, n: int, nprobe: int, rows):
        asked.append(nprobe)
        return search(self, queries, n, nprobe, rows)

    monkeypatch.setattr(IvfIndex, "search", watched)
    (query,) = unit_vectors(1, seed=2)
    (hits,) = published.open().nearest("sentence", query[None], 10, within, nprobe=2)
    assert asked == ([probed] if probed else [])
    exact = published.expected("sentence", query, 10, _in_scope(published, chosen))
    if probed:
        assert {chunk_ordinal(hit.ordinal) for hit in hits} <= set(ordinals)
    else:
        assert nearly_equal(hits, exact)


def test_a_scope_that_admits_nothing_finds_nothing(published: PublishedVectors) -> None:
    nothing = scoped(Scope((KeywordEquals("lang", "fr"),)))
    assert published.open().nearest("sentence", unit_vectors(2), 5, nothing) == [[], []]
    everything = published.open().nearest("sentence", unit_vectors(2), 5, None)
    assert everything == published.open().nearest("sentence", unit_vectors(2), 5)


def test_the_most_recent_scopes_are_cached(
    published: PublishedVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluated: list[ResolvedPlan | None] = []
    within = Columns.within

    def counted(self: Columns, scope: ResolvedPlan | None) -> np.ndarray:
        evaluated.append(scope)
        return within(self, scope)

    monkeypatch.setattr(Columns, "within", counted)
    sidecar = published.open()
    scopes_in_use = [scoped(Scope((KeywordEquals("doc_id", f"d{at}"),))) for at in range(9)]
    for _ in range(3):
        for scope in scopes_in_use[:8]:
            sidecar.nearest("sentence", unit_vectors(1), 1, scope)
    assert evaluated == scopes_in_use[:8]
    sidecar.nearest("sentence", unit_vectors(1), 1, scopes_in_use[8])
    sidecar.nearest("sentence", unit_vectors(1), 1, scopes_in_use[0])
    assert evaluated == [*scopes_in_use, scopes_in_use[0]]
