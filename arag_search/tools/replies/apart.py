"""What keeps the text of passages apart from the lines of a reply.

A line of text that could be a line of ours gets MARK at its head. What counts is the form: an id in
brackets, the neighbours of a passage, a count of passages, or a label. A test checks that every
line of a reply that may stand beside text has one of these forms.
"""

from __future__ import annotations

import re
import unicodedata

from arag_search.tokens import CUT_MARK, cut_to

MARK = "| "
"""Stands before a line of text that has the form of a line of ours."""

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\U000e0000-\U000e0fff]"
    "(?:(?<![\U000e0100-\U000e01ef])|(?<=[\ufe00-\ufe0f\U000e0100-\U000e01ef].))"
)
"""The signs that a reply replaces: ends of lines (but line feeds), other control characters, and
signs that change the direction of a text. Nobody sees the rest, but models read it: tags, and
variation selectors behind another one. The set stands first, so that the search is fast."""

_UNSEEN = re.compile(
    "[\u00ad\u0300-\u036f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u206f"
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff\U000133fc\U0001bca0-\U0001bca3\U0001d159"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
"""The code points to skip: default ignorable ones (Unicode), accents, blanks of braille,
hieroglyphs and music, and signs for text that cannot be shown."""
_ALIKE = str.maketrans("АВЕЅІЈКМНОРСТХаеіјорсухԁΑΒΕΖΗΙΚΜΝΟΡΤΥΧον꞉ːː։׃∶【】〔〕❲❳⟦⟧⁅⁆❨❩",
                       "ABESIJKMHOPCTXaeijopcyxdABEZHIKMNOPTYXov::::::[][][][][]()")  # fmt: skip
_COMPARED_CHARACTERS = 1_000

_LABEL = (
    "All shown|Allowed|Alone|Do|Go deeper|Go on|In no single sentence, but in these passages|Kept|"
    "More|Named above|Nearly the same text|Not shown for want of room|Note|Other titles|"
    "Passages per keyword|Query not run|Read on|Scores|Tool not run|Unknown|Where|Write"
)
_FORMS = (
    # [notes/plan.md.2] Title
    r"\[(?!-|(?:page|slide|sheet|chapter) [^]]*\]$)"
    r"(?:[^,]*?\d|.*?\.\w+|(?!\[)[^\s,'\"<>(=]+?)\](?: |$)",
    # (previous: notes/plan.md.1; year: 1678)
    r"\([\w-]+: ",
    # 3 of 9 passages for opera; Only 3 passages match opera; No passage matches opera
    r"(?:No|(?:Only )?#?\d[\d,]*(?: of (?:more than )?\d[\d,]*)?)(?: nearest)? "
    "(?:passage|sentence|document)",
    r"(?:Nearest (?:passage|passages)|Passage|Passages) \d",
    r"\d[\d,]* (?:files? (?:is|are) not|quer(?:y|ies),) ",
    # 2: 5 for opera; #2: Alone: opera 3
    rf"#?\d+: (?:\d|(?:{_LABEL})[:.])",
    # Note: text; Other titles:
    rf"(?:{_LABEL})[:.](?: |$)",
    # Best for opera AND rome:
    r"(?:Best for|Nearest, without) .*:$",
    r"(?:Index up to date|Shown up to sentence|This call was made|Viewing lines) ",
    # "antonio vivaldi": 5 passages, died, buried in none.
    r"(?:title:\S|\").*?: \d[\d,]* passages?, ",
    # line 71: text; 1. column 12, "x": a problem
    r"(?:line|lines) \d\S*:(?: |$)|\d+\. (?:column|argument) ",
)
_OURS = re.compile(rf"(?:\| )*(?:{'|'.join(_FORMS)})")
_FIRST_WORD = re.compile(r"\s*([A-Za-z]+)[ -@]", re.ASCII)
_WORDS = frozenset(re.findall("[A-Za-z]+", " ".join(_FORMS)))
"""The words that a line of ours may begin with, and others."""


def safe_signs(text: str) -> str:
    """Return text in which only line feeds end lines. No sign in it is a tag, gives a terminal a
    command, or changes the direction of a text. All other characters keep their places."""
    return _UNSAFE.sub(lambda sign: " " if sign[0].isspace() else "\ufffd", text)


def marked(text: str) -> str:
    """Return the text of a passage with MARK before each line that has the form of a line of ours.
    What nobody sees, and what looks like another sign, is no difference of form."""
    lines = safe_signs(text).split("\n")
    return "\n".join([f"{MARK}{line}" if _is_like_ours(line) else line for line in lines])


def unmarked(text: str) -> str:
    """Return a text without the marks that ``marked`` has given it."""
    if MARK not in text:
        return text
    return "\n".join(
        line[len(MARK) :] if line.startswith(MARK) and _is_like_ours(line) else line
        for line in text.split("\n")
    )


def cut_marked(text: str, max_tokens: int) -> str:
    """Cut a marked text as ``cut_to`` does. If its last line loses the form of ours by the cut, it
    loses its mark as well."""
    cut = cut_to(text, max_tokens)
    start = cut.rfind("\n") + 1
    line, whole = cut[start:], text[start:].partition("\n")[0]
    if line.startswith(MARK) and _is_like_ours(whole) and not _is_like_ours(line):
        kept = line[len(MARK) :].removesuffix(CUT_MARK.strip())
        return f"{(cut[:start] + kept).rstrip()}{CUT_MARK}"
    return cut


def _is_like_ours(line: str) -> bool:
    word = _FIRST_WORD.match(line)
    if word is not None and word[1] not in _WORDS:  # most
        return False
    if not line.isascii():
        seen = _UNSEEN.sub("", line).lstrip()[:_COMPARED_CHARACTERS]
        line = _UNSEEN.sub("", unicodedata.normalize("NFKD", seen)).translate(_ALIKE)
    return _OURS.match(" ".join(line.split())) is not None
