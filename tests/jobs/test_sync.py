"""A synchronised index equals its sources, and documents of other sources are kept."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from arag_search.errors import ArgumentError, MissingExtraError, SourceError
from arag_search.search.opening import open_index
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.build.report import AddReport
from index_jobs.sources.converters.registry import FileType
from index_jobs.sources.folders.selection import FileSelection
from index_jobs.sources.lines.files import Fields
from index_jobs.updates.addition import add_documents
from index_jobs.updates.options import SyncOptions
from index_jobs.updates.synchronisation import sync_documents
from tests.support.builds import in_own_folder  # noqa: F401
from tests.support.commands import Command, file_of
from tests.support.updated_corpora import document, error_message

INDEX = "index"


def texts() -> dict[str, str]:
    """Return the text of each document of the index, by id."""
    with open_index(INDEX) as index:
        joined: dict[str, str] = {}
        for chunk in index.scan():
            joined[chunk.doc_id] = joined.get(chunk.doc_id, "") + chunk.content
    return joined


def update_number() -> int:
    with open_index(INDEX) as index:
        return index.manifest.update


def changes(report: AddReport) -> tuple[int, int, int, int]:
    return report.added, report.replaced, report.unchanged, report.deleted


def notes(**contents: str) -> None:
    """Make the folder ``notes`` contain exactly these files."""
    Path("notes").mkdir(exist_ok=True)
    for path in Path("notes").iterdir():
        path.unlink()
    for name, text in contents.items():
        Path("notes", f"{name}.md").write_text(text, encoding="utf-8")


def test_a_folder_that_changed_is_followed_and_an_unchanged_one_leaves_the_index_alone() -> None:
    notes(a="Alpha.", b="Beta.", c="Gamma.")
    build_index(["notes"], INDEX, BuildOptions())
    assert changes(sync_documents(["notes"], INDEX)) == (0, 0, 3, 0)
    os.utime("notes/a.md", (1, 1))
    assert changes(sync_documents(["notes"], INDEX)) == (0, 0, 3, 0)
    assert update_number() == 1
    notes(a="Alpha.", b="Beta anew.", d="Delta.")
    assert changes(sync_documents(["notes"], INDEX)) == (1, 1, 1, 1)
    assert texts() == {"a.md": "Alpha.", "b.md": "Beta anew.", "d.md": "Delta."}
    assert update_number() == 2


def test_documents_of_other_sources_are_neither_deleted_nor_replaced() -> None:
    first, second = file_of("first.jsonl", document("a", "One.")), "second.jsonl"
    build_index([first], INDEX, BuildOptions())
    file_of(second, document("b", "Two."), document("c", "Three."))
    add_documents([second], INDEX)
    file_of(second, document("b", "Two."))
    assert changes(sync_documents([second], INDEX)) == (0, 0, 1, 1)
    assert texts() == {"a": "One.", "b": "Two."}
    file_of(second, document("a", "Other."))
    message = error_message(sync_documents, [second], INDEX, SyncOptions(allow_deletes=True))
    assert message.startswith('Document "a" of these sources is in the index from another source.')
    assert texts() == {"a": "One.", "b": "Two."}
    file_of(second, document("b", "Two."), document("c", "Three."))
    assert changes(sync_documents([first, second], INDEX)) == (1, 0, 2, 0)


def test_an_empty_source_and_many_deletions_are_refused_unless_allowed() -> None:
    notes(a="Alpha.", b="Beta.", c="Gamma.")
    build_index(["notes"], INDEX, BuildOptions())
    notes(a="Alpha.")
    with pytest.raises(ArgumentError, match="2 of the 3 documents"):
        sync_documents(["notes"], INDEX)
    assert len(texts()) == 3
    notes()
    with pytest.raises((ArgumentError, SourceError)):
        sync_documents(["notes"], INDEX, SyncOptions(allow_deletes=True))
    notes(a="Alpha.")
    assert changes(sync_documents(["notes"], INDEX, SyncOptions(allow_deletes=True)))[3] == 2
    assert list(texts()) == ["a.md"]


def test_a_source_with_bad_records_loses_nothing() -> None:
    source = file_of("corpus.jsonl", *(document(name, "Text.") for name in "abc"))
    build_index([source], INDEX, BuildOptions())
    first = Path(source).read_text().splitlines()[0]
    Path(source).write_text(first + '\n{"id": "b"\n')
    report = sync_documents([source], INDEX, SyncOptions(skip_bad_lines=True, allow_deletes=True))
    assert (changes(report), report.kept, report.skipped_lines) == ((0, 0, 1, 0), 2, 1)
    assert "kept: 2 documents" in report.to_text()
    assert set(texts()) == set("abc")


def test_a_dry_run_names_what_would_change_and_writes_nothing(arag: Command) -> None:
    notes(a="Alpha.", b="Beta.", c="Gamma.")
    assert arag("index", "notes", "--to", INDEX).code == 0
    notes(a="Alpha.", b="Beta anew.", d="Delta.")
    shown = arag("sync", INDEX, "notes", "--dry-run", "--json")
    assert shown.json["changes"] == {
        "added": ["d.md"], "replaced": ["b.md"], "deleted": ["c.md"],
    }  # fmt: skip
    assert arag("sync", INDEX, "notes", "--dry-run").lines[0] == (
        f"Would update {INDEX}: 1 document added, 1 replaced, 1 unchanged, 1 deleted;"
        " it would hold 3 documents in 3 passages."
    )
    assert set(texts()) == {"a.md", "b.md", "c.md"}


def test_vectors_of_unchanged_text_are_kept(arag: Command) -> None:
    notes(a="Alpha one. Alpha two.", b="Beta.", c="Gamma.")
    assert arag("index", "notes", "--to", INDEX).code == 0
    assert arag("embed", INDEX, "--encoder", "hashing").code == 0
    notes(a="Alpha one. Alpha two.", b="Beta.", d="Delta.")
    report = arag("sync", INDEX, "notes", "--json").json
    # a sentence and a passage
    assert report["vectors"] == "the vectors fit the index; 2 rows encoded"


BAD_TOO = SyncOptions(files=FileSelection(skip_bad_files=True), allow_deletes=True)


def test_a_file_that_cannot_be_read_keeps_only_its_own_documents() -> None:
    notes(a="Alpha.", b="Beta.", c="Gamma.")
    Path("notes/ab.md").write_text("Other.")
    Path("notes/table.csv").write_text("n,text\n1,One.\n2,Two.\n")
    build_index(["notes"], INDEX, BuildOptions())
    for name in ("a", "ab"):
        Path(f"notes/{name}.md").unlink()
    Path("notes/b.md").write_bytes(b"\0")
    Path("notes/c.md").rename("notes/renamed.md")
    Path("notes/table.csv").write_bytes(b"\0")
    Path("notes/~$report.docx").write_bytes(b"\0 an open document")
    report = sync_documents(["notes"], INDEX, BAD_TOO)
    assert (report.kept, report.skipped_files) == (3, 2)
    assert report.left_out == {"lock files of Office": 1}
    assert set(texts()) == {"b.md", "renamed.md", "table.csv#1", "table.csv#2"}
    assert "kept: 3 documents that may be in what could not be read" in report.to_text()


def test_a_bad_row_keeps_only_what_its_file_had() -> None:
    notes(a="Alpha.")
    Path("notes/t.csv").write_text("key,text\nx,One.\ny,Two.\n")
    fields = Fields(id_field="key", text_field="text")
    build_index(["notes"], INDEX, BuildOptions(fields=fields))
    Path("notes/a.md").unlink()
    Path("notes/t.csv").write_text("key,text\nx,One.\n,Two.\n")
    report = sync_documents(["notes"], INDEX, replace(BAD_TOO, fields=fields, skip_bad_lines=True))
    assert (report.kept, report.deleted, set(texts())) == (1, 1, {"x", "y"})


def test_files_whose_package_is_missing_are_not_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    notes(a="Alpha.", b="Beta.")
    Path("notes/page.html").write_text("<p>A page.")
    build_index(["notes"], INDEX, BuildOptions())
    missing = MissingExtraError("selectolax is not installed.")
    monkeypatch.setattr(
        FileType, "check", lambda self: (_ for _ in ()).throw(missing) if self.packages else None
    )
    Path("notes/a.md").unlink()
    report = sync_documents(["notes"], INDEX)
    assert (report.kept, report.deleted, set(texts())) == (1, 1, {"b.md", "page.html"})


def test_a_link_that_points_elsewhere_is_the_same_source() -> None:
    notes(a="Alpha.", b="Beta.", same="As before.")
    Path("r1").mkdir()
    for name in ("a", "b", "same"):
        Path(f"notes/{name}.md").rename(f"r1/{name}.md")
    Path("r2").mkdir()
    Path("r2/b.md").write_text("Beta of the second release.")
    Path("r2/same.md").write_text("As before.")
    Path("current").symlink_to("r1")
    build_index(["current"], INDEX, BuildOptions())
    Path("current").unlink()
    Path("current").symlink_to("r2")
    report = sync_documents(["current"], INDEX)
    assert changes(report) == (0, 1, 1, 1)
    assert texts() == {"b.md": "Beta of the second release.", "same.md": "As before."}
    report = sync_documents(["r2"], INDEX)  # the same folder under its own name
    assert changes(report) == (0, 0, 2, 0)


def test_a_source_that_was_moved_is_recognised_and_one_that_exists_is_left_alone() -> None:
    notes(a="Alpha.", b="Beta.", c="Gamma.")
    build_index(["notes"], INDEX, BuildOptions())
    Path("notes").rename("moved")
    Path("moved/a.md").write_text("Alpha anew.")
    Path("moved/b.md").unlink()
    assert changes(sync_documents(["moved"], INDEX)) == (0, 1, 1, 1)
    assert changes(sync_documents(["moved"], INDEX)) == (0, 0, 2, 0)
    notes(z="Zeta.")
    report = sync_documents(["notes"], INDEX)
    assert (changes(report), sum(report.others.values())) == ((1, 0, 0, 0), 2)
    assert f"left alone: 2 documents of {Path('moved').absolute()}" in report.to_text()
    notes(a="Another alpha.")
    with pytest.raises(SourceError, match="from another source"):
        sync_documents(["notes"], INDEX)


def test_documents_without_text_are_counted_by_type_with_the_first_names() -> None:
    notes(a="Alpha.", **{f"empty{number}": "" for number in range(7)})
    Path("notes/page.html").write_text("<script>1</script>")
    Path("rows.jsonl").write_text('{"id": "r", "title": "Only a title", "text": ""}\n')
    report = build_index(
        ["notes", "rows.jsonl"], INDEX, BuildOptions(files=FileSelection(root="."))
    )
    assert report.unread["documents without text (.html)"] == [1, "notes/page.html"]
    assert report.unread["documents without text (records)"] == [1, "r"]
    count, *ids = report.unread["documents without text (.md)"]
    assert (count, ids) == (7, [f"notes/empty{number}.md" for number in range(5)])
    assert "documents without text (.md): 7 (notes/empty0.md, " in report.to_text()
    report = sync_documents(["rows.jsonl"], INDEX, SyncOptions(files=FileSelection(root=".")))
    assert report.unread == {"documents without text (records)": [1, "r"]}


def test_without_a_source_an_index_is_made_equal_to_those_that_it_was_built_from(
    arag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes(a="Alpha.", b="Beta.")
    Path("notes/c.py").write_text("# Gamma.\n")
    Path("notes/d.md").write_text("Delta.")
    built = ("--include", "*.py", "--exclude", "d.md", "--root", ".")
    assert arag("index", "notes", "--to", INDEX, *built).code == 0
    assert arag("add", file_of("more.jsonl", {"id": "m", "text": "More."}), "--to", INDEX).code == 0
    Path("notes/a.md").write_text("Alpha anew.")
    Path("elsewhere").mkdir()
    index = str(Path(INDEX).absolute())
    monkeypatch.chdir("elsewhere")
    report = arag("sync", index, "--json").json
    assert [report[name] for name in ("added", "replaced", "unchanged", "deleted")] == [0, 1, 2, 0]
    monkeypatch.chdir("..")
    assert set(texts()) == {"notes/a.md", "notes/b.md", "notes/c.py", "m"}
    refused = arag("sync", INDEX, "--max-file-size", "50MB")  # the default, but typed
    assert refused.err.startswith("arag-search: --max-file-size has no effect here.\n")
    other = SyncOptions(files=FileSelection(root="notes"))
    assert "`root`" in error_message(sync_documents, [], INDEX, other)


def test_a_source_that_is_gone_is_named_and_its_documents_are_deleted_on_request(
    arag: Command,
) -> None:
    notes(a="Alpha.")
    rows = file_of("rows.jsonl", {"id": "r", "text": "A row."}, {"id": "s", "text": "Another."})
    assert arag("index", "notes", rows, "--to", INDEX).code == 0
    Path(rows).unlink()
    for command in (("sync", INDEX), ("sync", INDEX, "notes", rows)):
        assert arag(*command).err == (
            f"arag-search: A source of the index is gone.\nWhere: {Path(rows).absolute()}\n"
            "Do: Bring it back, or name the source that replaces it."
            " To delete its documents, repeat with --allow-deletes.\n"
        )
    assert arag("sync", INDEX, "--allow-deletes", "--json").json["deleted"] == 2
    assert set(texts()) == {"notes/a.md"}
