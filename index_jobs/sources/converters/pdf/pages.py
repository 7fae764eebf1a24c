"""The pages of a PDF as one text, in which sentences and words go on over the end of a page.

The line ``[page N]``, and the lines that a book repeats at the top or foot of its pages, stand
between sentences. They are before the first sentence that begins on the page.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import takewhile
from statistics import median

from index_jobs.cutting.sentences import sentence_ends

CUT = "\ufffe"
"""Stands where a word or compound was cut at the end of a line."""

_HYPHEN = "\u2010"
"""The hyphen of a compound that was cut there: such a word is found without it, too."""

_EDGE_LINES = 3
_LEAST_PAGES = {True: 3, False: 2}
"""A line that is among the first or last lines of so many pages is no part of their text. True: it
has words. False: it is a page number alone."""

_NUMBER = re.compile(r"\d{1,9}")
_PAGE_NUMBER = re.compile(r"\W*(?:\d{1,9}|[ivxlcdm]{1,9})\W*", re.IGNORECASE)
_LAST_CUT = re.compile(rf"(?<=[^\W\d_])(?:{CUT}|[-\u2010\u00ad])\Z")
_ENDED = re.compile(r"[.!?:\u2026\u3002\uff01\uff1f\uff1a]\W{0,4}\Z")
_ITEM = re.compile(r"[^\w(\"'\u201c\u00ab\u201e\u2018]|\(?(?:[\d.]{1,9}|[A-Za-z]|[ivx]{1,4})[.)]\s")
_FULL_LINE = 0.75
"""Prose reaches over a page between lines that both have this part of the usual length."""

_TAIL_CHARACTERS = 400
_HEAD_CHARACTERS = 800

_CUT_WORD = re.compile(rf"(?<![^\W_])([^\W_]*){CUT}([^\W_]*)")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_AND = frozenset("and or und oder bis et ou och eller og".split())  # noqa: SIM905
_PREFIXES = frozenset(
    "self well non half ex all anti cross high low long short full open part real".split()  # noqa: SIM905
)
_LEAST_LETTERS = 3


def joined_pages(texts: Sequence[str]) -> str:
    """Return the text of a document of these pages."""
    parts: list[str] = []
    waiting: list[str] = []  # what stands between pages, until a sentence has ended
    tail = ""
    pages = _apart([text.split("\n") for text in texts])
    for number, (top, whole, foot) in enumerate(pages, 1):
        text = whole
        if text and (end := _end_of_sentence(tail, text)):
            parts[-1] = _LAST_CUT.sub(CUT, parts[-1])
            parts.append("\n" * (not parts[-1].endswith(CUT)) + text[:end])
            text = text[end:].lstrip()
            tail = whole[:end] if not text else ""
        head = [f"[page {number}]", *top, ""] if top else [f"[page {number}]"]
        waiting.append("\n".join([*head, text]).rstrip())
        if text or not tail:
            parts.append(("\n\n" if parts else "") + "\n\n".join(waiting))
            waiting.clear()
            tail = text
        waiting += ["\n".join(foot)] if foot else []
    parts += ["\n\n" + "\n\n".join(waiting)] if waiting else []
    return whole_words("".join(parts))


def whole_words(text: str) -> str:
    """Return a text with the words that were cut at the end of a line. A hyphen stays before a
    capital or a digit, and in a compound. This has several hyphens, or a part such as self. Or it
    stands elsewhere in the text with a hyphen, or its parts do and the joined word does not."""
    if CUT not in text:
        return text
    words = {word.lower() for word in _WORD.findall(_CUT_WORD.sub(" ", text))}

    def mended(cut: re.Match[str]) -> str:
        first, second = cut[1], cut[2]
        parts = first.lower(), second.lower()
        if not first or not second or not second[0].islower():
            return "-".join(filter(None, (first, second)))
        if "-" in (text[cut.start() - 1 : cut.start()], text[cut.end() : cut.end() + 1]):
            return f"{first}{_HYPHEN}{second}"
        if "".join(parts) in words:
            return first + second
        if parts[1] in _AND:
            return f"{first}- {second}"
        is_compound = (
            "-".join(parts) in words
            or (parts[0] in _PREFIXES and len(second) > _LEAST_LETTERS)
            or (words.issuperset(parts) and min(map(len, parts)) >= _LEAST_LETTERS)
        )
        return f"{first}{_HYPHEN * is_compound}{second}"

    return _CUT_WORD.sub(mended, text)


def _end_of_sentence(tail: str, text: str) -> int:
    """Return where a sentence ends that began on the page before, as a place in the ``text`` of a
    page. Return 0 if no sentence goes on. ``tail`` is the text of the page before."""
    lines, below = tail.rsplit("\n", 30)[-30:], text.split("\n", 30)[:30]
    last, first = lines[-1].rstrip(), below[0].strip()
    if not last or not first or _ENDED.search(last) or _ITEM.match(first):
        return 0
    is_cut = _LAST_CUT.search(last) and first[0].islower()
    if not is_cut and not first[0].islower():
        usual = _FULL_LINE * median(map(len, [*lines, *below]))
        if min(len(last), len(first)) < usual or min(len(lines), len(below)) == 1:
            return 0
    before = tail[-_TAIL_CHARACTERS:].lstrip() + ("" if is_cut else "\n")
    window = text[:_HEAD_CHARACTERS]
    ends = sentence_ends(before + window)
    end = next((end - len(before) for end in ends if end > len(before)), 0)
    if end < len(window) or window == text:
        return len(text[:end].rstrip())
    return len(below[0]) if is_cut else 0


def _apart(pages: Sequence[list[str]]) -> Iterator[tuple[list[str], str, list[str]]]:
    """Yield for each page the lines at its top that other pages have too, its text, and such lines
    at its foot. Lines that differ only in numbers count as the same."""
    totals = Counter(key for lines in pages for key in {*_edges(lines, 1), *_edges(lines, -1)})
    for lines in pages:
        top, foot = (
            sum(1 for _ in takewhile(lambda key: totals[key] >= _LEAST_PAGES[key[1]], keys))
            for keys in (_edges(lines, 1), _edges(lines, -1))
        )
        end = max(top, len(lines) - foot)
        yield lines[:top], "\n".join(lines[top:end]).strip(), lines[end:]


def _edges(lines: Sequence[str], step: int) -> Iterator[tuple[int, bool, str]]:
    """Yield the lines at an edge of a page without their numbers, and whether they have words.
    ``step`` is 1 for the top of the page, and -1 for its foot."""
    for line in takewhile(bool, lines[::step][:_EDGE_LINES]):
        is_number = _PAGE_NUMBER.fullmatch(line) is not None
        yield step, not is_number, "" if is_number else _NUMBER.sub("#", line)
