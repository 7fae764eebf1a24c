"""arag-search documents, and read --document."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import arag_search
from arag_search.cli import documents as command
from arag_search.corpus import Chunk
from tests.support.commands import Command
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.usefixtures("commands_folder")


def chunks_of(index: str) -> list[Chunk]:
    with arag_search.open_index(index) as opened:
        return list(opened.scan())


def manifest_of(index: str) -> dict[str, Any]:
    with arag_search.open_index(index) as opened:
        values = json.loads(opened.manifest.to_json())
    origin = ("created", "sources", "shard_sources")
    return {key: value for key, value in values.items() if key not in origin}


def test_documents_are_listed_with_sizes_and_metadata_page_by_page(arag: Command) -> None:
    first = arag("documents", "my-index", "--limit", "2")
    assert first.lines[-1] == "More: --offset 2."
    assert first.lines[0].startswith("[vivaldi] Antonio Vivaldi (1 passage, 591 characters; year: ")
    everything = arag("documents", "my-index", "--limit", "0")
    assert "More" not in everything.lines[-1]
    assert everything.lines[:2] == first.lines[:2]
    second = arag("documents", "my-index", "--limit", "2", "--offset", "2")
    assert second.lines[:2] == everything.lines[2:4]
    assert len(arag("documents", "my-index").lines) == 20 + 1
    assert arag("documents", "my-index", "--offset", "9999").lines == [
        "There are no more documents."
    ]
    assert arag("documents", "my-index", "--filter", "year:1").lines == ["No document is in scope."]


def test_json_lists_all_documents_within_the_filter(arag: Command) -> None:
    result = arag("documents", "my-index", "--filter", "kind:person AND year:<1800", "--json")
    listed = [json.loads(line) for line in result.lines]
    with arag_search.open_index("my-index") as index:
        documents = list(index.documents(filter="kind:person AND year:<1800"))
        assert listed == [document.summary() for document in documents]
        assert len(documents) < index.manifest.documents
    assert listed
    assert {document["metadata"]["kind"] for document in listed} == {"person"}


def lines_of(*records: dict[str, Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


SOURCES = {
    "documents": lines_of(
        {
            "id": "b/e\u0301.md",
            "title": "Caffe\u0301",
            "text": "Un caffe\u0301. Due caffe\u0301. " + "Tre parole lunghe. " * 30,
            "year": [1, 2.5],
            "lang": "it",
        },
        {"id": "a", "text": "山田さんは東京に行った。それから帰った。", "year": -1},
        {"id": "t", "title": "Title alone", "text": " "},
    ),
    "passages": lines_of(
        {"id": "p1", "title": "P", "sentences": ["Dr. No met. Bach", " again. ", "", "End"]},
        {"id": "p2", "sentences": ["word " * 50, "x. y", "z" * 200], "year": 3},
    ),
    "dpr": "id\ttext\ttitle\n7\t" + "A passage. " * 20 + "\tSeven\n1\tAnother one.\tOne\n",
}


@pytest.mark.parametrize("format", SOURCES)
def test_an_index_of_exported_documents_is_the_same_index(arag: Command, format: str) -> None:
    source, first, exported = f"{format}.src", f"{format}-1", f"{format}.jsonl"
    Path(source).write_text(SOURCES[format], encoding="utf-8")
    options = (
        "--chunk-tokens",
        "20",
        "--metadata",
        "year:number,lang:keyword",
        "--bm25",
        "0.9,0.4",
    )
    assert arag("index", source, "--to", first, "--format", format, *options).code == 0
    result = arag("documents", first, "--export", exported)
    assert (result.code, result.out) == (0, "")
    printed = result.err.splitlines()[-1].split()
    assert printed[:3] == ["arag-search", "index", exported]
    again = [f"{format}-2" if word == "INDEX" else word for word in printed[1:]]
    assert arag(*again).code == 0
    assert chunks_of(f"{format}-2") == chunks_of(first)
    assert chunks_of(first)
    before, after = manifest_of(first), manifest_of(f"{format}-2")
    for values in (before, after):
        for key in ("source_format", "undeclared_metadata", "chunk_tokens"):
            del values[key]
    assert before == after


def test_an_export_to_standard_output_is_the_file(arag: Command) -> None:
    assert arag("documents", "my-index", "--export", "a.jsonl").code == 0
    assert arag("documents", "my-index", "--export", "-").out == Path("a.jsonl").read_text()
    part = arag("documents", "my-index", "--export", "-", "--offset", "3", "--limit", "2").lines
    assert part == Path("a.jsonl").read_text().splitlines()[3:5]


def test_a_file_that_exists_is_replaced_only_on_request_and_then_whole(
    arag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = Path("kept.jsonl")
    file.write_text("mine\n")
    result = arag("documents", "my-index", "--export", "kept.jsonl")
    assert (result.code, file.read_text()) == (1, "mine\n")
    assert result.err == (
        "arag-search: The file exists.\nWhere: kept.jsonl\n"
        "Allowed: a new file, or - for standard output\n"
        "Do: Name another file, or replace one with --overwrite.\n"
    )

    def stopped(value: dict[str, Any]) -> bytes:
        if value["id"] == "griselda-scarlatti":
            raise KeyboardInterrupt
        return b"x" * (1 << 20)

    with monkeypatch.context() as patch:
        patch.setattr(command, "_line", stopped)
        assert arag("documents", "my-index", "--export", "kept.jsonl", "--overwrite").code == 130
    assert file.read_text() == "mine\n"
    assert not list(Path().glob("kept.jsonl?*"))
    assert arag("documents", "my-index", "--export", "kept.jsonl", "--overwrite").code == 0
    assert len(file.read_text().splitlines()) == len(arag("documents", "my-index", "--json").lines)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--limit", "-1"),
            "Invalid value for '--limit': Input should be greater than or equal to 0.",
        ),
        (
            ("--offset", "-1"),
            "Invalid value for '--offset': Input should be greater than or equal to 0.",
        ),
        (("--json", "--export", "-"), "There are both --json and --export."),
        (("--overwrite",), "--overwrite has no effect here."),
        (("--export", "-", "--overwrite"), "--overwrite has no effect here."),
        (("--export", "no-folder/a.jsonl"), "The folder of the file does not exist."),
        (("--export", "my-index"), "This is not a file."),
        (("--export", "/dev/null", "--overwrite"), "This is not a file."),
    ],
)
def test_options_that_cannot_be_meant_are_refused(
    arag: Command, arguments: tuple[str, ...], message: str
) -> None:
    result = arag("documents", "my-index", *arguments)
    assert (result.code, result.err.splitlines()[0]) == (1, f"arag-search: {message}")
    assert "Allowed: " in result.err


def test_a_reader_that_goes_away_ends_an_export_without_a_trace() -> None:
    script = "from arag_search.cli.app import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", script, "documents", "my-index", "--export", "-"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    process.stdout.close()
    _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (1, b"")


def test_a_document_is_read_whole_with_the_ids_of_its_passages(arag: Command) -> None:
    text = arag("read", "my-index", "--document", "vivaldi").lines
    assert text[0] == "[vivaldi] Antonio Vivaldi"
    assert text[1].startswith("(year: 1678; kind: person)")
    assert "[vivaldi.1]" in text
    with arag_search.open_index("my-index") as index:
        expected = index.document_read("vivaldi").to_dict()
    assert arag("read", "my-index", "--document", "vivaldi", "--json").json == expected
    within = arag("read", "my-index", "--document", "vivaldi", "--filter", "kind:work")
    assert (within.code, within.err.splitlines()[0]) == (
        1,
        'arag-search: No document has the id "vivaldi".',
    )
    wrong = arag("read", "my-index", "--document", "vivaldi.1")
    assert 'Do: Did you mean "vivaldi"? arag-search documents lists all ids' in wrong.err


def test_read_takes_ids_of_passages_or_of_a_document(arag: Command) -> None:
    both = arag("read", "my-index", "vivaldi.1", "--document", "vivaldi")
    assert both.err == (
        "arag-search: There are ids of chunks and of a document.\nWhere: arag-search read\n"
        "Allowed: CHUNK_ID... or --document ID\nDo: Leave one of them out.\n"
    )
    neither = arag("read", "my-index")
    assert (neither.code, neither.err.splitlines()[0]) == (1, "arag-search: There is no id.")
