"""Sorts and limits per document in a large index, where Lucene skips documents."""

import random
from pathlib import Path

import pytest

from arag_search.corpus import Chunk
from arag_search.engines.base import SearchRequest, SortBy
from arag_search.engines.lucene.reader import LuceneEngine
from arag_search.query.tree import Term
from tests.support.lucene_indexes import METADATA, build, chunk
from tests.support.oracle.engine import MemoryEngine
from tests.support.plans import written


@pytest.mark.parametrize("per_document", [None, 2])
def test_sorted_pages_are_those_of_memory_where_lucene_skips_documents(
    per_document: int | None, engines: tuple[MemoryEngine, LuceneEngine]
) -> None:
    memory, lucene = engines
    for field in METADATA:
        for descending in (False, True):
            for granularity in ("chunk", "sentence"):
                request = SearchRequest(
                    written(Term("quick")),
                    top_k=30,
                    granularity=granularity,
                    with_text=False,
                    sort=SortBy(field, descending),
                    per_document=per_document,
                )
                expected, page = memory.search(request), lucene.search(request)
                assert (page.hits, page.total) == (expected.hits, expected.total), request.sort


@pytest.fixture(name="engines", scope="module")
def big_engines(tmp_path_factory: pytest.TempPathFactory) -> tuple[MemoryEngine, LuceneEngine]:
    chance = random.Random(7)
    chunks: list[Chunk] = []
    for number in range(4_000):
        fields = {
            "lang": tuple(f"l{chance.randrange(3_000)}" for _ in range(chance.randrange(1, 3))),
            "year": tuple(chance.uniform(-9e5, 9e5) for _ in range(chance.randrange(1, 3))),
            "published": f"{chance.randrange(1, 9000):04}",
            "draft": chance.choice((True, False, (True, False))),
        }
        kept = {name: value for name, value in fields.items() if chance.random() < 0.9}
        text = "quick " * chance.randrange(1, 4) + "\nquick b"
        name = f"d{number // 5}"
        chunks.append(
            chunk(number // 5, text, doc_id=name, part=number % 5 + 1, parts=5, metadata=kept)
        )
    folder: Path = tmp_path_factory.mktemp("big")
    return MemoryEngine(chunks, metadata=METADATA), build(folder, chunks, segments=3)
