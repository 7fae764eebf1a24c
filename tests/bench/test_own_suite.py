"""A suite for data of one's own runs as it is written, with the built-in rules."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from bench.ablate import main as ablate
from bench.ablation.own_suite import main
from tests.support.ablations import read_cells

SAMPLE = files("arag_search") / "sample"


def test_the_suite_that_is_written_runs_with_the_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    given = ["init", str(SAMPLE / "corpus.jsonl"), str(SAMPLE / "questions.jsonl")]
    assert main(given) == 0
    words = capsys.readouterr().out.split()
    assert words[:5] == ["Next:", "python", "-m", "bench", "ablate"]
    assert len(Path("mine/suite.yaml").read_text("utf-8").splitlines()) <= 20
    assert ablate([*words[5:], "--work", "work"]) == 0
    assert "| ContainAcc | logical_read | no pointer | mine |" in capsys.readouterr().out
    assert {len(cell.rows) for cell in read_cells(tmp_path / "work" / "own_mine-offline")} == {12}
    assert main(given) == 1
    assert capsys.readouterr().err == (
        "The folder is there already.\n"
        "Where: mine\n"
        "Allowed: a folder that does not exist\n"
        "Do: Name another with --to, or delete this one.\n"
    )
    assert main(["init", "absent.jsonl", given[2], "--to", "other"]) == 1
    assert "Where: absent.jsonl\n" in capsys.readouterr().err
    assert main([*given, "--to", "My data"]) == 0
    assert "name: own_my_data  #" in Path("My data/suite.yaml").read_text("utf-8")
    assert not Path("other").exists()
