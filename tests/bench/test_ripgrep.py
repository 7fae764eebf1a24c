"""A scripted agent with ripgrep and with logical_search over the same made notes and pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib.resources import files as resources
from pathlib import Path

import orjson
import pytest
import yaml

from arag_search.agent.models.base import ModelReply, ToolCall
from arag_search.runs.folder import read_records
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from arag_search.tokens import count_tokens
from bench.__main__ import main
from bench.ablate import main as ablate
from bench.ripgrep.manuals import copy_pages, postgresql_needs, python_needs
from bench.ripgrep.notes import texts, write_notes
from bench.ripgrep.policy import MAX_CALLS, Reading, ask
from bench.ripgrep.tools import HEAD_LINES, WHOLE, ReadLines, Ripgrep, RipgrepHands
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from tests.support.absent import cannot_run
from tests.support.scripted_model import ScriptedModel

SUITES = Path(__file__).parents[2] / "bench" / "suites"


@pytest.fixture
def ripgrep() -> None:
    """Skip where ripgrep is not installed, which in CI is a failure."""
    if shutil.which("rg") is None:
        cannot_run("ripgrep is not installed: apt-get install ripgrep")


def test_notes_are_the_same_for_a_seed_and_answer_every_need_once(tmp_path: Path) -> None:
    needs = write_notes(tmp_path / "a", 400, seed=3)
    assert needs == write_notes(tmp_path / "b", 400, seed=3)
    notes = [path.read_text("utf-8") for path in sorted((tmp_path / "a").rglob("*.md"))]
    assert notes == [path.read_text("utf-8") for path in sorted((tmp_path / "b").rglob("*.md"))]
    assert len(notes) == 400
    assert {need.kind for need in needs} == set(texts()["facts"])
    for need in needs:
        for sentence in need.evidence:
            assert sum(sentence in note for note in notes) == 1, sentence


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


@pytest.fixture
def files(tmp_path: Path) -> Iterator[tuple[Index, Path]]:
    """Yield a folder of two files, and an index of it."""
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.txt").write_text("C++ (the language) has a budget.\nNext line.\n", "utf-8")
    (folder / "b.txt").write_text("C++ (the language)\n" * 300, "utf-8")
    build_index([str(folder)], tmp_path / "index", BuildOptions())
    with open_index(tmp_path / "index") as index:
        yield index, folder


@pytest.mark.usefixtures("ripgrep")
def test_ripgrep_reads_around_names_with_signs_and_stops_at_its_head(
    files: tuple[Index, Path],
) -> None:
    reading = Reading()
    text = RipgrepHands(*files).beside("C++ (the language)", ["budget"], reading)
    assert "Next line." in text
    assert reading.calls == 2
    RipgrepHands(*files).alone("C++ (the language)", reading)
    assert max(len(of.splitlines()) for of in reading.texts) == 1 + HEAD_LINES


@pytest.mark.usefixtures("ripgrep")
def test_tools_over_files_show_lines_and_stay_in_their_folder(files: tuple[Index, Path]) -> None:
    index, folder = files
    grep, read = Ripgrep(index, WHOLE, folder), ReadLines(index, WHOLE, folder)
    match = grep.run({"pattern": "BUDGET"})
    line = "1 lines in 1 files\n[a.txt] 1: C++ (the language) has a budget."
    assert (match.text, match.ids) == (line, ("a.txt",))
    assert match.retrieved_tokens == count_tokens(match.text)
    names = grep.run({"pattern": "language", "names_only": True})
    assert (names.text, names.ids) == ("2 files\n[a.txt]\n[b.txt]", ("a.txt", "b.txt"))
    assert grep.run({"pattern": "--budget"}).status == "empty"
    around = grep.run({"pattern": "budget", "around": 1, "files": ["[a.txt]"]})
    assert (around.text.splitlines()[2], around.ids) == ("Next line.", ("a.txt",))
    assert "around needs files" in grep.run({"pattern": "budget", "around": 1}).text
    assert "unclosed group" in grep.run({"pattern": "(budget"}).text
    lines = read.run({"files": ["a.txt", "b.txt"], "first": 2, "count": 1})
    assert lines.text == "[a.txt]\nNext line.\n\n[b.txt]\nC++ (the language)"
    assert lines.ids == ("a.txt", "b.txt")
    for tool in (grep, read):
        outside = tool.run({"pattern": "x", "files": ["../index"]} if tool is grep else
                           {"files": ["../index"]})  # fmt: skip
        assert (outside.status, 'no file "../index"' in outside.text) == ("error", True)


@pytest.mark.usefixtures("ripgrep")
def test_lines_are_counted_titles_come_first_and_long_ones_are_shown_around_matches(
    files: tuple[Index, Path],
) -> None:
    index, folder = files
    far = f"{'a ' * 300}Zorble was born.{' b' * 300} Zorble died.{' c' * 300}"
    (folder / "c.txt").write_text(f"Title\n{far}\n", "utf-8")
    (folder / "sub").mkdir()
    (folder / "sub" / "d.txt").write_bytes(b"On Zorble\n\xff zorble\n")
    counts, *lines = Ripgrep(index, WHOLE, folder).run({"pattern": "zorble"}).text.splitlines()
    assert counts == "3 lines in 2 files"
    assert lines[0] == "[sub/d.txt] 1: On Zorble"
    assert lines[1].startswith("[c.txt] 2: ...a a ")
    assert " a Zorble was born. b " in lines[1]
    assert lines[1].count("...") == 3
    assert " b Zorble died. c " in lines[1]
    assert lines[1].endswith("...")
    assert len(lines[1]) < 540
    assert lines[2].endswith(" zorble")
    many = Ripgrep(index, WHOLE, folder).run({"pattern": "language"})
    assert many.text.startswith("301 lines in 2 files, shown 100\n[a.txt] 1: ")
    assert ReadLines(index, WHOLE, folder).run({"files": ["sub/d.txt"]}).ids == ("sub/d.txt",)


def call(name: str, **arguments: object) -> ModelReply:
    return ModelReply("", (ToolCall(name, name, orjson.dumps(arguments).decode()),))


REPLIES = (
    ModelReply("Answer: Paris"),  # of direct_answer
    call("ripgrep", pattern="goldoni.*griselda|griselda.*goldoni"),
    call("read_lines", files=["goldoni.1"]),
    ModelReply("Answer: Paris\nExplanation: So it is said.\nSources: [goldoni.1]"),
)


@pytest.mark.usefixtures("ripgrep")
def test_a_suite_lets_a_model_call_ripgrep_over_the_passages_as_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data" / "sample"
    data.mkdir(parents=True)
    for name in ("corpus.jsonl", "questions.jsonl"):
        (data / name).write_bytes((resources("arag_search") / "sample" / name).read_bytes())
    suite = yaml.safe_load((SUITES / "ripgrep.yaml").read_text("utf-8"))
    suite["experiment"] |= {
        "sets": ["sample"], "questions": "first 1", "models": ["scripted"], "workers": 1,
        "presets": ["direct_answer"],
    }  # fmt: skip
    suite["comparison"]["pairs"] = [["direct_answer", "ripgrep (no index)"]]
    path = tmp_path / "suite.yaml"
    path.write_text(yaml.safe_dump(suite), "utf-8")
    folders = ["--work", str(tmp_path / "work"), "--data", str(tmp_path / "data")]
    model = ScriptedModel(REPLIES)
    assert ablate([str(path), *folders, "--dry-run"], lambda entry, seed: model) == 0
    assert "about 7 requests" in capsys.readouterr().out  # one of direct_answer, and five calls
    assert ablate([str(path), *folders], lambda entry, seed: model) == 0, capsys.readouterr().err
    (run,) = (tmp_path / "work").rglob("*ripgrep*/*/run.json")
    record = read_records(run.parent).by_id["s01"]
    assert [step.tool_name for step in record.trajectory] == ["ripgrep", "read_lines"]
    assert record.trajectory[0].hit_ids == ("griselda-vivaldi.1",)
    assert (record.status, record.cited_ids) == ("answered", ("goldoni.1",))
    assert record.total_retrieved_tokens > 0
    first = model.requests[1]
    assert [of["function"]["name"] for of in first.tools] == ["ripgrep", "read_lines"]
    assert "Sources: the ids of the passages" in first.messages[0].content


@pytest.mark.usefixtures("ripgrep")
def test_both_tools_are_measured_over_the_same_needs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "ripgrep.json"
    options = ("--notes", "200", "--needs", "8", "--work", str(tmp_path / "work"))
    assert main(["ripgrep", *options, "--json", str(results)]) == 0
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
    assert main(["ripgrep"]) == 1
    assert "ripgrep is not installed.\nDo: Install it" in capsys.readouterr().err
