"""The way from cells to contrasts and reports, on small tables that can be checked by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bench import BenchError
from bench.ablation.analysis import MACRO, Analysis, analyse
from bench.ablation.report import contrast_table, write_report
from bench.ablation.suite import Key, Levels
from tests.support.ablations import SETS, Values, cells_of, halved_tokens, suite_of

FIRST: Levels = (("order", "Q1 Q2 Q3"),)


def analysis_of(
    values: Values = halved_tokens, seeds: tuple[int, ...] = (1,), **changes: Any
) -> Analysis:
    suite = suite_of(**changes)
    return analyse(suite, suite.shown_measures, cells_of(suite, values, seeds))


def condition(interface: str, order: str = "Q1 Q2 Q3") -> Levels:
    return (("interface", interface), ("names", "surface"),
            ("order", order))  # fmt: skip


def test_tokens_are_geometric_means_and_data_sets_count_the_same() -> None:
    analysis = analysis_of()
    expected = {
        name: sum(math.log(100 * (number + 1)) for number in range(count)) / count
        for name, count in SETS.items()
    }
    for name, value in expected.items():
        estimate = analysis.estimates["TokensToEvidence", name, condition("keyword")]
        assert estimate.value == pytest.approx(value)
        assert estimate.low < estimate.value < estimate.high
    macro = analysis.estimates["TokensToEvidence", MACRO, condition("keyword")]
    assert macro.value == pytest.approx((expected["small"] + expected["large"]) / 2)
    rate = analysis.estimates["FullEvidence", "small", condition("logical")]
    assert rate.value == pytest.approx(4 / 6)
    plain = {name: 100 * (count + 1) / 2 for name, count in SETS.items()}
    plain[MACRO] = sum(plain.values()) / 2
    for name, mean in plain.items():
        estimate = analysis.means["TokensToEvidence", name, condition("keyword")]
        assert estimate.value == pytest.approx(mean)
        assert estimate.low < mean < estimate.high


def test_half_the_tokens_everywhere_is_a_contrast_with_its_factor() -> None:
    text = "\n".join(contrast_table(analysis_of(), FIRST))
    row = "| TokensToEvidence | logical | keyword | macro-average | x 0.50 [x 0.50, x 0.50] |"
    assert f"{row} 18 | 0 | 0 |" in text
    assert (
        "| small | +0.000 [+0.000, +0.000] not told apart (smallest: 0.000) | 0 | 0 | 6 |" in text
    )


def test_seeds_are_averaged_before_anything_else() -> None:
    calls = iter(range(10_000))

    def by_seed(key: Key, number: int) -> dict[str, float | None]:
        return {"TokensToEvidence": 100.0, "FullEvidence": float(next(calls) % 2)}

    analysis = analysis_of(by_seed, (1, 2))
    assert analysis.estimates["FullEvidence", "small", condition("logical")].value == 0.5


def test_questions_without_a_value_under_a_compared_condition_are_left_out_of_a_measure() -> None:
    def gaps(key: Key, number: int) -> dict[str, float | None]:
        lacks = number == 0 and key["interface"] == "keyword"
        return {**halved_tokens(key, number), "FullEvidence": None if lacks else float(number > 0)}

    analysis = analysis_of(gaps)
    assert analysis.estimates["FullEvidence", "small", condition("logical")].value == 1


def test_a_measure_without_values_is_left_out_unless_contrasts_rest_on_it() -> None:
    assert "JudgeAcc" not in analysis_of(measures=["JudgeAcc"]).measures
    with pytest.raises(BenchError, match="The primary measure JudgeAcc has no value"):
        analysis_of(comparison__primary="JudgeAcc")


def test_a_report_has_text_json_cells_and_a_picture_and_names_no_folder(tmp_path: Path) -> None:
    run = {
        "command": "python -m bench ablate x.yaml",
        "commit": "abc",
        "uncommitted_changes": True,
        "code": "def",
        "lucene": "10.5.1",
        "python": "3.11.7",
    }
    path = write_report(analysis_of(), run, tmp_path)
    names = {file.name for file in tmp_path.iterdir()}
    assert names == {"trial.md", "trial.json", "trial.svg", "cells.jsonl"}
    text = path.read_text()
    assert (
        "(commit abc, with uncommitted changes; sources def, Lucene 10.5.1, Python 3.11.7)." in text
    )
    assert "| first - second, or x second | wins of first |" in text
    assert "| small | logical | 150 [" in text
    assert ", mean 175 [108, 242] | 0.667 [0.5, 1] | 6 | 0 | 0 |" in text
    assert text.count("### Values") == 2
    assert str(tmp_path) not in text + (tmp_path / "trial.json").read_text()
    drawn = ElementTree.fromstring((tmp_path / "trial.svg").read_text())
    texts = [element.text for element in drawn.iter() if element.text]
    assert texts.count("logical") == texts.count("keyword") == 2
    assert "TokensToEvidence, geometric mean" in texts


def test_tokens_to_a_right_answer_are_sums_and_have_no_value_without_one() -> None:
    def spent(key: Key, number: int) -> dict[str, float | None]:
        right = float(key["interface"] == "logical" and number > 1)
        judged = {"ContainAcc": right, "JudgeAcc": 0.0 if number == 5 else None}
        return {"TokensToEvidence": 1, "TokensToRight": 100.0 * (number + 1), **judged}

    analysis = analysis_of(spent, measures=["TokensToRight"])
    estimate = analysis.estimates["TokensToRight", "small", condition("logical")]
    assert estimate.value == pytest.approx(2_100 / 3)
    assert estimate.low < estimate.value < estimate.high
    assert ("TokensToRight", "small", condition("keyword")) not in analysis.estimates
    assert all(contrast.measure != "TokensToRight" for contrast, _ in analysis.differences)


def test_without_pairs_values_are_estimated_and_nothing_is_compared() -> None:
    analysis = analysis_of(comparison__pairs=[])
    assert (bool(analysis.estimates), analysis.differences) == (True, {})
