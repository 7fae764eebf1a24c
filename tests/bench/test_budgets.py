"""The comparison with an earlier commit, and the way of a search through the code."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from arag_search.query.parser import parse
from bench.__main__ import main
from bench.budgets import SIZES, median_interval
from bench.report.rows import read_results
from bench.trace import traced

ROOT = Path(__file__).parents[2]


def test_the_interval_of_a_median_is_a_pair_of_order_statistics() -> None:
    # Binomial: of 20 values, the 6th and the 15th hold the median with 0.959, the 7th and 14th do
    # with 0.885.
    assert median_interval(range(1, 21)) == (6, 15)
    assert median_interval([3, 1, 2]) == (1, 3)
    assert median_interval([7]) == (7, 7)


def test_a_trace_counts_calls_of_the_project_and_changes_of_room() -> None:
    counted = traced(lambda: parse("(oboe OR bassoon) AND NOT flute"))
    assert counted.calls["arag_search/query/parser.py"] > 1
    assert not [file for file in counted.calls if not file.startswith("arag_search/")]
    assert not [change for change in counted.changes if "query -> arag_search/query" in change]


def test_the_trace_prints_its_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert 20 < figures["files entered"] < 100
    assert figures["files entered"] < figures["changes of room"] < figures["calls"]


def has_history() -> bool:
    if shutil.which("git") is None:
        return False
    return not subprocess.run(
        ("git", "rev-parse", "--verify", "HEAD"), cwd=ROOT, capture_output=True, check=False
    ).returncode


@pytest.mark.long
@pytest.mark.skipif(not has_history(), reason="needs a clone with git")
def test_a_commit_is_measured_from_its_own_sources(tmp_path: Path) -> None:
    results = tmp_path / "baseline.json"
    options = ["--data", str(ROOT / "arag_search" / "sample"), "--json", str(results)]
    command = ["budgets", "--baseline", "--against", "HEAD", "--pairs", "1", "--queries", "3"]
    assert main([*command, *options]) == 0
    values = {row.what: row.value for row in read_results(results)["commit HEAD"].rows}
    assert list(values) == ["search", "reply", "build", "first search", *SIZES]
    assert min(values.values()) > 0
