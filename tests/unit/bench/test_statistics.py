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


def one_set(name: str, *columns: list[float]) -> DataSet:
    values = np.array(columns, np.float64).T
    return DataSet(name, [None] * len(values), values)


def brute_force_p(*sets: list[float]) -> float:
    """Two-sided sign-flip p of the mean of means, every sign gone through."""
    observed = abs(fmean(fmean(one) for one in sets))
    extreme = total = 0
    for signs in product((1, -1), repeat=sum(map(len, sets))):
        given = iter(signs)
        flipped = [[next(given) * value for value in one] for one in sets]
        extreme += abs(fmean(fmean(one) for one in flipped)) >= observed - 1e-12
        total += 1
    return extreme / total


def test_few_differences_are_flipped_in_every_way() -> None:
    small, large = [0.5, -0.2, 0.9], [0.1, 0.4, 0.3, -0.05, 0.2]
    found = sign_flip_p([one_set("a", small), one_set("b", large)])
    assert found.tolist() == pytest.approx([brute_force_p(small, large)])
    assert sign_flip_p([one_set("a", [1.0, 1.0, 1.0, 1.0])]).tolist() == [2 / 16]


def test_many_differences_are_flipped_at_random_and_come_near_the_whole_truth() -> None:
    differences = np.random.default_rng(7).normal(0.3, 1.0, size=16).tolist()  # 65,536 ways
    (found,) = sign_flip_p([one_set("a", differences)])
    assert found == pytest.approx(brute_force_p(differences), abs=0.015)
    assert found == sign_flip_p([one_set("a", differences)])[0]


def test_columns_without_a_difference_have_p_1_and_do_not_disturb_others() -> None:
    values = [0.3] * 20
    found = sign_flip_p([one_set("a", [0.0] * 20, values, [0.0] * 19 + [1.0])])
    assert found[0] == 1
    assert found[1] == pytest.approx(1 / 10_001)
    assert found[2] == 1


def test_the_data_sets_of_a_sign_flip_count_the_same() -> None:
    many, few = [0.1] * 400, [-0.1] * 4
    assert sign_flip_p([one_set("a", many), one_set("b", few)])[0] == 1
    assert sign_flip_p([one_set("a", many)])[0] < 0.001


def test_the_sign_flip_of_a_rate_in_one_data_set_is_the_exact_test_of_mcnemar() -> None:
    differences = [1.0] * 7 + [-1.0] * 2 + [0.0] * 30
    (found,) = sign_flip_p([one_set("a", differences)])
    assert found == pytest.approx(mcnemar_p(7, 2))


def test_mcnemar_is_the_exact_binomial_test() -> None:
    assert mcnemar_p(0, 0) == 1
    assert mcnemar_p(5, 5) == 1
    assert mcnemar_p(6, 0) == pytest.approx(2 / 64)
    assert mcnemar_p(2, 8) == mcnemar_p(8, 2) == pytest.approx(2 * (1 + 10 + 45) / 1024)
    assert mcnemar_p(1, 9) == pytest.approx(0.021484375)  # as tables of the binomial have it
    assert mcnemar_p(13, 22) == pytest.approx(0.17546525)


def test_holm_corrects_the_smallest_most_and_keeps_the_order() -> None:
    # By hand: 0.01 x 4, 0.02 x 3, 0.03 x 2 (no less than before), 0.5 x 1.
    assert holm([0.03, 0.01, 0.5, 0.02]) == pytest.approx([0.06, 0.04, 0.5, 0.06])
    assert holm([0.9, 0.8]) == [1, 1]
    assert holm([]) == []


def test_levels_are_corrected_for_contrasts_and_for_what_a_claim_may_spare() -> None:
    assert corrected_level(1) == pytest.approx(0.95)
    assert corrected_level(10) == pytest.approx(0.995)
    assert corrected_level(10, spared=1) == pytest.approx(0.9975)


def test_means_count_each_data_set_the_same() -> None:
    assert macro_means([one_set("a", [1.0, 3.0]), one_set("b", [0.0] * 8)]).tolist() == [1.0]


def test_narrow_tails_get_more_resamples() -> None:
    assert resamples_for(0.95) == RESAMPLES
    assert resamples_for(corrected_level(30, spared=1)) == 24_000
    means = resampled_means(np.ones((3, 1)), [None] * 3, "a", 24_000)
    assert means.shape == (24_000, 1)


def test_the_interval_of_a_mean_covers_it_about_as_often_as_it_says() -> None:
    generator = np.random.default_rng(11)
    samples = generator.normal(1.0, 1.0, size=(60, 100))  # a column a repetition
    means = resampled_means(samples, [None] * 60, "a")
    found = intervals(samples.mean(axis=0).tolist(), means, [0.95] * 100)
    assert 88 <= sum(each.low <= 1.0 <= each.high for each in found) <= 100
