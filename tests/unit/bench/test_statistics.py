"""Tests and corrections, against hand-worked numbers, brute force and scipy."""

from __future__ import annotations

from itertools import product
from statistics import fmean

import numpy as np
import pytest

from arag_search.evaluation.bootstrap import RESAMPLES, intervals, resampled_means
from bench.report.statistics import (
    DataSet,
    corrected_level,
    holm,
    macro_means,
    mcnemar_p,
    resamples_for,
    sign_flip_p,
)


def data_set(name: str, *columns: list[float]) -> DataSet:
    values = np.array(columns, np.float64).T
    return DataSet(name, [None] * len(values), values)


def brute_force_p(*sets: list[float]) -> float:
    """Return the two-sided sign-flip p of the mean of means, over all assignments of signs."""
    observed = abs(fmean(fmean(values) for values in sets))
    extreme = total = 0
    for signs in product((1, -1), repeat=sum(map(len, sets))):
        remaining = iter(signs)
        flipped = [[next(remaining) * value for value in values] for values in sets]
        extreme += abs(fmean(fmean(values) for values in flipped)) >= observed - 1e-12
        total += 1
    return extreme / total


def test_with_few_differences_all_sign_flips_are_enumerated() -> None:
    small, large = [0.5, -0.2, 0.9], [0.1, 0.4, 0.3, -0.05, 0.2]
    p_values = sign_flip_p([data_set("a", small), data_set("b", large)])
    assert p_values.tolist() == pytest.approx([brute_force_p(small, large)])
    assert sign_flip_p([data_set("a", [1.0, 1.0, 1.0, 1.0])]).tolist() == [2 / 16]


def test_with_many_differences_random_sign_flips_approximate_the_exact_p() -> None:
    differences = np.random.default_rng(7).normal(0.3, 1.0, size=14).tolist()  # 16,384 ways
    (p_value,) = sign_flip_p([data_set("a", differences)])
    assert p_value == pytest.approx(brute_force_p(differences), abs=0.015)
    assert p_value == sign_flip_p([data_set("a", differences)])[0]


def test_columns_without_a_difference_have_p_1_and_do_not_disturb_others() -> None:
    values = [0.3] * 20
    p_values = sign_flip_p([data_set("a", [0.0] * 20, values, [0.0] * 19 + [1.0])])
    assert p_values[0] == 1
    assert p_values[1] == pytest.approx(1 / 10_001)
    assert p_values[2] == 1


def test_the_data_sets_of_a_sign_flip_count_the_same() -> None:
    many, few = [0.1] * 400, [-0.1] * 4
    assert sign_flip_p([data_set("a", many), data_set("b", few)])[0] == 1
    assert sign_flip_p([data_set("a", many)])[0] < 0.001


def test_the_sign_flip_of_a_rate_in_one_data_set_is_the_exact_test_of_mcnemar() -> None:
    differences = [1.0] * 7 + [-1.0] * 2 + [0.0] * 30
    (p_value,) = sign_flip_p([data_set("a", differences)])
    assert p_value == pytest.approx(mcnemar_p(7, 2))


def test_mcnemar_is_the_exact_binomial_test() -> None:
    assert mcnemar_p(0, 0) == 1
    assert mcnemar_p(5, 5) == 1
    assert mcnemar_p(6, 0) == pytest.approx(2 / 64)
    assert mcnemar_p(2, 8) == mcnemar_p(8, 2) == pytest.approx(2 * (1 + 10 + 45) / 1024)
    # From tables of the binomial distribution.
    assert mcnemar_p(1, 9) == pytest.approx(0.021484375)
    assert mcnemar_p(13, 22) == pytest.approx(0.17546525)


def test_holm_corrects_the_smallest_most_and_keeps_the_order() -> None:
    # By hand: 0.01 x 4, 0.02 x 3, 0.03 x 2 (no less than before), 0.5 x 1.
    assert holm([0.03, 0.01, 0.5, 0.02]) == pytest.approx([0.06, 0.04, 0.5, 0.06])
    assert holm([0.9, 0.8]) == [1, 1]
    assert holm([]) == []


def test_levels_are_corrected_for_contrasts_and_for_spared_policies() -> None:
    assert corrected_level(1) == pytest.approx(0.95)
    assert corrected_level(10) == pytest.approx(0.995)
    assert corrected_level(10, spared=1) == pytest.approx(0.9975)


def test_means_count_each_data_set_the_same() -> None:
    assert macro_means([data_set("a", [1.0, 3.0]), data_set("b", [0.0] * 8)]).tolist() == [1.0]


def test_narrow_tails_get_more_resamples() -> None:
    assert resamples_for(0.95) == RESAMPLES
    assert resamples_for(corrected_level(30, spared=1)) == 24_000
    means = resampled_means(np.ones((3, 1)), [None] * 3, "a", 24_000)
    assert means.shape == (24_000, 1)


def test_the_interval_of_a_mean_has_about_its_nominal_coverage() -> None:
    generator = np.random.default_rng(11)
    samples = generator.normal(1.0, 1.0, size=(60, 100))  # each column is a repetition
    means = resampled_means(samples, [None] * 60, "a")
    bounds = intervals(samples.mean(axis=0).tolist(), means, [0.95] * 100)
    assert 88 <= sum(interval.low <= 1.0 <= interval.high for interval in bounds) <= 100
