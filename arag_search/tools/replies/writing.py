"""How ids, titles and paths are written in a reply."""

from __future__ import annotations

import re

from arag_search.corpus import NO_OUTLINE, PATH_MARK, PassageOutline
from arag_search.tokens import count_tokens, cut_to

MAX_TITLE_TOKENS = 40

_BRACKETS = {"[": "［", "]": "］"}
_SHOWN_BRACKETS = str.maketrans(_BRACKETS)
_LIKE_MARK = re.compile(
    r"\((?=(?:whole|shown before|all shown|partly shown|what matches|no text|lowered|cosine)\b"
    r"[^()]*\)\s*$)"
)
_LIKE_NUMBER = re.compile(r"^(\d+):(?= )")
_OWN_BRACKETS = str.maketrans({shown: own for own, shown in _BRACKETS.items()})


def shown_id(id: str) -> str:
    """Return an id as it stands in brackets: its own brackets are of full width there, so that the
    first one ends it."""
    return id.translate(_SHOWN_BRACKETS)


def meant_id(id: str) -> str:
    """Return the id that ``shown_id`` may have been given."""
    return id.translate(_OWN_BRACKETS)


def header_line(
    chunk_id: str, title: str, part: int, parts: int, outline: PassageOutline = NO_OUTLINE
) -> str:
    """``[881.2] Antonio Vivaldi > Life, part 2 of 3, line 40``; the part only if there are several.

    A title that is the id of the document, as of code, is not repeated.
    """
    is_in_id = chunk_id in (title, f"{title}.{part}")
    heading = shown_heading("" if is_in_id else shown_title(title), outline.path)
    pieces = [heading] if heading else []
    if parts > 1:
        pieces.append(f"part {part} of {parts}")
    if outline.line > 1:
        pieces.append(f"line {outline.line}")
    return f"[{shown_id(chunk_id)}] {', '.join(pieces)}".rstrip()


def shown_heading(title: str, path: str) -> str:
    """Return a title that is shown, and the path as ``shown_path`` does; either may be empty."""
    return PATH_MARK.join(filter(None, (title, shown_path(path))))


def shown_path(path: str) -> str:
    """Return a path at most MAX_TITLE_TOKENS long, without its beginning if it is too long."""
    names = one_line(path).split(PATH_MARK)
    while len(names) > 1 and count_tokens(PATH_MARK.join(names)) > MAX_TITLE_TOKENS:
        del names[0]
    return cut_to(PATH_MARK.join(names), MAX_TITLE_TOKENS)


def shown_title(title: str) -> str:
    """Return the title on one line, at most MAX_TITLE_TOKENS long. Signs of full width replace
    signs that would read as an id, as our mark after a title, or as the number of a line."""
    text = _LIKE_MARK.sub("（", one_line(title).translate(_SHOWN_BRACKETS))
    return cut_to(_LIKE_NUMBER.sub(r"\1：", text), MAX_TITLE_TOKENS)


def one_line(text: str) -> str:
    """Return the text without line breaks, so that it cannot look like another line of a reply."""
    return " ".join(text.split())
