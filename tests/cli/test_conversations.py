"""Documents and their lines at the command line, and conversations."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from arag_search.agent.conversation import held_conversation
from tests.support.commands import Command

pytestmark = pytest.mark.usefixtures("commands_folder")

WHO = "Who wrote Evangeline?"
WHERE = "Where was the poet who wrote Evangeline born?"
OFFLINE = ("--model", "offline")


def test_a_search_shows_documents_with_lines_to_read_on(arag: Command) -> None:
    result = arag("search", "my-index", "griselda AND libretto", "--documents", "--top-k", "2")
    assert result.code == 0
    assert result.lines[0] == "1 query, 2 documents."
    assert result.lines[2].startswith("[griselda-scarlatti] Griselda (Scarlatti)")
    assert result.lines[-1] == "Read on: arag-search read my-index ID:N"
    listed = arag("search", "my-index", "griselda AND libretto", "--documents", "--json").json
    first = listed["documents"][0]
    assert (first["doc_id"], first["title"]) == ("griselda-scarlatti", "Griselda (Scarlatti)")
    (place, *_) = first["places"]
    text = arag("read", "my-index", "--document", "griselda-scarlatti", "--json").json["text"]
    assert "".join(place["text"].removeprefix("... ").split("...")[0].split()) in "".join(
        text.split()
    )


@pytest.mark.parametrize(
    "options",
    [
        ("--offset", "1"),
        ("--explain",),
        ("--sort", "year"),
        ("--granularity", "sentence"),
        ("--top-k", "21"),
        ("--tool", "keyword"),
    ],
)
def test_options_of_passages_are_rejected_with_documents(
    options: tuple[str, ...], arag: Command
) -> None:
    result = arag("search", "my-index", "opera", "--documents", *options)
    assert result.code == 2
    assert "Allowed:" in result.err


def test_a_query_for_documents_with_problems_ends_with_exit_code_2(arag: Command) -> None:
    result = arag("search", "my-index", "opera AND (", "--documents")
    assert (result.code, result.lines[0]) == (2, "Query not run: 2 problems.")
    nothing = arag("search", "my-index", "zebra", "--documents")
    assert (nothing.code, nothing.lines[0]) == (1, "No document matches the query.")


def test_lines_of_a_document_are_printed_from_a_number_on(arag: Command) -> None:
    result = arag("read", "my-index", "vivaldi:1", "--lines", "2")
    assert result.lines[0] == "[vivaldi] Antonio Vivaldi"
    assert result.lines[1].startswith("Viewing lines [1-1:202] of 1 line. More: line_number 1, col")
    assert [line.split(": ")[0] for line in result.lines[2:]] == ["1", "1:202"]
    values = arag("read", "my-index", "vivaldi:1", "--json").json
    assert [(line["line"], line["column"]) for line in values["lines"]][:2] == [(1, 1), (1, 202)]
    assert [line["text"] for line in values["lines"]][:2] == [
        line.split(": ", 1)[1] for line in result.lines[2:]
    ]


@pytest.mark.parametrize(
    ("arguments", "problem", "code"),
    [
        (("vivaldi.1", "--lines", "3"), "--lines has no effect here.", 2),
        (("--document", "vivaldi", "--lines", "3"), "--lines has no effect here.", 2),
        (("vivaldi:999",), "Tool not run: line_number is 999.", 2),
        (("vivaldy:1",), 'No passage has the id "vivaldy:1"', 1),
    ],
)
def test_wrong_options_for_lines_are_named(
    arguments: tuple[str, ...], problem: str, code: int, arag: Command
) -> None:
    result = arag("read", "my-index", *arguments)
    assert result.code == code
    assert problem in result.err


def test_a_question_continues_a_conversation_in_a_file(arag: Command, tmp_path: Path) -> None:
    path = str(tmp_path / "poets.json")
    first = arag("ask", "my-index", WHO, "--continue", path, *OFFLINE)
    assert first.lines[0].startswith("Henry Wadsworth Longfellow: His long narrative poems")
    second = arag("ask", "my-index", WHERE, "--continue", path, "--json", *OFFLINE)
    record = second.json
    assert "born in Portland" in record["answer_short"]
    assert record["reused"] == [record["sources"][0]["reference"]]
    assert [kept["question"] for kept in json.loads(Path(path).read_text())["records"]] == [
        WHO, WHERE,
    ]  # fmt: skip


def test_a_conversation_belongs_to_its_preset(arag: Command, tmp_path: Path) -> None:
    path = str(tmp_path / "poets.json")
    arag("ask", "my-index", WHO, "--continue", path, *OFFLINE)
    other = arag(
        "ask", "my-index", WHO, "--continue", path, "--preset", "agentic_logical", *OFFLINE
    )
    assert (other.code, other.out) == (1, "")
    assert "The conversation was held with another preset." in other.err


def test_questions_are_read_line_by_line_and_the_conversation_is_kept(
    arag: Command,
    give_input: Callable[[bytes], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    give_input(f"{WHO}\n\n{WHERE}\n".encode())
    done = arag("ask", "my-index", "--continue", "poets", *OFFLINE)
    assert done.code == 0
    assert "Henry Wadsworth Longfellow" in done.out
    assert "Portland" in done.out
    assert "(found before)" in done.out
    give_input(f"{WHERE}\n".encode())
    again = arag("ask", "my-index", "--continue", "poets", "--json", *OFFLINE)
    assert json.loads(again.out)["reused"]
    (path,) = tmp_path.glob("arag_search/conversations/poets.json")
    records = json.loads(path.read_text())["records"]
    assert [record["question"] for record in records] == [WHO, WHERE, WHERE]


def test_without_a_question_a_conversation_is_named(arag: Command) -> None:
    result = arag("ask", "my-index")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("arag-search: There is no question.\nAllowed: ")


def test_only_one_process_continues_a_conversation(arag: Command) -> None:
    path = Path("c.json")
    with held_conversation(path) as saved:
        assert saved is None
        result = arag("ask", "my-index", WHO, "--continue", "c.json", *OFFLINE)
        assert result.code == 1
        assert "continued by another process" in result.err
    assert arag("ask", "my-index", WHO, "--continue", "c.json", *OFFLINE).code == 0
    assert [path.name for path in Path().glob("*c.json*")] == ["c.json"]


@pytest.mark.parametrize("damage", ["state", "format", "records", "loop", "pipe", "folder"])
def test_what_is_no_conversation_is_refused_and_left_alone(arag: Command, damage: str) -> None:
    path = Path(f"{damage}.json")
    assert arag("ask", "my-index", WHO, "--continue", path.name, *OFFLINE).code == 0
    values = json.loads(path.read_text())
    path.unlink()
    if damage == "loop":
        path.symlink_to(path.name)
    elif damage == "pipe":
        os.mkfifo(path)
    elif damage == "folder":
        path.mkdir()
    else:
        values[damage] = {"state": {"messages": 3}, "format": 99, "records": [{"id": 1}]}[damage]
        path.write_text(json.dumps(values))
    result = arag("ask", "my-index", WHERE, "--continue", path.name, *OFFLINE)
    assert result.code == 1
    assert "Where:" in result.err
    if damage in values:
        assert json.loads(path.read_text()) == values
