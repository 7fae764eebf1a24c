"""Word documents, slide decks, workbooks and books; damaged, encrypted and hostile archives."""

import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import docx
import openpyxl
import pptx
import pytest
from docx.oxml import parse_xml
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE

from tests.support.converted import archive, document_of, refusal_of, with_member, written

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
)
PACKAGE = """<package xmlns="http://www.idpf.org/2007/opf"><metadata
xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{title}</dc:title></metadata><manifest>
<item id="n" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
<item id="b" href="two%20b.xhtml" media-type="application/xhtml+xml"/>
<item id="a" href="a.xhtml" media-type="application/xhtml+xml"/>
<item id="i" href="i.png" media-type="image/png"/></manifest>
<spine><itemref idref="n"/><itemref idref="a"/><itemref idref="b"/><itemref idref="i"/></spine>
</package>"""


def word(path: Path) -> Path:
    document: Any = docx.Document()
    document.add_paragraph("Vivaldi wrote operas.")
    document.save(path)
    return path


def deck(path: Path) -> Path:
    presentation: Any = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[1])
    slide.shapes.title.text = "Operas"
    slide.placeholders[1].text = "Griselda\vOrlando\nFarnace"
    presentation.save(path)
    return path


def sheets(path: Path) -> Path:
    book = openpyxl.Workbook()
    sheet: Any = book.active
    sheet.title = "Operas"
    sheet.append(["Opera", "Year", None, "First night", "Revised"])
    sheet.append(["Griselda", 1735.0, None, datetime(1735, 5, 18), True])
    sheet.append([None, None, None, None, None])
    sheet.append(["Orlando\nfurioso", 1727.5, None, datetime(1727, 11, 10, 20, 30), "=1+1"])
    book.create_sheet("Été").append(["Farnace"])
    book.save(path)
    return path


def open_text(path: Path) -> Path:
    space = "urn:oasis:names:tc:opendocument:xmlns"
    content = (
        f'<?xml version="1.0"?><o:document-content xmlns:o="{space}:office:1.0" '
        f'xmlns:t="{space}:text:1.0"><o:body><o:text><t:p>Vivaldi wrote operas.</t:p></o:text>'
        "</o:body></o:document-content>"
    )
    return archive(
        path, {"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": content}
    )


def book(path: Path, title: str = "The Red Priest") -> Path:
    chapter = '<?xml version="1.0"?><html><head><title>{}</title></head><body>{}</body></html>'
    return archive(
        path,
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": CONTAINER,
            "OEBPS/book.opf": PACKAGE.format(title=title),
            "OEBPS/nav.xhtml": chapter.format("Contents", "<p>Contents</p>"),
            "OEBPS/two b.xhtml": chapter.format("Two", "<h1>Two</h1><p>He left <a id='x'/>Venice."),
            "OEBPS/a.xhtml": chapter.format("One", "<h1>One</h1><p>He was born.</p>"),
        },
    )


# Word


