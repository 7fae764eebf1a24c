"""Plain text, and Markdown. Modules of their own know the outline of other texts, such as code."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from arag_search.corpus import Outline
from arag_search.query.forms import is_code
from index_jobs.sources.converters import code, rst
from index_jobs.sources.converters.outline import Part, outline_of
from index_jobs.sources.converters.registry import ConvertedDocument, sensible_title, whole_file
from index_jobs.sources.encodings import decoded
from index_jobs.sources.formats import Fields

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_OUTLINE_CHARACTERS = 1 << 24
"""How much of a text of Markdown is parsed."""

_FRONT_MATTER = re.compile(
    r"\ufeff?(---|\+\+\+)[ \t]*\n((?:.*\n){0,1000}?)(?:\1|\.\.\.)[ \t]*(?:\n|$)"
)
_HEADING_CHARACTERS = 300
_LINE_CHARACTERS = 2_000
_ANCHOR = re.compile(r"\s*\{[#:][^{}]*\}\s*$")
"""The name of a heading for links, as MkDocs and Docusaurus have it."""


def convert(path: Path, where: str, fields: Fields) -> Iterator[ConvertedDocument]:
    """Yield the file as one document. Markdown has the title of its front matter, or of its first
    heading; other texts have none. See Converter."""
    text = decoded(whole_file(path, where), where)
    name = path.name.lower()
    title, outline = "", ()
    if name.endswith((".md", ".markdown")):
        title, outline = markdown(text)
    elif name.endswith(".rst.txt"):  # as Sphinx keeps the sources of its pages
        title, outline = rst.title_and_outline(text)
    elif is_code(name):
        outline = code.outline(text, name.rpartition(".")[2])
    yield ConvertedDocument("", title, text, outline=outline)


def markdown(text: str) -> tuple[str, Outline]:
    """Return the title and the outline of a text of Markdown (CommonMark, with tables).

    The title is that of the front matter, or else the first heading; a title too long to be one is
    passed over.
    """
    # The parser would take a carriage return for the end of a line.
    whole = text.replace("\r\n", "\n").replace("\r", " ")
    front = _FRONT_MATTER.match(whole)
    title = _front_title(front[1], front[2]) if front else ""
    start = front.end() if front else 0
    offset = whole.count("\n", 0, start)
    parts: list[Part] = []
    tokens: list[Any] = _markdown()[0].parse(whole[start : start + _OUTLINE_CHARACTERS])
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
    return title, outline_of(text, parts)


def _inline_text(markup: str) -> str:
    """Return the words of a line of Markdown."""
    markup = _ANCHOR.sub("", markup[:_LINE_CHARACTERS])
    children: list[Any] = _markdown()[1].parseInline(markup)[0].children or []
    words = (" " if child.type.endswith("break") else child.content for child in children)
    return " ".join("".join(words).split())


def _front_title(fence: str, matter: str) -> str:
    try:
        fields: Any = tomllib.loads(matter) if fence == "+++" else yaml.safe_load(matter)
        return sensible_title(fields.get("title"))
    except (ValueError, AttributeError, RecursionError, yaml.YAMLError):
        return ""


@cache
def _markdown() -> tuple[MarkdownIt, MarkdownIt]:
    """Return a parser of blocks and one of what is in a line."""
    from markdown_it import MarkdownIt

    blocks = MarkdownIt("commonmark").disable(["inline", "reference"]).enable("table")
    return blocks, MarkdownIt("commonmark")
