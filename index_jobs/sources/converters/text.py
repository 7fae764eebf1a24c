"""Plain text, Markdown and reStructuredText."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from index_jobs.sources.converters.registry import ConvertedDocument, whole_file
from index_jobs.sources.encodings import decoded
from index_jobs.sources.formats import Fields

_UNDERLINE = re.compile(r"([!-/:-@\[-`{-~])\1+")


def convert(path: Path, where: str, fields: Fields) -> Iterator[ConvertedDocument]:
    """Yield the file as one document. Its title is the first Markdown heading. See Converter."""
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
    """Return the first Markdown heading (``# ...``) outside of code and front matter, if any."""
    fence = "---" if text.startswith("---\n") else ""
    for number, line in enumerate(text.splitlines()):
        if fence:
            if number and line.startswith(fence):
                fence = ""
        elif line.startswith(("```", "~~~")):
            fence = line[:3]
        elif line.startswith("#"):
            marks = len(line) - len(line.lstrip("#"))
            rest = line[marks:]
            if marks <= 6 and rest[:1].isspace() and (heading := rest.strip().rstrip("#").strip()):
                return heading
    return ""
