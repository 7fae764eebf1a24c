"""Files are opened as they were listed, secrets are left out, and no name forges a line."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from arag_search.corpus import Document
from arag_search.errors import BadFileError, SourceError
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.sources import listing
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.opening import open_source
from index_jobs.sources.reading import Source
from index_jobs.sources.records import Fields
from index_jobs.sources.selection import FileSelection
from tests.support.converted import pdf_bytes, written


def opened(folder: Path) -> Source:
    selection = FileSelection(skip_bad=True).rooted([str(folder)])
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


@pytest.mark.parametrize(
    ("name", "is_read"),
    [
        ("passwords.txt", False),
        ("Chrome Passwords.csv", False),
        ("my_passwords-2024.docx", False),
        ("credentials.json", False),
        ("recovery-codes.txt", False),
        ("secret.txt", False),
        ("passwords.md", True),
        ("password-reset.txt", True),
        ("The secret garden.txt", True),
        ("secrets.html", True),
    ],
)
def test_files_named_like_passwords_are_left_out_and_pages_about_them_are_read(
    tmp_path: Path, name: str, is_read: bool
) -> None:
    written(tmp_path / name, "a,b\nsome,text\n")
    source = opened(tmp_path)
    left_out = {} if is_read else {"files of keys and passwords": 1}
    assert {kind: n for kind, n in source.left_out.items() if "keys" in kind} == left_out


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
    assert "left out, a private key: 6 (0.txt, 1.txt, 2.txt, 3.txt, 4.txt, ...)" in (
        report.left_out_lines()
    )
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
    selection = FileSelection(skip_bad=True, max_bytes=100)
    report = build_index([str(folder)], tmp_path / "index", BuildOptions(files=selection))
    lines = report.left_out_lines()
    assert not any("\n" in line or "\x1b" in line for line in lines)
    assert any(r"b\x0askipped: 0 bad files\x1b[2J.txt" in line for line in lines)
    assert str(SourceError("Bad.", where="a\nDo: nothing")) == "Bad.\nWhere: a\\x0aDo: nothing"
