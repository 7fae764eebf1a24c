"""Overlap and recovery, on trajectories worked by hand."""

from __future__ import annotations

import pytest

from arag_search.evaluation.trajectories import Overlap, Recovery, ToolUse, asked_for, trajectories
from tests.support.records import read, record, search


def test_consecutive_searches_share_passages_with_or_without_reads_between_them() -> None:
    trajectory = record(
        "q", "x",
        search("a", "b", "c", "d"),
        read("a"),
        search("c", "d", "e", tool_input={"top_k": 4}),
        search("e", tool_input={"max_results": 2}, tool="hybrid_search"),
    )  # fmt: skip
    summary = trajectories([trajectory])
    # {c, d} of {a, b, c, d} and {c, d, e}; {e} of {c, d, e} and {e}
    assert summary.overlap == Overlap(
        pairs=2,
        empty_pairs=0,
        of_larger=pytest.approx((2 / 4 + 1 / 3) / 2),
        jaccard=pytest.approx((2 / 5 + 1 / 3) / 2),
        of_asked=pytest.approx((2 / 4 + 1 / 2) / 2),
    )
    assert (summary.records, summary.searches) == (1, 3)


def test_pairs_of_empty_results_are_counted_separately_and_one_empty_result_shares_nothing() -> (
    None
):
    overlap = trajectories([record("q", "x", search(), search(), search("a"), search())]).overlap
    assert overlap == Overlap(2, 1, 0.0, 0.0, 0.0)


def test_pairs_do_not_cross_questions() -> None:
    first, second = record("q", "x", search("a")), record("r", "x", search("a"))
    assert trajectories([first, second]).overlap == Overlap(0, 0, None, None, None)


def test_no_records_have_no_means() -> None:
    summary = trajectories([])
    assert summary.overlap == Overlap(0, 0, None, None, None)
    assert summary.recovery == Recovery(0, 0, 0, 0, 0, None, 0)
    assert summary.tools == {}


def test_recovery_counts_from_each_failed_search_to_the_next_one_with_hits() -> None:
    trajectory = record(
        "q", "x",
        search(tokens=0),
        search(status="error", tokens=5),
        search("a"),
        read("a"),
        search(tokens=0),
        search("a"),
        search(tokens=0),
    )  # fmt: skip
    # The waits are 2 and 1, then 1, then none.
    assert trajectories([trajectory]).recovery == Recovery(
        failed=4, refused=1, at_once=2, later=1, never=1, searches=pytest.approx(4 / 3), tokens=45
    )


def test_a_call_of_an_unknown_tool_is_no_search() -> None:
    summary = trajectories([record("q", "x", search(tool="browse", status="error"), search("a"))])
    assert (summary.searches, summary.recovery.failed) == (1, 0)


@pytest.mark.parametrize(
    ("arguments", "size"),
    [({}, 5), ({"top_k": 7}, 7), ({"max_results": 3}, 3), ({"top_k": "9"}, 5), ({"top_k": 0}, 5)],
)
def test_a_search_asks_for_5_passages_by_default(arguments: dict[str, object], size: int) -> None:
    assert asked_for(search("a", tool_input=arguments)) == size


def test_arguments_beside_the_query_are_counted_for_each_tool_where_the_call_was_not_refused() -> (
    None
):
    both = {"query": "c", "filter": "d", "where": "e"}
    summary = trajectories(
        [
            record("q", "x", search("a", tool_input={"query": "a", "top_k": 4})),
            record(
                "r", "x",
                search(tool_input={"query": "b", "top_k": 2, "sort": "year:asc"}),
                search(tool_input={"query": "b", "<b>": 1}, status="error"),
                read("a"),
                search(tool="hybrid_search", tool_input=both),
                search(tool="semantic_search", tool_input={"query": "f"}),
            ),
        ]
    )  # fmt: skip
    assert summary.tools == {
        "hybrid_search": ToolUse(1, {"filter": 1, "where": 1}),
        "logical_search": ToolUse(2, {"top_k": 2, "sort": 1}),
        "semantic_search": ToolUse(1, {}),
    }
