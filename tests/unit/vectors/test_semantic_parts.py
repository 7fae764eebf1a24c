"""The parts of a search by vectors: exact neighbours, passages of sentences, rank fusion."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from arag_search.query.filters import parse_filter
from arag_search.search.finding.by_vectors import Fused, fuse
from arag_search.search.reading.snippets import NearPassage, NearPassages, near_passages
from arag_search.vectors.base import FloatArray, Selection, VectorUnit, row_key, rows_of
from arag_search.vectors.encoders.hashing import HashingEncoder
from tests.support.oracle.vectors import MemoryVectors
from tests.support.passages import SCHEMA, chunk
from tests.support.plans import scoped
from tests.support.semantic_indexes import TableEncoder, random_corpus

# Rank fusion


def test_equal_fused_scores_come_in_order_of_ordinal() -> None:
    assert [hit.ordinal for hit in fuse([5, 3], [3, 5])] == [3, 5]
    assert [hit.ordinal for hit in fuse([9], [4])] == [4, 9]
    first, second = fuse([1, 2, 3], [3, 2, 1])[:2]
    assert (first.ordinal, second.ordinal, first.score) == (1, 3, second.score)


def test_fusing_empty_rankings_gives_no_hits() -> None:
    assert fuse([], []) == []
    assert fuse([], [4]) == [Fused(4, 1 / 61, (None, 1))]


# Passages (Eq. 3)


def near(
    vectors: MemoryVectors,
    unit: VectorUnit,
    query: FloatArray,
    n: int,
    within: Selection | None = None,
) -> NearPassages:
    return near_passages(
        lambda count: vectors.nearest(unit, query[None], count, within)[0], unit, n
    )


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("scope", [None, "year:>=10", "year:3"])
def test_passages_score_as_their_best_sentence_by_brute_force(seed: int, scope: str | None) -> None:
    chunks = random_corpus(Random(seed), 40)
    encoder = HashingEncoder(16)
    vectors = MemoryVectors(chunks, encoder)
    query = encoder.encode_queries(["vivaldi born in venice"])[0]
    allowed = [
        passage
        for passage in chunks
        if scope is None or passage.metadata["year"] in (range(10, 40) if ">" in scope else (3,))
    ]
    ordinals = np.array([passage.ordinal for passage in allowed])
    within = None
    if scope is not None:
        plan = scoped(parse_filter(scope, SCHEMA))
        within = Selection(plan, lambda asked: np.isin(asked, ordinals))
    best: dict[int, float] = {}
    for passage in allowed:
        texts = [text for _, text in rows_of(passage, "sentence")]
        if texts:
            cosines = encoder.encode(texts).astype(float) @ query.astype(float)
            best[passage.ordinal] = float(np.float32(cosines.max()))
    expected = sorted(best.items(), key=lambda item: (-item[1], item[0]))
    for n in (1, 2, 5, len(best), len(best) + 1, 500):
        hits, complete = near(vectors, "sentence", query, n, within)
        assert [(hit.ordinal, hit.score) for hit in hits] == expected[:n]
        assert not (complete and n < len(best))
        assert complete or n <= len(best)


def test_enough_sentences_are_fetched_for_the_wanted_number_of_passages() -> None:
    first = chunk(0, "long", "", *(f"near {number}. " for number in range(200)))
    others = [chunk(number, f"d{number}", "", "far. ") for number in range(1, 4)]
    table = {f"near {number}.": (1.0, number / 1000, 0.0) for number in range(200)}
    encoder = TableEncoder({**table, "q": (1.0, 0.0, 0.0)})
    vectors = MemoryVectors([first, *others], encoder)
    hits, complete = near(vectors, "sentence", encoder.encode_queries(["q"])[0], 3)
    assert [hit.ordinal for hit in hits] == [passage.ordinal for passage in (first, *others[:2])]
    assert hits[0].sentences == tuple(range(200))  # they all rank before the second passage
    assert not complete
    assert near(vectors, "sentence", encoder.encode_queries(["q"])[0], 1).passages == [
        NearPassage(
            first.ordinal,
            1.0,
            tuple(range(16)),
            tuple(row_key(f"near {number}.") for number in range(16)),
        )
    ]


def test_the_matching_sentences_of_a_passage_are_in_text_order() -> None:
    passage = chunk(0, "a", "", "third. ", "first. ", "far. ", "second. ", "... ")
    encoder = TableEncoder(
        {"first.": (1, 0.1, 0), "second.": (1, 0.2, 0), "third.": (1, 0.3, 0), "q": (1, 0, 0)}
    )
    vectors = MemoryVectors([passage], encoder)
    hits, complete = near(vectors, "sentence", encoder.encode_queries(["q"])[0], 5)
    assert (hits[0].sentences, complete) == ((0, 1, 2, 3), True)


def test_passage_vectors_give_one_row_per_passage() -> None:
    chunks = random_corpus(Random(5), 20)
    encoder = HashingEncoder(16)
    vectors = MemoryVectors(chunks, encoder)
    query = encoder.encode_queries(["griselda"])
    rows = vectors.nearest("passage", query, 7)[0]
    hits, complete = near(vectors, "passage", query[0], 7)
    assert hits == [NearPassage(row.ordinal, row.score, (), (row.key,)) for row in rows]
    assert not complete
