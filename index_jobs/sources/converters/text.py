"""Plain text, Markdown and reStructuredText."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from index_jobs.sources.converters.registry import ConvertedDocument, sensible_title, whole_file
from index_jobs.sources.encodings import decoded
from index_jobs.sources.formats import Fields

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_TITLE_CHARACTERS = 1 << 17
"""How much of a text is searched for a title."""

_FRONT_MATTER = re.compile(
    r"\ufeff?(---|\+\+\+)[ \t]*\n((?:.*\n){0,1000}?)(?:\1|\.\.\.)[ \t]*(?:\n|$)"
)
_HEADING_CHARACTERS = 300
_HEADING_SIGN = re.compile(r"^(?: {0,3}|[ >*+\d.)-]+)#|^[ >]*(?:=+|-+)[ \t]*$", re.MULTILINE)
_UNDERLINE = re.compile(r"([!-/:-@\[-`{-~])\1+")


def convert(path: Path, where: str, fields: Fields) -> Iterator[ConvertedDocument]:
    """Yield the file as one document. Its title is that of its front matter, or its first
    Markdown heading. See Converter."""
    text = decoded(whole_file(path, where), where)
    yield ConvertedDocument("", markdown_heading(text), text)


def convert_rst(path: Path, where: str, fields: Fields) -> Iterator[ConvertedDocument]:
    """Yield the file, unchanged, as one document. Its title is the first heading.

    Directives are not run: they could read other files. See Converter.
    """
    text = decoded(whole_file(path, where), where)
    yield ConvertedDocument("", rst_heading(text), text)


def rst_heading(text: str) -> str:
    """Return the first line that is underlined with a punctuation mark, if any."""
    heading = ""
    for line in text.splitlines():
        line = line.rstrip()
        if heading and _UNDERLINE.fullmatch(line) and len(line) >= min(len(heading), 4):
            return heading
        heading = "" if _UNDERLINE.fullmatch(line) or line.startswith("..") else line.strip()
    return ""


def markdown_heading(text: str) -> str:
    """Return the title in the front matter, or else the first heading, of the beginning of a text
    of Markdown (CommonMark), if any; a title too long to be one is passed over."""
    text = text[:_TITLE_CHARACTERS].replace("\r\n", "\n")
    front = _FRONT_MATTER.match(text)
    if front is not None:
        if title := _front_title(front[1], front[2]):
            return title
        text = text[front.end() :]
    if not _HEADING_SIGN.search(text):
        return ""
    blocks, inline = _markdown()
    tokens: list[Any] = blocks.parse(text)
    for token, following in pairwise(tokens):
        if token.type == "heading_open":
            children: list[Any] = inline.parseInline(following.content)[0].children or []
            words = (" " if child.type.endswith("break") else child.content for child in children)
            title = " ".join("".join(words).split())
            if 0 < len(title) <= _HEADING_CHARACTERS:
                return title
    return ""


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

    return MarkdownIt("commonmark").disable(["inline", "reference"]), MarkdownIt("commonmark")
