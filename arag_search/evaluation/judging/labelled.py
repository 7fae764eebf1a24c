"""Read the value behind a label in a judge's reply ("Verdict: correct"); the last such line
decides.

A labelled line begins with the label, in any Markdown and numbering, and a colon of any kind. Or it
is JSON with the label as a key. A label within a sentence, or in quotes within one, never counts:
the judge may quote the candidate there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import orjson

_MARKS = r"\s*_#>|()\[\]<✅❌✔✘️•+–-"
_CLOSED_BY = {'"': '"', "'": "'", "`": "`", "“": "”", "„": "“", "‘": "’", "«": "»", "「": "」"}
_QUOTES = "".join(_CLOSED_BY)
_WHICH = r"(?:(?:final|overall)[\s_-]*)?"
_COLON = r"(?:is\b)?\s{0,9}(?:[:：﹕︰=|>]|[–—](?![0-9.])|(?<=[\s*])-(?=\s))|is\b|$"
_BEFORE = rf"[{_MARKS}]*+(?:[0-9]{{1,3}}[.)][{_MARKS}]*+)?([{_QUOTES}]?)[*_]*+"
_BEHIND = rf"[\s*_`\])]*+(?:{_COLON})(.*)$"
_REMOVED = str.maketrans("", "", '*_`"“”„«»「」')
LEAD = r"[\s'‘(\[{<|=:：✅❌✔✘️]*+"
"""The signs that may stand between the colon and the value."""


def last_value(reply: str, label: str) -> str | None:
    """Return the text behind the label on the last line that has it, without quotes and emphasis.
    If that is empty, as below a heading, return the next line. Return None without such a line."""
    key = re.compile(_WHICH + label, re.IGNORECASE)
    labelled = re.compile(_BEFORE + _WHICH + label + _BEHIND, re.IGNORECASE)
    below = ""
    for line in reversed(reply.split("\n")):
        value = _value_in_json(line, key)
        if value is None and (match := labelled.match(line)):
            opened, value = match.groups()
            inside, closed, behind = value.partition(_CLOSED_BY.get(opened, "\n"))
            if closed and re.search(r"\w", behind):  # a quotation within a sentence
                continue
            value = inside
        if value is not None:
            return (value if re.search(r"\w", value) else below).translate(_REMOVED)
        below = line if line.strip() else below
    return None


def last_word(reply: str, label: str, scale: Sequence[str]) -> str | None:
    """Return the word of the scale that the last labelled line begins with; words behind it are
    allowed. None without such a line, and if it begins otherwise or with two words to choose from.
    """
    value = last_value(reply, label)
    if value is None:
        return None
    words = "|".join(map(re.escape, scale))
    either = rf"\W{{0,5}}(?:or\b|/|\|)\W{{0,5}}(?:{words})\b"
    match = re.match(rf"{LEAD}({words})(?!\w|-\w|{either})", value, re.IGNORECASE)
    return match and next(word for word in scale if word.lower() == match[1].lower())


def _value_in_json(line: str, key: re.Pattern[str]) -> str | None:
    """Return the value of a key in a line of JSON: an object, or members of one."""
    members = line.strip("` \t\r").removeprefix("json").strip("{}, \t\r")
    if not members.startswith('"'):
        return None
    try:
        values = orjson.loads(f"{{{members}}}")
    except orjson.JSONDecodeError:
        return None
    return next((str(values[name]) for name in reversed(values) if key.fullmatch(name)), None)
