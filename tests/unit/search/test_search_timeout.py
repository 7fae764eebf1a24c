"""A query whose execution takes too long is stopped, on every engine, and gives nothing.

No test measures time: each query would run for minutes if it were not stopped.
"""

from pathlib import Path

import pytest

from arag_search.engines.base import Granularity, KeywordRequest, SearchRequest
from arag_search.engines.deadline import Deadline
from arag_search.engines.lucene.reader import LuceneEngine
from arag_search.engines.memory.engine import MemoryEngine
from arag_search.engines.opensearch.faults import fault_of_answer, fault_of_reply
from arag_search.errors import ArgumentError, QueryTimeoutError
from arag_search.query.parser import parse
from arag_search.query.tree import Node, Phrase, Term, any_of
from arag_search.search.index import Index, open_index
from arag_search.search.narrowing import narrowing
from arag_search.tools.keyword_search import KeywordSearch
from arag_search.tools.logical_search import LogicalSearch
from tests.support.commands import SAMPLE, Command
from tests.support.lucene_indexes import METADATA, build, chunk
from tests.support.opensearch_server import Server

QUICK = Term("quick")
ENDLESS = "a b " * 2_000_000 + "c"
LOOSE = Phrase("a b " * 95, slop=20)
"""Takes minutes in the endless passage, where it is found everywhere."""
ABSENT = Phrase("c" + " a b" * 94, slop=20)
"""The same, where it is found nowhere."""


@pytest.fixture(name="long_passage", scope="module")
def index_of_a_long_passage(tmp_path_factory: pytest.TempPathFactory) -> LuceneEngine:
    folder = tmp_path_factory.mktemp("long")
    return build(folder, [chunk(0, "quick\n"), chunk(1, ENDLESS, title="quick")])


@pytest.mark.engine
def test_lucene_stops_within_a_single_document(long_passage: LuceneEngine) -> None:
    with pytest.raises(QueryTimeoutError):
        long_passage.search(SearchRequest(LOOSE, deadline=Deadline(0.05)))
    with pytest.raises(QueryTimeoutError):
        long_passage.counts([(ABSENT, "chunk")], None, Deadline(0.05))
    request = SearchRequest(any_of(QUICK, LOOSE), deadline=Deadline(0.05))
    with pytest.raises(QueryTimeoutError):
        long_passage.explain(request, ["d1.1"])


@pytest.mark.engine
def test_lucene_searches_on_after_a_query_was_stopped(long_passage: LuceneEngine) -> None:
    granularities: tuple[Granularity, ...] = ("chunk", "sentence")
    for granularity in granularities:
        request = SearchRequest(LOOSE, granularity=granularity, deadline=Deadline(0.02))
        with pytest.raises(QueryTimeoutError):
            long_passage.search(request)
        for deadline in (None, Deadline(60)):
            request = SearchRequest(QUICK, granularity=granularity, deadline=deadline)
            assert [hit.id for hit in long_passage.search(request).hits] == ["d0.1", "d1.1"]
    assert long_passage.counts([(QUICK, "chunk")], None, Deadline(60)) == [2]


@pytest.mark.engine
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
            engine.search(SearchRequest(tree, top_k=50, deadline=deadline))
            for deadline in (None, Deadline(600))
        ]
        assert pages[0].hits == pages[1].hits
        assert pages[0].total == pages[1].total
        counts = [engine.counts([(tree, "chunk")], None, d) for d in (None, Deadline(600))]
        assert counts[0] == counts[1]
    engine.close()


def test_memory_stops_between_documents() -> None:
    engine = MemoryEngine([chunk(n, "a b " * 50) for n in range(2_000)], metadata=METADATA)
    past = Deadline(1e-9)
    for act in (
        lambda: engine.search(SearchRequest(Phrase("a b"), deadline=past)),
        lambda: engine.search(SearchRequest(Term("a"), granularity="sentence", deadline=past)),
        lambda: engine.counts([(Term("a"), "chunk")], None, past),
        lambda: engine.explain(SearchRequest(Term("a"), deadline=past), ["d0.1"]),
        lambda: engine.keyword_search(KeywordRequest(("a",), deadline=past)),
        lambda: engine.keyword_search(KeywordRequest(("a",), matching="substring", deadline=past)),
    ):
        with pytest.raises(QueryTimeoutError):
            act()


