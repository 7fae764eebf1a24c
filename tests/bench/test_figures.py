"""The tables in the guides agree with the files of results, and these name what they depend on."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import orjson
import pytest

from bench import BenchError
from bench.guides import figures
from bench.guides.figure_tables import SPEED, TABLES
from bench.report.fingerprints import ROOT, code_fingerprint
from bench.report.rows import Figure, Kept, Row, Target, read_results, write_results

RESULTS = ROOT / "bench" / "results"


def one_line_table(results: Kept) -> list[str]:
    return [f"found {results.row('speed/search/rate').value:g}"]


def results_with_rate(folder: Path, rate: float) -> Kept:
    write_results(folder / "speed.json", [Figure("search", (Row("rate", rate, "x"),))], {})
    return Kept(folder)


def text_of(name: str) -> str:
    return f"Prose.\n<!-- figures: {name} -->\nan old table\n<!-- end of figures -->\nMore.\n"


# Tables


def test_the_tables_in_the_guides_agree_with_the_results() -> None:
    assert figures.main(["--check"]) == 0


def test_a_changed_result_makes_a_table_stale_until_it_is_rewritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in figures.DOCUMENTS:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(RESULTS, tmp_path / "results")
    path = tmp_path / "results" / "opensearch_load.json"
    results: Any = orjson.loads(path.read_bytes())
    results["figures"]["opensearch load"]["rows"][0]["value"] = 4.25
    path.write_bytes(orjson.dumps(results))
    options = ["--root", str(tmp_path), "--results", str(tmp_path / "results")]

    assert figures.main([*options, "--check"]) == 1
    assert capsys.readouterr().out == "bench/README.md: differs from the results\n"
    assert "| 4.25 (" not in (tmp_path / "bench/README.md").read_text()
    assert figures.main(options) == 0
    assert "ready actions (`bench opensearch_load`) | 4.25 (" in (
        (tmp_path / "bench/README.md").read_text()
    )
    assert figures.main([*options, "--check"]) == 0


def test_only_the_text_between_the_marks_is_rewritten(tmp_path: Path) -> None:
    text = text_of("a") + text_of("a")
    rewritten = figures.rewritten(
        text, results_with_rate(tmp_path, 0.5), {"a": one_line_table}, where="G.md"
    )
    assert rewritten == text.replace("an old table", "found 0.5")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (text_of("b"), "There is no such table.\nWhere: G.md, line 2: <!-- figures: b -->"),
        ("<!-- figures: a -->\n", "A table has no end.\nWhere: G.md, line 1"),
        ("<!-- figures: a -->\n" + text_of("a"), "A table has no end.\nWhere: G.md, line 1"),
    ],
)
def test_an_invalid_mark_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BenchError) as raised:
        figures.rewritten(text, results_with_rate(tmp_path, 1), {"a": one_line_table}, where="G.md")
    assert str(raised.value).startswith(message)


def test_missing_figures_are_left_out_and_an_empty_table_says_what_to_run(
    tmp_path: Path,
) -> None:
    assert not any(line.is_kept(Kept(tmp_path)) for line in SPEED)
    for name, table in TABLES.items():
        assert table(Kept(tmp_path))[0].startswith("Not measured yet: `python -m bench "), name


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
