"""The note on queries that rank by very frequent words alone."""

import pytest

from arag_search.corpus import Chunk
from arag_search.engines.base import Granularity, Page, SearchRequest
from arag_search.search.index import Index
from arag_search.tools.base import ReadSet
from arag_search.tools.logical_search import LogicalSearch
from tests.support.lucene_indexes import METADATA, chunk
from tests.support.oracle.engine import MemoryEngine

NOTE = (
    "only very frequent words rank here, each in more than half of all passages: add a rarer one."
)
TEXTS = (
    "the opera of of Venice. ",
    "the end of a season. ",
    "the Seasons of Vivaldi. ",
    "Naples. ",
)
CHUNKS = [chunk(n, TEXTS[n % 4] * 2, metadata={"lang": "de"}) for n in range(52)]


@pytest.fixture(autouse=True)
def _without_spelling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the notes on spelling, whose requests are not those that are counted here."""
    monkeypatch.setattr("arag_search.search.advice.spelling._unseen", lambda *_: [])


class CountingEngine(MemoryEngine):
    """An engine that keeps its requests."""

    def __init__(self, chunks: list[Chunk]) -> None:
        super().__init__(chunks, metadata=METADATA)
        self.requests: list[SearchRequest] = []

    def search(self, request: SearchRequest) -> Page:
        self.requests.append(request)
        return super().search(request)


@pytest.mark.parametrize(
    ("query", "noted"),
    [
        ("the OF", True),
        ("the AND NOT Vivaldi", True),
        ("the^3 lang:de", True),
        ("content:the", True),
        ("title:the", False),
        ("the opera", False),
        ("the AND opera", False),
        ("opera NOT the", False),
        ("end", False),
        ('"the of"', False),
        ("the sea*", False),
        ("lang:de", False),
        ("the AND Vivaldi AND Naples", False),
    ],
)
def test_a_query_of_very_frequent_words_gets_a_note(query: str, noted: bool) -> None:
    result = Index(MemoryEngine(CHUNKS, metadata=METADATA), "").logical_search(query)
    assert (NOTE in result.notes) is noted


@pytest.mark.parametrize(("granularity", "noted"), [("chunk", True), ("sentence", False)])
def test_a_word_is_frequent_among_the_units_that_are_searched(
    granularity: Granularity, noted: bool
) -> None:
    engine = MemoryEngine([chunk(n, "the one.\ntwo.\nthree.\n") for n in range(50)])
    result = Index(engine, "").logical_search("the", granularity=granularity)
    assert ("only very frequent words" in " ".join(result.notes)) is noted


def test_a_small_index_has_no_very_frequent_words() -> None:
    assert Index(MemoryEngine(CHUNKS[:48]), "").logical_search("the").notes == ()


def test_within_a_scope_nothing_is_said_of_words_that_are_frequent_in_the_whole_index() -> None:
    index = Index(MemoryEngine(CHUNKS, metadata=METADATA), "")
    assert index.logical_search("the").notes == (NOTE,)
    assert index.within("doc_id:d0").logical_search("the").notes == ()


def test_words_are_counted_once_and_the_first_rare_word_ends_the_counting() -> None:
    engine = CountingEngine(CHUNKS)
    index = Index(engine, "")
    for query, counts in (
        ("the of a opera", 1),
        ("The of a Opera", 0),
        ("the OR of", 2),
        ("of the", 0),
        ("libretto of the", 0),
        ("nothing", 0),
    ):
        engine.requests.clear()
        index.logical_search(query)
        assert len(engine.requests) - 1 == counts, query
        assert all(request.scope is None for request in engine.requests)


def test_the_note_is_a_line_of_the_reply() -> None:
    index = Index(MemoryEngine(CHUNKS, metadata=METADATA), "")
    reply = LogicalSearch(index).run({"query": "the of"}, ReadSet())
    assert f"Note: {NOTE}" in reply.text.splitlines()
