"""The policy of the gold-chain agent, step by step, with replies written by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bench.gold_chain.chain import Chain, Link
from bench.gold_chain.outcome import curve_of, half_of, row_of, values_of
from bench.gold_chain.policy import (
    HOP_TOKENS,
    ORDERS,
    Call,
    HopOutcome,
    ReadCall,
    Reply,
    ReplyLevel,
    SearchCall,
    Setting,
    Shown,
    walk,
)
from bench.gold_chain.queries import INTERFACES, Interface, Search, wordings

FILM = Link("Blue Door", "director", {"film": ("Its director is Ann Lee.",)})
PERSON = Link("Ann Lee", "place of birth", {"person": ("She was born in Oslo.",)})
CHAIN = Chain("q", "Where was the director of Blue Door born?", (FILM, PERSON))

Q1, Q2, Q3 = '"Blue Door" AND (director)', '"Blue Door"', "blue door director"


def setting(
    order: str = "Q1 Q2 Q3", reply: ReplyLevel = "full", interface: Interface = "logical"
) -> Setting:
    return Setting(interface, ORDERS[order], reply=reply)


def passage(id: str, tokens: int = 10, text: str = "Nothing of use.") -> Shown:
    return Shown(id, tokens, text)


FILM_SHOWN = passage("film", 30, "Blue Door is a film. Its director is Ann Lee.")
PERSON_SHOWN = passage("person", 40, "Ann Lee sings. She was born in Oslo.")


def answer(*shown: Shown, more: bool = True) -> Reply:
    return Reply(tuple(shown), more, False, 50)


NO_HITS = Reply((), False, False, 7)
REJECTED = Reply((), False, True, 9)


def calls_and_outcomes(
    chain: Chain, policy: Setting, replies: Sequence[Reply]
) -> tuple[list[Call], tuple[HopOutcome, ...] | None]:
    """Return the calls that follow these replies, and the outcomes of the hops if it ended."""
    steps = walk(chain, policy)
    calls: list[Call] = []
    try:
        calls.append(next(steps))
        for reply in replies:
            calls.append(steps.send(reply))
    except StopIteration as end:
        return calls, end.value
    return calls, None


def search_arguments(call: Call) -> tuple[str, int, int]:
    assert isinstance(call, SearchCall)
    assert isinstance(call.search.wording, str)
    return call.search.wording, call.offset, call.top_k


# Reading


def test_passages_are_read_one_by_one_until_the_evidence_is_shown() -> None:
    replies = [answer(passage("a")), answer(FILM_SHOWN), answer(PERSON_SHOWN)]
    calls, hops = calls_and_outcomes(CHAIN, setting(), replies)
    person = '"Ann Lee" AND (place OR birth)'
    assert [search_arguments(call) for call in calls] == [(Q1, 0, 1), (Q1, 1, 1), (person, 0, 1)]
    assert hops is not None
    assert [(hop.shown, hop.tokens, hop.gold_tokens) for hop in hops] == [
        (True, 40, 30),
        (True, 40, 40),
    ]


def test_a_hop_has_four_searches_and_the_fourth_is_the_next_page_of_the_first_query() -> None:
    replies = [answer(passage(f"p{number}")) for number in range(20)]
    calls, _ = calls_and_outcomes(CHAIN, setting("Q2 Q3 Q1"), replies)
    expected = [(query, start + step, 1)
              for query, start in ((Q2, 0), (Q3, 0), (Q1, 0), (Q2, 5))
              for step in range(5)]  # fmt: skip
    assert [search_arguments(call) for call in calls[:20]] == expected
    assert search_arguments(calls[20])[0] == '"Ann Lee"'  # the next hop gets its true name


@pytest.mark.parametrize("order", ORDERS)
def test_the_queries_are_sent_in_the_order_of_the_factor(order: str) -> None:
    calls, _ = calls_and_outcomes(CHAIN, setting(order), [NO_HITS] * 2)
    names = {Q1: "Q1", Q2: "Q2", Q3: "Q3"}
    assert " ".join(names[search_arguments(call)[0]] for call in calls) == order


def test_a_query_without_more_hits_has_no_next_page() -> None:
    replies = [answer(passage("a"), more=False), NO_HITS, REJECTED]
    calls, _ = calls_and_outcomes(CHAIN, setting(), replies)
    assert [search_arguments(call)[0] for call in calls[:3]] == [Q1, Q2, Q3]
    assert search_arguments(calls[3])[0].startswith('"Ann Lee"')


def test_a_hop_that_has_spent_its_budget_makes_no_more_calls() -> None:
    expensive = passage("a", HOP_TOKENS)
    calls, hops = calls_and_outcomes(CHAIN, setting(), [answer(expensive), answer(PERSON_SHOWN)])
    assert len(calls) == 2
    assert hops is not None
    assert [hop.shown for hop in hops] == [False, True]
    assert values_of(hops)["TokensToEvidence"] == 8_000
    assert values_of(hops)["HopTokens"] == (HOP_TOKENS + 40) / 2


def test_evidence_that_was_shown_for_an_earlier_hop_costs_nothing() -> None:
    combined = passage("film", 70, f"{FILM_SHOWN.text} {PERSON_SHOWN.text}")
    chain = Chain("q", "?", (FILM, Link("Ann Lee", "birth", {"film": ("born in Oslo",)})))
    calls, hops = calls_and_outcomes(chain, setting(), [answer(combined)])
    assert len(calls) == 1
    assert hops is not None
    assert [(hop.shown, hop.tokens, hop.searches) for hop in hops] == [(True, 70, 1), (True, 0, 0)]


def test_a_passage_without_its_text_shows_no_evidence() -> None:
    calls, _ = calls_and_outcomes(CHAIN, setting(), [answer(passage("film", 3, ""))])
    assert search_arguments(calls[1]) == (Q1, 1, 1)


def test_the_text_of_another_passage_is_no_evidence() -> None:
    calls, _ = calls_and_outcomes(CHAIN, setting(), [answer(passage("copy", 30, FILM_SHOWN.text))])
    assert search_arguments(calls[1]) == (Q1, 1, 1)


def test_a_reply_with_five_passages_is_charged_whole() -> None:
    reply = answer(passage("a"), FILM_SHOWN, passage("b"))
    calls, hops = calls_and_outcomes(
        CHAIN, setting(reply="full at once"), [reply, answer(PERSON_SHOWN)]
    )
    assert search_arguments(calls[0]) == (Q1, 0, 5)
    assert hops is not None
    assert hops[0].tokens == 50
    assert hops[0].gold_tokens == 30


def test_snippets_are_followed_by_reads_from_top_to_bottom() -> None:
    snippets = answer(passage("a"), passage("film", 12, "Blue Door is a film. ..."), passage("b"))
    replies = [snippets, answer(passage("a", 90)), answer(FILM_SHOWN)]
    calls, _ = calls_and_outcomes(CHAIN, setting(reply="snippets"), replies)
    assert calls[1:3] == [ReadCall("a"), ReadCall("film")]
    assert isinstance(calls[3], SearchCall)  # b is not read


def test_a_snippet_with_the_evidence_needs_no_read_and_no_passage_is_read_twice() -> None:
    first = answer(passage("a"), passage("b"))
    reads = [answer(passage("a", 90)), answer(passage("b", 90))]
    second = answer(passage("a"), passage("c"), passage("film", 9, "... Its director is Ann Lee."))
    calls, hops = calls_and_outcomes(CHAIN, setting(reply="snippets"), [first, *reads, second])
    assert calls[1:3] == [ReadCall("a"), ReadCall("b")]
    assert isinstance(calls[4], SearchCall)
    assert search_arguments(calls[4])[0].startswith('"Ann Lee"')
    assert hops is None


def test_a_hop_without_a_passage_is_not_searched_for_and_stays_in_the_denominator() -> None:
    chain = Chain("q", "?", (FILM, Link("Ann Lee", "birth", {})))
    calls, hops = calls_and_outcomes(chain, setting(), [answer(FILM_SHOWN)])
    assert len(calls) == 1
    assert hops is not None
    row = row_of("q", None, 1, hops)
    assert row.values["TokensToEvidence"] == 8_000
    assert row.values["FullEvidence"] == 0
    assert row.values["EvidenceRecall"] == 0.5
    assert row.details["unresolved"] is True


def test_identical_queries_are_sent_once() -> None:
    chain = Chain("q", "?", (Link("Oslo", "", {"x": ("y",)}),))
    calls, hops = calls_and_outcomes(chain, setting("Q2 Q1 Q3"), [NO_HITS, NO_HITS])
    assert [search_arguments(call)[0] for call in calls] == ['"Oslo"', "oslo"]
    assert hops is not None
    assert hops[0].searches == 2


def test_searches_without_hits_and_rejected_ones_are_counted_with_their_cost() -> None:
    calls, hops = calls_and_outcomes(
        CHAIN, setting(), [NO_HITS, REJECTED, answer(FILM_SHOWN), answer(PERSON_SHOWN)]
    )
    assert len(calls) == 4
    assert hops is not None
    assert (hops[0].searches, hops[0].zero_hits, hops[0].refused) == (3, 1, 1)
    assert hops[0].failed_tokens == 16
    assert hops[0].tokens == 30  # only text of the corpus counts as retrieved


def test_a_page_past_the_end_is_no_search_without_hits() -> None:
    _, hops = calls_and_outcomes(
        CHAIN,
        setting(interface="sentence"),
        [answer(passage("a")), NO_HITS, answer(FILM_SHOWN), answer(PERSON_SHOWN)],
    )
    assert hops is not None
    assert (hops[0].zero_hits, hops[0].failed_tokens) == (0, 7)


def test_passages_that_were_shown_before_are_counted_as_repeated() -> None:
    repeated = passage("a", 4, "")
    replies = [answer(passage("a"), more=False), answer(repeated), answer(FILM_SHOWN)]
    _, hops = calls_and_outcomes(CHAIN, setting(), [*replies, answer(PERSON_SHOWN)])
    assert hops is not None
    assert (hops[0].tokens, hops[0].repeated_tokens) == (44, 4)


# Values


def hop(is_shown: bool, tokens: int, searches: int = 1) -> HopOutcome:
    return HopOutcome(True, is_shown, tokens, tokens // 2, searches)


def test_tokens_to_evidence_are_capped_and_equal_the_cap_if_a_hop_fails() -> None:
    assert values_of([hop(True, 100), hop(True, 50)])["TokensToEvidence"] == 150
    assert values_of([hop(True, 100), hop(False, 50)])["TokensToEvidence"] == 8_000
    expensive = values_of([hop(True, 4_000), hop(True, 4_500)])
    assert (expensive["TokensToEvidence"], expensive["FullEvidence"]) == (8_000, 0)
    assert expensive["RetrievedTokens"] == 8_500


def test_the_area_under_evidence_is_that_of_its_steps() -> None:
    hops = [hop(True, 2_000), hop(True, 2_000)]
    assert curve_of(hops) == [(0, 0), (2_000, 0.5), (4_000, 1)]
    assert values_of(hops)["EvidenceArea"] == pytest.approx(0.5 * 0.75 + 0.5 * 0.5)
    assert values_of([hop(False, 4_000), hop(True, 2_000)])["EvidenceArea"] == pytest.approx(0.125)
    assert values_of([hop(True, 0), hop(True, 0)])["EvidenceArea"] == 1
    assert values_of([hop(False, 9_000), hop(True, 9_000)])["EvidenceArea"] == 0


def test_the_least_tokens_are_those_of_the_evidence_alone() -> None:
    assert values_of([hop(True, 100), hop(True, 60)])["OnlyGoldTokens"] == 80


def test_a_question_belongs_to_a_half_by_its_id_alone() -> None:
    halves = [half_of(f"question {number}") for number in range(400)]
    assert 160 < halves.count("development") < 240
    assert halves[:4] == [half_of(f"question {number}") for number in range(4)]


# Queries


@pytest.mark.parametrize(
    ("interface", "first", "second", "third"),
    [
        ("logical", '"Ann Lee" AND (place OR birth)', '"Ann Lee"', "ann lee place birth"),
        ("no operators", '"Ann Lee" place birth', '"Ann Lee"', "ann lee place birth"),
        ("sentence", '"Ann Lee" AND (place OR birth)', '"Ann Lee"', "ann lee place birth"),
        ("keyword", ("Ann Lee", "place", "birth"), ("Ann Lee",), ("ann", "lee", "place", "birth")),
        ("semantic", "Ann Lee place of birth", "Ann Lee", "place of birth Ann Lee"),
        ("hybrid", "Ann Lee place of birth", "Ann Lee", "place of birth Ann Lee"),
    ],
)
def test_each_interface_writes_the_same_contents(
    interface: Interface, first: object, second: object, third: object
) -> None:
    queries = wordings(interface, "Ann Lee", "place of birth", in_title=False)
    assert queries == (first, second, third)


def test_a_name_may_be_searched_for_in_titles() -> None:
    queries = wordings("logical", "Ann Lee", "birth", in_title=True)
    assert queries == ('title:"Ann Lee" AND (birth)', 'title:"Ann Lee"', "ann lee birth")


def test_words_that_look_like_syntax_are_quoted() -> None:
    queries = wordings("logical", 'Say "No" \\o/', "AND or's", in_title=False)
    assert queries[1] == r'"Say \"No\" \\o/"'
    assert queries[2] == 'say no o "or\'s"'


def test_the_arguments_are_those_of_the_tools() -> None:
    assert Search("keyword", ("a", "b")).arguments(5, 1) == {
        "keywords": ["a", "b"], "top_k": 1, "offset": 5,
    }  # fmt: skip
    assert Search("hybrid", "a").arguments(0, 5) == {"query": "a", "max_results": 5, "offset": 0}
    assert Search("sentence", "a").arguments(0, 5)["granularity"] == "sentence"
    assert {Search(interface, "a").tool for interface in INTERFACES} == {
        "logical_search", "keyword_search", "semantic_search", "hybrid_search",
    }  # fmt: skip
