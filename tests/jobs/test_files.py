"""Folders of files from the command line to the index: fields, bad files and additions."""

import io
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from arag_search import open_index
from arag_search.manifest import Manifest
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.sources.folders.selection import FileSelection
from index_jobs.updates.addition import add_documents
from index_jobs.updates.options import AddOptions, SyncOptions
from index_jobs.updates.synchronisation import sync_documents
from tests.support.builds import InterruptingProgress, checkpoint_every_batch
from tests.support.commands import Command

SKIPPING = FileSelection(include=("*.css",), skip_bad_files=True)


@pytest.fixture(autouse=True)
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in {
        "notes/sea.md": b"# The Sea\nThe sea is wide.",
        "notes/old/opera.txt": "Ein schöner Abend in der Oper.".encode("latin-1"),
        "notes/old/bad.txt": b"\0\0",
        "notes/tool.css": b"print('sea')",
        "notes/photo.png": b"PNG",
        "reports/sea.md": b"A report on the sea.",
    }.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(content)
        os.utime(name, (1_700_000_000, 1_700_000_000))


def manifest_of(location: str) -> Manifest:
    with open_index(location) as index:
        return index.manifest


def ids(location: str, query: str) -> list[str]:
    with open_index(location) as index:
        return [hit.id for hit in index.logical_search(query).hits]


def test_files_are_found_by_their_fields() -> None:
    options = BuildOptions(files=SKIPPING)
    report = build_index(["notes", "reports"], "index", options)
    assert ids("index", "path:notes/ AND NOT path:notes/old/") == [
        "notes/sea.md.1",
        "notes/tool.css.1",
    ]
    assert ids("index", "type:md AND sea") == ["reports/sea.md.1", "notes/sea.md.1"]
    assert ids("index", "modified:>=2023-11-15") == []
    assert ids("index", "modified:2023-11-14 AND schöner") == ["notes/old/opera.txt.1"]
    assert ids("index", "file:tool.css") == ["notes/tool.css.1"]
    assert report.to_text().splitlines()[3:-1] == [
        "left out: 1 .png (not read; `include` reads text)",
        "skipped: 1 bad file",
        "  notes/old/bad.txt, byte 1: The file is binary, not text.",
    ]


def test_the_command_line_names_bad_files_or_counts_them(arag: Command) -> None:
    result = arag("index", "notes", "--to", "index")
    assert result.code == 1
    assert "Where: notes/old/bad.txt, byte 1" in result.err
    assert result.err.rstrip().endswith("Fix the file, or skip it with --skip-bad-files.")
    assert not Path("index").exists()
    options = ("--skip-bad-files", "--include", "*.css", "--max-file-size", "20", "--json")
    result = arag("index", "notes", "--to", "index", "--root", ".", *options)
    report = result.json
    assert (report["documents"], report["skipped_files"]) == (1, 1)
    assert report["large_files"] == ["notes/old/opera.txt (30 bytes)", "notes/sea.md (26 bytes)"]
    assert report["left_out"] == {".png": 1, "too large": 2}
    assert ids("index", "sea") == ["notes/tool.css.1"]


def test_files_that_join_an_index_of_records_leave_their_fields_out() -> None:
    Path("c.jsonl").write_text('{"id": "r", "text": "A record.", "type": "x"}')
    build_index(["c.jsonl"], "records", BuildOptions(metadata={"type": "keyword"}))
    assert manifest_of("records").file_metadata == ()
    report = add_documents(["reports"], "records", AddOptions())
    assert (report.added, report.undeclared_metadata) == (1, {})
    assert ids("records", "type:md") == ["sea.md.1"]
    build_index(["reports"], "files", BuildOptions())
    report = add_documents(["c.jsonl"], "files", AddOptions())
    assert report.undeclared_metadata == {"type": 1}
    assert ids("files", "type:x") == []
    assert ids("files", "type:md") == ["sea.md.1"]


