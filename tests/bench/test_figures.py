"""Tables in the guides are what the files of results say, and these say what they hang on."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import orjson
import pytest

from bench import BenchError
from bench.guides import figures
from bench.guides.figure_tables import SPEED, TABLES
from bench.report.fingerprints import ALWAYS, KEPT_SINCE, ROOT, code_fingerprint, missing
from bench.report.result_files import Kept
from bench.report.rows import Figure, Row, Target, circumstances, read_results, write_results

RESULTS = ROOT / "bench" / "results"


def one_line(kept: Kept) -> list[str]:
    return [f"found {kept.row('speed/search/rate').value:g}"]


def kept_rate(folder: Path, rate: float) -> Kept:
    write_results(folder / "speed.json", [Figure("search", (Row("rate", rate, "x"),))], {})
    return Kept(folder)


def text_of(name: str) -> str:
    return f"Prose.\n<!-- figures: {name} -->\nan old table\n<!-- end of figures -->\nMore.\n"


# Tables


def test_the_tables_in_the_guides_are_what_the_results_say() -> None:
    assert figures.main(["--check"]) == 0


def test_a_result_that_changes_makes_the_table_old_until_it_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in figures.DOCUMENTS:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(RESULTS, tmp_path / "results")
    path = tmp_path / "results" / "agent_run.json"
    changed: Any = orjson.loads(path.read_bytes())
    changed["figures"]["agent run"]["rows"][0]["value"] = 4.25
    path.write_bytes(orjson.dumps(changed))
    given = ["--root", str(tmp_path), "--results", str(tmp_path / "results")]

    assert figures.main([*given, "--check"]) == 1
    assert capsys.readouterr().out == "bench/README.md: differs from the results\n"
    assert "4 times as fast" not in (tmp_path / "bench/README.md").read_text()
    assert figures.main(given) == 0
    assert "replies of 200 ms (`bench agent_run`) | 4 times as fast | 6 |" in (
        (tmp_path / "bench/README.md").read_text()
    )
    assert figures.main([*given, "--check"]) == 0


def test_only_what_stands_between_the_marks_is_written(tmp_path: Path) -> None:
    text = text_of("a") + text_of("a")
    new = figures.rewritten(text, kept_rate(tmp_path, 0.5), {"a": one_line}, where="G.md")
    assert new == text.replace("an old table", "found 0.5")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (text_of("b"), "There is no such table.\nWhere: G.md, line 2: <!-- figures: b -->"),
        ("<!-- figures: a -->\n", "A table has no end.\nWhere: G.md, line 1"),
        ("<!-- figures: a -->\n" + text_of("a"), "A table has no end.\nWhere: G.md, line 1"),
    ],
)
def test_a_mark_that_is_not_understood_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BenchError) as caught:
        figures.rewritten(text, kept_rate(tmp_path, 1), {"a": one_line}, where="G.md")
    assert str(caught.value).startswith(message)


def test_what_is_not_measured_is_left_out_and_an_empty_table_says_what_to_run(
    tmp_path: Path,
) -> None:
    assert not any(line.is_kept(Kept(tmp_path)) for line in SPEED)
    for name, table in TABLES.items():
        assert table(Kept(tmp_path))[0].startswith("Not measured yet: `python -m bench "), name


def test_a_row_that_is_not_there_is_an_error_that_names_those_that_are(tmp_path: Path) -> None:
    kept = kept_rate(tmp_path, 1)
    with pytest.raises(BenchError) as caught:
        kept.row("speed/search/pace")
    assert (caught.value.what, caught.value.allowed) == ('There is no row "pace".', "rate")
    with pytest.raises(BenchError, match='There is no figure "other"'):
        kept.row("speed/other/rate")
    (tmp_path / "odd.json").write_text("[1]")
    with pytest.raises(BenchError, match="The file holds no figures"):
        kept.file("odd")


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    rows = (
        Row("a", 1.5, "x", 1.0, 2.0, Target("at least", 1.25)),
        Row("b", 3.0, "ms", target=Target("at most", 5.0)),
        Row("c", 0.0, ""),
    )
    path = tmp_path / "some.json"
    write_results(path, [Figure("f", rows, {"n": 3})], {"command": "python -m bench f"})
    found = read_results(path)["f"]
    assert found.rows == rows
    assert found.details == {"n": 3, "run": {"command": "python -m bench f"}}


# Fingerprints


@pytest.mark.parametrize("path", sorted(RESULTS.rglob("*.json")), ids=lambda path: path.stem)
def test_every_file_of_results_names_what_it_hangs_on(path: Path) -> None:
    assert missing(path) == []


def test_a_result_without_its_circumstances_is_told(tmp_path: Path) -> None:
    path = tmp_path / "parity.json"
    write_results(path, [Figure("p", ())], {"taken": KEPT_SINCE})
    assert missing(path) == [
        f"p: {name}" for name in (*ALWAYS, "corpus", "seed") if name != "taken"
    ]
    run = {**circumstances("python -m bench parity", seed=1), "corpus": {"fingerprint": "f"}}
    write_results(path, [Figure("p", ())], {**run, "taken": f"{KEPT_SINCE}:01"})
    assert missing(path) == []
    path.write_text("7")
    with pytest.raises(BenchError, match="The file holds no results"):
        missing(path)


def test_the_fingerprint_of_the_code_is_that_of_its_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "bench" / "one.py"
    source.parent.mkdir()
    monkeypatch.setattr("bench.report.fingerprints.ROOT", tmp_path)

    def found() -> str:
        code_fingerprint.cache_clear()
        return code_fingerprint()

    source.write_text("a = 1\n")
    first = found()
    (tmp_path / "bench" / "README.md").write_text("A guide.")
    (tmp_path / "bench" / "table.json").write_text("{}")
    assert found() == first
    source.write_text("a = 2\n")
    second = found()
    source.rename(source.with_name("two.py"))
    assert len({first, second, found()}) == 3
    code_fingerprint.cache_clear()
