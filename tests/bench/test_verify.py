"""Figures that are measured again and compared: deviations and failures are detected."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from bench import BenchError
from bench.__main__ import main
from bench.arguments import BenchParser
from bench.data import SAMPLE
from bench.report import verify
from bench.report.rows import shown_number
from bench.report.verify import Expectation, read_expected

ROOT = Path(__file__).parents[2]
COMMAND = f"retrieval --searches logical --data {SAMPLE} --questions 3"
EXPECTATIONS = read_expected()


def write_expected(path: Path, **expectations: dict[str, Any]) -> str:
    path.write_text(json.dumps(expectations))
    return str(path)


def expectation_of(command: str, **expected: float) -> dict[str, Any]:
    return {"command": command, "seconds": 1, "tolerance": 0.001, "expected": expected}


@pytest.mark.parametrize("name", EXPECTATIONS)
def test_the_command_of_each_entry_is_understood(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def parsed(parser: BenchParser, arguments: list[str], _: object) -> int:
        parser.parse_args(arguments)
        return 0

    monkeypatch.setattr(BenchParser, "run", parsed)
    assert main([*shlex.split(EXPECTATIONS[name].command), "--json", "results.json"]) == 0


@pytest.mark.parametrize("name", EXPECTATIONS)
def test_each_value_stands_in_the_guides_that_its_entry_names(name: str) -> None:
    for guide in EXPECTATIONS[name].guides:
        text = (ROOT / guide).read_text("utf-8")
        for what, value in EXPECTATIONS[name].expected.items():
            assert shown_number(value) in text, (guide, what, value)


def test_all_that_is_verified_at_every_change_takes_two_minutes_at_most() -> None:
    assert sum(of.seconds for of in EXPECTATIONS.values() if not of.long) <= 120


@pytest.mark.server
def test_a_value_that_is_off_or_missing_is_named_and_so_is_a_command_that_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], own_cache: Path
) -> None:
    row = "retrieval/sample: logical, recall@20"
    path = tmp_path / "e.yaml"
    good = expectation_of(COMMAND, **{row: 1.0})
    write_expected(
        path,
        other=expectation_of(COMMAND, **{row: 0.98, "retrieval/no such row": 1}),
        absent=expectation_of(f"retrieval --data {tmp_path / 'none'}", a=1.0),
        elsewhere={**good, "needs": str(tmp_path / "none")},
        slow={**expectation_of("retrieval --data none", a=1.0), "long": True},
    )
    assert verify.main(["--expected", str(path)]) == 1
    output = capsys.readouterr()
    assert "It ended with exit code 1.\nThere is no data set" in output.err
    assert f"  OFF  {row}: 1 instead of 0.98\n" in output.out
    assert "  OFF  retrieval/no such row: none instead of 1\n" in output.out
    assert f"elsewhere: skipped, there is no {tmp_path / 'none'}\n" in output.out
    assert output.out.endswith("0 of 3 values are as expected.\n")
    assert "slow" not in output.out
    assert verify.main(["--expected", str(path), "--long"]) == 1
    assert capsys.readouterr().out.endswith("0 of 1 values are as expected.\n")
    assert verify.main(["--expected", str(path), "--only", "pace"]) == 1
    assert '--only: nothing is expected of "pace".\nAllowed: other, ' in capsys.readouterr().err


def test_a_tolerance_is_in_the_unit_of_the_value() -> None:
    ratio = Expectation(command="x", seconds=1.0, tolerance=0.25, expected={"a": 1.0})
    assert ratio.is_near(1.25, 1.0)
    assert not ratio.is_near(1.26, 1.0)
    assert not ratio.is_near(0.74, 1.0)
    exact = ratio.model_copy(update={"tolerance": 0.0})
    assert exact.is_near(0.1 + 0.2, 0.3)
    assert not exact.is_near(0.3001, 0.3)


def test_all_problems_of_the_file_are_reported_at_once(tmp_path: Path) -> None:
    path = tmp_path / "e.yaml"
    write_expected(
        path,
        one={**expectation_of("bench.retrieval", a=1.0), "colour": "red"},
        two={**expectation_of("retrieval"), "tolerance": -1},
    )
    with pytest.raises(BenchError) as raised:
        read_expected(path)
    text = raised.value.what
    assert text.startswith("The file of expected figures is wrong: 4 validation errors")
    for piece in ("one.colour", "two.tolerance", "two.expected"):
        assert piece in text
