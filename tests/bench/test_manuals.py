"""The bench of manuals and source code on a manual of one page and a small library."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.quality.manual_readers import Grep, Question
from bench.quality.manuals import main
from bench.report.rows import Row, read_results

SETTINGS = "".join(
    f'<dt id="GUC-{name.upper()}"><span class="term"><code class="varname">{name}</code>'
    f" (<code>integer</code>)</span></dt>\n<dd><p>{text} The default is {value}.</p></dd>"
    for name, text, value in (
        ("max_workers", "Workers at most. This parameter can only be set at server start.", 3),
        ("naptime", "Seconds of sleep.", 60),
    )
)
PAGE = f"<html><title>The Manual</title><body><dl>{SETTINGS}</dl></body></html>"


@pytest.fixture
def manual(tmp_path: Path) -> Path:
    folder = tmp_path / "doc" / "html"
    folder.mkdir(parents=True)
    for name in ("index.html", "runtime-config.html"):
        (folder / name).write_text(PAGE)
    return folder


def ripgrep(folder: Path, output: str) -> Path:
    """Write a command that prints the output for whatever it is asked."""
    command = folder / "rg"
    (folder / "output").write_text(output)
    command.write_text(f"#!/bin/sh\ncat '{folder / 'output'}'\n")
    command.chmod(0o755)
    return command


def test_what_is_there_is_measured_and_the_rest_is_left_out_with_its_reason(
    manual: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    results = tmp_path / "manuals.json"
    options = ["--postgresql", manual.parent, "--python", tmp_path, "--library", "iniconfig"]
    options += ["--work", tmp_path / "work", "--json", results, "--column", "after"]
    assert main(list(map(str, options))) == 0
    error = capsys.readouterr().err
    assert "The reader with ripgrep is left out: there is no command rg." in error
    assert "Left out: There is no page library/subprocess.html." in error
    figures = read_results(results)

    def row(figure: str, what: str) -> Row:
        return next(row for row in figures[f"after: {figure}"].rows if row.what == what)

    shown = row("settings by name", "default in the first reply")
    assert (shown.value, shown.unit) == (2, "of 2")
    assert row("settings that need a restart, one call", "text: named").unit == "of 1"
    assert row("PostgreSQL's entries of at most 500 tokens", "cut").value == 0
    assert row("identifiers", "recall of files").value == 1
    assert row("source: index", "passages").value > 1
    assert figures["after: settings by name"].details["package"] == "postgresql-doc: The Manual"
    assert not any("readers" in name for name in figures)


def test_nothing_to_measure_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--postgresql", tmp_path, "--python", tmp_path, "--library", "no_such_library"]
    options += ["--work", tmp_path / "work", "--json", tmp_path / "manuals.json"]
    assert main(list(map(str, options))) == 1
    assert "There is nothing to measure." in capsys.readouterr().err


def test_ripgrep_reads_on_at_the_definition_until_the_answer_is_shown(
    manual: Path, tmp_path: Path
) -> None:
    lines = f"./index.html:1:see naptime\n./runtime-config.html:2:{PAGE.splitlines()[1]}\n"
    question = Question(
        "define",
        ("naptime",),
        "naptime",
        lambda segments: any("The default is 60" in text for text in segments),
        "<dt.*naptime<",
    )
    reading = Grep(ripgrep(tmp_path, lines), manual, "*.html").read(question)
    assert (reading.calls, reading.shown) == (2, 1)
    never = Question("define", ("naptime",), "naptime", lambda segments: 0, "<dt.*naptime<")
    assert Grep(ripgrep(tmp_path, lines * 5), manual, "*.html").read(never).calls == 4


def test_a_list_with_ripgrep_names_the_settings_above_matches_without_the_other_word(
    manual: Path, tmp_path: Path
) -> None:
    term = '<dt id="GUC"><span class="term"><code class="varname">'
    output = f"{term}a\nred\n{term}b\nred\nblue\n{term}c\n{term}d\nRed\n"
    texts: list[str] = []

    def shown(segments: list[str]) -> float:
        texts[:] = segments
        return 0

    question = Question("exclude", ("red", "blue"), "red NOT blue", shown)  # type: ignore[arg-type]
    reading = Grep(ripgrep(tmp_path, output), manual, "*.html").read(question)
    assert (reading.calls, texts[1]) == (2, "a\nd")
