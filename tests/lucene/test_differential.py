"""Lucene and MemoryEngine, which share no code, must give the same answers to every request."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import note
from hypothesis import strategies as st

from arag_search.corpus import Chunk
from arag_search.engines.base import Granularity, SearchRequest, check_compact
from arag_search.engines.lucene import reader
from arag_search.engines.lucene.reader import LuceneEngine
from arag_search.engines.lucene.writer import LuceneWriter
from arag_search.plan.clauses import wanted_leaves
from arag_search.query.reading import parse
from arag_search.query.tree import Node
from tests.support import agreement
from tests.support.agreement import EXAMPLES, Pair
from tests.support.examples import examples
from tests.support.oracle.engine import LANGUAGE, MemoryEngine
from tests.support.plans import planned
from tests.support.strategies import METADATA, trees

CORPORA = examples(20)
SIZES = tuple((40, 6, 60, 1, 20)[number % 5] for number in range(CORPORA))


@pytest.fixture(name="pairs", scope="module")
def engine_pairs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Pair]]:
    """Index each corpus in both engines, in one to four segments."""
    pairs: list[Pair] = []
    for number, memory in enumerate(agreement.corpora_in_memory(SIZES)):
        folder = tmp_path_factory.mktemp("index")
        chunks = list(memory.scan(None))
        pairs.append((memory, in_lucene(folder, memory, chunks, 1 + (number + 2) % 4)))
    yield pairs
    for memory, lucene in pairs:
        memory.close()
        lucene.close()


def in_lucene(
    folder: Path, memory: MemoryEngine, chunks: list[Chunk], segments: int
) -> LuceneEngine:
    """Write the corpus of a MemoryEngine as a generation of several segments, and open it."""
    writer = LuceneWriter(
        folder, metadata=METADATA, language=LANGUAGE, sentences=True, resume=False
    )
    size = len(chunks) // segments + 1
    for start in range(0, len(chunks), size):
        if start:
            writer.commit({"update": "1"})  # A commit begins another segment.
        writer.add(chunks[start : start + size])
    writer.finish(replace(memory.manifest, engine="lucene"), {})
    engine = LuceneEngine.open(folder, str(folder))
    check_compact(engine.deletions(), str(folder))
    return engine


def test_lucene_finds_the_documents_with_names_that_memory_finds(pairs: list[Pair]) -> None:
    agreement.agree_on_names(pairs, EXAMPLES // 3)


def test_lucene_finds_the_passages_nearest_to_a_query_that_matches_nothing(
    pairs: list[Pair],
) -> None:
    agreement.agree_on_relaxing(pairs, EXAMPLES * 2 // 3)
    agreement.agree_on_relaxing([(memory, memory) for memory, _ in pairs], EXAMPLES // 3)


def test_each_of_two_groups_with_a_demote_lowers_its_own_score(pairs: list[Pair]) -> None:
    for query in (
        "(opera DEMOTE born)^2 AND (venice DEMOTE in)^3",
        "(opera DEMOTE born) AND (venice DEMOTE in)",
    ):
        request = SearchRequest(planned(parse(query).tree))
        for memory, lucene in pairs:
            agreement.assert_equal(lucene.search(request), memory.search(request))


@pytest.mark.parametrize(
    "agree",
    [
        agreement.agree_on_weights_of_groups,
        agreement.agree_on_pages,
        agreement.agree_on_conditions,
        agreement.agree_on_orders,
        agreement.agree_on_field_values,
        agreement.agree_on_keywords,
        agreement.agree_on_counts,
        agreement.agree_on_lists,
        agreement.agree_on_words,
        agreement.agree_on_explanations,
    ],
    ids=lambda agree: agree.__name__,
)
def test_lucene_answers_as_memory_does(pairs: list[Pair], agree: Callable[..., None]) -> None:
    agree(pairs)


def test_explanations_sum_up_to_the_scores(pairs: list[Pair]) -> None:
    @agreement.run_on_examples(EXAMPLES // 8, st.sampled_from(pairs), trees(), st.booleans())
    def check(pair: Pair, query: Node, by_sentence: bool) -> None:
        memory, _ = pair
        note(str(query))
        granularity: Granularity = "sentence" if by_sentence else "chunk"
        request = SearchRequest(planned(query), granularity=granularity, with_text=False)
        hits = memory.search(request).hits
        texts = [leaf.text for leaf in wanted_leaves(request.query.root) if leaf.is_text]
        explained = memory.explain(request, [hit.id for hit in hits])
        for hit, scores in zip(hits, explained, strict=True):
            assert [score.leaf for score in scores] == texts
            parts = sum(max(score.scores.values(), default=0.0) for score in scores)
            if "DEMOTE" in str(query):
                assert parts >= hit.score * (1 - 1e-5)
            else:
                assert parts == pytest.approx(hit.score, rel=1e-5)


def test_lucene_finds_chunks_by_ordinal_as_memory_does(
    pairs: list[Pair], monkeypatch: pytest.MonkeyPatch
) -> None:
    agreement.agree_on_ordinals(pairs)
    monkeypatch.setattr(reader, "_ORDINALS_BATCH", 7)
    agreement.agree_on_ordinals(pairs)


def test_lucene_reads_scans_and_knows_neighbours_as_memory_does(pairs: list[Pair]) -> None:
    agreement.agree_on_reading(pairs)
