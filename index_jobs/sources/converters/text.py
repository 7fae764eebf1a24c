"""Plain text, and Markdown. Modules of their own know the outline of other texts, such as code."""

from __future__ import annotations

import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arag_search.corpus import Outline
from arag_search.errors import LeftOutError, SourceError
from arag_search.query.forms import is_code
from index_jobs.sources.converters import code, rst
from index_jobs.sources.converters.front_matter import NO_FRONT_MATTER, FrontMatter, front_matter
from index_jobs.sources.converters.outline import Part, outline_of
from index_jobs.sources.converters.registry import (
    ConvertedDocument,
    in_lines,
    whole_file,
    whole_text,
)
from index_jobs.sources.encodings import Decoded, decoded
from index_jobs.sources.lines.files import Fields, readable

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_OUTLINE_CHARACTERS = 1 << 21
"""How much of a text of Markdown is parsed."""

_MARKDOWN = (".md", ".markdown", ".mdx", ".qmd", ".rmd")
_FRONT_MATTER = (b"--", b"++", BOM_UTF8, BOM_UTF16_LE, BOM_UTF16_BE)
"""The beginnings, without NUL, of files that may have front matter."""

_HEADING_CHARACTERS = 300
_LINE_CHARACTERS = 2_000
_ANCHOR = re.compile(r"\s*\{[#:][^{}]*\}\s*$")
"""The name of a heading for links, as MkDocs and Docusaurus have it."""


def convert(path: Path, where: str, fields: Fields) -> Iterator[ConvertedDocument]:
    """Yield the file as one document. Markdown has the title of its front matter, or of its first
    heading; other texts have none. See Converter."""
    yield _document(whole_text(path, where), where)


def convert_if_text(path: Path, where: str, fields: Fields) -> Iterator[ConvertedDocument]:
    """Yield the file as one document. Raises LeftOutError if it is no text. See Converter."""
    data = whole_file(path, where)
    try:
        read = decoded(data, where)
    except SourceError as error:
        raise LeftOutError("no text", where=where) from error
    yield _document(read._replace(text=in_lines(read.text)), where)


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
    elif is_code(name):
        outline = code.outline(text, name.rpartition(".")[2])
    unread = read.unread
    if front.problem:
        unread[f"front matter {front.problem}, kept as text"] = 1
    return ConvertedDocument("", title, text, unread=unread, outline=outline, front=front.values)


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

    The title is that of the front matter, or else the first heading; a heading too long to be one
    is passed over.
    """
    whole = text.replace("\r\n", "\n")
    front = front_matter(whole)
    title = front.title
    offset = front.lines
    parts: list[Part] = []
    tokens: list[Any] = _markdown()[0].parse(whole[front.length :][:_OUTLINE_CHARACTERS])
    in_body = False
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
