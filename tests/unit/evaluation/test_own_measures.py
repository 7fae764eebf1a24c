"""Measures of a module of the user's, by MODULE:FUNCTION, and what is said if one does not work."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from arag_search.errors import ArgumentError, ConfigError
from arag_search.evaluation.measurement import measure_questions
from arag_search.evaluation.measures import Measure, parse_measure, parse_measures
from arag_search.questions.question import Question
from bench.ablation.measure import is_ratio, measure_of
from tests.support.ablations import suite_of
from tests.support.records import record

ASKED = [Question("a", "Who?", ("Ann Lee",)), Question("b", "Where?", ("Bath",))]
RECORDS = {"a": record("a", "Ann Lee")}
_NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("own_")]:
        del sys.modules[name]


def own(body: str) -> str:
    """Write a module to the current folder, and return the name of its measure ``count``."""
    name = f"own_{next(_NUMBERS)}"
    Path(f"{name}.py").write_text(body)
    return f"{name}:count"


def values_of(measure: Measure) -> list[float | None]:
    _, values = measure_questions(ASKED, RECORDS, [measure])
    return [values[question.id][str(measure)] for question in ASKED]


def test_a_function_of_record_and_question_is_a_measure_and_the_missing_count_as_0() -> None:
    name = own(
        "def count(record, question):\n"
        "    '''Words of the answer.\n\n    More.'''\n"
        "    return len(record.answer_short.split()) == len(question.answers[0].split())\n"
    )
    measure = parse_measure(name)
    assert (str(measure), measure.kind.meaning) == (name, "Words of the answer.")
    assert parse_measures([f"EM,{name}", name])[1:] == (measure,)
    assert values_of(measure) == [1.0, 0.0]
    suite = suite_of(measures=["EM", name], comparison__secondary=[name])
    assert suite.shown_measures == ("TokensToEvidence", name, "EM")
    assert measure_of(name) == measure
    assert not is_ratio(name)


def test_a_cost_of_ones_own_leaves_out_questions_without_a_record() -> None:
    measure = parse_measure(own("def count(record, question): return 3\n"
                                "count.higher_is_better = False\n"))  # fmt: skip
    assert values_of(measure) == [3.0, None]
    assert not measure.kind.higher_is_better


def test_what_cannot_be_imported_is_said(folder: Path) -> None:
    with pytest.raises(ArgumentError) as caught:
        parse_measure("own_absent:count")
    assert str(caught.value) == (
        "The measure own_absent:count cannot be imported (ModuleNotFoundError: No module named "
        "'own_absent').\n"
        f"Where: {folder}\n"
        f"Allowed: MODULE:FUNCTION of a module in {folder}, or of one that is installed\n"
        "Do: Run the command in the folder of the module, with count(record, question) in it."
    )
    name = own("def length(record, question): return 1\n")
    module = name.removesuffix(":count")
    with pytest.raises(ArgumentError, match=f"AttributeError: module '{module}' has no attribute"):
        parse_measure(name)
    with pytest.raises(ArgumentError, match=r"cannot be imported \(ZeroDivisionError: "):
        parse_measure(own("1 / 0\n"))
    assert f"module '{module}' has no attribute" in problem_of_suite(name)


def problem_of_suite(name: str) -> str:
    with pytest.raises(ConfigError) as caught:
        suite_of(measures=[name])
    return str(caught.value)


@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        ("'many'", "The measure returned 'many'."),
        ("float('nan')", "The measure returned nan."),
        ("[]", "The measure returned []."),
        ("record.nothing", "The measure raised AttributeError: 'Record' object has no attribute"),
    ],
)
def test_a_wrong_value_and_an_exception_name_the_question(returned: str, problem: str) -> None:
    name = own(f"def count(record, question): return {returned}\n")
    with pytest.raises(ArgumentError) as caught:
        values_of(parse_measure(name))
    assert str(caught.value).startswith(problem)
    assert str(caught.value).endswith(
        f"Where: the measure {name}, question a\n"
        "Allowed: a finite number, or None for a question that does not count\n"
        "Do: Correct the function."
    )


def test_none_leaves_a_question_out_and_numbers_of_numpy_count() -> None:
    body = "import numpy\ndef count(record, question): return {}\n"
    assert values_of(parse_measure(own(body.format("None")))) == [None, 0.0]
    assert values_of(parse_measure(own(body.format("numpy.float32(2)")))) == [2.0, 0.0]
    failed = {"a": replace(RECORDS["a"], status="failed")}
    measure = parse_measure(own("def count(record, question): 1 / 0\n"))
    assert measure_questions(ASKED, failed, [measure])[1]["a"] == {str(measure): 0.0}
