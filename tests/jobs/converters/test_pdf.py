"""PDF files: pages, titles, and files without text that could be read."""

from pathlib import Path

import pytest

from index_jobs.sources.converters.pdf import _tidy
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


def test_a_hyphen_before_a_capital_or_a_digit_stays(tmp_path: Path) -> None:
    lines = [(12, "The norm ISO-"), (12, "9001 and the Anglo-"), (12, "Saxon lib-"), (12, "retto.")]
    read = document_of(written(tmp_path / "a.pdf", pdf_bytes([lines])))
    assert "ISO-9001 and the Anglo-Saxon libretto." in read.text


def appearance(text: bytes) -> bytes:
    """Return the object that draws the value of a form field or a note."""
    content = b"BT /F1 12 Tf 2 5 Td (%s) Tj ET" % text
    return (
        b"<< /Type /XObject /Subtype /Form /BBox [0 0 200 20] /Resources << /Font << /F1 3 0 R >>"
        b" >> /Length %d >>\nstream\n%s\nendstream" % (len(content), content)
    )


def test_values_of_form_fields_and_notes_are_read(tmp_path: Path) -> None:
    field = (
        b"<< /Type /Annot /Subtype /Widget /FT /Tx /T (name) /V (Ada Lovelace) /F 4"
        b" /Rect [72 600 272 620] /DA (/F1 12 Tf 0 g) /AP << /N 7 0 R >> >>"
    )
    note = (
        b"<< /Type /Annot /Subtype /FreeText /Contents (Call back) /F 4"
        b" /Rect [72 500 272 520] /DA (/F1 12 Tf 0 g) /AP << /N 9 0 R >> >>"
    )
    data = pdf_bytes(
        [[(12, "Name:")]],
        catalog=b"/AcroForm << /Fields [6 0 R] /DA (/F1 12 Tf 0 g)"
        b" /DR << /Font << /F1 3 0 R >> >> >>",
        page=b"/Annots [6 0 R 8 0 R]",
        more=[field, appearance(b"Ada Lovelace"), note, appearance(b"Call back")],
    )
    text = document_of(written(tmp_path / "a.pdf", data)).text
    assert text.split() == ["[page", "1]", "Name:", "Ada", "Lovelace", "Call", "back"]


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_lines_of_a_rotated_page_stay_in_their_order(tmp_path: Path, degrees: int) -> None:
    lines = [(12, "The first line."), (12, "The second line."), (12, "The third line.")]
    data = pdf_bytes([lines], page=b"/Rotate %d" % degrees)
    text = document_of(written(tmp_path / "a.pdf", data)).text
    assert text == "[page 1]\nThe first line.\nThe second line.\nThe third line."


def test_pages_without_text_are_counted(tmp_path: Path) -> None:
    read = document_of(written(tmp_path / "a.pdf", pdf_bytes([[(12, "One.")], [], []])))
    assert read.unread == {"pages without text": 2}


def test_radicals_become_the_ideographs_that_look_the_same() -> None:
    assert _tidy("⼀⼈⽇⽂") == "一人日文"