@pytest.mark.opensearch
def test_opensearch_treats_a_query_out_of_time_as_an_error(opensearch_url: str) -> None:
    chunks = [chunk(n, "a w1 w2 w3 b a c b a b c " * 40) for n in range(6_000)]
    memory = MemoryEngine(chunks[:0], metadata=METADATA)
    server = Server(opensearch_url)
    engine = server.publish("slow", chunks, memory.manifest)
    try:
        heavy: Node = any_of(*(Phrase(f"c a b a b c w{n} a b " * 5, slop=20) for n in (1, 2, 3)))
        granularities: tuple[Granularity, ...] = ("chunk", "sentence")
        for granularity in granularities:
            request = SearchRequest(heavy, granularity=granularity, deadline=Deadline(0.001))
            with pytest.raises(QueryTimeoutError):
                engine.search(request)
        quick = SearchRequest(Term("w1"), deadline=Deadline(30))
        assert engine.search(quick).total == 6_000
    finally:
        engine.close()
        server.clean()


@pytest.mark.parametrize(
    ("kind", "reason", "is_timeout"),
    [
        ("time_exceeded_exception", "anything", True),
        ("query_phase_execution_exception", "Time exceeded", True),
        ("query_phase_execution_exception", "Result window is too large", False),
    ],
)
def test_the_ways_in_which_opensearch_says_that_time_was_up_are_known(
    kind: str, reason: str, is_timeout: bool
) -> None:
    cause = {"type": kind, "reason": reason}
    error = {"type": "search_phase_execution_exception", "reason": "", "root_cause": [cause]}
    fault = fault_of_reply(500, {"error": {**error, "caused_by": cause}}, "http://h")
    assert (isinstance(fault.error, QueryTimeoutError), fault.retryable) == (is_timeout, False)
    shards = {"total": 1, "successful": 0, "failed": 1, "failures": [{"reason": cause}]}
    for answer in ({"_shards": shards}, {"_shards": {}, "timed_out": is_timeout}):
        found = fault_of_answer(answer, "http://h")
        assert isinstance(found and found.error, QueryTimeoutError) is is_timeout


# What is said


def in_memory(text: str, timeout_s: float | None = 1e-9) -> Index:
    engine = MemoryEngine([chunk(0, text)], metadata=METADATA)
    return Index(engine, "memory", search_timeout_s=timeout_s)


def test_a_person_gets_an_error_of_four_parts_and_a_model_one_that_says_what_to_narrow() -> None:
    index = in_memory("a b c")
    with pytest.raises(QueryTimeoutError) as caught:
        index.logical_search('a "a b c"~7')
    assert str(caught.value) == (
        "The query took longer than 1e-09 s and was stopped.\nWhere: memory\n"
        "Allowed: 1e-09 s for a query (search_timeout_s, --search-timeout-s)\n"
        'Do: Shorten the loose phrase "a b c"~7, lower its ~, or write its rare words with AND.'
    )
    result = LogicalSearch(index).run({"query": 'a "a b c"~7'})
    assert result.status == "error"
    assert result.text == (
        "The query took longer than 1e-09 s and was stopped. Shorten the loose phrase "
        '"a b c"~7, lower its ~, or write its rare words with AND.'
    )
    by_substring = KeywordSearch(index, matching="substring").run({"keywords": ["a"]})
    assert by_substring.status == "error"
    assert "Use token matching" in by_substring.text
    assert in_memory("a b c", None).logical_search('a "a b c"~7').total == 1


@pytest.mark.parametrize(
    ("query", "advice"),
    [
        ('"a b" "a b c"~2 vi*', 'Shorten the loose phrase "a b"~2'.replace("a b", "a b c")),
        ('"a b c d e f" abc*', 'Shorten the phrase "a b c d e f"'),
        ("abcd* abc* x", "Write a longer prefix than abc*"),
        ("the of", "Write fewer clauses"),
    ],
)
def test_the_advice_names_the_costliest_clause(query: str, advice: str) -> None:
    assert narrowing(parse(query.replace(" vi*", "")).tree).startswith(advice)


def test_a_limit_of_nothing_is_refused() -> None:
    for timeout_s in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ArgumentError, match="The time limit of a search"):
            open_index("nowhere", search_timeout_s=timeout_s)


@pytest.mark.engine
def test_the_command_line_takes_a_limit_and_goes_on_with_the_other_queries(
    arag: Command, tmp_path: Path
) -> None:
    folder = str(tmp_path / "index")
    assert arag("index", SAMPLE, "--to", folder).code == 0
    done = arag("search", folder, "opera", "--search-timeout-s", "1e-9")
    assert done.code == 1
    assert "The query took longer than 1e-09 s and was stopped." in done.err
    assert arag("search", folder, "opera", "--search-timeout-s", "0").code == 0
    queries = tmp_path / "q.txt"
    queries.write_text("opera\nvenice\n")
    done = arag("search", folder, "--queries", str(queries), "--search-timeout-s", "1e-9")
    assert done.code == 1
    assert len(done.out.splitlines()) == 2
    assert '"total":null' in done.out
    assert "2 queries of 2 took too long." in done.err
