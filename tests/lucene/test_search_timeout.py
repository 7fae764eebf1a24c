"""A limit on the time of a search, in Lucene and on the command line."""

from dataclasses import replace
from pathlib import Path

import pytest

from arag_search.engines.base import Deadline, Granularity, SearchRequest, SortBy
from arag_search.engines.lucene.reader import LuceneEngine
from arag_search.errors import QueryTimeoutError
from arag_search.query.reading import parse
from arag_search.query.tree import Phrase, Term, any_of
from tests.support.commands import SAMPLE, Command
from tests.support.lucene_indexes import build, chunk
from tests.support.plans import written

QUICK = Term("quick")


LOOSE = Phrase("a b " * 95, slop=20)
"""A query that takes long in the slow passages, where it matches everywhere."""


ABSENT = Phrase("c" + " a b" * 94, slop=20)
"""A query that takes as long, and matches nowhere."""


@pytest.fixture(name="slow_passages", scope="module")
def index_of_slow_passages(tmp_path_factory: pytest.TempPathFactory) -> LuceneEngine:
    folder = tmp_path_factory.mktemp("slow")
    slow = [chunk(n, "a b " * 300 + "c", title="quick") for n in range(1, 600)]
    return build(folder, [chunk(0, "quick\n"), *slow])


@pytest.mark.long
def test_lucene_stops_between_documents(slow_passages: LuceneEngine) -> None:
    with pytest.raises(QueryTimeoutError):
        slow_passages.search(SearchRequest(written(LOOSE), deadline=Deadline(0.05)))
    for limited in (
        SearchRequest(written(LOOSE), per_document=1),
        SearchRequest(written(LOOSE), sort=SortBy("year")),
    ):
        with pytest.raises(QueryTimeoutError):
            slow_passages.search(replace(limited, deadline=Deadline(0.05)))
    with pytest.raises(QueryTimeoutError):
        slow_passages.counts([(written(ABSENT), "chunk")], None, Deadline(0.05))
    request = SearchRequest(written(any_of(QUICK, LOOSE)), deadline=Deadline(0.05))
    with pytest.raises(QueryTimeoutError):
        slow_passages.explain(request, [f"d{n}.1" for n in range(600)])


def test_lucene_answers_further_queries_after_one_was_stopped(slow_passages: LuceneEngine) -> None:
    granularities: tuple[Granularity, ...] = ("chunk", "sentence")
    for granularity in granularities:
        request = SearchRequest(written(LOOSE), granularity=granularity, deadline=Deadline(0.02))
        with pytest.raises(QueryTimeoutError):
            slow_passages.search(request)
        for deadline in (None, Deadline(60)):
            request = SearchRequest(written(QUICK), granularity=granularity, deadline=deadline)
            hits = slow_passages.search(request).hits
            assert [hit.id for hit in hits[:2]] == ["d0.1", "d1.1"]
    assert slow_passages.counts([(written(QUICK), "chunk")], None, Deadline(60)) == [600]


def test_lucene_finds_the_same_with_a_limit_and_without(tmp_path: Path) -> None:
    chunks = [chunk(n, f"a b quick w{n % 7} a\nb c a w{n % 5}\n" * (n % 9)) for n in range(3_000)]
    engine = build(tmp_path, chunks, segments=3)
    texts = (
        "a",
        "quick AND w3",
        '"a b"~3',
        "qui* NOT w2",
        '"w1 a b c"~5 OR "b quick w6"',
        "c^2 w1",
    )
    for text in texts:
        tree = parse(text).tree
        pages = [
            engine.search(SearchRequest(written(tree), top_k=50, deadline=deadline))
            for deadline in (None, Deadline(600))
        ]
        assert pages[0].hits == pages[1].hits
        assert pages[0].total == pages[1].total
        counts = [engine.counts([(written(tree), "chunk")], None, d) for d in (None, Deadline(600))]
        assert counts[0] == counts[1]
    engine.close()


def test_the_command_line_takes_a_limit(arag: Command, tmp_path: Path) -> None:
    folder = str(tmp_path / "index")
    assert arag("index", SAMPLE, "--to", folder).code == 0
    result = arag("search", folder, "opera", "--search-timeout-s", "1e-9")
    assert result.code == 2
    assert "The query took longer than 1e-09 s and was stopped." in result.err
    assert arag("search", folder, "opera", "--search-timeout-s", "0").code == 0
