"""reStructuredText. Directives are not run: they could read other files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from arag_search.corpus import Outline
from index_jobs.sources.converters.outline import INDEX_LINES, Part, ends_by_indent, outline_of
from index_jobs.sources.converters.registry import ConvertedDocument, whole_text
from index_jobs.sources.lines.files import Fields

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1+")
_DIRECTIVE = re.compile(r"\.\. ([\w:.+-]+)::(?: +(.*))?$")
_TARGET = re.compile(r"\.\. [_\[|]|__ ")
_ITEM = re.compile(r"(?:[-*+\u2022]|(?:\d+|[a-zA-Z#])[.)]|\(\w{1,3}\)) +\S")
_NO_TERM = re.compile(r"[|+>=]|:[^:`]+:(?: |$)|\.\. |--?\w|/\w")
"""The beginnings of lines that are no terms: tables, line blocks, fields, options of commands."""

_BLOCKS = frozenset(
    """
    code code-block sourcecode parsed-literal doctest testcode testoutput testsetup highlight raw
    math productionlist graphviz ipython prompt
    """.split()  # noqa: SIM905
)
_NOTES = frozenset(
    "note warning tip hint important caution danger attention error seealso admonition".split()  # noqa: SIM905
)
_NO_UNITS = frozenset(
    """
    image figure include literalinclude module currentmodule py:module py:currentmodule only
    ifconfig role default-role index rst-class versionadded versionchanged deprecated versionremoved
    deprecated-removed rubric sectionauthor moduleauthor contents meta toctree
    """.split()  # noqa: SIM905
)
"""Directives whose argument is not the name of what they describe."""

_MARKUP = re.compile(
    r":[\w:+-]{1,40}:`([^`<]*)(?:<[^`>]*>)?`|``([^`]+)``|`([^`<]+)(?:<[^`>]*>)?`_{0,2}|\\(.)"
    r"|\*{1,2}([^*\s][^*]*)\*{1,2}"
)
"""Roles, literals, links, escaped characters and emphasis."""


def convert(path: Path, where: str, fields: Fields) -> Iterator[ConvertedDocument]:
    """Yield the file, unchanged, as one document. Its title is the first heading. See Converter."""
    read = whole_text(path, where)
    title, outline = title_and_outline(read.text)
    yield ConvertedDocument("", title, read.text, unread=read.unread, outline=outline)


def title_and_outline(text: str) -> tuple[str, Outline]:
    """Return the first heading of a text, if any, and its outline. It has sections by their
    adornments, directives that describe something, terms and items as entries, and literal
    blocks."""
    lines = [line.rstrip().expandtabs() for line in text.split("\n")]
    ends = ends_by_indent(lines)
    parts: list[Part] = []
    levels: dict[tuple[str, bool], int] = {}
    resume = 0
    for number, line in enumerate(lines):
        if number < resume or not line:
            continue
        bare = line.lstrip()
        if style := _title_style(lines, number):
            level = levels.setdefault(style, len(levels) + 1)
            parts.append(Part(number - style[1], 0, "section", _plain(bare), level))
            resume = number + 2
        elif _ADORNMENT.fullmatch(line) and not line.startswith(".."):
            continue
        elif directive := _DIRECTIVE.match(bare):
            part = _directive(directive, number, _body(lines, ends, number), ends[number])
            parts += [part] if part else []
            if (part and part.kind == "block") or directive[1] == "toctree":
                resume = ends[number]
        elif bare.startswith(".. ") and not _TARGET.match(bare):  # a comment
            resume = ends[number]
        elif bare.startswith(">>> "):
            resume = next((n for n in range(number, len(lines)) if not lines[n]), len(lines))
            parts.append(Part(number, resume, "block"))
        else:
            body = _body(lines, ends, number)
            if _ITEM.match(bare):
                parts.append(Part(number, ends[number], "entry"))
            elif body == number + 1 and _is_term(lines, number):
                parts.append(Part(number, ends[number], "entry", _plain(bare)))
            if bare.endswith("::") and body > number + 1:
                resume = ends[number]
                parts.append(Part(body, resume, "block"))
    title = next((part.name for part in parts if part.level), "")
    return title, outline_of(text, parts)


def _title_style(lines: list[str], number: int) -> tuple[str, bool] | None:
    """Return the adornment of a title, and whether it is above the title too; None for a line that
    is not a title."""
    line = lines[number]
    under = lines[number + 1] if number + 1 < len(lines) else ""
    above = lines[number - 1] if number else ""
    if not _ADORNMENT.fullmatch(under) or len(under) < min(len(line.strip()), 4):
        return None
    if above == under and not (number > 1 and lines[number - 2]):
        return under[0], True
    is_title = not line[0].isspace() and not _ADORNMENT.fullmatch(line)
    is_apart = not above or above.startswith(("..", " ")) or _ADORNMENT.fullmatch(above)
    return (under[0], False) if is_title and is_apart and not line.startswith("..") else None


def _body(lines: list[str], ends: list[int], number: int) -> int:
    following = number + 1
    while following < ends[number] and not lines[following]:
        following += 1
    return following if following < ends[number] else 0


def _is_term(lines: list[str], number: int) -> bool:
    is_apart = number == 0 or not lines[number - 1]
    return is_apart and not _NO_TERM.match(lines[number].lstrip())


def _directive(directive: re.Match[str], number: int, body: int, end: int) -> Part | None:
    kind, argument = directive[1], directive[2]
    if kind in _BLOCKS and body:
        return Part(number, end, "block")
    if kind in _NOTES:
        return Part(number, end, "entry")
    if kind == "toctree" and end - number > INDEX_LINES:
        return Part(number, end, "index")
    if kind in _NO_UNITS or not argument or not body:
        return None
    return Part(number, end, "entry", argument.rstrip(" \\"))


def _plain(markup: str) -> str:
    return _MARKUP.sub(lambda match: match[match.lastindex or 0].strip(), markup).strip()
