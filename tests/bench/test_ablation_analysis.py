"""From cells to claims and reports: small tables that can be worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from arag_search.evaluation.bootstrap import Interval
from bench import BenchError
from bench.ablation.analysis.analysis import MACRO, Analysis, analyse
from bench.ablation.analysis.design import Contrast, Design
from bench.ablation.analysis.differing import differing
from bench.ablation.analysis.groups import groups
from bench.ablation.analysis.searching import searched
from bench.ablation.analysis.values import load_values
from bench.ablation.experiment.cells import Key
from bench.ablation.experiment.runner import run_cells
from bench.ablation.experiment.search_sums import SUMS
from bench.ablation.experiment.suite import Suite
from bench.ablation.report.report import (
    Report,
    claim_lines,
    differing_lines,
    markdown,
    write_report,
)
from bench.ablation.report.tables import (
    contrast_tables,
    coverage_table,
    policy_table,
    searching_tables,
)
from tests.support.ablations import SETS, ComputedExperiment, Values, halved_tokens, suite_of

RUN = {"command": "python -m bench ablate trial.yaml", "code": "abc"}
ASKED = Contrast("TokensToEvidence", (), "logical", "keyword")
MAIN = (("order", "Q1 Q2"),)
OTHER = (("order", "Q2 Q1"),)


def analysed(
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
    found = analysed(tmp_path)
    by_hand = {
        name: sum(math.log(100 * (number + 1)) for number in range(count)) / count
        for name, count in SETS.items()
    }
    for name, value in by_hand.items():
        estimate = found.estimates["TokensToEvidence", name, condition("keyword")]
        assert estimate.value == pytest.approx(value)
        assert estimate.low < estimate.value < estimate.high
    macro = found.estimates["TokensToEvidence", MACRO, condition("keyword")]
    assert macro.value == pytest.approx((by_hand["small"] + by_hand["large"]) / 2)
    rate = found.estimates["FullEvidence", "small", condition("logical")]
    assert rate.value == pytest.approx(4 / 6)


def test_half_the_tokens_everywhere_is_a_claim_with_its_factor(tmp_path: Path) -> None:
    found = analysed(tmp_path)
    difference = found.differences[ASKED, MACRO, MAIN]
    assert difference.interval.value == pytest.approx(math.log(0.5))
    assert (difference.interval.low, difference.interval.high) == pytest.approx(
        (math.log(0.5), math.log(0.5))
    )
    assert (difference.wins, difference.losses, difference.ties) == (18, 0, 0)
    assert difference.p == pytest.approx(1 / 10_001)
    assert found.differences[ASKED, "small", MAIN].p == pytest.approx(2 / 2**6)
    assert found.claims[ASKED].outcome == "first"
    assert claim_lines(found) == [
        "- **logical beats keyword**: TokensToEvidence x 0.50 over 2 policies, resolved in 2 "
        "for logical, macro-average of 2 data sets."
    ]


def test_a_winner_that_changes_with_the_order_depends_on_policy(tmp_path: Path) -> None:
    def turned(key: Key, number: int) -> dict[str, float | None]:
        is_ahead = (key["interface"] == "logical") == (key["order"] == "Q1 Q2")
        return {"TokensToEvidence": 100.0 if is_ahead else 400.0, "FullEvidence": 1.0}

    found = analysed(tmp_path, turned)
    assert found.claims[ASKED].outcome == "depends"
    (text,) = claim_lines(found)
    assert (
        "**logical against keyword depends on policy**: TokensToEvidence x 0.25 to x 4.00" in text
    )
    table = "\n".join(policy_table(found, ()))
    assert "| contrast (* resolved) | Q1 Q2 | Q2 Q1 |" in table
    assert "| logical to keyword | x 0.25 * | x 4.00 * |" in table


def test_what_is_not_resolved_says_what_could_have_been_and_never_equal(tmp_path: Path) -> None:
    def noisy(key: Key, number: int) -> dict[str, float | None]:
        side = 1 if key["interface"] == "logical" else -1
        return {
            "TokensToEvidence": 100.0 * 2 ** (side * (-1) ** (number // 2)),
            "FullEvidence": 1.0,
        }

    found = analysed(tmp_path, noisy)
    (text,) = claim_lines(found)
    assert text.startswith("- **logical against keyword is not resolved** (from ")
    assert "equal" not in text
    rate = found.differences[Contrast("FullEvidence", (), "logical", "keyword"), "small", MAIN]
    assert (rate.p, rate.test, rate.ties) == (1.0, "McNemar", 6)


def test_holm_is_over_the_contrasts_of_all_strata(tmp_path: Path) -> None:
    found = analysed(tmp_path, experiment__title=["off", "on"], comparison__apart=["title"])
    adjusted = [
        each.adjusted_p for (one, name, policy), each in found.differences.items()
        if one.measure == "TokensToEvidence" and name == MACRO and policy == MAIN
    ]  # fmt: skip
    assert adjusted == pytest.approx([2 / 10_001] * 2)
    assert all(
        each.adjusted_p is None for (_, name, _), each in found.differences.items() if name != MACRO
    )
    assert len(found.claims) == 2
    assert [one.outcome for one in found.claims.values()] == ["first", "first"]


def test_seeds_are_averaged_before_anything_else(tmp_path: Path) -> None:
    calls = iter(range(10_000))

    def by_seed(key: Key, number: int) -> dict[str, float | None]:
        return {"TokensToEvidence": 100.0, "FullEvidence": float(next(calls) % 2)}

    found = analysed(tmp_path, by_seed, seeds=2)
    assert found.estimates["FullEvidence", "small", condition("logical")].value == 0.5
    rate = found.differences[Contrast("FullEvidence", (), "logical", "keyword"), "small", MAIN]
    assert rate.test == "sign flips"


def test_questions_without_a_value_are_left_out_of_that_measure_and_counted(tmp_path: Path) -> None:
    def gaps(key: Key, number: int) -> dict[str, float | None]:
        lacks = number == 0 and key["interface"] == "keyword"
        return {**halved_tokens(key, number), "FullEvidence": None if lacks else 1.0}

    found = analysed(tmp_path, gaps)
    assert found.questions["FullEvidence", "small", ()] == 5
    assert found.questions["TokensToEvidence", "small", ()] == 6


def test_a_measure_that_nothing_has_is_left_out_unless_claims_rest_on_it(tmp_path: Path) -> None:
    found = analysed(tmp_path, measures=["JudgeAcc"])
    assert not any(name == "JudgeAcc" for name, _, _ in found.estimates)
    with pytest.raises(BenchError, match="The primary measure JudgeAcc has no value"):
        analysed(tmp_path, comparison__primary="JudgeAcc")


def test_cells_of_other_questions_are_refused(tmp_path: Path) -> None:
    suite = suite_of()
    measure(tmp_path, suite, halved_tokens)
    path = next(tmp_path.glob("*keyword-surface-Q1*"))
    path.write_bytes(path.read_bytes().replace(b'"q1"', b'"q99"'))
    with pytest.raises(BenchError, match="have other questions"):
        load_values(tmp_path, ComputedExperiment(suite, halved_tokens).keys, suite.shown_measures)


def test_conditions_that_one_data_set_lacks_are_left_out_and_said(tmp_path: Path) -> None:
    suite = suite_of()
    measure(tmp_path, suite, halved_tokens)
    for path in tmp_path.glob("small-*-Q2-Q1-*"):
        path.unlink()
    sets, missing = load_values(
        tmp_path, ComputedExperiment(suite, halved_tokens).keys, suite.shown_measures
    )
    found = analyse(Design(suite, ComputedExperiment(suite, halved_tokens).keys), sets)
    assert len(missing) == 2
    assert found.policies == [MAIN]
    assert found.claims[ASKED].outcome == "too few policies"
    text = markdown(Report(found, missing, [], tmp_path, RUN), [], tmp_path)
    assert "**Incomplete**: 2 cells were not measured yet, the first of them set small" in text
    for path in tmp_path.glob("large-*"):
        path.unlink()
    with pytest.raises(BenchError, match="no condition of which all data sets were measured"):
        load_values(tmp_path, ComputedExperiment(suite, halved_tokens).keys, suite.shown_measures)


def test_the_questions_that_differ_most_are_named_with_their_records(tmp_path: Path) -> None:
    def one_far(key: Key, number: int) -> dict[str, float | None]:
        tokens = 9.0 if (number, key["interface"]) == (3, "keyword") else 100.0
        return {"TokensToEvidence": tokens, "FullEvidence": 1.0}

    (first, second) = differing(analysed(tmp_path, one_far))
    assert (first.set_name, second.set_name) == ("small", "large")
    assert first.question_id == "q3"
    assert first.values == (pytest.approx(100), pytest.approx(9))
    assert first.records == ("cells/logical#q3", "cells/keyword#q3")


def test_groups_are_by_hops_and_by_type(tmp_path: Path) -> None:
    found = groups(analysed(tmp_path), "TokensToEvidence", ())
    parts = [(one.part, one.questions) for one in found if one.set_name == "small"]
    assert parts == [("2 hops", 2), ("3 hops", 2), ("4 hops", 2), ("even", 3), ("odd", 3)]
    two_hops = found[0].estimates["keyword"].value
    assert two_hops == pytest.approx((math.log(100) + math.log(400)) / 2)


def test_tables_have_tests_wins_and_calls(tmp_path: Path) -> None:
    found = analysed(tmp_path)
    text = "\n".join(contrast_tables(found, ()))
    assert "first to second [95.00%]" in text
    row = "| TokensToEvidence | logical | keyword | macro-average | x 0.50 [x 0.50, x 0.50] |"
    assert f"{row} < 0.001 (sign flips) | < 0.001 | 18 | 0 | 0 |" in text
    assert "| small | +0.000 [+0.000, +0.000] not resolved (from 0.000) | 1.000 (McNemar)" in text
    calls = "\n".join(coverage_table(found, ()))
    assert "| small | logical | 6 | 0 | 0 | 4.0 | 25.0% | - | - | - |" in calls


def test_a_page_of_questions_promises_records_only_where_they_are_kept(tmp_path: Path) -> None:
    found = analysed(tmp_path)
    without = [replace(one, records={each: {} for each in one.conditions}) for one in found.sets]
    kept = "with their records (`arag-search show FOLDER ID` prints one); the main policy."
    for each, told in ((found, True), (replace(found, sets=without), False)):
        text = "\n".join(differing_lines(Report(each, [], [], tmp_path, RUN), tmp_path))
        assert (kept in text) == ("record" in text.split("| data set |")[1]) == told
        assert "Those that differ most by TokensToEvidence" in text


# Searches


def searches(number: int) -> dict[str, Any]:
    """Every odd question has a search that failed; after those of the first ones the next found
    something. Pairs share half."""
    failed, at_once = number % 2, number % 2 * (number < 5)
    counts = dict.fromkeys(SUMS, 0) | {
        "searches": 4, "pairs": number, "of_larger": number / 2, "failed": failed,
        "at_once": at_once, "never": failed - at_once, "waited": at_once,
    }  # fmt: skip
    return {"search_sums": counts}


def test_rates_of_searches_are_sums_by_sums_and_data_sets_count_the_same(tmp_path: Path) -> None:
    found = analysed(tmp_path, more=searches)
    by_place = {(one.set_name, one.level): one for one in searched(found, ())}
    assert len(by_place) == 3 * 2
    small, macro = by_place["small", "logical"], by_place[MACRO, "logical"]
    assert (small.counts["searches"], small.counts["failed"]) == (24, 3)
    assert small.rates["of the larger"] == Interval(0.5, 0.5, 0.5)
    wanted = {"failed": (3 / 24, 3 / 24), "the next found something": (2 / 3, (2 / 3 + 2 / 6) / 2),
              "none": (1 / 3, (1 / 3 + 4 / 6) / 2), "searches until one did": (1, 1)}  # fmt: skip
    for name, values in wanted.items():
        for one, value in zip((small, macro), values, strict=True):
            rate = one.rates[name]
            assert rate is not None
            assert rate.value == pytest.approx(value)
            assert rate.low <= rate.value <= rate.high
    text = "\n".join(searching_tables(found, ()))
    assert "| small | logical | 15 | 0 | 0.500 [0.500, 0.500] | 0.000 [0.000, 0.000] |" in text
    assert "| small | logical | 24 | 3 | 0.125 [" in text
    assert "Whether two searches meant the same, and which succeeded: not measured" in text


def test_nothing_to_divide_by_is_no_rate_and_no_records_are_no_table(tmp_path: Path) -> None:
    none = analysed(tmp_path / "none", more=lambda _: {"search_sums": dict.fromkeys(SUMS, 0)})
    assert {rate for one in searched(none, ()) for rate in one.rates.values()} == {None}
    assert "| small | logical | 0 | 0 | - | - | - | - |" in "\n".join(searching_tables(none, ()))
    # A single search that failed: most draws have it, those without are left out.
    one = analysed(
        tmp_path / "one",
        more=lambda number: {"search_sums": searches(number)["search_sums"] if number == 1 else
                             dict.fromkeys(SUMS, 0)},
    )  # fmt: skip
    rate = searched(one, ())[0].rates["the next found something"]
    assert rate == Interval(1, 1, 1)
    assert searching_tables(analysed(tmp_path / "bare"), ()) == []


def test_a_report_has_text_json_and_pictures_and_names_no_folder(tmp_path: Path) -> None:
    found = analysed(tmp_path / "work" / "cells")
    report = Report(found, [], [], tmp_path / "work", RUN)
    path = write_report(report, tmp_path / "out")
    names = {one.name for one in (tmp_path / "out").iterdir()}
    pictures = {
        f"trial_{what}{ending}"
        for what in ("tokens", "evidence", "quality", "parts")
        for ending in (".png", ".svg")
    }
    assert names == {"trial.md", "trial_questions.md", "trial.json", *pictures}
    text = path.read_text()
    assert "![trial_tokens.png](trial_tokens.png)" in text
    assert "- code: `one`" in text
    assert str(tmp_path) not in text + (tmp_path / "out" / "trial.json").read_text()
    questions = (tmp_path / "out" / "trial_questions.md").read_text()
    assert "| small | `q0` | logical 50 (`cells/logical`) | keyword 100 (`" in questions
    beside = "\n".join(differing_lines(report, tmp_path / "work" / "report"))
    assert "| small | `q0` | logical 50 ([record](../cells/logical)) |" in beside
