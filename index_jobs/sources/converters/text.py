"""Plain text, and Markdown. Modules of their own know the outline of other texts, such as code."""

from __future__ import annotations

import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arag_search.corpus import Outline, is_code
from arag_search.errors import LeftOutError, SourceError
from index_jobs.sources.converters import code, rst
from index_jobs.sources.converters.front_matter import NO_FRONT_MATTER, FrontMatter, front_matter
from index_jobs.sources.converters.mail import mail_converter
from index_jobs.sources.converters.outline import TABLE_LINES, Part, outline_of
from index_jobs.sources.converters.registry import (
    MANY,
    PAGE,
    ConvertedDocument,
    ending_of,
    in_lines,
    whole_file,
    whole_text,
)
from index_jobs.sources.converters.tables import convert_lines
from index_jobs.sources.encodings import Decoded, decoded
from index_jobs.sources.lines.files import CorpusFile, Fields, line_records, readable

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_OUTLINE_CHARACTERS = 1 << 21
"""How much of a text of Markdown is parsed."""

_MARKDOWN = (".md", ".markdown", ".mdx", ".qmd", ".rmd")
_FRONT_MATTER = (b"--", b"++", BOM_UTF8, BOM_UTF16_LE, BOM_UTF16_BE)
"""The beginnings, without NUL, of files that may have front matter."""

_OF_MAIL = ("", ".txt", ".text")
_LOOKED_AT_BYTES = 64
_HEADING_CHARACTERS = 300
_LINE_CHARACTERS = 2_000
_LIKE_MAIL = re.compile(r"\n?(?:From |[!-9;-~]{1,76}:)")
_ORG = re.compile(
    r"(?i:\s*(?P<block>#\+begin_\w+)|#\+title:(?P<title>.+))|(?P<marks>\*+) +"
    r"(?:(?:TODO|DONE|NEXT|WAITING) +)?(?:\[#\w\] *)?(?P<name>.*?)(?: +:\S+:)?\s*$"
)
_ASCIIDOC = re.compile(
    r"(?P<block>([-./+])\2{3,}(?=\s*$)|```)|:(?:doc)?title:(?P<title>.+)"
    r"|(?P<marks>={1,6}) +(?P<name>.*?)(?: +=+)?\s*$"
)
_HEADINGS = {".org": _ORG, ".adoc": _ASCIIDOC, ".asciidoc": _ASCIIDOC}

_ANCHOR = re.compile(r"\s*\{[#:][^{}]*\}\s*$")
"""The name of a heading for links, as MkDocs and Docusaurus have it."""


def convert(path: Path, where: str, fields: Fields) -> Iterator[ConvertedDocument | SourceError]:
    """Yield the file as one document. Markdown has the title of its front matter, or of its first
    heading; other texts have none. Mail is read as such. See Converter."""
    read = whole_text(path, where)
    if _LIKE_MAIL.match(read.text) and ending_of(where) in _OF_MAIL:
        yield from convert_if_text(path, where, fields)
    else:
        yield _document(read, where)


def convert_if_text(
    path: Path, where: str, fields: Fields
) -> Iterator[ConvertedDocument | SourceError]:
    """Yield the file as one document, or without ending as mail, JSON lines or pages, if it
    begins as these do. Raises LeftOutError if it is no text. See Converter."""
    if ending_of(where) in _OF_MAIL and (convert_mail := mail_converter(path, where)):
        yield from convert_mail(path, where, fields)
        return
    if not ending_of(where) and _has_json_lines(path, where):
        yield from convert_lines(path, where, fields)
        return
    data = whole_file(path, where)
    try:
        read = decoded(data, where)
    except SourceError as error:
        raise LeftOutError("no text", where=where) from error
    yield _document(read._replace(text=in_lines(read.text)), where)


def _has_json_lines(path: Path, where: str) -> bool:
    """Return whether a file begins with objects of JSON on lines of their own, or with a page of
    wikiextractor. Files of many programs at once have such lines (``part-00000``, ``wiki_00``)."""
    first: list[Any] = []
    with suppress(SourceError), CorpusFile(path, where) as file:
        beginning = file.first_bytes(_LOOKED_AT_BYTES)
        if beginning.startswith(PAGE):
            return True
        if MANY.match(beginning):
            first += (record for _, record in islice(line_records(file, 0), 2))
    are_objects = bool(first) and all(isinstance(record, dict) for record in first)
    return are_objects and (len(first) > 1 or "text" in first[0])


