"""PDF files: pages, titles, and files without text that could be read."""

from pathlib import Path

import pytest

from index_jobs.sources.converters.pdf.document import _tidy
from index_jobs.sources.converters.pdf.pages import CUT, joined_pages, whole_words
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


def test_accents_that_are_drawn_apart_are_in_their_letters() -> None:
    # By pdfLaTeX with its usual fonts (OT1), from a line of such words.
    text = document_of(FILES / "accents.pdf").text
    assert text == "[page 1]\nÖztürk, École, garçon, naïf, Češka."


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("di\x1ecult \x1eciency \x1dow o\x1b \x1cle", "difficult fficiency flow off file"),
        ("a \x1c 1\x1d\r\nb", "a  1\nb"),
        (f"lib{CUT}rary vel\x02\r\nvet Don\u00adau W\u2010\r\nas up-\r\non",
         f"lib{CUT}rary vel{CUT}vet Don{CUT}au W{CUT}as up{CUT}on"),
    ],
)  # fmt: skip
def test_codes_of_ligatures_and_hyphens_are_read(written: str, read: str) -> None:
    assert _tidy(written) == read


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("the lib|rary of Anglo|Saxon ISO|9001", "the library of Anglo-Saxon ISO-9001"),
        ("self|employed, state|of-the|art", "self‐employed, state‐of-the‐art"),
        ("cost-plan; a cost|plan", "cost-plan; a cost‐plan"),
        ("security is relevant: security|relevant", "security is relevant: security‐relevant"),
        ("information in a formation: in|formation", "information in a formation: information"),
        ("upper| and lower|case, upper|and", "upper and lowercase, upper- and"),
        ("| a |b c|", " a b c"),
    ],
)  # fmt: skip
def test_a_compound_that_was_cut_at_its_hyphen_keeps_it(written: str, read: str) -> None:
    assert whole_words(written.replace("|", CUT)) == read


LINE = "Every one of these lines is about as long as the others are in it"


@pytest.mark.parametrize(
    ("pages", "text"),
    [
        (["It has", "run well. It stops."], "[page 1]\nIt has\nrun well.\n\n[page 2]\nIt stops."),
        (["They re-", "paired it. Then"], "[page 1]\nThey repaired it.\n\n[page 2]\nThen"),
        (["The end.", "so it goes"], "[page 1]\nThe end.\n\n[page 2]\nso it goes"),
        (["A note", "Another note"], "[page 1]\nA note\n\n[page 2]\nAnother note"),
        (["We list", "a) this"], "[page 1]\nWe list\n\n[page 2]\na) this"),
        (["", "a b"], "[page 1]\n\n[page 2]\na b"),
        (["We", "go", "on. Yes."], "[page 1]\nWe\ngo\non.\n\n[page 2]\n\n[page 3]\nYes."),
        (["It is", "", "far. Yes."], "[page 1]\nIt is\nfar.\n\n[page 2]\n\n[page 3]\nYes."),
        (["It is", "far"], "[page 1]\nIt is\nfar\n\n[page 2]"),
        ([f"{LINE}\n{LINE}", f"Berlin {LINE}. So.\n{LINE}"],
         f"[page 1]\n{LINE}\n{LINE}\nBerlin {LINE}.\n\n[page 2]\nSo.\n{LINE}"),
        ([f"{LINE}\nHeading", f"{LINE}\n{LINE}."],
         f"[page 1]\n{LINE}\nHeading\n\n[page 2]\n{LINE}\n{LINE}."),
        (["We go", "x " * 2_000], f"[page 1]\nWe go\n\n[page 2]\n{'x ' * 2_000}".rstrip()),
    ],
)  # fmt: skip
def test_a_sentence_goes_on_over_the_end_of_a_page(pages: list[str], text: str) -> None:
    assert joined_pages(pages) == text


def test_what_recurs_at_the_edges_of_pages_stands_between_sentences() -> None:
    bodies = ["It has", "run for long. New", "ones came.", "One.", "Two.", "Six."]
    pages = [f"The Pump, part {n % 2}\n{body}\n{n} of 6" for n, body in enumerate(bodies, 1)]
    assert joined_pages(pages) == (
        "[page 1]\nThe Pump, part 1\n\nIt has\nrun for long.\n\n1 of 6\n\n"
        "[page 2]\nThe Pump, part 0\n\nNew\nones came.\n\n2 of 6\n\n"
        "[page 3]\nThe Pump, part 1\n\n3 of 6\n\n"
        "[page 4]\nThe Pump, part 0\n\nOne.\n\n4 of 6\n\n"
        "[page 5]\nThe Pump, part 1\n\nTwo.\n\n5 of 6\n\n"
        "[page 6]\nThe Pump, part 0\n\nSix.\n\n6 of 6"
    )
    assert joined_pages(["a\n1", "B\n2"]) == "[page 1]\na\n\n1\n\n[page 2]\nB\n\n2"


@pytest.mark.parametrize("shape", [CUT, f"a{CUT}", "a", "\n", "-", f"a-{CUT}\n", "1 "])
def test_pages_of_any_shape_are_joined(shape: str) -> None:
    assert joined_pages([shape * 100_000] * 3).startswith("[page 1]")


def test_radicals_become_the_ideographs_that_look_the_same() -> None:
    assert _tidy("⼀⼈⽇⽂") == "一人日文"
