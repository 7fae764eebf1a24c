"""Runs beside the first of them: differences worked by hand, intervals, and what is paired."""

from __future__ import annotations

from dataclasses import replace

import pytest

from arag_search.errors import RunError
from arag_search.evaluation.bootstrap import BEYOND, RESAMPLES, resamples_for
from arag_search.evaluation.loaded_run import LoadedRun
from arag_search.evaluation.measures import parse_measures
from arag_search.evaluation.run_differences import compare_runs
from arag_search.evaluation.score import Score, score_run
from arag_search.questions.question import Question
from arag_search.runs.folder import RunDescription
from tests.support.records import record

ASKED = [Question(f"q{at}", f"Who wrote opera {at}?", (f"composer {at}",)) for at in range(40)]


def scored(right: set[int], asked: list[Question] = ASKED, names: str = "EM,Steps") -> Score:
    """Return the score of a run that is right in some questions."""
    records = {
        question.id: record(question.id, question.answers[0] if at in right else "someone else")
        for at, question in enumerate(asked)
    }
    about = RunDescription(
        created="", preset="p", index="i", filter=None, model="m", questions="f",
        count=len(asked), limit=None, fingerprints={},
    )  # fmt: skip
    return score_run(LoadedRun(about, tuple(asked), records, ()), measures=parse_measures([names]))


def test_wins_losses_and_the_interval_are_those_of_the_paired_questions() -> None:
    compared = compare_runs({"a": scored({*range(10)}), "b": scored({*range(1, 31)})})
    exact, steps = compared.differences
    assert (exact.run, exact.questions, exact.means) == ("b", 40, [0.25, 0.75])
    interval = exact.difference.interval
    assert (exact.difference.wins, exact.difference.losses, exact.difference.ties) == (21, 1, 18)
    assert interval.value == 0.5
    assert interval.low == pytest.approx(0.5 - 2.24 * 0.0869, abs=0.03)  # by the normal
    assert interval.is_resolved
    assert not steps.difference.interval.is_resolved
    assert compared.level == 0.975
    rows = compared.to_json()["questions"]
    assert [(row["run"], row["id"], row["EM"]) for row in (rows[0], rows[79])] == [
        ("a", "q0", 1.0), ("b", "q39", 0.0),
    ]  # fmt: skip


def test_one_correction_covers_all_runs_and_measures_and_fewer_steps_are_better() -> None:
    short, long = scored({0}), scored({0})
    more = {id: {**of, "Steps": 3.0} for id, of in long.values.items()}
    compared = compare_runs({"a": short, "b": replace(long, values=more), "c": short})
    assert compared.level == pytest.approx(1 - 0.05 / 4)
    steps = compared.differences[1]
    assert (steps.difference.wins, steps.difference.losses) == (0, 40)
    assert resamples_for(compared.level) == RESAMPLES
    assert resamples_for(1 - 1e-4) == pytest.approx(2 * BEYOND / 1e-4, abs=1)


def test_only_questions_of_both_runs_are_paired_and_few_of_them_are_warned_of() -> None:
    compared = compare_runs({"a": scored({0}), "b": scored({0}, ASKED[:4])})
    assert [difference.questions for difference in compared.differences] == [4, 4]
    assert "b: 4 of 40 questions are in both runs." in compared.notes
    assert "b: intervals over fewer than 20 questions are too narrow." in compared.notes


def test_runs_over_other_questions_are_refused() -> None:
    other = [replace(ASKED[0], text="Who sang?"), *ASKED[1:]]
    with pytest.raises(RunError) as error:
        compare_runs({"a": scored({0}), "b": scored({0}, other)})
    assert str(error.value) == (
        "The runs asked different questions: q0.\n"
        "Where: a and b\n"
        "Allowed: runs over the same file of questions\n"
        "Do: Run both over one file, or compare others."
    )
    with pytest.raises(RunError):
        compare_runs({"a": scored({0}, ASKED[:2]), "b": scored({0}, ASKED[2:])})


def test_a_measure_without_a_value_in_both_runs_has_no_line() -> None:
    runs = {name: scored({0}, names="EM,EvidenceRecall") for name in "ab"}
    assert [of.measure for of in compare_runs(runs).differences] == ["EM"]
