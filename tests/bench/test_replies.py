"""Lookups over a small manual: answers in a reply, in a passage that it names, and nowhere."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from bench.__main__ import main

LOOKUPS = """
What does zorble take by default?:
  {kind: default, page: m/a.html, keywords: zorble default size, query: quux, answers: [It is 12]}
How is a crumb fried?:
  {kind: how-to, page: m/a.html, keywords: fry crumb, query: crumb, answers: [brown butter]}
"""
FILLER = "".join(f"<p>Paragraph {number} is about weather and hills.</p>" for number in range(12))


@pytest.fixture
def manuals(tmp_path: Path) -> Path:
    """Return a folder with a page, and a link to it that is no page of its own."""
    folder = tmp_path / "manuals"
    (folder / "m").mkdir(parents=True)
    (folder / "m" / "a.html").write_text(
        f"<h1>Zorble</h1><p>A zorble has a default size. It is <b>12</b>.</p>{FILLER}"
        "<p>Crumbs are food. They stay. They like the pan. Take brown butter.</p>",
        "utf-8",
    )
    (folder / "m" / "b.html").symlink_to(folder / "m" / "a.html")
    return folder


def test_lookups_are_answered_in_the_reply_or_only_in_a_passage(
    manuals: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lookups.yaml").write_text(LOOKUPS, "utf-8")
    options = ["--lookups", tmp_path / "lookups.yaml", "--work", tmp_path, "--json"]
    for _ in range(2):  # the second time with the kept index
        assert main(["lookup", *map(str, (manuals, *options, tmp_path / "lookup.json"))]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:2] == ["reply", "-"]
    assert lines[1].split()[:2] == ["passage", "passage"]
    figure = orjson.loads((tmp_path / "lookup.json").read_bytes())["figures"]["lookup"]
    values = {row["what"]: row["value"] for row in figure["rows"]}
    assert values["keywords: answer in the reply"] == 1
    assert values["query: answer only in a passage of the reply"] == 1
    assert figure["details"]["corpus"]["passages"] == 1


def test_a_lookup_that_its_page_does_not_answer_is_an_error(
    manuals: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lookups.yaml").write_text(LOOKUPS.replace("It is 12", "It is 13"), "utf-8")
    arguments = (manuals, "--lookups", tmp_path / "lookups.yaml", "--work", tmp_path)
    assert main(["lookup", *map(str, arguments)]) == 1
    assert "1 lookups have no answer on their pages: What does zorble" in capsys.readouterr().err
