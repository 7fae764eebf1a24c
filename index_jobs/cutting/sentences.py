"""Finding the ends of the sentences of a text.

``sentencex`` knows abbreviations, initials and quotations. But it treats an unbalanced quote or
parenthesis as the start of a quotation that may run for pages, and its time then grows faster than
the text. Therefore it gets one bounded window at a time, and an implausibly long sentence is split
again: first with quotes and parentheses hidden, then at plain full stops and line ends. Last, the
ends are corrected (see ``corrections``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, cast

import sentencex

from index_jobs.cutting.corrections import LONG_CHARACTERS, WINDOW_CHARACTERS, corrected

_LANGUAGE = "en"
_get_boundaries = cast(
    "Callable[[str, str], list[dict[str, Any]]]", cast("Any", sentencex).get_sentence_boundaries
)
_WIDE_BLANK = re.compile(r"[^\S\x00-\x7f]")
_ENCLOSING = re.compile(r"[()\[\]{}\"'“”„‟«»‹›‘’‚‛]")
_PLAIN_END = re.compile(r"[.!?…][)\]\"'”’»]*\s+(?=[^\Wa-z_]|[\"'“‘«(\[])|\n+")


def sentence_ends(text: str, title: str = "") -> list[int]:
    """Return the offsets after each sentence of ``text``, in code points; the last is
    ``len(text)``.

    ``title`` is the title of the document: no sentence ends inside it.

    The sentences partition the text: white space belongs to the sentence before it (at the
    beginning to the first). An empty text has no ends. Time is linear in the length.
    """
    offsets = _ends_of(text) if len(text) <= WINDOW_CHARACTERS else list(_windowed(text))
    return corrected(text, _joined_blanks(text, offsets), title)


def _windowed(text: str) -> Iterator[int]:
    """Yield ends window by window. The last sentence of a window may be cut off, so it is read
    again with the next window."""
    start = 0
    while len(text) - start > WINDOW_CHARACTERS:
        window = text[start : start + WINDOW_CHARACTERS]
        ends = _ends_of(window)[:-1]
        if not ends:
            blank = max(window.rfind(" "), window.rfind("\n"))
            ends = [blank + 1 if blank > 0 else WINDOW_CHARACTERS]
        for end in ends:
            yield start + end
        start += ends[-1]
    for end in _ends_of(text[start:]):
        yield start + end


def _ends_of(text: str) -> list[int]:
    """Return the ends within one window; split overlong sentences again."""
    ends = _boundaries(text)
    if len(text) <= LONG_CHARACTERS:
        return ends
    refined: list[int] = []
    start = 0
    for end in ends:
        if end - start > LONG_CHARACTERS:
            refined.extend(start + offset for offset in _split_long(text[start:end]))
        else:
            refined.append(end)
        start = end
    return refined


def _split_long(text: str) -> Iterator[int]:
    start = 0
    for end in _boundaries(_ENCLOSING.sub("-", text)):
        if end - start > LONG_CHARACTERS:
            yield from (start + match.end() for match in _PLAIN_END.finditer(text[start : end - 1]))
        yield end
        start = end


def _boundaries(text: str) -> list[int]:
    # sentencex fails on multi-byte white space after an initial, so replace it with plain spaces.
    shown = text if text.isascii() else _WIDE_BLANK.sub(" ", text)
    return [boundary["end_index"] for boundary in _get_boundaries(_LANGUAGE, shown)]


def _joined_blanks(text: str, ends: list[int]) -> list[int]:
    """Move each end to after the white space that follows it, and drop ends within white space."""
    joined: list[int] = []
    for end in ends:
        while end < len(text) and text[end].isspace():
            end += 1
        if not joined or end > joined[-1]:
            joined.append(end)
    if len(joined) > 1 and text[: joined[0]].isspace():
        del joined[0]
    return joined
