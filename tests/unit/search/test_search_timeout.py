"""Time limits of searches: a query that takes too long is stopped and gives no result.

No test measures time: each query would run for minutes if it were not stopped.
"""

import pytest

from arag_search.engines.opensearch.faults import fault_of_answer, fault_of_reply
from arag_search.errors import ArgumentError, QueryTimeoutError
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from arag_search.tools.passages.keyword import KeywordSearch
from arag_search.tools.passages.logical import LogicalSearch
from arag_search.tools.preset import plain_preset
from tests.support.lucene_indexes import METADATA, chunk
from tests.support.oracle.engine import MemoryEngine


@pytest.mark.parametrize(
    ("kind", "reason", "is_timeout"),
    [
        ("time_exceeded_exception", "anything", True),
        ("query_phase_execution_exception", "Time exceeded", True),
        ("query_phase_execution_exception", "Result window is too large", False),
    ],
)
def test_every_form_of_a_timeout_from_opensearch_is_recognised(
    kind: str, reason: str, is_timeout: bool
) -> None:
    cause = {"type": kind, "reason": reason}
    error = {"type": "search_phase_execution_exception", "reason": "", "root_cause": [cause]}
    fault = fault_of_reply(500, {"error": {**error, "caused_by": cause}}, "http://h")
    assert (isinstance(fault.error, QueryTimeoutError), fault.retryable) == (is_timeout, False)
    shards = {"total": 1, "successful": 0, "failed": 1, "failures": [{"reason": cause}]}
    whole = {"total": 1, "successful": 1, "failed": 0}
    for answer in ({"_shards": shards}, {"_shards": whole, "timed_out": is_timeout}):
        fault = fault_of_answer("/i/_search", b"{}", answer, "http://h")
        assert isinstance(fault and fault.error, QueryTimeoutError) is is_timeout


# Messages


def in_memory(text: str, timeout_s: float | None = 1e-9) -> Index:
    engine = MemoryEngine([chunk(0, text)], metadata=METADATA)
    return Index(engine, "memory", search_timeout_s=timeout_s)


def test_a_person_gets_an_error_in_four_parts_and_a_model_one_with_advice() -> None:
    index = in_memory("a b c")
    with pytest.raises(QueryTimeoutError) as caught:
        index.logical_search('a "a b c"~7')
    assert str(caught.value) == (
        "The query took longer than 1e-09 s and was stopped.\nWhere: memory\n"
        "Allowed: 1e-09 s for a query (`search_timeout_s`)\n"
        "Do: Write fewer words, shorter phrases and longer prefixes, or join with AND a "
        "rare word."
    )
    result = LogicalSearch(index).run({"query": 'a "a b c"~7'})
    assert result.status == "error"
    assert result.text == (
        "The query took longer than 1e-09 s and was stopped. Write fewer words, shorter "
        "phrases and longer prefixes, or join with AND a rare word."
    )
    by_substring = KeywordSearch(index, plain_preset(matching="substring")).run({"keywords": ["a"]})
    assert by_substring.status == "error"
    assert "Use token matching" in by_substring.text
    assert in_memory("a b c", None).logical_search('a "a b c"~7').total == 1


def test_a_time_limit_must_be_positive_and_finite() -> None:
    for timeout_s in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ArgumentError, match="The time limit of a search"):
            open_index("nowhere", search_timeout_s=timeout_s)
