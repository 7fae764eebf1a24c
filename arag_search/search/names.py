"""The names in a query by meaning, and which of them no passage contains: vectors find something
near to every query, even to one about a name that is not in the corpus."""

from __future__ import annotations

import re

from arag_search.engines.base import Deadline, Granularity, SearchEngine
from arag_search.errors import QueryTimeoutError
from arag_search.query import analysis
from arag_search.query.printing import quoted
from arag_search.query.tree import Node, Phrase, Scope

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


def missing_names_note(
    engine: SearchEngine, text: str, scope: Scope | None, deadline: Deadline | None
) -> str:
    """Return the note on the names in a query that no passage in scope contains; empty if there are
    none. One round trip, and none for a query without names."""
    names = names_in(text)
    if not names:
        return ""
    queries: list[tuple[Node, Granularity]] = [(Phrase(name), "chunk") for name in names]
    try:
        counts = engine.counts(queries, scope, deadline)
    except QueryTimeoutError:
        return ""
    missing = [quoted(name) for name, count in zip(names, counts, strict=True) if not count]
    return f"no passage contains {', '.join(missing)}." if missing else ""
