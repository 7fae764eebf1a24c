"""The collection of odd files: what is read from each is what a reader sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.converted import documents_of
from tests.support.odd_files import FILES, FOLDER, write


@pytest.mark.parametrize("name", FILES)
def test_what_is_read_is_what_a_reader_sees(name: str) -> None:
    documents = documents_of(FOLDER / name)
    parts = (f"{document.title}\n\n{document.text}".strip() for document in documents)
    read = "\n".join("\n---\n".join(parts).splitlines())
    assert read == (FOLDER / f"{name}.txt").read_text(encoding="utf-8").removesuffix("\n")


def test_the_files_are_those_that_the_script_writes(tmp_path: Path) -> None:
    write(tmp_path)
    assert {file.name for file in FOLDER.iterdir()} == {file.name for file in tmp_path.iterdir()}
    for file in tmp_path.iterdir():
        assert (FOLDER / file.name).read_bytes() == file.read_bytes(), file.name


def test_what_is_not_read_of_a_book_is_counted() -> None:
    (book,) = documents_of(FOLDER / "spaces in names.epub")
    assert book.unread == {"chapters that are not pages": 1}
