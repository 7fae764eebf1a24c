"""The design of a suite: its strata and policies, and the contrasts that it declares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from bench.ablation.cells import Key
from bench.ablation.suite import Suite
from bench.ablation.values import Condition, condition_of

ALPHA = 0.05
Policy = tuple[tuple[str, str], ...]
"""Factor and level of each policy factor, in one order of factors; () if there are none."""
Stratum = tuple[tuple[str, str], ...]
"""Levels of the factors that a comparison keeps apart; () if there are none."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """A declared question: does ``first`` differ from ``second`` in ``measure``?"""

    measure: str
    stratum: Stratum
    first: str
    second: str


@dataclass(frozen=True)
class Design:
    """A suite with the conditions that its experiment has.

    Questions without a condition are left out: an interface may not support a stratum.
    """

    suite: Suite
    keys: Sequence[Key]

    @cached_property
    def conditions(self) -> frozenset[Condition]:
        """All of the experiment, whether measured or not."""
        return frozenset(condition_of(key) for key in self.keys)

    @cached_property
    def strata(self) -> list[Stratum]:
        """The combinations of levels that are kept apart."""
        return self._combinations(self.suite.comparison.apart)

    @cached_property
    def policies(self) -> list[Policy]:
        """The combinations of levels of the policy factors."""
        named = self.suite.comparison.policy
        return self._combinations(
            [factor for factor in self.suite.experiment.factors if factor in named]
        )

    @cached_property
    def main(self) -> Policy:
        """The policy that tables show."""
        main = self.suite.comparison.policy
        return tuple((factor, main[factor]) for factor, _ in self.policies[0])

    @cached_property
    def primary(self) -> list[Contrast]:
        """The contrasts on which claims rest."""
        return self._contrasts([self.suite.comparison.primary])

    @cached_property
    def secondary(self) -> list[Contrast]:
        """The other contrasts that are tested."""
        return self._contrasts(self.suite.comparison.secondary)

    @cached_property
    def levels(self) -> tuple[float, float]:
        """The levels of the intervals of primary and of secondary contrasts, at which all claims of
        a family hold together at 1 - ALPHA (Bonferroni)."""
        first, second = (
            1 - ALPHA / max(1, len(family)) for family in (self.primary, self.secondary)
        )
        return first, second

    @property
    def compared(self) -> tuple[str, ...]:
        """The levels of the compared factor."""
        return self.suite.experiment.factors[self.suite.comparison.factor]

    def condition(self, stratum: Stratum, policy: Policy, level: str) -> Condition:
        """Return the condition with these levels; all other factors have a single level."""
        chosen = {**dict(stratum), **dict(policy), self.suite.comparison.factor: level}
        factors = self.suite.experiment.factors
        order = [factor for factor, _ in condition_of(self.keys[0])]
        return tuple((factor, chosen.get(factor, factors[factor][0])) for factor in order)

    def sides(self, contrast: Contrast, policy: Policy) -> tuple[Condition, Condition]:
        """Return the two conditions that a contrast compares under a policy."""
        return (
            self.condition(contrast.stratum, policy, contrast.first),
            self.condition(contrast.stratum, policy, contrast.second),
        )

    def _combinations(self, factors: Sequence[str]) -> list[tuple[tuple[str, str], ...]]:
        levels = product(*(self.suite.experiment.factors[factor] for factor in factors))
        made = [tuple(zip(factors, chosen_levels, strict=True)) for chosen_levels in levels]
        return [
            combination
            for combination in made
            if any(set(combination) <= set(condition) for condition in self.conditions)
        ]

    def _contrasts(self, measures: Sequence[str]) -> list[Contrast]:
        pairs = self.suite.comparison.pairs
        made = [
            Contrast(measure, stratum, *pair)
            for measure, stratum, pair in product(measures, self.strata, pairs)
        ]
        return [
            contrast
            for contrast in made
            if any(set(self.sides(contrast, policy)) <= self.conditions for policy in self.policies)
        ]