def _document(read: Decoded, where: str) -> ConvertedDocument:
    name, text = where.lower(), read.text
    title, outline = "", ()
    front = NO_FRONT_MATTER
    if name.endswith(_MARKDOWN):
        title, outline, front = markdown(text)
        if front.length and not front.problem:
            # The lines below keep their numbers, by which editors and readers of files find them.
            *above, text = text.split("\n", front.lines)
            text = "\n" * len(above) + text if len(above) == front.lines else ""
    elif name.endswith(".rst.txt"):  # as Sphinx keeps the sources of its pages
        title, outline = rst.title_and_outline(text)
    elif form := _HEADINGS.get(ending_of(name)):
        title, outline = _headings(text, form)
    elif is_code(name):
        outline = code.outline(text, name.rpartition(".")[2])
    unread = read.unread
    if front.problem:
        unread[f"front matter {front.problem}, kept as text"] = 1
    return ConvertedDocument("", title, text, unread=unread, outline=outline, front=front.values)


def _headings(text: str, form: re.Pattern[str]) -> tuple[str, Outline]:
    """Return the title and the outline of a text whose headings and blocks have this form."""
    title, block_end, first, parts = "", "", 0, list[Part]()
    for number, line in enumerate(text.split("\n")):
        if block_end:
            if line.strip().lower() == block_end:
                parts.append(Part(first, number + 1, "block"))
                block_end = ""
        elif match := form.match(line[:_HEADING_CHARACTERS]):
            if match["block"]:
                first, block_end = number, match["block"].lower().replace("begin_", "end_")
            elif match["marks"]:
                parts.append(Part(number, 0, "section", match["name"], len(match["marks"])))
            else:
                title = title or match["title"].strip()
    return title or next((part.name for part in parts if part.level), ""), outline_of(text, parts)


def front_values(path: Path, where: str) -> Mapping[str, tuple[str, ...]]:
    """Return the values of the front matter of a file, none if it is no Markdown. Raises
    SourceError."""
    if not where.lower().endswith(_MARKDOWN):
        return {}
    with readable(where), path.open("rb") as file:
        if not file.read(4).replace(b"\0", b"").startswith(_FRONT_MATTER):
            return {}
    return front_matter(whole_text(path, where).text.replace("\r\n", "\n")).values


def markdown(text: str) -> tuple[str, Outline, FrontMatter]:
    """Return the title, the outline and the front matter of a text of Markdown (CommonMark, with
    tables), in which no carriage return stands alone.

    The title is the title of the front matter, or else the first heading. A heading too long for a
    title is passed over.
    """
    whole = text.replace("\r\n", "\n")
    front = front_matter(whole)
    title = front.title
    offset = front.lines
    parts: list[Part] = []
    tokens: list[Any] = _markdown()[0].parse(whole[front.length :][:_OUTLINE_CHARACTERS])
    in_body = False
    lines = whole.split("\n")
    for place, token in enumerate(tokens):
        kind = token.type
        if kind in ("thead_open", "tbody_open"):
            in_body = kind == "tbody_open"
        if token.map is None:
            continue
        first, end = (offset + line for line in token.map)
        if kind == "heading_open":
            name = _inline_text(tokens[place + 1].content)
            if not title and 0 < len(name) <= _HEADING_CHARACTERS:
                title = name
            if not token.level:  # not in an item or a quotation
                parts.append(Part(first, end, "section", name, int(token.tag[1])))
        elif kind == "table_open" and end - first >= TABLE_LINES:
            titles = lines[int(first)].strip().strip("|").split("|")
            parts.append(Part(first, end, "section", " | ".join(map(str.strip, titles))))
        elif kind == "list_item_open":
            parts.append(Part(first, end, "entry"))
        elif kind == "tr_open" and in_body:
            parts.append(Part(first, end, "entry", _inline_text(tokens[place + 2].content)))
        elif kind in ("fence", "code_block"):
            parts.append(Part(first, end, "block"))
    return title, outline_of(text, parts), front


def _inline_text(markup: str) -> str:
    markup = _ANCHOR.sub("", markup[:_LINE_CHARACTERS])
    children: list[Any] = _markdown()[1].parseInline(markup)[0].children or []
    words = (" " if child.type.endswith("break") else child.content for child in children)
    return " ".join("".join(words).split())


@cache
def _markdown() -> tuple[MarkdownIt, MarkdownIt]:
    from markdown_it import MarkdownIt

    blocks = MarkdownIt("commonmark").disable(["inline", "reference"]).enable("table")
    return blocks, MarkdownIt("commonmark")
