"""The keywords of a keyword search (A-RAG): which are allowed, and what each adds to a score."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from arag_search.corpus import is_unicode, nfc
from arag_search.engines.base import Deadline, Granularity, Hit, LeafScore, Matching, SearchEngine
from arag_search.errors import ArgumentError, QueryTimeoutError
from arag_search.plan.clauses import ResolvedPlan, words_clause
from arag_search.plan.matching import Pattern
from arag_search.query import analysis
from arag_search.query.analysis import spellings_of
from arag_search.query.fields import CONTENT, TITLE
from arag_search.query.printing import quoted

MAX_KEYWORDS = 20
MAX_KEYWORD_CHARACTERS = 200


def checked_keywords(keywords: Sequence[str]) -> tuple[str, ...]:
    """Return the keywords in NFC. Raises ArgumentError for too many, empty or too long ones."""
    if not 1 <= len(keywords) <= MAX_KEYWORDS:
        raise ArgumentError(
            f"There are {len(keywords)} keywords.", allowed=f"1 to {MAX_KEYWORDS} keywords"
        )
    for keyword in keywords:
        if not keyword.strip():
            raise ArgumentError("A keyword is empty.", allowed="words or short phrases")
        if len(keyword) > MAX_KEYWORD_CHARACTERS:
            raise ArgumentError(
                f'The keyword "{keyword[:40]}..." has {len(keyword)} characters.',
                allowed=f"1 to {MAX_KEYWORD_CHARACTERS} characters",
            )
        if not is_unicode(keyword):
            raise ArgumentError(
                "A keyword holds half of a character (a lone surrogate).",
                allowed="valid Unicode",
                do="Leave it out.",
            )
    return tuple(nfc(keyword) for keyword in keywords)


def keyword_notes(keywords: Sequence[str]) -> list[str]:
    """Return notes on keywords that token matching cannot search."""
    empty = [keyword for keyword in dict.fromkeys(keywords) if not analysis.terms(keyword)]
    return [f'"{keyword}" holds nothing to search.' for keyword in empty]


def keyword_scores(hit: Hit, keywords: Sequence[str], matching: Matching) -> Iterator[LeafScore]:
    """Yield the score of each keyword by field: count times length (A-RAG Eq. 1)."""
    for keyword in keywords:
        scores: dict[str, float] = {}
        for name, text in ((TITLE, hit.title), (CONTENT, hit.content or "")):
            count = _count(keyword, text, matching)
            if count:
                scores[name] = float(count * len(keyword))
        yield LeafScore(f'"{keyword}"', scores)


def _count(keyword: str, text: str, matching: Matching) -> int:
    if matching == "substring":
        return text.lower().count(keyword.lower())
    return sum(1 for _ in Pattern(spellings_of(keyword)).runs(analysis.terms(text)))


# The names in a query by meaning, and which of them no passage contains: vectors find something
# near to every query, even to one about a name that is not in the corpus.


MAX_NAMES = 8
_MAX_CHARACTERS = 60
_QUOTED = re.compile(r'"([^"]+)"|“([^”]+)”|«([^»]+)»')
_ENDS = re.compile("[.?!]")
_WORD = re.compile(r"[^\W_][\w'’.-]*", re.UNICODE)


def names_in(text: str) -> list[str]:
    """Return the names in a text: texts in quotation marks, and runs of words that begin with a
    capital, apart from the first word of a sentence. At most MAX_NAMES, each once."""
    names = [next(filter(None, match.groups())) for match in _QUOTED.finditer(text)]
    run: list[str] = []
    previous = "."
    end = 0
    plain = _QUOTED.sub(" . ", text)
    for word in _WORD.finditer(plain):
        between = plain[end : word.start()].strip()
        if run and (between or not word[0][0].isupper()):
            names.append(" ".join(run))
            run = []
        if word[0][0].isupper() and not (_ENDS.search(between) or _is_end(previous)):
            run.append(word[0].rstrip("."))
        previous, end = word[0], word.end()
    if run:
        names.append(" ".join(run))
    short = [name for name in names if len(name) <= _MAX_CHARACTERS and analysis.terms(name)]
    return list(dict.fromkeys(short))[:MAX_NAMES]


def _is_end(word: str) -> bool:
    """Return whether a sentence seems to end with a word: not with an initial, or U.S."""
    return word.endswith(".") and "." not in word[:-1] and len(word) != 2


def missing_names(
    engine: SearchEngine, text: str, scope: ResolvedPlan | None, deadline: Deadline | None
) -> list[str]:
    """Return the note on the names in a text that no passage in scope contains, if there are some.
    One round trip, and none for a text without names."""
    names, language = names_in(text), engine.manifest.language
    queries: list[tuple[ResolvedPlan, Granularity]] = [
        (ResolvedPlan(words_clause(name, language)), "chunk") for name in names
    ]
    try:
        counts = engine.counts(queries, scope, deadline) if names else []
    except QueryTimeoutError:
        return []
    missing = [quoted(name) for name, count in zip(names, counts, strict=True) if not count]
    return [f"no passage contains {', '.join(missing)}."] if missing else []
