"""Lookups over a small manual, answered in the reply or in a passage; recorded calls made again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from bench.__main__ import main
from bench.replies.code_queries import KINDS
from tests.support.code_folders import code_folder
from tests.support.records import read, record, search

LOOKUPS = """
What does zorble take by default?:
  {kind: default, page: m/a.html, keywords: zorble default size, query: quux, answers: [It is 12]}
How is a crumb fried?:
  {kind: how-to, page: m/a.html, keywords: fry crumb, query: crumb, answers: [brown butter]}
"""
FILLER = "".join(f"<p>Paragraph {number} is about weather and hills.</p>" for number in range(20))


@pytest.fixture
def manuals(tmp_path: Path) -> Path:
    """Return a folder with a page, and a link to it that is no page of its own."""
    folder = tmp_path / "manuals"
    (folder / "m").mkdir(parents=True)
    (folder / "m" / "a.html").write_text(
        f"<h1>Zorble</h1><p>A zorble has a default size. It is <b>12</b>.</p>{FILLER}"
        f"<p>Crumbs are food.</p>{FILLER}<p>They like the pan. Take brown butter.</p>",
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


def test_peers_get_the_keywords_and_our_command_is_timed_beside_them(
    manuals: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lookups.yaml").write_text(LOOKUPS, "utf-8")
    options = ["--lookups", tmp_path / "lookups.yaml", "--work", tmp_path, "--peers"]
    asked = ["lookup", *map(str, (manuals, *options))]
    assert main([*asked, "fts5", "--json", str(tmp_path / "board.json")]) == 0
    figures = orjson.loads((tmp_path / "board.json").read_bytes())["figures"]
    values = {row["what"]: row["value"] for name in figures for row in figures[name]["rows"]}
    assert values["typed: answer in the reply"] == 1
    assert values["fts5: answer in the reply"] == 1
    assert values["fts5: tokens of a reply"] > 200
    assert values["fts5: installed"] < 1
    for name in ("ours", "fts5"):
        first, second = (
            values[f"{name}: {what} search{more}, processor time"]
            for what, more in (("first", ", from nothing"), ("second", ""))
        )
        assert first > 0 < second
    assert main([*asked, "grep"]) == 1
    assert 'There is no peer "grep".' in capsys.readouterr().err


def test_a_peer_without_its_program_is_an_error(
    manuals: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert main(["lookup", str(manuals), "--peers", "ripgrep"]) == 1
    assert "The peer ripgrep needs rg, which is not on the PATH." in capsys.readouterr().err


def test_a_lookup_that_its_page_does_not_answer_is_an_error(
    manuals: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lookups.yaml").write_text(LOOKUPS.replace("It is 12", "It is 13"), "utf-8")
    arguments = (manuals, "--lookups", tmp_path / "lookups.yaml", "--work", tmp_path)
    assert main(["lookup", *map(str, arguments)]) == 1
    assert "1 lookups have no answer on their pages: What does zorble" in capsys.readouterr().err


def test_orders_of_code_are_measured_by_each_rule_and_by_judged_queries(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = code_folder(tmp_path / "files")
    judged, results = tmp_path / "judged.json", tmp_path / "code.json"
    judged.write_bytes(orjson.dumps({"ParseResponse": {"lib/parsing.py": 2}}))
    for more in ((), ("--judged", str(judged))):
        asked = ["code", str(folder), "--work", str(tmp_path / "work"), "--json", str(results)]
        assert main([*asked, *more]) == 0
    assert "no rules: nDCG@10" in capsys.readouterr().out
    figures = orjson.loads(results.read_bytes())["figures"]
    assert figures.keys() == {f"files: {kind}" for kind in (*KINDS, "judged")}
    first = {row["what"]: row["value"] for row in figures["files: judged"]["rows"]}
    assert [first[f"{of}: definition first"] for of in ("no rules", "only words", "all")] == [
        0,
        1,
        1,
    ]


def test_peers_and_we_are_asked_for_the_line_that_defines_a_name(tmp_path: Path) -> None:
    folder, results = code_folder(tmp_path / "files"), tmp_path / "code.json"
    options = ["--work", str(tmp_path / "work"), "--json", str(results), "--peers", "fts5"]
    assert main(["code", str(folder), *options]) == 0
    figures = orjson.loads(results.read_bytes())["figures"]
    for name in ("ours", "fts5"):
        values = {row["what"]: row["value"] for row in figures[name]["rows"]}
        assert values[f"{name}, name: answer in the reply"] > 0
        assert values[f"{name}: tokens of a reply"] > 0
        assert values[f"{name}: first search, from nothing, processor time"] > 0


PASSAGES = (
    ("Homebu", "Homebu is a drama film directed by Worogruer Vorim and shot in Lower Gatrin."),
    ("Worogruer Vorim", "Worogruer Vorim was a producer. He died in Siduxn. He had a cat."),
    ("Lower Gatrin", "Lower Gatrin is a quiet town with a mill."),
)


def test_recorded_calls_are_made_again_and_judged_by_what_was_shown_before(tmp_path: Path) -> None:
    values = replayed_values(tmp_path)
    assert values["replies"] == 3
    assert (values["reads"], values["reads that have nothing new to show"]) == (2, 1)
    assert values["reads that show nothing new"] == 1
    assert (values["useful pointers"], values["useless pointers"]) == (1, 1)
    assert values["parts of queries that occur nowhere"] == values["of these, told at once"] == 1
    assert values["recall of evidence, summed"] == 1


def test_requests_to_a_node_are_counted(opensearch_jars: None, tmp_path: Path) -> None:
    values = replayed_values(tmp_path, "--engine", "opensearch")
    assert (values["searches"], values["replies"]) == (1, 3)
    assert values["requests"] == values["steps"] > values["steps of searches"] > 0
    assert values["bytes of answers"] > 1_000


def replayed_values(tmp_path: Path, *options: str) -> dict[str, float]:
    """Write a data set and a record, make its calls again, and return the figures."""
    runs, data = tmp_path / "data" / "runs", tmp_path / "data" / "made"
    data.mkdir(parents=True)
    runs.mkdir()
    lines = [orjson.dumps({"title": title, "text": text}) for title, text in PASSAGES]
    (data / "corpus.jsonl").write_bytes(b"\n".join(lines))
    evidence = [["Homebu", "director", "Worogruer Vorim"], ["Worogruer Vorim", "died", "Siduxn"]]
    question = {"id": "a", "question": "Where?", "answer": "Siduxn", "evidence": evidence}
    (runs / "made.questions.jsonl").write_bytes(orjson.dumps(question))
    steps = (
        search("corpus-1.1", tool_input={"query": "homebu OR qqzz*", "granularity": "chunk"}),
        replace(read("corpus-1.1"), tool_input={"chunk_ids": ["corpus-1.1"]}),
        replace(read("corpus-2.1"), tool_input={"chunk_ids": ["corpus-2.1"]}),
    )
    made = replace(record("a", "Siduxn", *steps), question="Where?")
    (runs / "made.logical_read.jsonl").write_bytes(made.to_line())
    places = ["--data", tmp_path / "data", "--work", tmp_path / "work", "--json", tmp_path / "of"]
    assert main(["replay", "runs", *map(str, places), *options]) == 0
    (_, figure) = sorted(orjson.loads((tmp_path / "of").read_bytes())["figures"].items())
    return {row["what"]: row["value"] for row in figure[1]["rows"]}


def test_a_folder_without_records_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", "runs", "--data", str(tmp_path)]) == 1
    assert "There are no records of logical_read." in capsys.readouterr().err