def test_a_word_document_keeps_headings_lists_and_tables_in_order(tmp_path: Path) -> None:
    document: Any = docx.Document()
    document.add_heading("Operas", 0)
    document.add_heading("Venice", 2)
    document.add_paragraph("Before\tthe table.\nNext line.")
    table = document.add_table(2, 2)
    for place, text in enumerate(("Opera", "Year", "Griselda", "1735")):
        table.cell(place // 2, place % 2).text = text
    for text in ("First", "Second"):
        document.add_paragraph(text, style="List Bullet")
    document.add_paragraph("After.")
    document.save(tmp_path / "a.docx")
    read = document_of(tmp_path / "a.docx")
    assert read.title == "Operas"
    assert read.text == (
        "# Operas\n\n## Venice\n\nBefore\tthe table.\nNext line.\n\nOpera | Year\nGriselda | 1735"
        "\n\n- First\n- Second\n\nAfter."
    )


def test_inserted_text_links_boxes_and_controls_are_read_and_deleted_text_is_not(
    tmp_path: Path,
) -> None:
    document: Any = docx.Document()
    body = document.element.body
    for number, content in enumerate(
        (
            "<w:p><w:r><w:t>old </w:t></w:r><w:del><w:r><w:delText>gone</w:delText><w:t>no</w:t>"
            "</w:r></w:del><w:ins><w:r><w:t>new</w:t></w:r></w:ins></w:p>",
            "<w:p><w:hyperlink><w:r><w:t>a link</w:t></w:r></w:hyperlink></w:p>",
            "<w:sdt><w:sdtContent><w:p><w:r><w:t>a control</w:t></w:r></w:p></w:sdtContent>"
            "</w:sdt>",
            '<w:p><mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/'
            'markup-compatibility/2006"><mc:Choice><w:txbxContent><w:p><w:r><w:t>a box</w:t></w:r>'
            "</w:p></w:txbxContent></mc:Choice><mc:Fallback><w:r><w:t>no</w:t></w:r></mc:Fallback>"
            "</mc:AlternateContent></w:p>",
        )
    ):
        element = parse_xml(content.replace(">", f" {W}>", 1))
        body.insert(number, element)
    document.save(tmp_path / "a.docx")
    assert document_of(tmp_path / "a.docx").text == "old new\n\na link\n\na control\n\na box"


@pytest.mark.parametrize(("title", "read"), [("Operas", "Operas"), ("Microsoft Word - a.doc", "")])
def test_the_title_of_a_word_document_is_that_of_its_properties_if_sensible(
    tmp_path: Path, title: str, read: str
) -> None:
    document: Any = docx.Document()
    document.core_properties.title = title
    document.add_paragraph("Text.")
    document.save(tmp_path / "a.docx")
    assert document_of(tmp_path / "a.docx").title == read


# Slides


def test_every_slide_begins_with_its_number_and_ends_with_its_notes(tmp_path: Path) -> None:
    presentation: Any = pptx.Presentation(str(deck(tmp_path / "a.pptx")))
    presentation.slides[0].notes_slide.notes_text_frame.text = "Play the overture."
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    table = slide.shapes.add_table(1, 2, 0, 0, 9, 9).table
    table.cell(0, 0).text, table.cell(0, 1).text = "Opera", "Year"
    group = slide.shapes.add_group_shape()
    group.shapes.add_textbox(0, 0, 9, 9).text_frame.text = "In a group"
    presentation.save(str(tmp_path / "a.pptx"))
    read = document_of(tmp_path / "a.pptx")
    assert read.title == "Operas"
    assert read.text == (
        "[slide 1]\nOperas\nGriselda\nOrlando\nFarnace\nNotes: Play the overture.\n\n"
        "[slide 2]\nOpera | Year\nIn a group"
    )


# Workbooks


def test_every_sheet_begins_with_its_name_and_has_a_line_for_each_row(tmp_path: Path) -> None:
    assert document_of(sheets(tmp_path / "a.xlsx")).text == (
        "[sheet Operas]\nOpera | Year | First night | Revised\n"
        "Griselda | 1735 | 1735-05-18 | TRUE\n"
        "Orlando furioso | 1727.5 | 1727-11-10 20:30:00\n\n[sheet Été]\nFarnace"
    )


def test_rows_outside_of_the_declared_size_of_a_sheet_are_read(tmp_path: Path) -> None:
    path = sheets(tmp_path / "a.xlsx")
    name = "xl/worksheets/sheet1.xml"
    with ZipFile(path) as file:
        sheet = file.read(name).decode()
    assert 'ref="A1:E4"' in sheet
    with_member(path, name, sheet.replace('ref="A1:E4"', 'ref="A1"'))
    assert "Orlando furioso" in document_of(path).text


def test_a_sheet_of_a_million_empty_rows_is_read(tmp_path: Path) -> None:
    path = sheets(tmp_path / "a.xlsx")
    row = '<row r="{0}"><c r="XFD{0}"><v>1</v></c></row>'
    rows = "".join(row.format(number) for number in range(1, 1_048_576, 100_000))
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    sheet = f'<worksheet xmlns="{main}"><sheetData>{rows}</sheetData></worksheet>'
    with_member(path, "xl/worksheets/sheet1.xml", sheet)
    assert document_of(path).text.startswith("[sheet Operas]" + "\n1" * 11 + "\n\n")


def test_empty_cells_are_not_written(tmp_path: Path) -> None:
    document = docx.Document()
    table = document.add_table(2, 3)
    table.cell(0, 2).text = "Year"
    table.cell(1, 0).text, table.cell(1, 2).text = "Griselda", "1735"
    document.save(str(tmp_path / "a.docx"))
    assert document_of(tmp_path / "a.docx").text == "Year\nGriselda | 1735"


# Books


def test_chapters_are_read_in_the_order_of_the_spine(tmp_path: Path) -> None:
    read = document_of(book(tmp_path / "a.epub"))
    assert read.title == "The Red Priest"
    assert read.text == (
        "[chapter 1]\n# One\n\nHe was born.\n\n[chapter 2]\n# Two\n\nHe left Venice."
    )
    assert document_of(book(tmp_path / "b.epub", "Unknown")).title == "One"


@pytest.mark.parametrize(
    ("href", "text"),
    [
        ("two%20b.xhtml", "Two"),
        ("two b.xhtml#x", "Two"),
        ("Two%20B.XHTML", "Two"),
        ("/OEBPS/two%20b.xhtml", "Two"),
        ("../../../OEBPS/two%20b.xhtml", "Two"),
        ("esc%20aped.xhtml", "Escaped"),
        ("A.xhtml", "Great A"),
        ("gone.xhtml", ""),
        ("../../../etc/passwd", ""),
        ("http://[x/two%20b.xhtml", ""),
        (".", ""),
        ("", ""),
    ],
)
def test_a_chapter_is_found_where_its_reference_leads_or_is_counted(
    tmp_path: Path, href: str, text: str
) -> None:
    path = book(tmp_path / "a.epub")
    for name, words in (("esc%20aped", "Escaped"), ("A", "Great A")):
        with_member(path, f"OEBPS/{name}.xhtml", f"<html><body><p>{words}</p></body></html>")
    package = PACKAGE.format(title="A").replace("two%20b.xhtml", href)
    with_member(path, "OEBPS/book.opf", package)
    read = document_of(path)
    assert "He was born." in read.text
    assert (text or "[chapter 1]") in read.text
    assert ("[chapter 2]" in read.text) == bool(text)
    absent = {} if text else {"chapters that are not in the archive": 1}
    assert read.unread == {"chapters that are not pages": 1, **absent}


def test_a_chapter_that_no_item_names_is_counted(tmp_path: Path) -> None:
    path = book(tmp_path / "a.epub")
    package = PACKAGE.format(title="A").replace("</spine>", '<itemref idref="gone"/></spine>')
    with_member(path, "OEBPS/book.opf", package)
    read = document_of(path)
    assert "[chapter 2]" in read.text
    assert read.unread == {
        "chapters that are not pages": 1,
        "chapters that are not in the archive": 1,
    }


def test_a_book_with_copy_protection_is_refused_and_one_with_hidden_fonts_is_read(
    tmp_path: Path,
) -> None:
    encryption = (
        '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><x:CipherReference'
        ' xmlns:x="http://www.w3.org/2001/04/xmlenc#" URI="OEBPS/{}"/></encryption>'
    )
    path = book(tmp_path / "a.epub")
    with_member(path, "META-INF/encryption.xml", encryption.format("font.otf"))
    assert document_of(path).text.startswith("[chapter 1]")
    with_member(path, "META-INF/encryption.xml", encryption.format("two%20b.xhtml"))
    assert "encrypted" in refusal_of(path).what


# Archives

WRITERS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "a.docx": (word, "word/document.xml"),
    "a.pptx": (deck, "ppt/slides/slide1.xml"),
    "a.xlsx": (sheets, "xl/worksheets/sheet1.xml"),
    "a.odt": (open_text, "content.xml"),
    "a.epub": (book, "OEBPS/book.opf"),
}


