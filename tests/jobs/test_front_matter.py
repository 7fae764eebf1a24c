"""Front matter in an index: its fields, those that an update adds, and values that do not fit."""

import shlex
from pathlib import Path

import pytest

from arag_search.search.opening import open_index
from arag_search.tools.toolbox import Toolbox
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.sources.metadata import EXTRA, MAX_FRONT_FIELDS
from index_jobs.updates.addition import add_documents
from index_jobs.updates.options import SyncOptions
from index_jobs.updates.synchronisation import sync_documents
from tests.support.builds import in_own_folder  # noqa: F401
from tests.support.commands import Command
from tests.support.front_matter import NOTES, follow_changes, found, write_notes


def test_an_index_follows_the_front_matter_of_its_notes() -> None:
    report = follow_changes("index")
    assert report.front_fields == {"mood": "keyword", EXTRA: "keyword"}
    words = report.to_text().splitlines()
    assert "new fields, from front matter: mood (keyword), extra (keyword)" in words
    assert words[-2:] == [
        'values of "year" in front matter that are no number, kept as text in "extra" (.md): 1'
        " (f.md)",
        "a field gets another type only in a new build, where `metadata` can set it: arag-search"
        " index notes --to index --overwrite",
    ]


def test_a_code_with_a_zero_in_front_stays_as_written_and_is_reported() -> None:
    codes = ("01234", "1001", "1002", "1003", "1004")
    write_notes({f"n{code}": f"---\nzip: {code}\nyear: 1\n---\nThe sea." for code in codes})
    report = build_index(["notes"], "index", BuildOptions())
    assert report.front_fields == {"year": "number", "zip": "keyword"}
    assert found("index", "zip:01234") == ["n01234.md"]
    assert report.left_out_lines()[-1] == (
        'values of "zip" in front matter that are no number as written: the field is keyword'
        " unless metadata declares zip:number (.md): 1 (n01234.md)"
    )
    write_notes({"later": "---\nyear: 0900\n---\nThe sea."})
    report = sync_documents(["notes"], "index")
    assert found("index", 'extra:"year: 0900"') == ["later.md"]
    assert found("index", "year:900") == []
    assert report.to_text().splitlines()[-2:] == [
        'values of "year" in front matter that are no number as written, kept as text in "extra"'
        " (.md): 1 (later.md)",
        "a field gets another type only in a new build, where `metadata` can set it: arag-search"
        " index notes --to index --overwrite",
    ]


def test_truth_in_front_matter_is_a_boolean_that_searches_ask_for_and_sort_by() -> None:
    write_notes({"a": "---\ndraft: True\n---\nOne.", "b": "+++\ndraft = false\n+++\nTwo."})
    assert build_index(["notes"], "index").front_fields == {"draft": "boolean"}
    assert found("index", "draft:false") == ["b.md"]
    write_notes(
        {"c": "---\ndraft: [true, false]\n---\nThree.", "d": "---\ndraft: soon\n---\nFour."}
    )
    report = sync_documents(["notes"], "index")
    assert 'values of "draft" in front matter that are no boolean' in report.to_text()
    with open_index("index") as index:
        hits = index.logical_search("one OR two OR three OR four", sort="draft").hits
        values = [(hit.doc_id, hit.to_dict()["metadata"].get("draft")) for hit in hits]
        assert values == [("b.md", False), ("c.md", [True, False]), ("a.md", True), ("d.md", None)]
        (draft,) = index.fields("draft").fields
        assert [(count.value, count.chunks) for count in draft.values] == [
            ("false", 2),
            ("true", 2),
        ]
    with open_index("index", filter="NOT draft:true") as index:
        assert {hit.doc_id for hit in index.logical_search("two OR three OR four").hits} == {
            "b.md",
            "d.md",
        }


def test_a_declared_type_wins_and_the_index_keeps_its_options() -> None:
    write_notes(NOTES)
    options = BuildOptions(metadata={"Year": "keyword", "type": "keyword", "lang": "keyword"})
    report = build_index(["notes"], "index", options)
    assert "year" not in report.front_fields
    assert report.notes[0] == "declared in `metadata`, but in no record: lang"
    assert found("index", "year:1735") == ["a.md"]
    write_notes({"g": "---\ntype: poem\nYear: MDCC\n---\nRoman."})
    report = sync_documents(["notes"], "index")
    assert (report.added, report.front_fields) == (1, {})
    assert found("index", "Year:MDCC AND type:poem") == ["g.md"]


def test_front_matter_reaches_an_index_of_records() -> None:
    Path("r.jsonl").write_text('{"id": "r", "text": "A record.", "tags": "x"}')
    build_index(["r.jsonl"], "index", BuildOptions())
    write_notes(NOTES)
    add_documents(["notes"], "index")
    assert found("index", "tags:water") == ["a.md", "e.md"]
    add_documents(["r.jsonl"], "index")
    with open_index("index") as index:
        assert "path" not in index.manifest.metadata
        assert index.manifest.undeclared_metadata == {"tags": 1}


def test_a_dry_run_says_which_fields_are_new_and_changes_nothing() -> None:
    write_notes(NOTES)
    build_index(["notes"], "index", BuildOptions())
    write_notes({"g": "---\nmood: calm\n---\nNew."})
    report = sync_documents(["notes"], "index", SyncOptions(dry_run=True))
    assert report.front_fields == {"mood": "keyword"}
    with open_index("index") as index:
        assert "mood" not in index.manifest.metadata


