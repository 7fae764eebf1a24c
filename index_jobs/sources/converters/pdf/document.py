"""PDF files: the text of their pages, read with PDFium."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from arag_search.errors import SourceError
from index_jobs.sources.converters.pdf.characters import Characters
from index_jobs.sources.converters.pdf.pages import CUT, joined_pages, whole_words
from index_jobs.sources.converters.raised import written
from index_jobs.sources.converters.registry import ConvertedDocument, reading, sensible_title
from index_jobs.sources.lines.files import Fields, readable

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument

# Both begin with a set of rare characters, so that texts are searched fast.
_HYPHENATION = re.compile(
    r"[\ufffe\x02\u00ad\u2010-]"
    r"(?:(?<=[\ufffe\x02\u00ad])(?:\r?\n)?|(?<=[^\W\d_].) ?\r?\n(?=[^\W\d_]))"
)
_CONTROLS = (*range(9), 11, 12, *range(14, 32), 127, 0xFFFF)
_LIGATURE_CODE = re.compile(r"[\x1b-\x1f](?:(?<=[^\W\d_].)|(?=[^\W\d_]))")
"""Ligatures of fonts of TeX of which a file says no more."""

_ALIKE = {
    code: unicodedata.normalize("NFKC", chr(code))
    for code in (0x2E9F, 0x2EF3, *range(0x2F00, 0x2FD6), *range(0xFB00, 0xFB07))
}
"""Radicals that fonts give in place of the ideographs that look the same, and ligatures."""

_SUBSTITUTES = dict.fromkeys(_CONTROLS, "") | _ALIKE
_HEADING_CHARACTERS = 4_000
_HEADING_SCALE = 1.15
"""A heading is larger than most of the page by at least this factor."""


def convert(path: Path, where: str, fields: Fields) -> Iterator[ConvertedDocument]:
    """Yield the file as one document, in which a line ``[page N]`` stands before the first sentence
    that begins on a page. See Converter.

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
    with pdf:
        return _converted(pdf, where)


def _converted(pdf: PdfDocument, where: str) -> ConvertedDocument:
    cast("Any", pdf).init_forms()  # so that the values of fields are shown
    texts: list[str] = []
    heading = ""
    for number in range(len(pdf)):
        page = _shown_page(pdf, number)
        text_page: Any = page.get_textpage()
        characters = Characters(text_page)
        text = _tidy(written(characters.written().replace("√\r\n", "√")))
        heading = heading if number else _heading(characters)
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
    empty = sum(not text for text in texts)
    unread = {"pages without text": empty} if empty else {}
    return ConvertedDocument("", title, joined_pages(texts), unread=unread)


def _shown_page(pdf: PdfDocument, number: int) -> Any:
    """Return a page in the direction in which its text is written. The values of its form fields
    and its notes are part of its text."""
    from pypdfium2.raw import FLAT_NORMALDISPLAY, FLATTEN_SUCCESS, FPDFPage_Flatten

    page: Any = pdf[number]
    if FPDFPage_Flatten(page, FLAT_NORMALDISPLAY) == FLATTEN_SUCCESS:
        page.close()
        page = pdf[number]
    if page.get_rotation():
        page.set_rotation(0)
    return page


def _tidy(text: str) -> str:
    """Return a text in plain letters and lines, with CUT where a word was cut."""
    text = _HYPHENATION.sub(CUT, text)
    text = _LIGATURE_CODE.sub(lambda code: chr(0xFB00 + ord(code[0]) - 0x1B), text)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = (line.rstrip() for line in text.translate(_SUBSTITUTES).split("\n"))
    return "\n".join(lines).strip()


def _heading(characters: Characters) -> str:
    """Return the first lines of the first page that are larger than the rest; empty if none are."""
    text = characters.text[:_HEADING_CHARACTERS] if characters.have_places else ""
    sizes = [round(characters.size(place), 1) for place in range(len(text))]
    seen = Counter(size for size, character in zip(sizes, text, strict=True) if character.isalnum())
    if not seen:
        return ""
    usual = seen.most_common(1)[0][0]
    largest = max(seen)
    if largest < usual * _HEADING_SCALE:
        return ""
    start = sizes.index(largest)
    end = start
    while end < len(text) and (sizes[end] == largest or text[end].isspace()):
        end += 1
    return sensible_title(whole_words(_tidy(text[start:end])))
