"""arag-search read: whole documents, and all of them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import arag_search
from arag_search.corpus import Chunk
from arag_search.tools.preset_files import load_preset
from arag_search.tools.tool import ReadSet
from arag_search.tools.toolbox import tools_of
from tests.support.commands import Command

pytestmark = pytest.mark.usefixtures("commands_folder")


def chunks_of(index: str) -> list[Chunk]:
    with arag_search.open_index(index) as opened:
        return list(opened.scan())


def manifest_of(index: str) -> dict[str, Any]:
    with arag_search.open_index(index) as opened:
        values = json.loads(opened.manifest.to_json())
    origin = ("created", "sources", "shard_sources")
    return {key: value for key, value in values.items() if key not in origin}


def test_all_documents_are_listed_with_sizes_and_metadata(arag: Command) -> None:
    listed = arag("read", "my-index", "--all").lines
    assert listed[0].startswith("[vivaldi] Antonio Vivaldi (1 passage, 591 characters; year: ")
    scope = ("--filter", "kind:person AND year:<1800")
    with arag_search.open_index("my-index") as index:
        assert len(listed) == index.manifest.documents
        within = [document.id for document in index.documents(filter=scope[1])]
    assert [line[1:].split("]")[0] for line in arag("read", "my-index", "--all", *scope).lines] == (
        within
    )
    records = [
        json.loads(line) for line in arag("read", "my-index", "--all", *scope, "--json").lines
    ]
    assert [record["id"] for record in records] == within
    assert {record["kind"] for record in records} == {"person"}
    data = ("--filter", '{"kind": ["person"], "year": {"lt": 1800}}', "--json")
    assert [json.loads(line) for line in arag("read", "my-index", "--all", *data).lines] == records
    wrong = arag("read", "my-index", "--all", "--filter", '{"kind": {"$ne": null}}')
    assert (wrong.code, "read" in wrong.out) == (2, False)
    assert '1. "kind": {"$ne": null} is no value of a keyword field.' in wrong.err
    assert arag("read", "my-index", "--all", "--filter", "year:1").lines == [
        "No document is in scope."
    ]


LONG = "A long line, of many words, " * 20
PARTS = ("First.", f"{LONG}and a middleword in it.", "", "A lastword stands here.", "End.")
EDITED = {
    "lf.txt": "\n".join(PARTS),
    "crlf.txt": "\r\n".join(PARTS),
    "cr.txt": "\r".join(PARTS),
    "front.md": "\n".join(("---", "tags: x", "---", "", "# Head", *PARTS)),
    "front-crlf.md": "\r\n".join(("---", "tags: x", "---", *PARTS)),
    "first.md": "\n\n" + "\n".join(PARTS[3:]),
}


@pytest.mark.parametrize("name", EDITED)
def test_every_reply_numbers_lines_as_an_editor_does(name: str, arag: Command) -> None:
    Path("edited").mkdir(exist_ok=True)
    Path("edited", name).write_bytes(EDITED[name].encode())
    arag("index", f"edited/{name}", "--to", "edited-index", "--overwrite")
    lines = re.split("\r\n|\r|\n", EDITED[name])
    last = next(at for at, line in enumerate(lines, 1) if "lastword" in line)
    assert (
        arag("search", "edited-index", "lastword", "--show", "lines")
        .lines[-1]
        .startswith(f"{last}: ")
    )
    documents = arag("search", "edited-index", "lastword", "--documents").lines
    assert any(line.startswith(f"line {last}: ") for line in documents)
    (place, *_) = arag("search", "edited-index", "lastword", "--documents", "--json").json[
        "documents"
    ][0]["places"]
    assert place["lines"][0] <= last <= place["lines"][1]
    shown = arag("read", "edited-index", f"{name}:{last}").lines[2]
    assert shown.rstrip() == f"{last}: A lastword stands here."
    with arag_search.open_index("edited-index") as index:
        seen, tools = ReadSet(), tools_of(load_preset("agentic_rag"), index)
        tools["search"].run({"queries": ["lastword"]}, seen)
        asked = {"reference_id": "turn0search0", "patterns": ["lastword"]}
        assert f"\n{last}: A lastword stands here." in tools["find"].run(asked, seen).text
    assert arag("read", "edited-index", f"{name}:{len(lines) + 1}").code == 2
    if LONG in EDITED[name]:
        pieces = arag("read", "edited-index", f"{name}:{last - 2}", "--json").json["lines"]
        long = [piece for piece in pieces if piece["line"] == last - 2]
        assert len(long) > 2
        for piece in long:
            assert lines[last - 3].startswith(piece["text"].rstrip(), piece["column"] - 1)
        middle = next(piece["column"] for piece in long if "middleword" in piece["text"])
        shown = arag("read", "edited-index", f"{name}:{last - 2}:{middle + 3}").lines[2]
        assert shown.startswith(f"{last - 2}:{middle}: ")


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
def test_an_index_of_the_documents_of_another_is_the_same_index(arag: Command, format: str) -> None:
    source, first, exported = f"{format}.src", f"{format}-1", f"{format}.jsonl"
    Path(source).write_text(SOURCES[format], encoding="utf-8")
    options = ["--chunk-tokens=20", "--metadata=year:number,lang:keyword", "--bm25=0.9,0.4"]
    assert arag("index", source, "--to", first, "--format", format, *options).code == 0
    result = arag("read", first, "--all", "--json")
    assert result.code == 0
    Path(exported).write_text(result.out, encoding="utf-8")
    printed = result.err.splitlines()[-1].split()
    assert printed[:3] == ["arag-search", "index", "FILE"]
    names = {"FILE": exported, "INDEX": f"{format}-2"}
    again = [names.get(word, word) for word in printed[1:]]
    assert arag(*again).code == 0
    assert chunks_of(f"{format}-2") == chunks_of(first)
    assert chunks_of(first)
    before, after = manifest_of(first), manifest_of(f"{format}-2")
    for values in (before, after):
        for key in ("source_format", "undeclared_metadata", "chunk_tokens", "reading"):
            del values[key]
    assert before == after


def test_a_document_is_read_whole_with_the_ids_of_its_passages(arag: Command) -> None:
    text = arag("read", "my-index", "--document", "vivaldi").lines
    assert text[0] == "[vivaldi] Antonio Vivaldi"
    assert text[1].startswith("(year: 1678; kind: person)")
    assert "[vivaldi.1]" in text
    with arag_search.open_index("my-index") as index:
        expected = {**index.document_read("vivaldi").to_dict(), "state": None}
    assert arag("read", "my-index", "--document", "vivaldi", "--json").json == expected
    within = arag("read", "my-index", "--document", "vivaldi", "--filter", "kind:work")
    assert (within.code, within.err.splitlines()[0]) == (
        1,
        'arag-search: No document has the id "vivaldi".',
    )
    wrong = arag("read", "my-index", "--document", "vivaldi.1")
    assert 'Do: Did you mean "vivaldi"? arag-search read INDEX --all lists all ids' in wrong.err


@pytest.mark.parametrize(
    ("more", "named"),
    [("vivaldi.1", "PASSAGE_ID and --document"), ("--all", "--document and --all")],
)
def test_read_takes_passages_or_a_document_or_all(arag: Command, more: str, named: str) -> None:
    both = arag("read", "my-index", more, "--document", "vivaldi")
    assert both.err == (
        f"arag-search: {named} are given together.\nAllowed: one of them\nDo: Leave one out.\n"
    )
    neither = arag("read", "my-index")
    assert (neither.code, neither.err.splitlines()[0]) == (2, "arag-search: There is no id.")
    for options in ((), ("--json",)):
        assert arag("read", "my-index", "--all", "--filter", "kind:nothing", *options).code == 1


def test_the_id_of_a_document_in_place_of_a_passage_is_answered_with_the_command_that_reads_it(
    arag: Command, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a note.txt").write_text("The harbour.\n")
    done = arag("read", str(notes), "a note.txt", "nowhere")
    assert done.code == 1
    assert done.err.endswith(
        'arag-search: No passages have the ids "a note.txt", "nowhere".\n'
        f"Where: {notes}\nAllowed: ids as searches show them in brackets\n"
        'Do: "a note.txt" is the id of a document: '
        f"arag-search read {notes} --document 'a note.txt'\n"
    )
