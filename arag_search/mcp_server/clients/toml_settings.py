"""Settings in TOML, changed as text at one table."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from itertools import pairwise

_HEADER = re.compile(r"^[ \t]*\[", re.MULTILINE)


def parse(text: str) -> object:
    """Return the value of a text. Raises ValueError with the line for what is no TOML."""
    return tomllib.loads(text)


def with_entry(text: str, section: str, name: str, entry: Mapping[str, object]) -> str:
    """Return the text with a table ``[section.name]`` of the entry. Tables within it stay. Raises
    ValueError."""
    parse(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [f"[{section}.{name}]"]
    for key, value in entry.items():
        if not isinstance(value, Mapping):  # a table within it
            lines.append(f"{key} = {json.dumps(value, ensure_ascii=False)}")
    table = newline.join(lines)
    tables = _tables(text, section, name, within=False)
    if tables:
        start, end = tables[0]
        return text[:start] + table + text[end:]
    if text and not text.endswith("\n"):
        text += newline
    return text + (newline if text else "") + table + newline


def without_entry(text: str, section: str, name: str) -> str:
    """Return the text without a table and the tables within it. Raises ValueError."""
    tables = _tables(text, section, name, within=True)
    if not tables:
        raise ValueError(f"There is no table [{section}.{name}].")
    for start, end in reversed(tables):
        before, after = text[:start], text[end:]
        if before.endswith(("\n\n", "\n\r\n")) or not before:
            after = after.removeprefix("\r").removeprefix("\n")
            before = before[:-1].removesuffix("\r") if not after else before
        text = before + after
    return text


def _tables(text: str, section: str, name: str, *, within: bool) -> list[tuple[int, int]]:
    """Return where the table of an entry, and those within it, begin and end: a table ends before
    the blank lines and comments above the next."""
    more = r"(?:\s*\.[^\]\r\n]*)?" if within else ""
    key = rf"\s*{re.escape(section)}\s*\.\s*\"?{re.escape(name)}\"?\s*{more}"
    header = re.compile(rf"[ \t]*\[{key}\][ \t]*(?:#[^\r\n]*)?\r?$", re.MULTILINE)
    starts = [match.start() for match in _HEADER.finditer(text)]
    tables: list[tuple[int, int]] = []
    for start, next_start in pairwise([*starts, len(text)]):
        if header.match(text, start):
            block = text[start:next_start]
            kept = re.sub(r"(?:\s*\n[ \t]*(?:#[^\n]*)?)*\s*\Z", "", block)
            tables.append((start, start + len(kept)))
    return tables