def test_a_repeated_addition_changes_nothing_and_a_synchronisation_keeps_what_bad_files_had() -> (
    None
):
    options = SyncOptions(files=FileSelection(skip_bad_files=True))
    Path("notes/old/bad.txt").write_text("It was good once.")
    build_index(["notes"], "index", BuildOptions(files=options.files))
    os.utime("notes/sea.md", (1_800_000_000, 1_800_000_000))
    report = add_documents(["notes"], "index", options)
    assert (report.unchanged, report.added, report.replaced) == (3, 0, 0)
    Path("notes/sea.md").unlink()
    Path("notes/old/bad.txt").write_bytes(b"\0")
    report = sync_documents(["notes"], "index", options)
    assert (report.deleted, report.kept, report.skipped_files) == (1, 1, 1)
    Path("notes/old/bad.txt").unlink()
    report = sync_documents(["notes"], "index", replace(options, allow_deletes=True))
    assert (report.deleted, report.documents) == (1, 1)


def test_the_root_keeps_the_ids_of_added_folders_apart() -> None:
    files = FileSelection(root=".", skip_bad_files=True)
    build_index(["notes"], "index", BuildOptions(files=files))
    report = add_documents(["reports"], "index", AddOptions(files=files))
    assert (report.added, report.replaced) == (1, 0)
    assert ids("index", "sea AND type:md") == ["notes/sea.md.1", "reports/sea.md.1"]


def test_standard_input_becomes_an_index(arag: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"# Sea\nThe sea.")))
    result = arag("index", "-", "--to", "index")
    assert (result.code, result.err) == (0, "-: recognised as text\n")
    assert ids("index", "sea") == ["stdin.1"]
    assert arag("search", "index", "sea").lines[-1] == "The sea."
    assert ", with standard input" in arag("info", "index").out
    assert arag("info", "index", "--json").json["state"]["gone"] == []


def test_an_interrupted_build_of_files_resumes_where_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checkpoint_every_batch(monkeypatch)
    for number in range(200):
        Path(f"many/{number % 7}").mkdir(parents=True, exist_ok=True)
        Path(f"many/{number % 7}/{number}.md").write_text(f"The sea number {number}.")
        Path(f"many/{number % 7}/bad{number % 9}.txt").write_bytes(b"\0")
    options = BuildOptions(files=FileSelection(skip_bad_files=True))
    with pytest.raises(KeyboardInterrupt):
        build_index(["many"], "index", options, InterruptingProgress(100))
    report = build_index(["many"], "index", options)
    assert 0 < report.continued < 200
    assert (report.documents, report.skipped_files) == (200, 63)
    other = build_index(["many"], "other", options)
    assert (other.fingerprint, other.skipped_file_examples) == (
        report.fingerprint,
        report.skipped_file_examples,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="file systems elsewhere refuse such names")
def test_odd_names_are_escaped_found_and_followed() -> None:
    Path("odd").mkdir()
    Path(os.fsdecode(b"odd/caf\xe9.txt")).write_text("The sea at the coast.")
    for name in (r"caf\xe9.txt", " blank.md", "line\nend.md", "README ", "a /\t.txt", "ä" * 60):
        Path("odd", name).parent.mkdir(exist_ok=True)
        Path("odd", name).write_text("The sea at the coast.")
    report = build_index(["odd"], "index", BuildOptions())
    assert report.documents == 7
    assert ids("index", "title:end") == [r"line\x0aend.md.1"]
    with open_index("index") as index:
        names = {document.id for document in index.documents()}
        assert len(names) == 7
        assert {r"caf\xe9.txt", r"caf\x5cxe9.txt", r"\x20blank.md", r"README\x20"} < names
        assert index.document_read(r"a\x20/\x09.txt").id == r"a\x20/\x09.txt"
    assert sync_documents(["odd"], "index").unchanged == 7
    Path("odd/a /\t.txt").unlink()
    Path("odd/line\nend.md").write_text("A storm.")
    report = sync_documents(["odd"], "index")
    assert (report.unchanged, report.replaced, report.deleted) == (5, 1, 1)


def test_an_index_in_the_folder_that_it_is_of_is_not_read() -> None:
    Path("notes/old/bad.txt").unlink()
    build_index(["notes"], "notes/index", BuildOptions())
    report = sync_documents(["notes"], "notes/index")
    assert (report.unchanged, report.added) == (2, 0)
    assert report.left_out == {".css": 1, ".png": 1, "indexes of this program": 1}
