"""The comparison with an earlier commit, and the way of a search through the code."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.budgets import SIZES
from bench.report.rows import read_results

ROOT = Path(__file__).parents[2]


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
