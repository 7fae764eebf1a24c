"""The queries of the searcher: three queries of the same contents, as each interface writes
them."""

from __future__ import annotations

from typing import Any

from arag_search.evaluation.interfaces import content_words
from arag_search.query import analysis
from arag_search.query.printing import quoted
from arag_search.search.asked import MAX_KEYWORD_CHARACTERS, MAX_KEYWORDS
from bench.ablation.suite import Interface

_OPERATOR_WORDS = {"and", "or", "not"}

Wording = str | tuple[str, ...]
"""A query, or keywords."""


def tool_of(interface: Interface) -> str:
    """Return the tool that runs the queries of an interface."""
    tools = {"keyword": "keyword_search", "semantic": "semantic_search", "hybrid": "hybrid_search"}
    return tools.get(interface, "logical_search")


def arguments_of(interface: Interface, wording: Wording, offset: int) -> dict[str, Any]:
    """Return the arguments of the tool for the passage at an offset."""
    arguments: dict[str, Any] = {"query": wording}
    if interface == "keyword":
        arguments = {"keywords": list(wording)}
    arguments["max_results" if interface == "hybrid" else "top_k"] = 1
    if tool_of(interface) == "logical_search":
        arguments["after"] = str(offset)
    else:
        arguments["offset"] = offset
    return arguments


def wordings(interface: Interface, name: str, relation: str) -> tuple[Wording, Wording, Wording]:
    """Return Q1, the name with the relation; Q2, the name; Q3, the words of both."""
    about = content_words(relation) if analysis.terms(relation) else []
    if interface in ("semantic", "hybrid"):
        return _joined(name, relation), name, _joined(relation, name)
    words = list(dict.fromkeys([*analysis.terms(name), *about]))
    if interface == "keyword":
        return _keywords([name, *about]), _keywords([name]), _keywords(words)
    phrase = quoted(name)
    every = " ".join(map(_word, words)) or phrase
    if not about:
        return phrase, phrase, every
    if interface == "no operators":
        return f"{phrase} {' '.join(map(_word, about))}", phrase, every
    any_of = " OR ".join(map(_word, about))
    return f"{phrase} AND ({any_of})", phrase, every


def _joined(*texts: str) -> str:
    return " ".join(filter(None, texts))


def _keywords(words: list[str]) -> tuple[str, ...]:
    return tuple(word[:MAX_KEYWORD_CHARACTERS] for word in words[:MAX_KEYWORDS])


def _word(word: str) -> str:
    """Return a word as a clause, in quotes if the parser would read it as something else."""
    return word if word.isalnum() and word not in _OPERATOR_WORDS else f'"{word}"'
