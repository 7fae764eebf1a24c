"""Workbooks (.xlsx): the values of their sheets. Formulas are read as their last result."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from datetime import datetime, time
from pathlib import Path
from typing import IO, Any

from arag_search.errors import SourceError
from index_jobs.sources.converters.archives import check_archive
from index_jobs.sources.converters.base import (
    ConvertedDocument,
    check_length,
    reading,
    sensible_title,
)
from index_jobs.sources.formats import Fields

_MAX_CELLS = 20_000_000
"""The maximum number of cells to examine; a small file can declare sheets of billions of empty
ones."""


def convert(path: Path, where: str, fields: Fields) -> Iterator[ConvertedDocument]:
    """Yield the file as one document. Every sheet begins with a line ``[sheet Name]``, and has a
    line for each row, with bars between cells. See Converter."""
    kind = "a workbook"
    check_archive(path, where, kind)
    with path.open("rb") as file, reading(kind, where), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about styles and extensions, which are not read
        document = _document(file, where)
    yield document


def _document(file: IO[bytes], where: str) -> ConvertedDocument:
    from openpyxl import load_workbook

    workbook: Any = load_workbook(file, read_only=True, data_only=True, keep_links=False)
    try:
        title = sensible_title(workbook.properties.title)
        lines: list[str] = []
        cells = characters = 0
        for sheet in workbook.worksheets:
            lines.append(f"{chr(10) * bool(lines)}[sheet {sheet.title}]")
            sheet.reset_dimensions()  # the declared size of a sheet is often wrong
            for row in sheet.iter_rows(values_only=True):
                cells += len(row) + 1
                if line := _line(row):
                    lines.append(line)
                    characters += len(line)
                    check_length(characters, where)
                if cells > _MAX_CELLS:
                    raise _too_many_cells(where)
    finally:
        workbook.close()
    if not lines:
        raise SourceError("The workbook has no sheets of cells.", where=where)
    return ConvertedDocument("", title, "\n".join(lines))


def _line(row: Sequence[object]) -> str:
    if not any(value is not None for value in row):
        return ""
    return " | ".join(map(_shown, row)).rstrip(" |")


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, datetime):
        return str(value.date()) if value.time() == time() else value.isoformat(" ")
    return " ".join(str(value).split())


def _too_many_cells(where: str) -> SourceError:
    return SourceError(
        "The workbook has too many cells.",
        where=where,
        allowed=f"at most {_MAX_CELLS:,}, empty ones included",
        do="Save the sheets as CSV or Parquet, whose rows are documents.",
    )
