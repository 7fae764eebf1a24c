"""Numbers of lists, headings and clauses in Word documents and pages: those that a reader sees."""

from pathlib import Path
from typing import Any

import docx
import pytest
from docx.oxml import parse_xml

from index_jobs.sources.converters.html import page_of
from index_jobs.sources.converters.numbering import shown_number
from tests.support.converted import FILES, document_of

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def level(place: int, form: str, text: str, start: int = 1, more: str = "") -> str:
    return (
        f'<w:lvl w:ilvl="{place}"><w:start w:val="{start}"/><w:numFmt w:val="{form}"/>{more}'
        f'<w:lvlText w:val="{text}"/></w:lvl>'
    )


def override(place: int, content: str) -> str:
    return f'<w:lvlOverride w:ilvl="{place}">{content}</w:lvlOverride>'


CLAUSES = (
    level(0, "decimal", "%1.")
    + level(1, "decimal", "%1.%2")
    + level(2, "lowerLetter", "(%3)")
    + level(3, "lowerRoman", "(%4)")
)
ARTICLES = (
    level(0, "upperRoman", "Article %1.")
    + level(1, "decimalZero", "Section %1.%2", more="<w:isLgl/>")
    + level(2, "ordinal", "%3", 3)
)
BULLETS = level(0, "bullet", "\uf0b7") + level(1, "none", "")
FIVE = override(0, '<w:startOverride w:val="5"/>')
STEP = override(0, level(0, "upperLetter", "Step %1:"))
NEVER = level(0, "upperLetter", "%1)") + level(1, "decimal", "%2.", 1, '<w:lvlRestart w:val="0"/>')
AFTER_FIRST = (
    level(0, "decimal", "%1")
    + level(1, "decimal", "%2")
    + level(2, "decimal", "%3", 1, '<w:lvlRestart w:val="1"/>')
)
CASES = [
    # Lists with their overrides; then the list and level of each paragraph, and its number
    (CLAUSES, ("",), "1/0 1/1 1/2 1/2 1/3 1/1 1/2 1/0 1/1",
     "1.|1.1|(a)|(b)|(i)|1.2|(a)|2.|2.1"),
    (CLAUSES, ("",), "1/1 1/1 1/0 1/2 1/0", "1.1|1.2|2.|(a)|3."),
    (CLAUSES, ("", FIVE), "1/0 2/0 2/1 1/0 2/0", "1.|5.|5.1|6.|7."),
    (CLAUSES, ("", STEP), "1/0 2/0 1/0", "1.|Step B:|3."),
    (CLAUSES, ("", ""), "1/0 1/0 2/0 0/0 1/0", "1.|2.|3.||4."),
    (ARTICLES, ("",), "1/0 1/1 1/1 1/2 1/2 1/0 1/1",
     "Article I.|Section 1.01|Section 1.02|3rd|4th|Article II.|Section 2.01"),
    (BULLETS, ("",), "1/0 1/1 9/0", "-||-"),
    (NEVER, ("",), "1/0 1/1 1/1 1/0 1/1", "A)|1.|2.|B)|3."),
    (AFTER_FIRST, ("",), "1/0 1/1 1/2 1/1 1/2 1/0 1/2", "1|1|1|2|2|2|1"),
]  # fmt: skip


def word(path: Path, lists: str, overrides: tuple[str, ...], paragraphs: list[str]) -> Path:
    """Write a document whose lists share one definition."""
    document: Any = docx.Document()
    numbering = document.part.numbering_part.element
    numbering.clear()
    numbering.append(parse_xml(f'<w:abstractNum {W} w:abstractNumId="7">{lists}</w:abstractNum>'))
    for number, more in enumerate(overrides, 1):
        numbering.append(
            parse_xml(f'<w:num {W} w:numId="{number}"><w:abstractNumId w:val="7"/>{more}</w:num>')
        )
    for paragraph in paragraphs:
        document.element.body.insert_element_before(parse_xml(paragraph), "w:sectPr")
    document.save(str(path))
    return path


def paragraph(text: str, list_and_level: str = "", style: str = "", more: str = "") -> str:
    number, _, place = list_and_level.partition("/")
    listed = f'<w:numPr><w:ilvl w:val="{place}"/><w:numId w:val="{number}"/></w:numPr>'
    return (
        f'<w:p {W}><w:pPr><w:pStyle w:val="{style}"/>{listed if number else ""}{more}</w:pPr>'
        f"<w:r><w:t>{text}</w:t></w:r></w:p>"
    )


