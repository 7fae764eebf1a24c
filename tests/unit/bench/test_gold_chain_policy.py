"""The policy of the gold-chain agent, step by step, with replies written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

import pytest

from arag_search.questions.question import Question
from bench.ablation.suite import Interface
from bench.gold_chain.chain import Chain, Link
from bench.gold_chain.experiment import row_of
from bench.gold_chain.policy import HOP_TOKENS, ORDERS, Call, HopOutcome, Reply, Shown, walk
from bench.gold_chain.queries import arguments_of, tool_of, wordings

FILM = Link("Blue Door", "director", {"film": ("Its director is Ann Lee.",)})
PERSON = Link("Ann Lee", "place of birth", {"person": ("She was born in Oslo.",)})
CHAIN = (FILM, PERSON)

Q1, Q2, Q3 = '"Blue Door" AND (director)', '"Blue Door"', "blue door director"


def passage(id: str, tokens: int = 10, text: str = "Nothing of use.") -> Shown:
    return Shown(id, tokens, text)


FILM_SHOWN = passage("film", 30, "Blue Door is a film. Its director is Ann Lee.")
PERSON_SHOWN = passage("person", 40, "Ann Lee sings. She was born in Oslo.")


def answer(*shown: Shown, more: bool = True) -> Reply:
    return Reply(tuple(shown), more, False, 50)


NO_HITS = Reply((), False, False, 7)
REJECTED = Reply((), False, True, 9)


def calls_and_outcomes(
    chain: Chain, replies: Sequence[Reply], order: str = "Q1 Q2 Q3"
) -> tuple[list[tuple[str, int]], tuple[HopOutcome, ...]]:
    """Return the queries and offsets that follow these replies, and the outcomes of the hops if it
    ended."""
    steps = walk(chain, "logical", ORDERS[order])
    calls: list[Call] = []
    outcomes: tuple[HopOutcome, ...] = ()
    try:
        calls.append(next(steps))
        for reply in replies:
            calls.append(steps.send(reply))
    except StopIteration as end:
        outcomes = end.value
    return [(str(call.wording), call.offset) for call in calls], outcomes


def values_of(hops: Sequence[HopOutcome]) -> Mapping[str, float | None]:
    return row_of(Question("q", "?", ()), 1, hops).values


# Reading


def test_passages_are_read_one_by_one_until_the_evidence_is_shown() -> None:
    replies = [answer(passage("a")), answer(FILM_SHOWN), answer(PERSON_SHOWN)]
    calls, hops = calls_and_outcomes(CHAIN, replies)
    person = '"Ann Lee" AND (place OR birth)'
    assert calls == [(Q1, 0), (Q1, 1), (person, 0)]
    assert [(hop.shown, hop.tokens) for hop in hops] == [(True, 40), (True, 40)]


def test_a_hop_has_four_searches_and_the_fourth_is_the_next_page_of_the_first_query() -> None:
    replies = [answer(passage(f"p{number}")) for number in range(20)]
    calls, _ = calls_and_outcomes(CHAIN, replies, "Q2 Q3 Q1")
    expected = [(query, start + step)
              for query, start in ((Q2, 0), (Q3, 0), (Q1, 0), (Q2, 5))
              for step in range(5)]  # fmt: skip
    assert calls[:20] == expected
    assert calls[20][0] == '"Ann Lee"'  # the next hop gets its true name


@pytest.mark.parametrize("order", ORDERS)
def test_the_queries_are_sent_in_the_order_of_the_factor(order: str) -> None:
    calls, _ = calls_and_outcomes(CHAIN, [NO_HITS] * 2, order)
    names = {Q1: "Q1", Q2: "Q2", Q3: "Q3"}
    assert " ".join(names[query] for query, _ in calls) == order


def test_a_query_without_more_hits_has_no_next_page() -> None:
    replies = [answer(passage("a"), more=False), NO_HITS, REJECTED]
    calls, _ = calls_and_outcomes(CHAIN, replies)
    assert [query for query, _ in calls[:3]] == [Q1, Q2, Q3]
    assert calls[3][0].startswith('"Ann Lee"')


def test_a_hop_that_has_spent_its_budget_makes_no_more_calls() -> None:
    expensive = passage("a", HOP_TOKENS)
    calls, hops = calls_and_outcomes(CHAIN, [answer(expensive), answer(PERSON_SHOWN)])
    assert len(calls) == 2
    assert [hop.shown for hop in hops] == [False, True]
    assert values_of(hops)["TokensToEvidence"] == 8_000


def test_evidence_that_was_shown_for_an_earlier_hop_costs_nothing() -> None:
    combined = passage("film", 70, f"{FILM_SHOWN.text} {PERSON_SHOWN.text}")
    chain = (FILM, Link("Ann Lee", "birth", {"film": ("born in Oslo",)}))
    calls, hops = calls_and_outcomes(chain, [answer(combined)])
    assert len(calls) == 1
    assert [(hop.shown, hop.tokens, hop.searches) for hop in hops] == [(True, 70, 1), (True, 0, 0)]


def test_a_passage_without_its_text_shows_no_evidence() -> None:
    calls, _ = calls_and_outcomes(CHAIN, [answer(passage("film", 3, ""))])
    assert calls[1] == (Q1, 1)


def test_the_text_of_another_passage_is_no_evidence() -> None:
    calls, _ = calls_and_outcomes(CHAIN, [answer(passage("copy", 30, FILM_SHOWN.text))])
    assert calls[1] == (Q1, 1)


def test_a_hop_without_a_passage_is_not_searched_for_and_stays_in_the_denominator() -> None:
    chain = (FILM, Link("Ann Lee", "birth", {}))
    calls, hops = calls_and_outcomes(chain, [answer(FILM_SHOWN)])
    assert len(calls) == 1
    row = row_of(Question("q", "?", ()), 1, hops)
    assert row.values["TokensToEvidence"] == 8_000
    assert row.values["FullEvidence"] == 0
    assert row.values["EvidenceRecall"] == 0.5
    assert row.unresolved


def test_identical_queries_are_sent_once() -> None:
    chain = (Link("Oslo", "", {"x": ("y",)}),)
    calls, hops = calls_and_outcomes(chain, [NO_HITS, NO_HITS], "Q2 Q1 Q3")
    assert [query for query, _ in calls] == ['"Oslo"', "oslo"]
    assert hops[0].searches == 2


def test_searches_without_hits_and_rejected_ones_are_counted_with_their_cost() -> None:
    calls, hops = calls_and_outcomes(
        CHAIN, [NO_HITS, REJECTED, answer(FILM_SHOWN), answer(PERSON_SHOWN)]
    )
    assert len(calls) == 4
    assert (hops[0].searches, hops[0].zero_hits, hops[0].refused) == (3, 1, 1)
    assert hops[0].failed_tokens == 16
    assert hops[0].tokens == 30  # only text of the corpus counts as retrieved


def test_a_page_past_the_end_is_no_search_without_hits() -> None:
    _, hops = calls_and_outcomes(
        CHAIN, [answer(passage("a")), NO_HITS, answer(FILM_SHOWN), answer(PERSON_SHOWN)]
    )
    assert (hops[0].zero_hits, hops[0].failed_tokens) == (0, 7)


# Values


def hop(is_shown: bool, tokens: int) -> HopOutcome:
    return HopOutcome(True, is_shown, tokens, searches=1)


def test_tokens_to_evidence_are_capped_and_equal_the_cap_if_a_hop_fails() -> None:
    assert values_of([hop(True, 100), hop(True, 50)])["TokensToEvidence"] == 150
    assert values_of([hop(True, 100), hop(False, 50)])["TokensToEvidence"] == 8_000
    expensive = values_of([hop(True, 4_000), hop(True, 4_500)])
    assert (expensive["TokensToEvidence"], expensive["FullEvidence"]) == (8_000, 0)
    assert expensive["RetrievedTokens"] == 8_500


# Queries


@pytest.mark.parametrize(
    ("interface", "first", "second", "third"),
    [
        ("logical", '"Ann Lee" AND (place OR birth)', '"Ann Lee"', "ann lee place birth"),
        ("no operators", '"Ann Lee" place birth', '"Ann Lee"', "ann lee place birth"),
        ("keyword", ("Ann Lee", "place", "birth"), ("Ann Lee",), ("ann", "lee", "place", "birth")),
        ("semantic", "Ann Lee place of birth", "Ann Lee", "place of birth Ann Lee"),
        ("hybrid", "Ann Lee place of birth", "Ann Lee", "place of birth Ann Lee"),
    ],
)
def test_each_interface_writes_the_same_contents(
    interface: Interface, first: object, second: object, third: object
) -> None:
    queries = wordings(interface, "Ann Lee", "place of birth")
    assert queries == (first, second, third)


def test_words_that_look_like_syntax_are_quoted() -> None:
    queries = wordings("logical", 'Say "No" \\o/', "AND or's")
    assert queries[1] == r'"Say \"No\" \\o/"'
    assert queries[2] == 'say no o "or\'s"'


def test_the_arguments_are_those_of_the_tools() -> None:
    assert arguments_of("keyword", ("a", "b"), 5) == {
        "keywords": ["a", "b"], "top_k": 1, "offset": 5,
    }  # fmt: skip
    assert arguments_of("hybrid", "a", 0) == {"query": "a", "max_results": 1, "offset": 0}
    assert {tool_of(interface) for interface in get_args(Interface)} == {
        "logical_search", "keyword_search", "semantic_search", "hybrid_search",
    }  # fmt: skip
