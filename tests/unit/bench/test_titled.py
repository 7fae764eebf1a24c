"""What cosines tell: the area under the curve, and the threshold of weak hits."""

from __future__ import annotations

import pytest

from bench.quality.titled import Nearest, auc, best_threshold, figure


def near(cosine: float, is_evidence: bool) -> Nearest:
    return Nearest((float(is_evidence),) * 3, cosine, is_evidence)


APART = [near(0.9, True), near(0.8, True), near(0.4, False), near(0.3, False)]
MIXED = [near(0.5, True), near(0.5, False)]


def test_the_area_is_1_if_all_evidence_is_nearer_and_a_half_if_nothing_is_told() -> None:
    assert auc(APART) == 1
    assert auc(MIXED) == auc([]) == auc(APART[:2]) == 0.5
    assert auc([near(0.1, True), near(0.2, False)]) == 0


def test_the_threshold_marks_what_is_no_evidence() -> None:
    threshold = best_threshold(APART)
    assert [answer.cosine < threshold for answer in APART] == [False, False, True, True]
    assert best_threshold([]) == 0


def test_differences_are_paired_by_question() -> None:
    plain = [near(0.5, False), near(0.6, True), near(0.7, True), near(0.2, False)]
    titled = [near(0.5, True), near(0.6, True), near(0.7, True), near(0.2, False)]
    rows = {
        row.what: row for row in figure({"one": {"plain": plain, "with titles": titled}}, {}).rows
    }
    difference = rows["one: with titles - plain, recall@1"]
    assert (difference.value, difference.low) == (0.25, 0)
    assert difference.high is not None
    assert difference.high > 0.25
    assert rows["one: plain, recall@1"].value == 0.5
    assert rows["greatest cosine: AUC for evidence, all sets"].value == pytest.approx(1)
