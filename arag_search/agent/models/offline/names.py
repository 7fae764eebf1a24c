"""Names in English text: runs of capitalised words, and whether two of them are the same."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from arag_search.agent.models.offline.countries import is_country
from arag_search.agent.models.offline.words import (
    ABBREVIATIONS,
    HONORIFICS,
    JOINS,
    MONTHS,
    NOT_NAMES,
    RANKS,
)

_WORD = re.compile(r"\S+")
_SMALL_BETWEEN = re.compile(r"(?: [a-z][\w-]*){1,4} ")
_FUNCTION_BETWEEN = re.compile(
    r" (?:and|or|by|of|with|in|from|to|at|on|for|as|his|her|who|whom|was|is|but|when|where|that) "
)
_QUALIFIER = re.compile(r"\s*\([^()]*\)\s*$")
_OPENING = "\"'“‘([{"
_CLOSING = "\"'”’)]},;:?!…"


@dataclass(frozen=True, slots=True)
class Name:
    """A name, and its offsets in the text."""

    text: str
    start: int
    end: int


def plain(text: str) -> str:
    """Return the text with normal spacing around brackets, quotes and hyphens."""
    text = re.sub(r"(?<=[\w.,])\(\s*", " (", text)
    text = re.sub(r"\(\s+", "(", text)
    text = re.sub(r'(?<=[\w,])"\s+(?=\w)', ' "', text)
    return re.sub(r"(?<=\w)- (?=[A-Z])", "-", text)


def fold(name: str) -> str:
    """Return a name in the form for comparison: without case, accents, punctuation and article."""
    letters = unicodedata.normalize("NFKD", re.sub(r"['’ʻʿ]", "", name).casefold())
    words = re.findall(r"\w+", "".join(c for c in letters if not unicodedata.combining(c)))
    if len(words) > 1 and words[0] in ("the", "a", "an"):
        del words[0]
    return " ".join(words)


def unqualified(name: str) -> str:
    """Return the name without the brackets after it: ``Possession (1922 film)``."""
    return _QUALIFIER.sub("", name) or name


def without_rank(name: str) -> str:
    """Return the name without ranks before it: ``Queen Anne``; unchanged if nothing else is
    left."""
    words = name.split()
    while len(words) > 1 and words[0].casefold() in HONORIFICS:
        del words[0]
    return " ".join(words) if words[0][:1].isupper() or "-" in words[0] else name


def without_land(name: str) -> str:
    """Return the name before its comma: ``Robert II, Count of Dreux``."""
    return name.split(",")[0].strip() or name


def people_in(text: str) -> list[Name]:
    """Return the names that may be those of people: not countries or months, and not an attribute
    before another name ("the Irish physicist John Tyndall")."""
    names = [
        name
        for name in names_in(text)
        if not is_country(name.text) and name.text.split()[0] not in MONTHS
    ]
    kept: list[Name] = []
    for at, name in enumerate(names):
        if " " not in name.text and at + 1 < len(names):
            between = text[name.end : names[at + 1].start]
            if _SMALL_BETWEEN.fullmatch(between) and not _FUNCTION_BETWEEN.search(between):
                continue
        kept.append(name)
    return kept


def names_in(text: str, *, question: bool = False) -> list[Name]:
    """Return the names of a text in order. In a question, a capitalised article belongs to the name
    after it, and names continue after a comma or colon.
    """
    return [name for name in _runs(text, question) if fold(name.text)]


def _runs(text: str, question: bool) -> Iterator[Name]:
    words = list(_WORD.finditer(text))
    at = 0
    while at < len(words):
        if not _begins(words[at].group(), inside=question and at > 0):
            at += 1
            continue
        last = at
        while (later := _next(words, last)) is not None:
            if _ends(words[last].group(), words[later].group(), question):
                break
            last = later
        yield from _trim(text, words[at].start(), words[last].end())
        at = last + 1


def _begins(word: str, *, inside: bool) -> bool:
    """Return whether a name begins here; ``inside`` says that this is not the start of a
    sentence."""
    core = word.lstrip(_OPENING)
    if not core[:1].isupper():
        return core.startswith(("al-", "el-")) and core[3:4].isupper()
    return inside or core.strip(_CLOSING + ".").casefold() not in NOT_NAMES


def _capital(word: str) -> bool:
    core = word.lstrip(_OPENING + "-")
    return core[:1].isupper() or core[:1].isdigit() or core.startswith(("al-", "d'", "d’", "el-"))


def _ends(word: str, later: str, question: bool) -> bool:
    """Return whether a name ends with the word, although a capitalised word follows."""
    if word.endswith(("'s", "’s")):
        return not question
    if word.endswith("."):  # an initial or an abbreviation continues a name, a sentence does not
        return _ends_sentence(word)
    if word.endswith(","):
        rank = later.strip(_CLOSING).casefold() in RANKS or re.match(r"\d+(?:st|nd|rd|th)", later)
        return not question and not rank
    if word.endswith(":"):
        return not question
    return word[-1] in ";?)]" or word.endswith(('"', "”")) or (word[-1] == "!" and not question)


def _ends_sentence(word: str) -> bool:
    """Return whether the period after a word ends a sentence, rather than an initial or an
    abbreviation."""
    core = word[:-1].lstrip(_OPENING)
    return len(core) > 1 and "." not in core and core.casefold() not in ABBREVIATIONS


def _next(words: list[re.Match[str]], at: int) -> int | None:
    """Return the next word of the name, after at most two joining words; None if the name ends."""
    for step in (1, 2, 3):
        if at + step >= len(words):
            return None
        word = words[at + step].group()
        if word[:1] == "(" and step > 1:
            return None
        if word[:1] == "(":
            return at + step if _capital(word) and _bracket_is_short(words, at + step) else None
        if _capital(word):
            return at + step
        if word.casefold() not in JOINS:
            return None
    return None


def _bracket_is_short(words: list[re.Match[str]], at: int) -> bool:
    """Return whether a bracket closes within five words, all of them capitalised or joining
    words."""
    for word in words[at : at + 5]:
        core = word.group()
        if not _capital(core) and core.casefold() not in JOINS:
            return False
        if ")" in core:
            return core.rstrip("?,.'s’").endswith(")") and not re.search(r"\d{4}\)?$", core[:-1])
    return False


def _trim(text: str, start: int, end: int) -> Iterator[Name]:
    while start < end and text[start] in _OPENING:
        start += 1
    piece = text[start:end]
    for suffix in ("'s", "’s"):
        piece = piece.removesuffix(suffix)
    while piece and piece[-1] in _CLOSING and not (piece[-1] == ")" and "(" in piece):
        piece = piece[:-1]
    if piece.endswith(".") and _ends_sentence(piece.split()[-1]):
        piece = piece[:-1]
    if piece:
        yield Name(piece, start, start + len(piece))
