"""The queries of the searcher: three queries of the same contents, as each interface writes
them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from arag_search.query import analysis
from arag_search.search.keywords import MAX_KEYWORD_CHARACTERS, MAX_KEYWORDS
from bench.quality.question_words import content_words

Interface = Literal["logical", "no operators", "sentence", "keyword", "semantic", "hybrid"]
INTERFACES: tuple[Interface, ...] = get_args(Interface)
LOGICAL: tuple[Interface, ...] = ("logical", "no operators", "sentence")
"""The interfaces whose queries have fields, so that names can be searched for in titles."""

_OPERATOR_WORDS = {"and", "or", "not"}

Wording = str | tuple[str, ...]
"""A query, or keywords."""


@dataclass(frozen=True, slots=True)
class Search:
    """A query to one interface, from one passage of its results on."""

    interface: Interface
    wording: Wording
    first: int = 0

    @property
    def tool(self) -> str:
        """The tool that runs it."""
        return {
            "keyword": "keyword_search",
            "semantic": "semantic_search",
            "hybrid": "hybrid_search",
        }.get(self.interface, "logical_search")

    def arguments(self, offset: int, top_k: int) -> dict[str, Any]:
        """Return the arguments of the tool for one page of passages."""
        arguments: dict[str, Any] = {"query": self.wording}
        if self.interface == "keyword":
            arguments = {"keywords": list(self.wording)}
        arguments["max_results" if self.interface == "hybrid" else "top_k"] = top_k
        if self.tool == "logical_search":
            arguments["after"] = str(offset)
        else:
            arguments["offset"] = offset
        if self.interface == "sentence":
            arguments["granularity"] = "sentence"
        return arguments


def wordings(
    interface: Interface, name: str, relation: str, *, in_title: bool
) -> tuple[Wording, Wording, Wording]:
    """Q1, the name with the relation; Q2, the name; Q3, the words of both.

    ``in_title`` looks for the name in titles, where the interface knows them apart.
    """
    about = content_words(relation) if analysis.terms(relation) else []
    if interface in ("semantic", "hybrid"):
        return _joined(name, relation), name, _joined(relation, name)
    words = list(dict.fromkeys([*analysis.terms(name), *about]))
    if interface == "keyword":
        return _keywords([name, *about]), _keywords([name]), _keywords(words)
    phrase = _phrase(name, in_title=in_title)
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


def _phrase(name: str, *, in_title: bool) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'title:"{escaped}"' if in_title else f'"{escaped}"'


def _word(word: str) -> str:
    """Return a word as a clause, in quotes if the parser would read it as something else."""
    return word if word.isalnum() and word not in _OPERATOR_WORDS else f'"{word}"'