def test_an_export_builds_an_index_with_the_same_fields(arag: Command) -> None:
    write_notes({**NOTES, "f": "---\nyear: unknown\n---\nThe sea."})
    build_index(["notes"], "index", BuildOptions())
    shown = arag("read", "index", "--all", "--json")
    Path("all.jsonl").write_text(shown.out, "utf-8")
    command = shlex.split(shown.err.strip().splitlines()[-1])
    arag("index", "all.jsonl", "--to", "copy", *command[5:])
    with open_index("index") as index, open_index("copy") as copy:
        assert copy.manifest.metadata == index.manifest.metadata
        assert copy.manifest.fingerprint == index.manifest.fingerprint
    assert found("copy", 'extra:"year: unknown"') == ["f.md"]


def test_the_most_frequent_keys_become_fields_and_the_rest_is_extra() -> None:
    many = "".join(f"key{number}: v{number}\n" for number in range(300))
    write_notes({"a": f"---\n{many}rare: 1\n---\nA.", "b": "---\nfrequent: 1\n---\nB."})
    write_notes({"c": "---\nfrequent: 2\n---\nC."})
    report = build_index(["notes"], "index", BuildOptions())
    assert len(report.front_fields) == MAX_FRONT_FIELDS + 1
    assert next(iter(report.front_fields)) == "frequent"
    assert found("index", 'extra:"rare: 1"') == ["a.md"]
    count, _ = report.unread[
        'values of front matter without a field, kept as text in "extra" (.md)'
    ]
    assert count == 302 - MAX_FRONT_FIELDS
    write_notes({"d": "---\nlater: 1\n---\nD."})
    assert sync_documents(["notes"], "index").front_fields == {}
    assert found("index", 'extra:"later: 1"') == ["d.md"]


def test_lines_keep_their_numbers_and_broken_front_matter_stays_text() -> None:
    write_notes({"a": "---\nx: 1\n---\n# Head\n\nText of a.", "b": "---\na: b: c\n---\nRest."})
    report = build_index(["notes"], "index", BuildOptions())
    assert report.unread == {"front matter that is no YAML, kept as text (.md)": [1, "b.md"]}
    with open_index("index") as index:
        first, second = index.scan()
    assert first.content == "\n\n\n# Head\n\nText of a."
    assert second.content == "---\na: b: c\n---\nRest."
    assert found("index", "c") == ["b.md"]


def test_a_note_of_front_matter_alone_is_found_by_its_metadata() -> None:
    write_notes({"a": "---\ntags: x\n---\n", "b": "Text."})
    report = build_index(["notes"], "index", BuildOptions())
    assert report.unread == {"documents without text (.md)": [1, "a.md"]}
    assert found("index", "tags:x") == ["a.md"]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_build_with_workers_has_the_same_fields(workers: int) -> None:
    write_notes(NOTES)
    build_index(["notes"], "index", BuildOptions(workers=workers))
    assert found("index", "year:1710 AND params_lang:it") == ["d.md"]


SEARCHED = """\
---
description: "How the centrifugal pump works"
aliases: [Kreiselpumpe, "Anna's pump"]
layout: post
made: 2024-01-02
link: https://example.com/pump
long: "{long}"
---
# Water
It moves water.
"""


@pytest.mark.parametrize(
    ("query", "found_in", "shown"),
    [
        ("centrifugal", ["drafts/a.md"], "> How the centrifugal pump works (whole document)"),
        ("kreiselpumpe AND moves", ["drafts/a.md"], "> Kreiselpumpe (whole document)"),
        ('"works Kreiselpumpe"', [], 'Alone: "works Kreiselpumpe" occurs nowhere.'),
        ("post OR example OR 2024", [], "No passage matches this query."),
        ("title:zebra", ["old/getFast_zebra-v2.md"], "[old/getFast_zebra-v2.md.1] Sea (whole"),
        ('"get fast zebra v2"', ["old/getFast_zebra-v2.md"], ""),
        ("index", [], ""),
        ("sea NOT old", ["old/getFast_zebra-v2.md", "old/index.md"], ""),
        ("draft", [], "nearest to draft: path:drafts/ 1."),
        ("water AND drafts", [], "nearest to drafts: path:drafts/ 1."),
    ],
)
def test_texts_of_front_matter_and_names_of_files_are_words_and_names_of_folders_are_not(
    tmp_path: Path, query: str, found_in: list[str], shown: str
) -> None:
    notes = {"drafts/a.md": SEARCHED.format(long="x " * 1_500)}
    notes |= {"old/getFast_zebra-v2.md": "# Sea\nBlue.", "old/index.md": "# Sea\nBlue."}
    for name, text in notes.items():
        (tmp_path / "n" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "n" / name).write_text(text)
    report = build_index([str(tmp_path / "n")], "index", BuildOptions(language="en"))
    beyond = "values of front matter beyond 2,000 characters, not searched as words (.md): 1"
    assert any(line.startswith(beyond) for line in report.left_out_lines())
    with open_index("index") as index:
        reply = Toolbox(index).call("logical_search", {"query": query}).text
        hits = index.logical_search(query).hits
    assert (sorted(hit.doc_id for hit in hits), shown in reply) == (found_in, True)
