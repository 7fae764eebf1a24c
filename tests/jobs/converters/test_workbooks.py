"""Workbooks as their readers see them: number formats, comments, raised text and symbols."""

from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from openpyxl.comments import Comment

from index_jobs.sources.converters.office.number_formats import shown_value
from tests.support.converted import FILES, document_of, with_member

SHOWN: list[tuple[object, str, str]] = [
    (0.475, "0.0%", "47.5%"),
    (0.475, "0.0 %", "47.5 %"),
    (0.475, "0%", "48%"),
    (1234, "00000", "01234"),
    (timedelta(days=1.5), "[h]:mm", "36:00"),
    (timedelta(seconds=5025), "[h]:mm:ss", "1:23:45"),
    (1234.5, "#,##0.00", "1,234.50"),
    (1234567, "#,##0", "1,234,567"),
    (-5, "0.00;(0.00)", "(5.00)"),
    (-5, "0", "-5"),
    (0, '0;-0;"none"', "none"),
    (3.14159, "General", "3.14159"),
    (0.1 + 0.2, "General", "0.3"),
    (1234.5, "[$€-407] #,##0.00", "€ 1,234.50"),
    (1234.5, '#,##0.00\\ "€"', "1,234.50 €"),
    (1234.5, '"$"#,##0.00_);[Red]("$"#,##0.00)', "$1,234.50"),
    (0, '_("$"* #,##0.00_);_("$"* \\(#,##0.00\\);_("$"* "-"??_);_(@_)', "$-"),
    (1.5, "# ?/?", "1 1/2"),
    (0.25, "# ??/??", "1/4"),
    (0.375, "?/8", "3/8"),
    (2, "# ?/?", "2"),
    (12345678, "0.00E+00", "1.23E+07"),
    (0.00012, "0.0E+00", "1.2E-04"),
    (5551234567, "[<=9999999]###\\-####;\\(###\\)\\ ###\\-####", "(555) 123-4567"),
    (5551234, "[<=9999999]###\\-####;\\(###\\)\\ ###\\-####", "555-1234"),
    (123456789, "000\\-00\\-0000", "123-45-6789"),
    (12345678, '0.0,,"M"', "12.3M"),
    (12000, '#,##0,"k"', "12k"),
    (5, '0" kg"', "5 kg"),
    (3, '"Article "0', "Article 3"),
    (7, "@", "7"),
    (7, ";;;", ""),
    (1.0, "General", "1"),
    (20, 'General" °C"', "20 °C"),
    (0.5, "#.##", ".5"),
    (0.5, "0.##", "0.5"),
    (3, "0.##", "3"),
    (datetime(2024, 1, 31), "dd/mm/yyyy", "2024-01-31"),
    (datetime(2024, 1, 1), "mmm yyyy", "Jan 2024"),
    (datetime(2024, 1, 1), "yyyy", "2024"),
    (time(14, 5), "h:mm", "14:05"),
    (time(14, 5), "h:mm AM/PM", "2:05 PM"),
    (time(14, 5, 9), "hh:mm:ss", "14:05:09"),
    (time(0, 5, 9), "mm:ss", "05:09"),
    (datetime(1900, 1, 1, 12), "h:mm", "12:00"),
    (datetime(2024, 3, 5), "d-mmm", "5-Mar"),
    (datetime(2024, 3, 5), "dddd", "Tuesday"),
    (datetime(2024, 3, 5, 9, 30), "m/d/yy h:mm", "2024-03-05 09:30:00"),
    (True, "0", "TRUE"),
    ("x", "0", "x"),
    (-0.5, "0%", "-50%"),
    (0.285, "0.0%", "28.5%"),
    (1.005, "0.00", "1.01"),
    (1e300, "0", "1e+300"),
    (float("nan"), "0", "nan"),
    (42, "0_);(0)", "42"),
    (1500, '[>=1000]#,##0.0,"k";0', "1.5k"),
    (7, '[>=1000]#,##0.0,"k";0', "7"),
    (4, "", "4"),
    (0, "#", ""),
    (0.5, "00.0%", "50.0%"),
    (1, "0000", "0001"),
    (16, '[=1]"yes";[=0]"no"', "16"),
    (1e6, "#,##0.00;[Red]-#,##0.00", "1,000,000.00"),
    (-1234.5, "#,##0.00;[Red]-#,##0.00", "-1,234.50"),
    (1, '"' * 5_000, ""),
]


@pytest.mark.parametrize(("value", "form", "text"), SHOWN)
def test_a_value_is_shown_in_its_number_format(value: object, form: str, text: str) -> None:
    assert shown_value(value, form) == text


@pytest.mark.parametrize(
    "form",
    [
        "0" * 200,
        "#,,,,,,,,,,",
        ";",
        "[",
        "E+0",
        "?/?",
        "/0",
        "0/0",
        ".",
        "%%%",
        "0." + "0" * 99,
        "%" * 200 + "0",
        "mm",
        "E+00",
        "[h",
        "# ?/99999",
        "y",
    ],
)
def test_odd_formats_show_something(form: str) -> None:
    for value in (0, -1.5, 1e14, 7e-9, datetime(2024, 1, 1), time(1), timedelta(1)):
        assert isinstance(shown_value(value, form), str)


def test_cells_that_libreoffice_has_written_are_read_as_they_are_seen() -> None:
    assert document_of(FILES / "cells_of_libreoffice.xlsx").text == (
        "[sheet Sheet]\nName | Share | Id | Hours | Note\n"
        "x | 47.5 % (Ask Ann again) | 01234 | 36:00 | 10⁶ m, H₂O\n✓ | μg\n(Nothing here)"
    )


def test_replies_to_comments_follow_them(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet: Any = book.active
    sheet["A1"] = "price"
    sheet["A1"].comment = Comment("[Threaded comment] Get a newer version.", "x")
    book.save(tmp_path / "a.xlsx")
    name = "xl/worksheets/_rels/sheet1.xml.rels"
    path = with_member(
        tmp_path / "a.xlsx",
        name,
        '<Relationships><Relationship Type="x/comments" Target="/xl/comments/comment1.xml"/>'
        '<Relationship Type="y/threadedComment" Target="../threads/t.xml"/></Relationships>',
    )
    thread = "".join(
        f'<threadedComment ref="{ref}"><text>{text}</text></threadedComment>'
        for ref, text in (("A1", "Too high?"), ("A1", "No."), ("C3", "Later"))
    )
    with_member(path, "xl/threads/t.xml", f'<x xmlns="t">{thread}</x>')
    assert document_of(path).text == "[sheet Sheet]\nprice (Too high?; No.)\n(Later)"
