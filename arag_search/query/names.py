"""The names of documents, by which an index finds exactly these, and names in a text.

A name is the words of a title, without what stands in parentheses, in lower case and without
accents. A file also has its path, and its name without folders and extension, for links.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import pairwise
from posixpath import dirname, join, normpath
from typing import NamedTuple
from urllib.parse import unquote

from arag_search.query import analysis
from arag_search.query.analysis import Places
from arag_search.query.forms import folded

MAX_TITLE_CHARACTERS = 400
"""A longer title or path names no document."""
MAX_NAME_WORDS = 8
_IN_PARENTHESES = re.compile(r"\([^()]*\)")
_FILE = re.compile(r"(?:[^\n]*[/\\])?([^/\\\n]+)\.[A-Za-z]\w{0,7}")
_OF_ANY_FOLDER = frozenset(("index", "readme", "init", "main", "changelog", "license", "toc"))
_OPENERS = frozenset({
    "a", "an", "at", "by", "for", "from", "he", "her", "his", "in", "it", "of", "on", "she", "the",
    "they", "to",
})  # fmt: skip
"""Words that begin sentences: no name goes on with one after a full stop (Rao. It)."""
_MAX_ABBREVIATION = 3
_GAP = re.compile(r"[^\w\n()\[\]{}<>|;?!\"“”„«»*]{1,3}")
"""The characters that may stand between two words of a name."""
_BESIDE = re.compile(r"[ \u00a0]|-|\.?[ \u00a0]?")
"""The characters between two words of one run."""
_LINK = re.compile(
    r"""\[\[(?P<note>[^][|#\n]++)[^][\n]*+\]\]
    | \]\((?P<markdown>[^()\s\#?:]++)[^()\n]*+\)
    | <a\s[^<>]*?href=["']?(?P<html>[^"'\s\#?:>]+)
    | \b[Ss]ee\s(?:also\s)?(?P<see>\w[^.,;:()\n]{0,80})""",
    re.VERBOSE,
)
"""A link to a document, but not to another site, as an address with a colon is."""


def name_of(text: str) -> str:
    """Return the name that a title, or a stretch of text, stands for. It is empty without a letter,
    or if files of any folder are called so."""
    text = "" if len(text) > MAX_TITLE_CHARACTERS else _IN_PARENTHESES.sub(" ", text)
    name = " ".join(map(folded, analysis.terms(text)))
    return name if any(map(str.isalpha, name)) and name not in _OF_ANY_FOLDER else ""


def names_of(title: str, doc_id: str) -> list[str]:
    """Return the names of a document, which its first passage has in an index."""
    names = [] if title and doc_id.endswith(title) else [name_of(title)]
    if len(doc_id) <= MAX_TITLE_CHARACTERS and (file := _FILE.fullmatch(doc_id)):
        names += [f"/{doc_id}", name_of(file[1]) and f"/{name_of(file[1])}"]
    return [name for name in names if name]


class Name(NamedTuple):
    """A stretch of a text that may be a name of a document; a link is ``surely`` one."""

    start: int
    end: int
    name: str
    surely: bool = False


def possible_names(text: str, words: Places, common: Collection[str]) -> Iterator[Name]:
    """Yield the stretches of a text, by its words, that may be whole names, of at most MAX_WORDS.

    A name has a letter. Its first and last words have a capital or a digit. No word with a capital
    follows it, or stands before a name of one word. A ``common`` word, which also occurs in lower
    case, begins no name at the beginning of its sentence.
    """
    terms, starts, ends = words
    forms = list(map(folded, terms))
    gaps = [text[end:start] for end, start in zip(ends, starts[1:], strict=False)]
    signs = [text[start] for start in starts]
    is_upper = list(map(str.isupper, signs))
    is_sign = [up or sign.isdigit() for up, sign in zip(is_upper, signs, strict=True)]
    goes_on = [
        gap == " "  # most
        or (
            _GAP.fullmatch(gap) is not None
            and (
                "." not in gap or (up and len(word) <= _MAX_ABBREVIATION and after not in _OPENERS)
            )
        )
        for gap, up, (word, after) in zip(gaps, is_upper, pairwise(terms), strict=False)
    ] + [False]
    is_run = [
        on and up and (gap == " " or _BESIDE.fullmatch(gap) is not None)
        for on, up, gap in zip(goes_on, is_upper, gaps, strict=False)
    ] + [False]
    may_end = [
        sign and not (run and after)
        for sign, run, after in zip(is_sign, is_run, [*is_sign[1:], False], strict=False)
    ]
    for first, term in enumerate(terms):
        if not is_sign[first] and not (term == "the" and any(is_upper[first + 1 : first + 2])):
            continue
        is_inner = False
        if first and is_upper[first] and is_run[first - 1]:
            before = terms[first - 1]
            is_common = before in _OPENERS or before in common
            is_inner = (first > 1 and goes_on[first - 2]) or not is_common
            if is_inner and gaps[first - 1] != " ":
                continue
        start = starts[first]
        for last in range(first, min(first + MAX_NAME_WORDS, len(terms))):
            if may_end[last] and (last > first or not is_inner):
                name, end = " ".join(forms[first : last + 1]), ends[last]
                if is_upper[last] or any(map(str.isalpha, name)):
                    yield Name(start, end, name)
                    if text.startswith(("'s", "’s"), end - 2):
                        yield Name(start, end - 2, name.removesuffix("s"))
            if not goes_on[last]:
                break


def links_in(text: str, doc_id: str) -> Iterator[Name]:
    """Yield the links of a text of a document to others: ``[[note]]``, Markdown, HTML, and the
    words after "see"."""
    for match in _LINK.finditer(text):
        start, end = match.span(match.lastgroup or 0)
        if match["see"]:
            for word in analysis.tokens(match["see"])[:MAX_NAME_WORDS]:
                yield Name(start, start + word.end, name_of(match["see"][: word.end]))
            continue
        link = unquote(text[start:end])
        yield Name(start, end, f"/{normpath(join(dirname(doc_id), link))}", surely=True)
        yield Name(start, end, f"/{name_of(link)}", surely=True)
        yield Name(start, end, name_of(link.rpartition("/")[2].replace("_", " ")), surely=True)
