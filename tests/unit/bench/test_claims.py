"""The claim rule: the claim that the intervals of all policies allow."""

from __future__ import annotations

from itertools import product

from arag_search.evaluation.bootstrap import Interval
from bench.ablation.analysis.claims import ClaimRule, Policy, claim

RULE = ClaimRule(most_of="order", at_least=5)
ORDERS = [str(number) for number in range(6)]
BELOW, ABOVE, OPEN = (
    Interval(-0.3, -0.4, -0.2), Interval(0.3, 0.2, 0.4), Interval(-0.1, -0.3, 0.1)
)  # fmt: skip


def intervals_of_policies(
    exceptions: dict[tuple[str, str], Interval], default: Interval
) -> dict[Policy, Interval]:
    return {
        (("names", names), ("order", order)): exceptions.get((names, order), default)
        for names, order in product(("surface", "canonical", "dropped"), ORDERS)
    }


def outcome(
    policy_intervals: dict[Policy, Interval], rule: ClaimRule = RULE, lower: bool = True
) -> str:
    return claim(policy_intervals, rule, lower_is_better=lower).outcome


def test_a_claim_may_spare_one_order_in_every_regime_of_names() -> None:
    spared = {("surface", "0"): OPEN, ("canonical", "3"): OPEN, ("dropped", "5"): OPEN}
    assert outcome(intervals_of_policies({}, BELOW)) == "first"
    assert outcome(intervals_of_policies(spared, BELOW)) == "first"
    assert outcome(intervals_of_policies(spared, BELOW), lower=False) == "second"
    assert outcome(intervals_of_policies(spared, ABOVE)) == "second"


def test_two_open_orders_in_one_regime_make_the_outcome_depend_on_the_policy() -> None:
    assert (
        outcome(intervals_of_policies({("surface", "0"): OPEN, ("surface", "1"): OPEN}, BELOW))
        == "depends"
    )


def test_one_policy_that_is_resolved_the_other_way_forbids_a_claim() -> None:
    assert outcome(intervals_of_policies({("surface", "0"): ABOVE}, BELOW)) == "depends"


def test_open_intervals_are_unresolved_and_never_equal() -> None:
    result = claim(intervals_of_policies({}, OPEN), RULE, lower_is_better=True)
    assert result.outcome == "not resolved"
    assert result.resolution == 0.2
    assert (result.low, result.high) == (-0.1, -0.1)


def test_too_few_orders_are_no_claim_however_clear() -> None:
    policy_intervals: dict[Policy, Interval] = {(("order", order),): BELOW for order in ORDERS[:3]}
    assert outcome(policy_intervals) == "too few policies"
    assert outcome({**policy_intervals, (("order", "4"),): OPEN}) == "depends"


def test_a_regime_of_names_that_was_not_measured_prevents_a_claim() -> None:
    declared = intervals_of_policies({}, BELOW)
    surface = {
        policy: interval
        for policy, interval in declared.items()
        if policy[0] == ("names", "surface")
    }
    assert outcome(surface) == "first"
    result = claim(surface, RULE, lower_is_better=True, declared=list(declared))
    assert (result.outcome, result.policies) == ("too few policies", 6)
    spared = {**surface, next(iter(surface)): OPEN}
    assert claim(spared, RULE, lower_is_better=True, declared=list(declared)).outcome == "depends"


def test_without_policy_factors_one_interval_decides() -> None:
    assert outcome({(): BELOW}, ClaimRule()) == "first"
    assert outcome({(): OPEN}, ClaimRule()) == "not resolved"
    assert outcome({(): BELOW}, ClaimRule(), lower=False) == "second"


def test_all_policies_have_to_be_resolved_if_no_factor_may_be_spared() -> None:
    policy_intervals: dict[Policy, Interval] = {(("model", "a"),): BELOW, (("model", "b"),): OPEN}
    assert outcome(policy_intervals, ClaimRule()) == "depends"
    assert outcome({**policy_intervals, (("model", "b"),): BELOW}, ClaimRule()) == "first"


def test_the_range_and_counts_are_over_all_policies() -> None:
    result = claim(
        intervals_of_policies({("surface", "0"): ABOVE}, BELOW), RULE, lower_is_better=True
    )
    assert (result.policies, result.resolved_for) == (18, (17, 1))
    assert (result.low, result.high) == (-0.3, 0.3)
