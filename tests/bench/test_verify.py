"""Figures that are measured again and compared: deviations and failures are detected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from bench import BenchError
from bench.report import verify
from bench.report.rows import read_results
from bench.report.verify import Expectation, read_expected
from bench.scale import synthetic
from bench.scale.words import main as count_words


def write_expected(path: Path, **expectations: dict[str, Any]) -> Path:
    path.write_text(yaml.safe_dump(expectations, sort_keys=False))
    return path


def expectation_of(
    command: str, expected: dict[str, float], tolerance: float = 0
) -> dict[str, Any]:
    return {
        "command": command,
        "kind": "deterministic",
        "seconds": 1,
        "tolerance": tolerance,
        "expected": expected,
    }


@pytest.fixture(name="words", scope="module")
def word_counts(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, float]]:
    """Return a command that counts the words of a small corpus, and the values of its figures."""
    folder = tmp_path_factory.mktemp("words")
    corpus = folder / "2wikimultihopqa" / "corpus.jsonl"
    corpus.parent.mkdir()
    synthetic.write(60, corpus)
    results = folder / "words.json"
    assert count_words(["--data", str(folder), "--json", str(results)]) == 0
    rows = read_results(results)["words"].rows
    return f"words --data {folder}", {f"words/{row.what}": row.value for row in rows}


def test_a_reproduced_figure_is_as_expected_and_an_altered_one_is_off(
    tmp_path: Path, words: tuple[str, dict[str, float]], capsys: pytest.CaptureFixture[str]
) -> None:
    command, values = words
    expected = write_expected(tmp_path / "e.yaml", words=expectation_of(command, values))
    assert verify.main(["--expected", str(expected)]) == 0
    assert f"{len(values)} of {len(values)} values are as expected" in capsys.readouterr().out

    altered = {**values, "words/real: Zipf slope": values["words/real: Zipf slope"] + 0.001}
    write_expected(
        expected, words=expectation_of(command, altered), other=expectation_of("absent", {"a": 1})
    )
    assert verify.main(["--expected", str(expected), "--only", "words"]) == 1
    out = capsys.readouterr().out
    (off,) = [line for line in out.splitlines() if line.endswith("OFF")]
    assert "words/real: Zipf slope" in off


def test_a_command_that_fails_and_a_missing_value_are_off(
    tmp_path: Path, words: tuple[str, dict[str, float]], capsys: pytest.CaptureFixture[str]
) -> None:
    command, _ = words
    expected = write_expected(
        tmp_path / "e.yaml",
        absent=expectation_of(f"words --data {tmp_path / 'none'}", {"words/real: Zipf slope": 1.0}),
        renamed=expectation_of(command, {"words/no such row": 1.0}),
    )
    assert verify.main(["--expected", str(expected)]) == 1
    output = capsys.readouterr()
    assert "It ended with exit code 1.\n" in output.err
    assert "There is no such folder." in output.err
    assert [line.split()[-1] for line in output.out.splitlines()[1:3]] == ["OFF", "OFF"]
    assert output.out.endswith("0 of 2 values are as expected; 0 of 2 figures are ratios of times,"
                              " the others deterministic.\n")  # fmt: skip


def test_a_tolerance_is_in_the_unit_of_the_value() -> None:
    ratio = Expectation(command="x", kind="ratio", seconds=1.0, tolerance=0.25, expected={"a": 1.0})
    assert ratio.is_near(1.25, 1.0)
    assert not ratio.is_near(1.26, 1.0)
    assert not ratio.is_near(0.74, 1.0)
    exact = ratio.model_copy(update={"tolerance": 0.0})
    assert exact.is_near(0.1 + 0.2, 0.3)
    assert not exact.is_near(0.3001, 0.3)


def test_an_unknown_name_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert verify.main(["--only", "pace"]) == 1
    assert "--only: nothing is expected of pace.\nAllowed: " in capsys.readouterr().err


def test_all_problems_of_the_file_are_reported_at_once(tmp_path: Path) -> None:
    path = write_expected(
        tmp_path / "e.yaml",
        one={**expectation_of("bench.scale.words", {"a": 1.0}), "colour": "red"},
        two={**expectation_of("words", {}), "tolerance": -1},
    )
    with pytest.raises(BenchError) as raised:
        read_expected(path)
    text = raised.value.what
    assert text.startswith("The file of expected figures has 4 problems.\n1. one.command: ")
    for piece in ("one.colour", "two.tolerance", "two.expected"):
        assert piece in text