@pytest.mark.parametrize(("lists", "overrides", "places", "numbers"), CASES)
def test_paragraphs_of_lists_have_their_numbers(
    tmp_path: Path, lists: str, overrides: tuple[str, ...], places: str, numbers: str
) -> None:
    paragraphs = [paragraph("text", place) for place in places.split()]
    text = document_of(word(tmp_path / "a.docx", lists, overrides, paragraphs)).text
    lines = [line for line in text.split("\n") if line]
    assert lines == [f"{number} text".strip() for number in numbers.split("|")]


def test_headings_have_the_numbers_that_their_styles_give(tmp_path: Path) -> None:
    lists = level(0, "decimal", "%1", more='<w:pStyle w:val="Heading1"/>') + level(
        1, "decimal", "%1.%2", more='<w:pStyle w:val="Heading2"/>'
    )
    paragraphs = [
        paragraph("Scope", style="Heading1"),
        paragraph("Terms", style="Heading2"),
        paragraph("", style="Heading2"),
        paragraph("Deleted", style="Heading2", more="<w:rPr><w:del/></w:rPr>"),
        paragraph("Laws", style="Heading2"),
        paragraph("Free", "0/0", style="Heading1"),
    ]
    path = word(tmp_path / "a.docx", lists, ("",), paragraphs)
    document: Any = docx.Document(str(path))
    for name in ("Heading 1", "Heading 2"):
        properties = document.styles[name].element.get_or_add_pPr()
        properties.append(parse_xml(f'<w:numPr {W}><w:numId w:val="1"/></w:numPr>'))
    document.save(str(path))
    read = document_of(path)
    assert read.text.split("\n\n") == [
        "# 1 Scope", "## 1.1 Terms", "## Deleted", "## 1.3 Laws", "# Free"
    ]  # fmt: skip
    assert read.title == "Scope"
    assert [unit.name for unit in read.outline] == [
        "1 Scope",
        "1.1 Terms",
        "Deleted",
        "1.3 Laws",
        "Free",
    ]


def test_cells_have_the_numbers_of_their_paragraphs(tmp_path: Path) -> None:
    rows = "".join(
        f"<w:tr><w:tc>{paragraph('', '1/0')}</w:tc><w:tc>{paragraph(text)}</w:tc></w:tr>"
        for text in ("wash", "dry")
    )
    path = word(tmp_path / "a.docx", CLAUSES, ("",), [f"<w:tbl {W}>{rows}</w:tbl>"])
    assert document_of(path).text == "1. | wash\n2. | dry"


def test_lists_that_libreoffice_has_written_have_their_numbers() -> None:
    text = document_of(FILES / "lists_of_libreoffice.docx").text
    assert text == (
        "# T\n\ne. five\nf. six\n1. in\n2. in2\n- b\nj. ten\nk. eleven\n1. x\n2. y\n3. z\n- q\n"
        "I. r1\nII. r2\n1. again\n\np"
    )


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<ol><li>x<li>y</ol><ol><li>z", "1. x\n2. y\n\n1. z"),
        ("<ol start=5 type=a><li>x<li value=27>y<li>z", "e. x\naa. y\nbb. z"),
        ("<ol><li>x<ol type=i><li>y<li>z</ol><li>w", "1. x\n\ni. y\nii. z\n\n2. w"),
        ("<ol><li>x<ul><li>y</ul><li>z", "1. x\n\n- y\n\n2. z"),
        ("<ol reversed><li>x<li>y", "2. x\n1. y"),
        ("<ol start=0 reversed><li>x<li>y", "0. x\n-1. y"),
        ("<ol style='list-style-type: upper-roman'><li>x<li>y", "I. x\nII. y"),
        ("<ol style='list-style: none'><li>x", "- x"),
        ("<ol><li><p>x</p><p>more</p><li><p>y", "1. x\n\nmore\n\n2. y"),
        ("<ol start=z><li value=999999999999>x<li><li>y", "999999999. x\n1000000001. y"),
        ("<li>x", "- x"),
    ],
)
def test_items_of_pages_have_their_numbers(markup: str, text: str) -> None:
    assert page_of(markup).text == text


@pytest.mark.parametrize(
    ("number", "form", "text"),
    [
        (28, "lowerLetter", "bb"), (1994, "upperRoman", "MCMXCIV"), (0, "upperLetter", "0"),
        (9_999, "lowerRoman", "9999"), (7, "decimalZero", "07"), (11, "ordinal", "11th"),
        (22, "ordinal", "22nd"), (3, "chicago", "3"),
    ],
)  # fmt: skip
def test_numbers_are_shown_in_their_form(number: int, form: str, text: str) -> None:
    assert shown_number(number, form) == text
