"""Text that was written for a terminal, as people read it there: without codes of colours, links
and movements. Signs struck over other signs, as in manual pages, take their place."""

from __future__ import annotations

import re
import unicodedata

CODES = "terminal codes left out"
_CODE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI
    # Those with a text of their own, such as the title of a window or the address of a link.
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f\n]*(?:\x07|\x9c|\x1b\\)"
    r"|\x1b[ -/]*[0-~]?"
    r"|[\x0e\x0f]"
)
_SIGNS = ("\x1b", "\x9b", "\x9d")
_MOVES = frozenset("CGHf")  # to another column, which sets words apart
_IN_JSON = re.compile(r"(?<!\\)\\+u00(?:1[bB]\[|9[bB])[0-?]*[ -/]*[@-~]")
_JSON_SIGN = re.compile(r"\\u00[19][bB]")
_LIKE_JSON = re.compile(r'\s*[{\["]|[^\\]*\{"')

_REST = re.compile(
    r"(?<!\\[eE])(?<!\\33)(?<!\\033)(?<!\\[xX]1[bB])(?<!u001[bB])(?<!u\{1[bB]\})"
    r"(?:(?:\^\[|#033|[\u241b\ufffd])?\[|[\u203a\ufffd])"
    r"(?:\d{1,3}(?:[;:]\d{0,3}){0,16}m|m(?!\w))(?![^\s\[\]]{0,40}\])"
)
"""A code of colours whose first sign was lost, written out (by ``cat -v`` or rsyslog), or read in
another encoding. Source text with escapes is left as it is."""

_LAST_REST = re.compile(
    r"[\[\u203a\ufffd](?:(?:00?|22|39)m|m(?!\w))"
)  # which ends what is coloured


def as_printed(text: str, *, is_code: bool = False) -> tuple[str, int]:
    """Return a text as a terminal shows it, line by line, and how many codes that leaves out.

    The rest of a code whose first sign was lost is left out if its line has several of them. Codes
    that are escaped are left out in JSON. In code, both stay. O(len(text)).
    """
    codes = 0
    if any(sign in text for sign in _SIGNS):
        text, codes = _CODE.subn(_gap, text)
    in_json = not is_code and _JSON_SIGN.search(text) is not None
    has_rests = not is_code and _LAST_REST.search(text) is not None
    if not (in_json or has_rests or "\b" in text):
        return text, codes
    lines = text.split("\n")
    for number, line in enumerate(lines):
        count = rests = 0
        if in_json and _LIKE_JSON.match(line):
            line, count = _IN_JSON.subn(_gap, line)
        if has_rests and len(_REST.findall(line)) > 1:
            line, rests = _REST.subn("", line)
        codes += count + rests
        lines[number] = _struck_over(line) if "\b" in line else line
    return "\n".join(lines), codes


def _gap(code: re.Match[str]) -> str:
    return " " * (code[0][-1] in _MOVES and len(code[0]) > 2 and code.start() > 0)


def _struck_over(line: str) -> str:
    """Return a line with the last sign of each column, or the one above or below an underline."""
    columns: list[str] = []
    at = 0
    for sign in line:
        if sign == "\b":
            at = max(at - 1, 0)
        elif unicodedata.combining(sign) and at and at == len(columns):
            columns[at - 1] += sign
        else:
            width = 1 + (sign > "\u1100" and unicodedata.east_asian_width(sign) in "WF")
            if sign != "_" or columns[at : at + 1] in ([], [" "]):
                columns[at : at + width] = [sign, *[""] * (width - 1)]
            at += width
    return "".join(columns)
