"""PDF files: pages, titles, and files without text that could be read."""

from pathlib import Path
from threading import Thread

import pytest

from tests.support.converted import FILES, document_of, pdf_bytes, refusal_of, written


def test_every_page_begins_with_its_number(tmp_path: Path) -> None:
    data = pdf_bytes([[(12, "Vivaldi wrote operas."), (12, "Café (1720).")], [], [(12, "Coda.")]])
    text = document_of(written(tmp_path / "a.pdf", data)).text
    assert text == "[page 1]\nVivaldi wrote operas.\nCafé (1720).\n\n[page 2]\n\n[page 3]\nCoda."


def test_a_word_that_is_hyphenated_at_the_end_of_a_line_is_whole(tmp_path: Path) -> None:
    data = pdf_bytes([[(12, "He wrote the lib-"), (12, "retto of Griselda.")]])
    assert "libretto of Griselda" in document_of(written(tmp_path / "a.pdf", data)).text


@pytest.mark.parametrize(
    ("title", "read"),
    [
        ("Opera in Venice", "Opera in Venice"),
        ("Gödel – 論理", "Gödel – 論理"),
        ("Microsoft Word - report.doc", "The Heading"),
        ("untitled", "The Heading"),
        ("scan0001.pdf", "The Heading"),
        (" \t", "The Heading"),
        (None, "The Heading"),
    ],
)
def test_a_title_that_says_nothing_gives_way_to_the_largest_line(
    tmp_path: Path, title: str | None, read: str
) -> None:
    lines = [(10, "Annual series"), (24, "The Heading"), (12, "Some words of text follow here.")]
    data = pdf_bytes([lines], title)
    assert document_of(written(tmp_path / "a.pdf", data)).title == read


def test_text_of_one_size_has_no_title(tmp_path: Path) -> None:
    data = pdf_bytes([[(12, "A line."), (12, "Another line.")]])
    assert document_of(written(tmp_path / "a.pdf", data)).title == ""


def test_an_encrypted_file_is_read_if_the_empty_password_opens_it() -> None:
    document = document_of(FILES / "empty_password.pdf")
    assert document.title == "Venice"
    assert document.text == "[page 1]\nVivaldi wrote operas."
    assert "encrypted" in refusal_of(FILES / "encrypted.pdf").what


def test_pages_that_are_pictures_are_refused_with_the_way_out(tmp_path: Path) -> None:
    error = refusal_of(written(tmp_path / "scan.pdf", pdf_bytes([[], []])))
    assert "pictures" in error.what
    assert "OCR" in error.do


@pytest.mark.parametrize("data", [b"", b"%PDF-1.7\n", b"no PDF", pdf_bytes([[(12, "x")]])[:-250]])
def test_a_damaged_file_is_refused(tmp_path: Path, data: bytes) -> None:
    assert "PDF" in refusal_of(written(tmp_path / "a.pdf", data)).what


def test_two_threads_read_at_once(tmp_path: Path) -> None:
    path = written(tmp_path / "a.pdf", pdf_bytes([[(12, f"Page {n}.")] for n in range(30)]))
    texts: list[str] = []
    threads = [Thread(target=lambda: texts.append(document_of(path).text)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(texts) == 4
    assert len(set(texts)) == 1
