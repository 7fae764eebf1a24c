"""Build logical queries from names and words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from arag_search.agent.models.offline.names import unqualified, without_land
from arag_search.agent.models.offline.words import STOP_WORDS
from arag_search.query.printing import OPERATOR_WORDS

_MAX_WORDS = 12
_OPERATOR = re.compile(r'"[^"]*"|\b(?:AND|OR)\b|[()]')


def for_name(name: str, beside: Sequence[str] = (), *, titles: bool = True) -> str:
    """Return a query that ranks passages about the name above those that mention it next to one of
    the words. With ``titles`` False, the query looks for mentions alone. It is empty if the name
    has no word.
    """
    whole, bare = _phrase(name), _phrase(without_land(unqualified(name)))
    if not bare:
        return ""
    mention = f"({bare} AND {any_of(beside)})" if beside else bare
    if not titles:
        return mention
    about = [f"title:{bare}^4"]
    if whole != bare:
        about.insert(0, f"title:{whole}^8")
    if whole != bare and "(" not in name:
        mention = f"({whole} OR {mention})"
    return " OR ".join([*about, mention])


def for_words_of(name: str, *, all_of_them: bool) -> str:
    """Return a query for passages with the words of a name that is not found as a phrase."""
    name = re.sub(r"['’]s\b", "", name)
    words = [word for word in _words(name) if word.casefold() not in STOP_WORDS]
    if not words:
        return ""
    if all_of_them:
        return " AND ".join(words)
    return " OR ".join(f"title:{word}^2 OR {word}" for word in words[:6])


def for_content(names: Sequence[str], words: Sequence[str]) -> str:
    """Return a query for passages with one of the names and, if there are words, with any of
    them."""
    phrases = [phrase for phrase in map(_phrase, map(unqualified, names)) if phrase]
    wanted = list(_words(" ".join(words)))[:_MAX_WORDS]
    if not phrases:
        return " ".join(wanted)
    alternatives = " OR ".join(f"{phrase}^2" for phrase in phrases)
    if not wanted:
        return alternatives
    return f"({alternatives}) AND {any_of(wanted)}"


def for_any(text: str) -> str:
    """Return a query for passages with any words of the text except stop words."""
    return " ".join(word for word in _words(text, 24) if word.casefold() not in STOP_WORDS)


def lowering(query: str, excluded: str) -> str:
    """Return a query that ranks passages with the excluded name, word or phrase lower."""
    clause = excluded if _words(excluded) == [excluded] else _phrase(excluded)
    return f"({query}) DEMOTE {clause}" if clause else query


def without_operators(query: str) -> str:
    """Return the same words, phrases and fields with spaces between."""
    kept = _OPERATOR.sub(lambda match: match.group() if match.group()[0] == '"' else " ", query)
    return " ".join(kept.split())


def words_of(query: str) -> str:
    """Return the words of a query alone, for a tool that compares words."""
    return re.sub(r'title:|\^\d+|"', " ", without_operators(query)).strip()


def any_of(words: Sequence[str]) -> str:
    """``(a OR b)``, or the one word."""
    return words[0] if len(words) == 1 else f"({' OR '.join(words)})"


def _phrase(name: str) -> str:
    text = re.sub(r'["“”\\*?/<>]', " ", name)
    return f'"{" ".join(text.split())}"' if re.search(r"\w", text) else ""


def _words(text: str, most: int = _MAX_WORDS) -> list[str]:
    """Return the distinct words of a text, in the form that a query may hold."""
    words = re.findall(r"\w+(?:['’]\w+)*", text)
    plain = [word for word in words if word not in OPERATOR_WORDS]
    return list(dict.fromkeys(plain))[:most]
