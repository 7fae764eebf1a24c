"""The claim rule: when one condition beats another over all policies of a searcher.

"A beats B" only if the corrected interval excludes 0 on A's side in enough of the policies (at
least 5 of 6 orders of queries, in every regime of names) and on B's side in none. Any other
contrast that is resolved under some policy "depends on policy". Two conditions are never called
equal: they are "not resolved".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from arag_search.evaluation.bootstrap import Interval

Outcome = Literal["first", "second", "depends", "not resolved", "too few policies"]
Policy = tuple[tuple[str, str], ...]
"""Factor and level of each policy factor, in one order of factors; () if there are none."""


@dataclass(frozen=True, slots=True)
class ClaimRule:
    """The policies over which a claim has to hold. It must be resolved under at least ``at_least``
    of the levels of the factor ``most_of``, for every combination of levels of all other policy
    factors. ``most_of`` "" requires all policies.
    """

    most_of: str = ""
    at_least: int = 0

    def spared(self, policies: Sequence[Policy]) -> int:
        """Return in how many policies of a group a contrast may stay unresolved."""
        levels = {dict(policy).get(self.most_of) for policy in policies}
        return max(0, len(levels) - self.at_least) if self.most_of else 0

    def groups(self, policies: Sequence[Policy]) -> list[list[Policy]]:
        """Group the policies that differ only in ``most_of``."""

        def rest(policy: Policy) -> Policy:
            return tuple(level for level in policy if level[0] != self.most_of)

        return [list(group) for _, group in groupby(sorted(policies, key=rest), key=rest)]

    def needed(self, group: Sequence[Policy]) -> int:
        """Return in how many policies of a group a claim must be resolved."""
        return self.at_least if self.most_of else len(group)


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim about a first and a second condition.

    ``resolved_for`` counts policies by the side that they are resolved for. ``low`` and ``high``
    are the least and largest estimate over the policies, ``resolution`` the smallest difference
    that could be resolved in the policy in which it is the largest.
    """

    outcome: Outcome
    policies: int
    resolved_for: tuple[int, int]
    low: float
    high: float
    resolution: float


def claim(
    intervals: Mapping[Policy, Interval],
    rule: ClaimRule,
    *,
    lower_is_better: bool,
    declared: Collection[Policy] = (),
) -> Claim:
    """Return the claim that the intervals of first less second support, one interval for each
    policy and all at the corrected level. ``declared`` are the policies over which a claim has to
    hold, if not all of them were measured."""

    def wins(interval: Interval, first: bool) -> bool:
        is_below = first == lower_is_better
        return interval.high < 0 if is_below else interval.low > 0

    sides = [
        {policy for policy, interval in intervals.items() if wins(interval, first)}
        for first in (True, False)
    ]
    groups = rule.groups(list({*declared, *intervals}))
    values = [interval.value for interval in intervals.values()]
    return Claim(
        _outcome(sides[0], sides[1], intervals, groups, rule),
        len(intervals),
        (len(sides[0]), len(sides[1])),
        min(values),
        max(values),
        max(interval.resolution for interval in intervals.values()),
    )


def _outcome(
    first: set[Policy],
    second: set[Policy],
    measured: Collection[Policy],
    groups: list[list[Policy]],
    rule: ClaimRule,
) -> Outcome:
    if not first and not second:
        return "not resolved"
    if first and second:
        return "depends"
    ahead = first or second
    reached = [sum(policy in ahead for policy in group) for group in groups]
    needed = [rule.needed(group) for group in groups]
    if all(count >= least for count, least in zip(reached, needed, strict=True)):
        return "first" if first else "second"
    return "too few policies" if len(ahead) == len(measured) else "depends"
