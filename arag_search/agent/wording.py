"""The words of short answers: the form in which they are compared, and the words of refusals."""

from __future__ import annotations

import functools
import re
import string
import unicodedata
from collections.abc import Iterable
from importlib.resources import files

from arag_search.corpus import nfc
from arag_search.query.typography import PLAIN

NOT_FOUND = "not found in the corpus"
"""The reply that the prompts ask for if the corpus does not hold the answer."""

ROWS = [
    [[word.strip() for word in cell.split(",")] for cell in line.split("|")]
    for line in files(__package__ or "").joinpath("reply_words.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]
"""The rows of ``reply_words.txt``: a language, and its words by what they are for. English is
first."""
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


class _Marks(dict[int, str]):
    """A table for ``str.translate`` that removes punctuation, of ASCII and of other scripts."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        is_mark = character in string.punctuation or unicodedata.category(character)[0] == "P"
        kept = self[code] = "" if is_mark else character
        return kept


_NO_MARKS = _Marks()
_SIGNS = {code: unicodedata.normalize("NFKC", chr(code)) for code in range(0xFF01, 0xFFEF)} | PLAIN
"""Signs and letters of full and half width, and typographic signs, as plain ones."""


def normalise(text: str) -> str:
    """Return a text as answers are compared (SQuAD; Rajpurkar et al., 2016). The result is in lower
    case, without punctuation and the words a, an, the, and with single spaces. Text is first
    brought to NFC, so that an accent counts the same however it is written, and to plain signs.
    ASCII texts come out as from SQuAD's script."""
    return " ".join(_ARTICLES.sub(" ", _bare(text)).split())


def distinct(text: str) -> str:
    """Return ``normalise(text)``. If that is empty, return the articles of the text (a gold answer
    "A"); without articles, its marks ("+")."""
    return normalise(text) or " ".join((_bare(text) or _plain(text)).split())


def _bare(text: str) -> str:
    return _plain(text).lower().translate(_NO_MARKS)


def _plain(text: str) -> str:
    return text if text.isascii() else nfc(text.translate(_SIGNS))


_CONTRACTED = "couldnt|cant|dont|doesnt|didnt|isnt|wasnt|arent|werent|hasnt|havent"
_NOT = (
    "found|find|determined?|answer(?:ed)?|know|known|say|tell|have|available|mention(?:ed)?"
    "|stated?|given?|provided?|specif(?:y|ied)|contain(?:ed)?"
    "|present|appear|in (?:the )?(?:corpus|passages|documents)"
)
_REFUSAL = re.compile(
    r"(?:(?:the|this|that|an?|i|we|it|there|they|sorry|unfortunately|answer|information|question"
    r"|corpus|passages?|documents?|sources?|text|is|was|were|are|could|can|does|do|did|has|have) )*"
    rf"(?:(?:(?:not|cannot|{_CONTRACTED}) (?:be )?(?:{_NOT})\b"
    r"|unable to\b|insufficient\b|not enough\b"
    r"|(?:no|isnt any|is not any) (?:answer|information|evidence|relevant|mention)\b)"
    r"|(?:unknown|none|na|unanswerable)$)"
)
_MOST_REFUSAL = 1_000
"""The maximum number of characters of a refusal in another language than English."""
_CONTRAST = re.compile(r"\b(?<!nothing )(?<!anything )(?:but|however)\b")
_COMMA = re.compile("[,，、،]")
_UNSPACED = ("ja", "th", "zh")  # languages without spaces between words


@functools.cache
def _refusals() -> list[tuple[re.Pattern[str], ...]]:
    """Return three patterns for each language but English. The first finds words that a refusal may
    have beside its own, which are group 1. The others find the words that begin it, and the words
    before an answer after all."""
    refusals = list[tuple[re.Pattern[str], ...]]()
    for (code, *_), _, _, _, *cells in ROWS[1:]:
        left, right = ("", "") if code in _UNSPACED else (r"(?<!\w)", r"(?!\w)")
        begins, beside, contrast = (f"{left}(?:{_pattern(words)}){right}" for words in cells)
        refusals.append(tuple(map(re.compile, (f"({begins})|{beside}", begins, contrast))))
    return refusals


def _pattern(words: Iterable[str]) -> str:
    """Return a pattern for words of the table: a "*" stands for letters, "=" for the whole text."""
    escaped = (
        re.escape(normalise(word.replace("*", "\0"))) + "$" * (word[0] == "=") for word in words
    )
    return "|".join(sorted(escaped, key=len, reverse=True)).replace("\0", r"\w*")


def is_refusal(answer: str) -> bool:
    """Return whether a short answer says that there is no answer, in English or in a language of
    ``reply_words.txt``.

    An answer without a word is a refusal. So is an answer that begins with words such as "not found
    in the corpus", "cannot be determined" or "keine Angabe". It is no refusal if an answer follows:
    "not mentioned in the corpus, but Paris". In other languages a comma ends the words that it
    begins with ("No, se encontró").
    """
    text = normalise(answer) or _bare(answer).strip()
    if not text or _refuses(text, _REFUSAL, _CONTRAST):
        return True
    text = normalise(_COMMA.sub(" ¦ ", answer)) if len(answer) <= _MOST_REFUSAL else ""
    return any(
        _refuses(" ".join(beside.sub(r"\1", text).split()), begins, contrast)
        for beside, begins, contrast in _refusals()
    )


def _refuses(text: str, begins: re.Pattern[str], contrast: re.Pattern[str]) -> bool:
    rest, refusal = text.lstrip("¦ "), None
    while rest:
        refusal = begins.match(rest)
        if refusal is None:
            return False
        answer = contrast.search(rest, refusal.end())
        rest = "" if answer is None else rest[answer.end() :].lstrip("¦ ")
    return refusal is not None