@pytest.fixture(params=WRITERS)
def valid(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    writer, _ = WRITERS[request.param]
    path = writer(tmp_path / request.param)
    assert document_of(path).text
    return path


@pytest.mark.parametrize("data", [b"", b"no archive", b"PK\x03\x04", b"PK\x05\x06" + bytes(18)])
def test_a_damaged_archive_is_refused(tmp_path: Path, data: bytes) -> None:
    for name in WRITERS:
        refusal_of(written(tmp_path / name, data))


def test_half_of_an_archive_is_refused(valid: Path) -> None:
    data = valid.read_bytes()
    refusal_of(written(valid, data[: len(data) // 2]))


def test_an_archive_without_its_main_part_is_refused(valid: Path) -> None:
    folder = "".join(WRITERS[valid.name][1].rpartition("/")[:2])
    with ZipFile(valid) as file:
        members = {n: file.read(n) for n in file.namelist() if not n.startswith(folder)}
    refusal_of(archive(valid, members))


def test_changed_bytes_in_an_archive_are_refused_or_read(valid: Path) -> None:
    data = bytearray(valid.read_bytes())
    data[len(data) // 3] ^= 0xFF
    try:
        document_of(written(valid, bytes(data)))
    except Exception as error:
        assert type(error).__name__ == "SourceError", error


def test_a_file_that_is_encrypted_or_in_an_old_format_is_refused(tmp_path: Path) -> None:
    for name in WRITERS:
        error = refusal_of(
            written(tmp_path / name, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
        )
        assert "encrypted" in error.what


def test_an_archive_with_encrypted_members_is_refused(valid: Path) -> None:
    data = bytearray(valid.read_bytes())
    place = data.index(b"PK\x01\x02")
    while place >= 0:  # the flags in every entry of the directory
        data[place + 8] |= 1
        place = data.find(b"PK\x01\x02", place + 4)
    assert "encrypted" in refusal_of(written(valid, bytes(data))).what


def test_entities_are_neither_expanded_nor_fetched(valid: Path, tmp_path: Path) -> None:
    secret = written(tmp_path / "secret.txt", "TOPSECRET")
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10 if n else "haha"}">' for n in range(12))
    for entity, use in ((laughs, "&l11;"), (f'<!ENTITY x SYSTEM "{secret.as_uri()}">', "&x;")):
        member = WRITERS[valid.name][1]
        with ZipFile(valid) as file:
            content = file.read(member).decode()
        declaration = content[: content.index("?>") + 2] if content.startswith("<?xml") else ""
        rest = content.removeprefix(declaration)
        for text in ("Vivaldi wrote operas.", "Operas", "Griselda", "The Red Priest"):
            rest = rest.replace(text, use)
        hostile = with_member(
            valid, member, f"{declaration}<!DOCTYPE x [{entity}]>{rest.replace('1735', use)}"
        )
        try:
            document = document_of(hostile)
        except Exception as error:
            assert type(error).__name__ == "SourceError", error
        else:
            assert "TOPSECRET" not in document.text + document.title
            assert "hahahaha" not in document.text + document.title
        with_member(valid, member, content)


def strictly(path: Path) -> Path:
    """Turn a file of Office into Strict Open XML."""
    usual = re.compile(rb"http://schemas\.openxmlformats\.org/(\w+)/2006/")
    with ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    return archive(
        path,
        {
            name: usual.sub(rb"http://purl.oclc.org/ooxml/\1/", data)
            if "package" not in name and name != "[Content_Types].xml"
            else data
            for name, data in members.items()
        },
    )


@pytest.mark.parametrize(
    ("make", "name", "text"),
    [
        (word, "a.docx", "Vivaldi wrote operas."),
        (deck, "a.pptx", "Griselda"),
        (sheets, "a.xlsx", "Griselda"),
    ],
)
def test_strict_open_xml_is_read(
    tmp_path: Path, make: Callable[[Path], Path], name: str, text: str
) -> None:
    usual = document_of(make(tmp_path / name))
    strict = document_of(strictly(tmp_path / name))
    assert text in strict.text
    assert strict.text == usual.text


@pytest.mark.parametrize(
    ("make", "usual", "other", "text"),
    [
        (word, "openxmlformats-officedocument.wordprocessingml.document",
         "ms-word.document.macroEnabled", "Vivaldi wrote operas."),
        (word, "openxmlformats-officedocument.wordprocessingml.document",
         "openxmlformats-officedocument.wordprocessingml.template", "Vivaldi wrote operas."),
        (deck, "openxmlformats-officedocument.presentationml.presentation",
         "openxmlformats-officedocument.presentationml.slideshow", "Griselda"),
        (deck, "openxmlformats-officedocument.presentationml.presentation",
         "ms-powerpoint.template.macroEnabled", "Griselda"),
        (sheets, "openxmlformats-officedocument.spreadsheetml.sheet",
         "ms-excel.template.macroEnabled", "Griselda"),
    ],
)  # fmt: skip
def test_templates_shows_and_files_with_macros_are_read(
    tmp_path: Path, make: Callable[[Path], Path], usual: str, other: str, text: str
) -> None:
    path = make(tmp_path / {word: "a.docm", deck: "a.ppsx", sheets: "a.xltm"}[make])
    with ZipFile(path) as file:
        types = file.read("[Content_Types].xml").decode()
    assert f"vnd.{usual}.main+xml" in types
    changed = types.replace(f"vnd.{usual}.main+xml", f"vnd.{other}.main+xml")
    assert text in document_of(with_member(path, "[Content_Types].xml", changed)).text


def test_a_relation_to_nothing_is_left_out(tmp_path: Path) -> None:
    path = word(tmp_path / "a.docx")
    name = "word/_rels/document.xml.rels"
    with ZipFile(path) as file:
        relations = file.read(name).decode()
    broken = relations.replace(
        "</Relationships>",
        '<Relationship Id="rId99" Type="http://schemas.openxmlformats.org/officeDocument/2006/'
        'relationships/image" Target="NULL"/></Relationships>',
    )
    assert document_of(with_member(path, name, broken)).text == "Vivaldi wrote operas."


def test_escapes_of_control_characters_are_no_text(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet: Any = book.active
    sheet.append(["first_x000D_\nsecond"])
    book.save(tmp_path / "a.xlsx")
    assert document_of(tmp_path / "a.xlsx").text.endswith("\nfirst second")


def test_charts_and_embedded_documents_are_counted(tmp_path: Path) -> None:
    presentation: Any = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[5])
    slide.shapes.title.text = "Sales"
    data: Any = CategoryChartData()
    data.categories = ["2019", "2020"]
    data.add_series("Units", (1, 2))
    for _ in range(2):
        slide.shapes.add_chart(XL_CHART_TYPE.PIE, 0, 0, 99, 99, data)
    presentation.save(tmp_path / "a.pptx")
    assert document_of(tmp_path / "a.pptx").unread == {"charts": 2}
    document: Any = docx.Document()
    document.add_paragraph("Text.")
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    document.element.body.append(parse_xml(f'<w:altChunk xmlns:w="{space}"/>'))
    document.save(tmp_path / "a.docx")
    assert document_of(tmp_path / "a.docx").unread == {"embedded documents": 1}
