"""The way from cells to claims and reports, on small tables that can be checked by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from bench import BenchError
from bench.ablation.analysis import MACRO, Analysis, analyse
from bench.ablation.cells import Key, run_cells
from bench.ablation.design import Contrast, Design
from bench.ablation.report import (
    Report,
    claim_lines,
    markdown,
    write_report,
)
from bench.ablation.suite import Suite
from bench.ablation.tables import (
    contrast_tables,
    coverage_table,
    measure_tables,
)
from bench.ablation.values import load_values
from tests.support.ablations import SETS, ComputedExperiment, Values, halved_tokens, suite_of

RUN = {"command": "python -m bench ablate trial.yaml", "code": "abc"}
CONTRAST = Contrast("TokensToEvidence", (), "logical", "keyword")
MAIN = (("order", "Q1 Q2"),)


def analysis_of(
    folder: Path,
    values: Values = halved_tokens,
    seeds: int = 1,
    more: Callable[[int], Mapping[str, Any]] | None = None,
    **changes: Any,
) -> Analysis:
    suite = suite_of(**changes)
    measure(folder, suite, values, seeds, more)
    design = Design(suite, ComputedExperiment(suite, values).keys)
    sets, missing = load_values(folder, design.keys, suite.shown_measures)
    assert not missing
    return analyse(design, sets)


def measure(
    folder: Path,
    suite: Suite,
    values: Values,
    seeds: int = 1,
    more: Callable[[int], Mapping[str, Any]] | None = None,
) -> None:
    experiment = ComputedExperiment(suite, values)
    experiment.more = more or experiment.more
    experiment.seeds = tuple(range(1, seeds + 1))
    run_cells(experiment, experiment.keys, folder, lambda _: None)


def condition(interface: str, order: str = "Q1 Q2") -> tuple[tuple[str, str], ...]:
    return (
        ("passages", "published"), ("title", "off"), ("reply", "full"), ("interface", interface),
        ("names", "surface"), ("order", order),
    )  # fmt: skip


def test_tokens_are_geometric_means_and_data_sets_count_the_same(tmp_path: Path) -> None:
    analysis = analysis_of(tmp_path)
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


def test_half_the_tokens_everywhere_is_a_claim_with_its_factor(tmp_path: Path) -> None:
    analysis = analysis_of(tmp_path)
    difference = analysis.differences[CONTRAST, MACRO, MAIN]
    assert difference.interval.value == pytest.approx(math.log(0.5))
    assert (difference.interval.low, difference.interval.high) == pytest.approx(
        (math.log(0.5), math.log(0.5))
    )
    assert (difference.wins, difference.losses, difference.ties) == (18, 0, 0)
    assert analysis.claims[CONTRAST].outcome == "first"
    assert claim_lines(analysis) == [
        "- **logical beats keyword**: TokensToEvidence x 0.50 over 2 policies, resolved in 2 "
        "for logical, macro-average of 2 data sets."
    ]


def test_seeds_are_averaged_before_anything_else(tmp_path: Path) -> None:
    calls = iter(range(10_000))

    def by_seed(key: Key, number: int) -> dict[str, float | None]:
        return {"TokensToEvidence": 100.0, "FullEvidence": float(next(calls) % 2)}

    analysis = analysis_of(tmp_path, by_seed, seeds=2)
    assert analysis.estimates["FullEvidence", "small", condition("logical")].value == 0.5


def test_questions_without_a_value_are_left_out_of_a_measure_and_counted(tmp_path: Path) -> None:
    def gaps(key: Key, number: int) -> dict[str, float | None]:
        lacks = number == 0 and key["interface"] == "keyword"
        return {**halved_tokens(key, number), "FullEvidence": None if lacks else 1.0}

    analysis = analysis_of(tmp_path, gaps)
    assert analysis.questions["FullEvidence", "small", ()] == 5
    assert analysis.questions["TokensToEvidence", "small", ()] == 6


def test_a_measure_without_values_is_left_out_unless_claims_rest_on_it(tmp_path: Path) -> None:
    analysis = analysis_of(tmp_path, measures=["JudgeAcc"])
    assert not any(name == "JudgeAcc" for name, _, _ in analysis.estimates)
    with pytest.raises(BenchError, match="The primary measure JudgeAcc has no value"):
        analysis_of(tmp_path, comparison__primary="JudgeAcc")


def test_cells_of_other_questions_are_rejected(tmp_path: Path) -> None:
    suite = suite_of()
    measure(tmp_path, suite, halved_tokens)
    path = next(tmp_path.glob("*keyword-surface-Q1*"))
    path.write_bytes(path.read_bytes().replace(b'"q1"', b'"q99"'))
    with pytest.raises(BenchError, match="have other questions"):
        load_values(tmp_path, ComputedExperiment(suite, halved_tokens).keys, suite.shown_measures)


def test_conditions_that_one_data_set_lacks_are_left_out_and_reported(tmp_path: Path) -> None:
    suite = suite_of()
    measure(tmp_path, suite, halved_tokens)
    for path in tmp_path.glob("small-*-Q2-Q1-*"):
        path.unlink()
    sets, missing = load_values(
        tmp_path, ComputedExperiment(suite, halved_tokens).keys, suite.shown_measures
    )
    analysis = analyse(Design(suite, ComputedExperiment(suite, halved_tokens).keys), sets)
    assert len(missing) == 2
    assert analysis.policies == [MAIN]
    assert analysis.claims[CONTRAST].policies == 1
    text = markdown(Report(analysis, missing, [], tmp_path, RUN), [], tmp_path)
    assert "**Incomplete**: 2 cells were not measured yet, the first of them set small" in text
    for path in tmp_path.glob("large-*"):
        path.unlink()
    with pytest.raises(BenchError, match="no condition of which all data sets were measured"):
        load_values(tmp_path, ComputedExperiment(suite, halved_tokens).keys, suite.shown_measures)


def test_tables_have_wins_and_calls(tmp_path: Path) -> None:
    analysis = analysis_of(tmp_path)
    text = "\n".join(contrast_tables(analysis, ()))
    assert "first to second [95.00%]" in text
    row = "| TokensToEvidence | logical | keyword | macro-average | x 0.50 [x 0.50, x 0.50] |"
    assert f"{row} x 0.50 | 18 | 0 | 0 |" in text
    assert "| small | +0.000 [+0.000, +0.000] not resolved (from 0.000) |  | 0 |" in text
    calls = "\n".join(coverage_table(analysis, ()))
    assert "| small | logical | 6 | 0 | 0 | 4.0 | 25.0% | - | - | - |" in calls


def test_a_report_has_text_json_and_pictures_and_names_no_folder(tmp_path: Path) -> None:
    analysis = analysis_of(tmp_path / "work" / "cells")
    report = Report(analysis, [], [], tmp_path / "work", RUN)
    path = write_report(report, tmp_path / "out")
    names = {file.name for file in (tmp_path / "out").iterdir()}
    pictures = {
        f"trial_{what}{ending}" for what in ("tokens", "evidence") for ending in (".png", ".svg")
    }
    assert names == {"trial.md", "trial.json", *pictures}
    text = path.read_text()
    assert "![trial_tokens.png](trial_tokens.png)" in text
    assert "- code: `one`" in text
    assert str(tmp_path) not in text + (tmp_path / "out" / "trial.json").read_text()


def test_costs_are_also_compared_by_the_ratio_of_their_arithmetic_means(tmp_path: Path) -> None:
    def values(key: Key, number: int) -> dict[str, float | None]:
        tokens = 1_010.0 if number == 0 and key["interface"] == "logical" else 10.0
        return {"TokensToEvidence": tokens, "FullEvidence": 1.0}

    analysis = analysis_of(tmp_path, values)
    means = {
        name: analysis.plain_mean("TokensToEvidence", name, (), "logical")
        for name in (*SETS, MACRO)
    }
    expected = {name: (1_010 + 10 * (count - 1)) / count for name, count in SETS.items()}
    expected[MACRO] = sum(expected.values()) / 2
    assert means == pytest.approx(expected)
    assert analysis.plain_mean("FullEvidence", MACRO, (), "logical") is None
    costs, rates = (line for line in contrast_tables(analysis, ()) if MACRO in line)
    assert "| x 13.50 |" in costs
    assert "| x " not in rates
    assert "| small | logical | 21.6 [10, 100] | 177 |" in "\n".join(measure_tables(analysis, ()))
