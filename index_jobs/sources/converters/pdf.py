"""PDF files: the text of their pages, read with PDFium."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from arag_search.errors import SourceError
from index_jobs.sources.converters.registry import (
    ConvertedDocument,
    reading,
    sensible_title,
)
from index_jobs.sources.lines.files import Fields, readable

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument

_HYPHENATION = re.compile(r"[\ufffe\x02\u00ad](?:\r?\n)?(?=(\w?))")
_CONTROLS = (*range(9), 11, 12, *range(14, 32), 127, 0xFFFE, 0xFFFF)
_LIGATURES = ("ff", "fi", "fl", "ffi", "ffl", "st", "st")
_RADICALS = {
    code: unicodedata.normalize("NFKC", chr(code))
    for code in (0x2E9F, 0x2EF3, *range(0x2F00, 0x2FD6))
}
"""Radicals that fonts give in place of the ideographs that look the same."""

_SUBSTITUTES = dict.fromkeys(_CONTROLS, "") | dict(enumerate(_LIGATURES, 0xFB00)) | _RADICALS
_HEADING_CHARACTERS = 4_000
_HEADING_SCALE = 1.15
"""A heading is larger than most of the page by at least this factor."""


def convert(path: Path, where: str, fields: Fields) -> Iterator[ConvertedDocument]:
    """Yield the file as one document. Every page begins with a line ``[page N]``. See Converter.

    An encrypted file is read if the empty password opens it.
    """
    with readable(where), path.open("rb") as file, reading("a PDF", where):
        document = _document(file, where)
    yield document


def _document(file: IO[bytes], where: str) -> ConvertedDocument:
    from pypdfium2 import PdfDocument, PdfiumError
    from pypdfium2.raw import FPDF_ERR_PASSWORD

    try:
        pdf = PdfDocument(file)
    except PdfiumError as error:
        if getattr(error, "err_code", None) != FPDF_ERR_PASSWORD:
            raise
        raise SourceError(
            "The PDF is encrypted.",
            where=where,
            allowed="a PDF that opens without a password",
            do="Save it without a password.",
        ) from None
    try:
        return _converted(pdf, where)
    finally:
        pdf.close()


def _converted(pdf: PdfDocument, where: str) -> ConvertedDocument:
    cast("Any", pdf).init_forms()  # so that the values of fields are shown
    texts: list[str] = []
    heading = ""
    for number in range(len(pdf)):
        page = _shown_page(pdf, number)
        text_page: Any = page.get_textpage()
        text = _tidy(text_page.get_text_range())
        if number == 0:
            heading = _heading(text_page)
        text_page.close()
        page.close()
        texts.append(text)
    if not any(texts):
        raise SourceError(
            "The PDF has no text: its pages are pictures.",
            where=where,
            allowed="a PDF with a layer of text",
            do="Run text recognition (OCR) on it first.",
        )
    properties: dict[str, str] = pdf.get_metadata_dict()
    title = sensible_title(properties.get("Title")) or heading
    pages = (f"[page {number}]\n{text}".rstrip() for number, text in enumerate(texts, 1))
    empty = sum(not text for text in texts)
    unread = {"pages without text": empty} if empty else {}
    return ConvertedDocument("", title, "\n\n".join(pages), unread=unread)


def _shown_page(pdf: PdfDocument, number: int) -> Any:
    """Return a page with the values of its form fields and its notes as part of its text, in the
    direction in which its text is written."""
    from pypdfium2.raw import FLAT_NORMALDISPLAY, FLATTEN_SUCCESS, FPDFPage_Flatten

    page: Any = pdf[number]
    if FPDFPage_Flatten(page, FLAT_NORMALDISPLAY) == FLATTEN_SUCCESS:
        page.close()
        page = pdf[number]
    if page.get_rotation():
        page.set_rotation(0)
    return page


def _tidy(text: str) -> str:
    text = _HYPHENATION.sub(_joined, text).replace("\r\n", "\n").replace("\r", "\n")
    lines = (line.rstrip() for line in text.translate(_SUBSTITUTES).split("\n"))
    return "\n".join(lines).strip()


def _joined(hyphen: re.Match[str]) -> str:
    """Return what is left of a hyphen at the end of a line: itself before a capital or a digit."""
    following = hyphen[1]
    return "-" if (following.isupper() or following.isdigit()) else ""


def _heading(text_page: Any) -> str:
    """Return the first lines of the first page that are larger than the rest; empty if none are."""
    from pypdfium2.raw import FPDFText_GetFontSize

    count = min(text_page.count_chars(), _HEADING_CHARACTERS)
    if not count:
        return ""
    text = text_page.get_text_range(0, count)
    if len(text) != count:  # characters outside of the Basic Multilingual Plane shift the places
        return ""
    sizes = [round(FPDFText_GetFontSize(text_page, place), 1) for place in range(count)]
    seen = Counter(size for size, character in zip(sizes, text, strict=True) if character.isalnum())
    if not seen:
        return ""
    usual = seen.most_common(1)[0][0]
    largest = max(seen)
    if largest < usual * _HEADING_SCALE:
        return ""
    start = sizes.index(largest)
    end = start
    while end < count and (sizes[end] == largest or text[end].isspace()):
        end += 1
    return sensible_title(_tidy(text[start:end]))
