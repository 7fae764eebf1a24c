"""The bench of manuals and source code on a manual of one page and a small library."""

from __future__ import annotations

from pathlib import Path

import pytest

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


def test_what_is_there_is_measured_and_the_rest_is_left_out_with_its_reason(
    manual: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    results = tmp_path / "manuals.json"
    options = ["--postgresql", manual.parent, "--python", tmp_path, "--library", "iniconfig"]
    options += ["--work", tmp_path / "work", "--json", results, "--column", "after"]
    assert main(list(map(str, options))) == 0
    error = capsys.readouterr().err
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
