"""Workbooks: the cells of their sheets, with a line for each row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from importlib import import_module
from typing import IO, Any, cast
from zipfile import ZipFile

from index_jobs.sources.converters import raised
from index_jobs.sources.converters.archives import (
    converter,
    joined,
    parsed_xml,
    sectioned_document,
    unescaped,
)
from index_jobs.sources.converters.office.number_formats import shown_value
from index_jobs.sources.converters.registry import ConvertedDocument, sensible_title
from index_jobs.sources.converters.symbols import as_seen, symbol_font

_USUAL = ("General", "")
_CELL = re.compile(r"[A-Z]{1,3}[1-9]\d{0,6}")


def _sheet_document(file: IO[bytes]) -> ConvertedDocument:
    """Return a workbook as a document. Every sheet begins with a line ``[sheet Name]``, and has a
    line for each row, with bars between cells."""
    from openpyxl import load_workbook

    workbook: Any = load_workbook(
        file, read_only=True, data_only=True, keep_links=False, rich_text=True
    )
    with closing(workbook):
        title = sensible_title(workbook.properties.title)
        sheets = ((sheet.title, _rows(workbook, sheet)) for sheet in workbook.worksheets)
        if workbook.worksheets:
            return sectioned_document(title, "sheet", sheets, ())
    raise ValueError("it has no sheets of cells")


convert = converter("a workbook", _sheet_document)


def _rows(workbook: Any, sheet: Any) -> Iterator[str]:
    """Yield the lines of a sheet. The library's own rows have neither raised text nor comments, and
    end where a sheet declares it, which is often wrong."""
    from openpyxl.cell.read_only import ReadOnlyCell
    from openpyxl.worksheet._reader import WorkSheetParser

    path = sheet._worksheet_path
    comments = _comments(workbook._archive, path)
    styled: Any = partial(ReadOnlyCell, sheet, 1, 1, None)
    looks = {
        id: (cell.number_format or "General", symbol_font(cell.font.name))
        for id, cell in enumerate(styled(style_id=n) for n in range(len(workbook._cell_styles)))
    }
    with workbook._archive.open(path) as source:
        parser: Any = WorkSheetParser(
            source,
            sheet._shared_strings,
            data_only=True,
            epoch=workbook.epoch,
            date_formats=workbook._date_formats,
            timedelta_formats=workbook._timedelta_formats,
            rich_text=True,
        )
        for number, cells in parser.parse():
            shown = {
                cell["column"]: _shown(cell["value"], *looks.get(cell["style_id"], _USUAL))
                for cell in cells
                if cell["value"] is not None
            }
            for column, comment in sorted(comments.pop(number, {}).items()):
                shown[column] = f"{shown.get(column, '')} ({comment})".strip()
            yield joined(shown[column] for column in sorted(shown))
    for _, row in sorted(comments.items()):
        yield joined(f"({row[column]})" for column in sorted(row))


def _comments(archive: ZipFile, path: str) -> dict[int, dict[int, str]]:
    """Return the comments of a sheet by their rows and columns; replies follow what they answer."""
    relationship: Any = import_module("openpyxl.packaging.relationship")
    from openpyxl.utils.cell import coordinate_to_tuple

    comments: dict[int, dict[int, str]] = {}
    if (relations := relationship.get_rels_path(path)) not in archive.NameToInfo:
        return comments
    dependents = relationship.get_dependents(archive, relations)
    targets = {relation.Type.rpartition("/")[2]: relation.target for relation in dependents}
    # Beside a thread, there is a comment for programs that know none.
    for kind in ("threadedComment", "comments"):
        if (member := targets.get(kind)) not in archive.NameToInfo:
            continue
        root: Any = parsed_xml(archive.read(member))
        for comment in root.iter("{*}comment", "{*}threadedComment"):
            if not _CELL.fullmatch(place := str(comment.get("ref"))):
                continue
            row, column = coordinate_to_tuple(place)
            pieces = (text.text or "" for text in comment.iter("{*}t", "{*}text"))
            text = " ".join(unescaped("".join(pieces)).split())
            others = comments.setdefault(row, {})
            if kind == "comments":
                others.setdefault(column, text)
            else:
                others[column] = f"{others[column]}; {text}" if column in others else text
    return comments


def _shown(value: object, form: str, font: str) -> str:
    """Return a value as its cell shows it, on one line."""
    if not isinstance(value, str | list):
        return " ".join(shown_value(value, form).split())
    pieces: list[str] = []
    for run in cast("list[Any]", [value] if isinstance(value, str) else value):
        look = getattr(run, "font", None)
        mark = raised.MARKS.get(look.vertAlign or "", "") if look else ""
        named = symbol_font(look.rFont) if look and look.rFont else font
        pieces.append(f"{mark}{as_seen(unescaped(str(run)), named)}{raised.END * bool(mark)}")
    return " ".join(raised.written("".join(pieces)).split())
