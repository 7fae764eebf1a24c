"""A scripted agent with ripgrep and with logical_search over the same made notes and pages."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import orjson
import pytest

from bench.__main__ import main
from bench.agents.manuals import copy_pages, postgresql_needs, python_needs
from bench.agents.notes import FACTS, QUESTIONS, write_notes
from bench.agents.policy import MAX_CALLS, Reading, ask
from bench.agents.tools import HEAD_LINES, Ripgrep


@pytest.fixture
def ripgrep() -> None:
    """Skip where ripgrep is not installed, which in CI is a failure."""
    if shutil.which("rg") is None:
        reason = "ripgrep is not installed: apt-get install ripgrep"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)


def test_notes_are_the_same_for_a_seed_and_answer_every_need_once(tmp_path: Path) -> None:
    needs = write_notes(tmp_path / "a", 400, seed=3)
    assert needs == write_notes(tmp_path / "b", 400, seed=3)
    texts = [path.read_text("utf-8") for path in sorted((tmp_path / "a").rglob("*.md"))]
    assert texts == [path.read_text("utf-8") for path in sorted((tmp_path / "b").rglob("*.md"))]
    assert len(texts) == 400
    assert {need.kind for need in needs} == set(FACTS) == set(QUESTIONS)
    for need in needs:
        for sentence in need.evidence:
            assert sum(sentence in text for text in texts) == 1, sentence


def test_needs_of_manuals_are_sentences_of_their_entries(tmp_path: Path) -> None:
    pages = tmp_path / "html"
    pages.mkdir()
    (pages / "index.html").write_text("<p>all pages</p>", "utf-8")
    (pages / "runtime-config-a.html").write_text(
        '<dt id="GUC-WORK-MEM"><i>work_mem</i></dt><dd><p>Sets the <b>memory</b>\n of a sort. '
        "The default is 4 MB.</p></dd>",
        "utf-8",
    )
    (pages / "shutil.html").write_text(
        '<dt class="sig" id="shutil.move">move</dt>\n<dd><p>Move a file or folder to another place '
        "and return it. No more.</p></dd>",
        "utf-8",
    )
    (need,) = postgresql_needs(pages, 5, seed=1)
    assert need.text == "What is the default of work_mem?"
    assert need.evidence == (" The default is 4 MB.",)
    (need,) = python_needs(pages, 5, seed=1)
    assert need.text == "What does shutil.move do?"
    assert need.evidence == ("Move a file or folder to another place and return it.",)
    copy_pages(pages, tmp_path / "copy")
    copied = {path.name for path in (tmp_path / "copy").iterdir()}
    assert copied == {"runtime-config-a.html", "shutil.html"}


class Script:
    """Hands that find nothing, and note what they were asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def beside(self, name: str, words: object, reading: Reading) -> str:
        return reading.call(lambda: self._note(f"{name} beside {words}"))

    def alone(self, name: str, reading: Reading) -> str:
        reading.call(lambda: self._note(name))
        return f"{name} knows Ada Number{len(self.asked)}, Ben Number{len(self.asked)}."

    def about(self, words: object, reading: Reading) -> str:
        return reading.call(lambda: self._note(str(words)))

    def _note(self, asked: str) -> str:
        self.asked.append(asked)
        return ""


def test_the_policy_follows_names_until_its_calls_are_spent() -> None:
    hands = Script()
    reading = ask(hands, "What is the budget of Jorba Gate?")
    assert reading.calls == MAX_CALLS
    assert hands.asked[:3] == [
        "Jorba Gate beside ['budget']", "Jorba Gate", "Ada Number2 beside ['budget']",
    ]  # fmt: skip
    assert ask(Script(), "what helps against rust").calls == 1


@pytest.mark.usefixtures("ripgrep")
def test_ripgrep_reads_around_names_with_signs_and_stops_at_its_head(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("C++ (the language) has a budget.\nNext line.\n", "utf-8")
    (tmp_path / "b.txt").write_text("C++ (the language)\n" * 300, "utf-8")
    reading = Reading()
    text = Ripgrep(tmp_path).beside("C++ (the language)", ["budget"], reading)
    assert "Next line." in text
    assert reading.calls == 2
    Ripgrep(tmp_path).alone("C++ (the language)", reading)
    assert max(len(of.splitlines()) for of in reading.texts) == HEAD_LINES


@pytest.mark.usefixtures("ripgrep")
def test_both_tools_are_measured_over_the_same_needs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "agents.json"
    options = ("--notes", "200", "--needs", "8", "--work", str(tmp_path / "work"))
    assert main(["agents", *options, "--json", str(results)]) == 0
    (figure,) = orjson.loads(results.read_bytes())["figures"].values()
    values = {row["what"].partition(": ")[2]: row["value"] for row in figure["rows"]}
    assert figure["details"]["needs"] == 8
    assert 0 < values["ripgrep, evidence"] <= 1
    assert 0 < values["logical_search, evidence"] <= 1
    assert 1 <= values["logical_search, calls"] <= MAX_CALLS


def test_without_ripgrep_the_bench_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert main(["agents"]) == 1
    assert "ripgrep is not installed.\nDo: Install it" in capsys.readouterr().err
