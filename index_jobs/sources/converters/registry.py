"""The registry of file types: their names, endings, packages and converters.

Folders, the table of formats in help, and messages take the file types from here. To add one, add
its entry and write its converter. Converters are imported when a file of their type is read.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, cast

from arag_search.system.extras import check_extra

if TYPE_CHECKING:
    from index_jobs.sources.converters.base import Converter

EXTRA = "files"
"""The extra of this project that installs the packages of all file types."""


@dataclass(frozen=True, slots=True)
class FileType:
    """One type of file.

    ``endings`` are in lower case. ``summary`` describes the files, for help. ``function`` is the
    converter, as ``module:function`` in this room. ``packages`` maps the packages of the extra
    ``files`` that it needs to the modules by which they are imported.
    """

    name: str
    endings: tuple[str, ...]
    summary: str
    function: str
    packages: Mapping[str, str] = field(default_factory=dict[str, str])

    def check(self) -> None:
        """Raise MissingExtraError if a package of this type is not installed. Imports nothing."""
        for package, module in self.packages.items():
            check_extra(EXTRA, package, module)

    def converter(self) -> Converter:
        """Import the converter. Raises MissingExtraError if a package is not installed."""
        self.check()
        module, _, function = self.function.partition(":")
        loaded = import_module(f"index_jobs.sources.converters.{module}")
        return cast("Converter", getattr(loaded, function))


_SELECTOLAX = {"selectolax": "selectolax"}

_ROWS = "tables with {}, a document for each row"

_TYPES = (
    FileType("text", (".txt", ".md"), "plain text and Markdown", "text:convert"),
    FileType("rst", (".rst",), "reStructuredText, as it is written", "text:convert_rst"),
    FileType("html", (".html", ".htm", ".xhtml"), "web pages", "html:convert", _SELECTOLAX),
    FileType("pdf", (".pdf",), "PDF with text", "pdf:convert", {"pypdfium2": "pypdfium2"}),
    FileType("word", (".docx",), "Word documents", "word:convert", {"python-docx": "docx"}),
    FileType("slides", (".pptx",), "slide decks", "slides:convert", {"python-pptx": "pptx"}),
    FileType(
        "workbook", (".xlsx", ".xlsm"), "workbooks", "workbook:convert", {"openpyxl": "openpyxl"}
    ),
    FileType("csv", (".csv",), _ROWS.format("commas, semicolons or tabs"), "tables:convert_csv"),
    FileType("tsv", (".tsv", ".tab"), _ROWS.format("tabs"), "tables:convert_tsv"),
    FileType(
        "parquet",
        (".parquet",),
        "tables, a document for each row",
        "tables:convert_parquet",
        {"pyarrow": "pyarrow"},
    ),
    FileType("message", (".eml",), "mail", "mail:convert_message", _SELECTOLAX),
    FileType(
        "mailbox",
        (".mbox",),
        "mail, a document for each message",
        "mail:convert_mailbox",
        _SELECTOLAX,
    ),
    FileType("epub", (".epub",), "books", "epub:convert", {"lxml": "lxml"} | _SELECTOLAX),
)

FILE_TYPES: dict[str, FileType] = {file_type.name: file_type for file_type in _TYPES}
"""All types of files by name."""

_BY_ENDING = {ending: file_type for file_type in _TYPES for ending in file_type.endings}


def file_type_of(name: str) -> FileType | None:
    """Return the type of a file by the ending of its name or path; None if there is none."""
    return _BY_ENDING.get(os.path.splitext(name)[1].lower())


def file_types_help(indent: str) -> str:
    """Return an indented line for each type of files, for the help of a command."""
    endings = [
        " ".join(file_type.endings) + " *" * bool(file_type.packages) for file_type in _TYPES
    ]
    width = max(map(len, endings))
    lines = zip(endings, _TYPES, strict=True)
    return "\n".join(f"{indent}  {shown:{width}}  {entry.summary}" for shown, entry in lines)
