"""References to earlier searches: #3 stands for the query of the third search of a conversation."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arag_search.agent.state import State
from arag_search.query.earlier import EarlierSearch, with_earlier
from arag_search.query.fields import ANY_SCHEMA
from arag_search.query.parser import parse
from arag_search.query.problems import QueryError
from arag_search.query.tree import Node, Not, all_of, condition_of, scores
from arag_search.tools.base import ReadSet
from arag_search.tools.logical_search import LogicalSearch
from arag_search.tools.references import Searches
from tests.support.examples import examples
from tests.support.passages import VIVALDI, index_of
from tests.support.strategies import SCHEMA, trees

EARLIER = {
    1: EarlierSearch("vivaldi", "chunk", ""),
    2: EarlierSearch("(opera AND NOT venice)", "chunk", ""),
    3: EarlierSearch("(opera^2 PREFER venice)", "chunk", ""),
    4: EarlierSearch("opera", "sentence", ""),
}


def expanded(query: str) -> str:
    return with_earlier(query, EARLIER, "chunk", "", ANY_SCHEMA).text


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("#1", "vivaldi"),
        ("#2 AND libretto", "(opera AND NOT venice) AND libretto"),
        ("libretto OR (#1 AND a)", "libretto OR (vivaldi AND a)"),
        ("a NOT #2", "a NOT (opera AND NOT venice)"),
        ("a -#3", "a -opera"),
        ("a DEMOTE #3", "a DEMOTE opera"),
        ("a PREFER #3", "a PREFER (opera^2 PREFER venice)"),
        ("#2^3 OR a", "((opera AND NOT venice))^3 OR a"),
    ],
)
def test_a_reference_is_read_as_the_query_that_it_names(query: str, meant: str) -> None:
    assert expanded(query) == meant


@pytest.mark.parametrize(
    "query",
    ["bug #1", "#1 libretto", "#1234", "#9 AND a", r"\#1", '"#1"', "title:#1", "C#1", "a#1"],
)
def test_a_number_elsewhere_is_a_word(query: str) -> None:
    assert expanded(query) == query


def test_what_looks_like_a_reference_and_is_none_is_noted() -> None:
    notes = with_earlier("bug #1 #9", EARLIER, "chunk", "", ANY_SCHEMA).notes
    assert notes == [
        '"#1" was searched as a word. As an earlier search it stands alone or beside an operator.',
        '"#9" was searched as a word: the last search was #4.',
    ]


def test_a_search_of_another_granularity_is_refused() -> None:
    with pytest.raises(QueryError, match='search of granularity "sentence"'):
        expanded("#4 AND a")


@pytest.mark.parametrize("query", ["#2 AND #1^2 AND a~x", "a -#2 AND b~x", "a~x OR #1"])
def test_a_problem_has_its_column_in_the_query_as_it_was_written(query: str) -> None:
    index = index_of(*VIVALDI)
    with pytest.raises(QueryError) as refusal:
        index.logical_search(query, earlier=EARLIER)
    for problem in refusal.value.problems:
        assert query[problem.column - 1 :].startswith(problem.piece)


@settings(max_examples=examples(400))
@given(trees(), trees(), st.booleans())
def test_references_to_any_query_have_its_set_and_score(
    first: Node, second: Node, excludes: bool
) -> None:
    earlier = {
        number: EarlierSearch(str(tree), "chunk", "") for number, tree in ((1, first), (2, second))
    }
    query = "#1 AND NOT #2" if excludes else "#1 AND #2"
    text = with_earlier(query, earlier, "chunk", "", SCHEMA).text
    condition = condition_of(second)
    plain = condition if not scores(condition) else replace(condition, weight=1.0)
    meant = all_of(first, Not(plain) if excludes else second)
    assert parse(text, SCHEMA, limits=False).tree == meant


@pytest.fixture(name="tool")
def search_tool() -> LogicalSearch:
    return LogicalSearch(index_of(*VIVALDI))


def test_replies_of_a_conversation_are_numbered_and_later_queries_refer_to_them(
    tool: LogicalSearch,
) -> None:
    seen = ReadSet(searches=Searches())
    first = tool.run({"query": "opera"}, seen)
    assert first.text.startswith("#1: ")
    refused = tool.run({"query": "("}, seen)
    assert refused.status == "error"
    both = tool.run({"query": "#1 AND vivaldi"}, seen)
    assert both.text.startswith("#2: ")
    assert "(opera AND vivaldi)" in both.text.split("\n")[0]
    same = tool.run({"query": "opera AND vivaldi"}, ReadSet())
    assert both.ids == same.ids
    nothing = tool.run({"query": "#2 AND zzzz"}, seen)
    assert nothing.text.startswith("No passage matches")
    assert nothing.text.splitlines()[0].endswith("(opera AND vivaldi AND zzzz).")
    again = tool.run({"query": "#1", "offset": 1}, seen)
    assert again.ids == first.ids[1:]


def test_a_call_without_a_conversation_has_no_numbers(tool: LogicalSearch) -> None:
    assert not tool.run({"query": "opera"}).text.startswith("#")
    assert "was searched as a word" not in tool.run({"query": "#1 AND opera"}).text


def test_presets_that_reproduce_a_paper_have_no_numbers(tool: LogicalSearch) -> None:
    paper = LogicalSearch(tool.index, reproduces="LogicalRAG")
    seen = ReadSet(searches=Searches())
    assert not paper.run({"query": "opera"}, seen).text.startswith("#")


def test_the_query_that_is_referred_to_counts_in_full_against_the_limits(
    tool: LogicalSearch,
) -> None:
    seen = ReadSet(searches=Searches())
    words = " OR ".join(["opera", *(f"word{number}" for number in range(39))])
    tool.run({"query": words}, seen)
    reply = tool.run({"query": "#1 OR (#1 AND opera)"}, seen)
    assert reply.status == "error"
    assert "81 words, phrases and clauses; at most 64" in reply.text


def test_a_query_of_another_state_of_the_index_says_so(tool: LogicalSearch) -> None:
    seen = ReadSet(searches=Searches({1: EarlierSearch("opera", "chunk", "another")}))
    reply = tool.run({"query": "#1"}, seen)
    assert "Note: #1 was searched anew: the index has changed since." in reply.text


def test_numbers_survive_in_the_state_of_a_conversation(tool: LogicalSearch) -> None:
    state = State("q", "question")
    tool.run({"query": "opera"}, state.read_set)
    restored = State.from_json(state.to_json())
    assert tool.run({"query": "#1 AND vivaldi"}, restored.read_set).text.startswith("#2: ")
