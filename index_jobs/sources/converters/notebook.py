"""Notebooks of Jupyter: their cells as Markdown. Outputs and metadata are not read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from index_jobs.sources.converters.registry import ConvertedDocument, in_lines, reading, whole_text
from index_jobs.sources.converters.text import markdown
from index_jobs.sources.lines.files import Fields

_FENCE = re.compile(r"`{3,}")


def convert(path: Path, where: str, fields: Fields) -> Iterator[ConvertedDocument]:
    """Yield the notebook as one document: a paragraph for each cell, code between fences. See
    Converter."""
    written = whole_text(path, where)
    with reading("a notebook", where):
        text = "\n\n".join(filter(None, map(_text, _cells(json.loads(written.text)))))
    title, outline, _ = markdown(text)
    yield ConvertedDocument("", title, text, unread=written.unread, outline=outline)


def _cells(notebook: Any) -> list[Mapping[str, Any]]:
    match notebook:
        case {"cells": [*cells]}:
            return cells
        case {"worksheets": [*sheets]}:  # until version 4 of the format
            return [cell for sheet in sheets for cell in _cells(sheet)]
        case _:
            raise ValueError("it has no cells")


def _text(cell: Mapping[str, Any]) -> str:
    source: str | list[str] = cell.get("source", cell.get("input", ""))
    text = in_lines("".join(source)).strip("\r\n")
    match cell["cell_type"]:
        case "code" if text:
            fence = max(_FENCE.findall(text), key=len, default="``") + "`"
            return f"{fence}\n{text}\n{fence}"
        case "heading":
            return f"{'#' * cell.get('level', 1)} {text}"
        case _:
            return text
