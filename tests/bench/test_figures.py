"""The tables in the guides agree with the files of results, and these name what they depend on."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import BenchError
from bench.guides import figures
from bench.report.fingerprints import code_fingerprint
from bench.report.rows import Figure, Kept, Row, Target, read_results, write_results


def results_with_rate(folder: Path, rate: float) -> Kept:
    write_results(folder / "speed.json", [Figure("search", (Row("rate", rate, "x"),))], {})
    return Kept(folder)


# Tables


def test_the_tables_in_the_guides_agree_with_the_results() -> None:
    assert figures.main(["--check"]) == 0


def test_a_missing_row_is_an_error_that_names_the_existing_rows(tmp_path: Path) -> None:
    results = results_with_rate(tmp_path, 1)
    with pytest.raises(BenchError) as raised:
        results.row("speed/search/pace")
    assert (raised.value.what, raised.value.allowed) == ('There is no row "pace".', "rate")
    with pytest.raises(BenchError, match='There is no figure "other"'):
        results.row("speed/other/rate")
    (tmp_path / "odd.json").write_text("[1]")
    with pytest.raises(BenchError, match="The file holds no figures"):
        results.file("odd")


def test_written_results_are_read_unchanged(tmp_path: Path) -> None:
    rows = (
        Row("a", 1.5, "x", 1.0, 2.0, Target("at least", 1.25)),
        Row("b", 3.0, "ms", target=Target("at most", 5.0)),
        Row("c", 0.0, ""),
    )
    path = tmp_path / "some.json"
    write_results(path, [Figure("f", rows, {"n": 3})], {"command": "python -m bench f"})
    figure = read_results(path)["f"]
    assert figure.rows == rows
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
