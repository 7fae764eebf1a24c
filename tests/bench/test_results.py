"""Files of results: what is written is read, and they name what they depend on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.report.fingerprints import code_fingerprint
from bench.report.rows import Figure, Row, Target, read_results, write_results


def test_written_results_are_read_unchanged(tmp_path: Path) -> None:
    rows = (
        Row("a", 1.5, "x", 1.0, 2.0, Target("at least", 1.25)),
        Row("b", 3.0, "ms", target=Target("at most", 5.0)),
        Row("c", 0.0, ""),
    )
    path = tmp_path / "some.json"
    write_results(path, [Figure("f", rows, {"n": 3})], {"command": "python -m bench f"})
    figure = read_results(path)["f"]
    assert figure.rows == tuple(replace(row, target=None) for row in rows)
    assert figure.details == {"n": 3, "run": {"command": "python -m bench f"}}


# Fingerprints


def test_the_fingerprint_of_the_code_is_that_of_its_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "bench" / "one.py"
    source.parent.mkdir()
    monkeypatch.setattr("bench.report.fingerprints.ROOT", tmp_path)

    def fingerprint() -> str:
        code_fingerprint.cache_clear()
        return code_fingerprint()

    source.write_text("a = 1\n")
    first = fingerprint()
    (tmp_path / "bench" / "README.md").write_text("A guide.")
    (tmp_path / "bench" / "table.json").write_text("{}")
    assert fingerprint() == first
    source.write_text("a = 2\n")
    second = fingerprint()
    source.rename(source.with_name("two.py"))
    assert len({first, second, fingerprint()}) == 3
    code_fingerprint.cache_clear()
