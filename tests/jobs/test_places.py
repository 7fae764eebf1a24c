"""Files are opened as they were listed, secrets are left out, and no name forges a line."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from arag_search.corpus import Document
from arag_search.errors import BadFileError, SourceError
from arag_search.search.opening import open_index
from arag_search.search.standing import standing_of
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.sources.folders import listing
from index_jobs.sources.folders.secret_files import SEED_WORDS
from index_jobs.sources.folders.selection import FileSelection
from index_jobs.sources.lines.files import Fields
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.opening import open_source
from index_jobs.sources.source import Source
from index_jobs.updates.options import SyncOptions
from index_jobs.updates.synchronisation import sync_documents
from index_jobs.updates.watching import Watcher
from tests.support.converted import pdf_bytes, written


def opened(folder: Path) -> Source:
    selection = FileSelection(skip_bad_files=True).rooted([str(folder)])
    return open_source(str(folder), "files", Fields(), MetadataReader({}), selection)


def swapped(path: Path, outside: Path, how: str) -> None:
    """Put something in the place of a file, or of the folder above it."""
    if how == "folder":
        path.parent.rename(outside.parent / "moved")
        path.parent.symlink_to(outside.parent)
        return
    path.unlink()
    match how:
        case "link":
            path.symlink_to(outside)
        case "hard link":
            path.hardlink_to(outside)
        case "pipe":
            os.mkfifo(path)
        case _:
            path.mkdir()


@pytest.mark.parametrize("ending", [".txt", ".md", ".csv", ".html", ".pdf", ".eml"])
@pytest.mark.parametrize("how", ["link", "folder", "hard link", "pipe", "directory"])
def test_what_takes_the_place_of_a_listed_file_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, how: str
) -> None:
    folder, outside = tmp_path / "a" / "sub", tmp_path / "outside" / f"x{ending}"
    folder.mkdir(parents=True)
    outside.parent.mkdir()
    secret = pdf_bytes([[(12, "secret")]]) if ending == ".pdf" else b"From: a@b.c\n\n<p>secret"
    path = written(folder / f"x{ending}", b"x")
    written(outside, secret)
    listed = listing.FolderListing.__call__

    def late(
        self: listing.FolderListing, left_out: listing.LeftOut
    ) -> Iterator[listing.SourceFile]:
        for file in list(listed(self, left_out)):
            swapped(path, outside, how)
            yield file

    source = opened(tmp_path / "a")
    monkeypatch.setattr(listing.FolderListing, "__call__", late)
    (error,) = [entry for _, entry in source.documents()]
    assert isinstance(error, BadFileError)
    assert "secret" not in str(error)
    assert error.where.endswith(f"sub/x{ending}")


def test_a_link_of_the_folder_is_read_by_its_resolved_path(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    written(tmp_path / "deep" / "a.txt", "Text.")
    (tmp_path / "b.md").symlink_to("deep/a.txt")
    (tmp_path / "c.html").symlink_to("b.md")
    documents = [entry for _, entry in opened(tmp_path).documents()]
    assert [(d.id, d.text) for d in documents if isinstance(d, Document)] == [
        ("b.md", "Text."),
        ("c.html", "Text."),
        ("deep/a.txt", "Text."),
    ]


SECRETS = {
    "passwords.txt": "named like passwords or keys",
    "passwords.md": "named like passwords or keys",
    "tokens.md": "a list of keys",
    "seed.md": "the words of a wallet",
}
TO_READ = "(to read: index --include NAME or --no-ignore)"


def write_secrets(folder: Path) -> None:
    """Write SECRETS, a note and a guide with the name of a secret."""
    folder.mkdir()
    written(folder / "passwords.txt", "bank: hunter2")
    written(folder / "passwords.md", "# Passwords\n\nbank: hunter2\n")
    keys = ("x7Gq2LmZ9vTk4RbW", "Pq8sN3dYw6HcJ5uE", "4kTzB9mXr2LvQ7aF")
    written(folder / "tokens.md", "".join(f"key {n}: {key}\n" for n, key in enumerate(keys)))
    words = SEED_WORDS.read_text().split()[7:2000:90]
    written(folder / "seed.md", "My wallet:\n\n" + " ".join(words))
    written(folder / "note.md", "A note of the garden.")
    written(folder / "secrets.md", "# Secrets\n" + "A guide says in many words what to do.\n" * 3)


def lines_of(left_out: dict[str, str]) -> list[str]:
    return sorted(f"left out, {what} {TO_READ}: 1 ({name})" for name, what in left_out.items())


def test_secrets_are_left_out_and_named_and_a_guide_is_read(tmp_path: Path) -> None:
    write_secrets(folder := tmp_path / "folder")
    report = build_index([str(folder)], tmp_path / "index", BuildOptions())
    assert report.documents == 2
    only_names = {**SECRETS}
    only_names.pop("passwords.txt")
    only_names.pop("passwords.md")
    named = f"left out, named like passwords or keys {TO_READ}: 2 (passwords.md, passwords.txt)"
    assert report.left_out_lines() == sorted([*lines_of(only_names), named])
    standing = standing_of(tmp_path / "index")
    assert standing is not None
    assert list(standing.left_out) == report.left_out_lines()  # which info shows
    for name in SECRETS:
        files = FileSelection(include=(name,), skip_bad_files=True)
        report = build_index([str(folder)], tmp_path / name, BuildOptions(files=files))
        assert report.documents == 3, name
    files = FileSelection(include=("*.md", "*", "passwords.*"))
    report = build_index([str(folder)], tmp_path / "wild", BuildOptions(files=files))
    assert report.documents == 2


def test_a_file_that_is_named_as_a_source_is_left_out_like_one_of_a_folder(tmp_path: Path) -> None:
    write_secrets(folder := tmp_path / "folder")
    names = sorted(map(str, folder.iterdir()))  # as a shell writes out folder/*
    report = build_index(names, tmp_path / "index", BuildOptions())
    assert report.documents == 2
    assert len(report.left_out_lines()) == 3
    with pytest.raises(SourceError) as caught:
        build_index([str(folder / "passwords.md")], tmp_path / "alone", BuildOptions())
    assert caught.value.what.endswith(
        f"left out, named like passwords or keys {TO_READ}: 1 (passwords.md)."
    )


def test_a_note_that_becomes_a_secret_leaves_the_index_and_info_names_it(tmp_path: Path) -> None:
    folder, index = tmp_path / "folder", tmp_path / "index"
    write_secrets(folder)
    files = FileSelection(skip_bad_files=True)
    watcher = Watcher([str(folder)], index, BuildOptions(files=files))
    watcher.synchronise()
    before = standing_of(index)
    guide, secret = (folder / "secrets.md").read_text(), (folder / "passwords.md").read_text()
    written(folder / "secrets.md", secret)
    written(folder / "passwords.md", guide)
    watcher.compare()  # reads what has changed alone
    with open_index(index) as opened:
        hits = opened.logical_search("guide OR hunter2 OR note").hits
        assert {hit.doc_id for hit in hits} == {
            "note.md",
            "passwords.md",
        }
    after = standing_of(index)
    assert before is not None
    assert after is not None
    assert [line.replace("passwords.md", "secrets.md") for line in before.left_out] == [
        line.replace("passwords.txt, secrets.md", "secrets.md, passwords.txt")
        for line in after.left_out
    ]
    (folder / "tokens.md").unlink()
    report = sync_documents([str(folder)], index, SyncOptions(files=files))
    assert report.left_out_lines() == [
        line for line in after.left_out if "tokens.md" not in line
    ]  # although no file has changed
    assert (report.documents, report.unchanged) == (2, 2)


def test_a_private_key_is_left_out_and_counted_whatever_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for number, kind in enumerate(("", "RSA ", "OPENSSH ", "EC ", "ENCRYPTED ")):
        written(folder / f"{number}.txt", f"\n-----BEGIN {kind}PRIVATE KEY-----\nMIIE\n")
    written(folder / "5.md", "-----BEGIN PGP PRIVATE KEY BLOCK-----\n")
    written(folder / "a.txt", "A key begins with -----BEGIN PRIVATE KEY-----.")
    written(folder / "b.txt", "-----BEGIN CERTIFICATE-----\nMIIE")
    report = build_index([str(folder)], tmp_path / "index", BuildOptions())
    assert report.documents == 2
    assert report.skipped_files == 0
    named = "6 (0.txt, 1.txt, 2.txt, 3.txt, 4.txt, ...)"
    assert f"left out, a private key {TO_READ}: {named}" in report.left_out_lines()
    files = FileSelection(no_ignore=True)
    report = build_index([str(folder)], tmp_path / "all", BuildOptions(files=files))
    assert report.documents == 8


def test_a_name_with_line_feeds_forges_no_line_of_a_report(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    written(folder / "a.txt", "Text.")
    written(folder / "b\nskipped: 0 bad files\x1b[2J.txt", b"\0")
    written(folder / "c.x\nall is well", "x")
    written(folder / "d\n.txt", b"x" * 200)
    selection = FileSelection(skip_bad_files=True, max_file_size=100)
    report = build_index([str(folder)], tmp_path / "index", BuildOptions(files=selection))
    lines = report.left_out_lines()
    assert not any("\n" in line or "\x1b" in line for line in lines)
    assert any(r"b\x0askipped: 0 bad files\x1b[2J.txt" in line for line in lines)
    assert str(SourceError("Bad.", where="a\nDo: nothing")) == "Bad.\nWhere: a\\x0aDo: nothing"
