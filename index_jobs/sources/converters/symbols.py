"""Fonts of symbols: the signs that a reader sees for other characters in a text."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

UNKNOWN = "\ufffd"
"""Stands for a symbol that ``symbols.txt`` lacks."""

_PRIVATE = re.compile("[\uf020-\uf0ff]")
"""Codes of such fonts to which Word has added 0xF000."""

_SYMBOLS = re.compile("[ -\xff\uf020-\uf0ff]")


@cache
def _tables() -> dict[str, dict[int, str]]:
    """Return the signs of fonts by their codes. In the file, a line ``# font`` stands above the
    signs of a font, and a code of two digits before a sign."""
    tables: dict[str, dict[int, str]] = {}
    table: dict[int, str] = {}
    for line in Path(__file__).with_suffix(".txt").read_text("utf-8").splitlines():
        if line.startswith("# "):
            table = tables[line[2:]] = {0x20: " "}
        else:
            table.update((int(entry[:2], 16), entry[2:]) for entry in line.split(" "))
    return tables


def symbol_font(name: str | None) -> str:
    """Return the name of a font as ``as_seen`` takes it; empty for a font of letters."""
    font = (name or "").lower().removesuffix(" mt")
    return font if font in _tables() else ""


def as_seen(text: str, font: str) -> str:
    """Return what is seen of a text in a font. Private characters in a font of letters are taken
    for characters of Symbol, as Word does."""
    if not font and text.isascii():
        return text
    table = _tables()[font or "symbol"]
    symbols = _SYMBOLS if font else _PRIVATE
    return symbols.sub(lambda sign: table.get(ord(sign[0]) & 0xFF, UNKNOWN), text)
