"""The query interfaces of an index, each asked a question without a model. The query is the words
of the question, or the logical query that the rules of ``offline`` make of it. The tool that a
model would call replies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from arag_search.agent.models.offline import STOP_WORDS, one_query
from arag_search.query import analysis
from arag_search.query.limits import MAX_LEAVES
from arag_search.search.asked import MAX_KEYWORD_CHARACTERS, MAX_KEYWORDS
from arag_search.search.index import Index
from arag_search.tools.documents.lines import vector_units
from arag_search.tools.registry import TOOLS
from arag_search.tools.tool import Tool, tool_class


class Interface(NamedTuple):
    """A tool, and the arguments with which it is asked a question; None if the question has no
    word that it takes."""

    tool: Tool
    arguments: Callable[[str], Mapping[str, Any] | None]


def interfaces_of(index: Index) -> dict[str, Interface]:
    """Return the interfaces that an index serves, by name. Raises the errors of opening vectors."""
    units = vector_units(index)
    nearest = "naive_embedding_search" if "passage" in units else "semantic_search"
    logical = tool_class("logical_search")(index)
    offered = {"words": Interface(logical, _given("query", words_query))}
    if TOOLS["keyword_search"].part not in index.manifest.without:
        keyword = tool_class("keyword_search")(index)
        offered["keyword_search"] = Interface(keyword, _given("keywords", content_words))
    offered["logical by rules"] = Interface(logical, _given("query", one_query))
    if units:
        offered["vectors"] = Interface(tool_class(nearest)(index), _given("query", str))
    if "passage" in units:
        offered["hybrid"] = Interface(tool_class("hybrid_search")(index), _given("query", str))
    return offered


def _given(name: str, value: Callable[[str], Any]) -> Callable[[str], Mapping[str, Any] | None]:
    return lambda text: {name: given} if (given := value(text)) else None


def words_query(question: str) -> str:
    """Return a logical query with all words of the question as alternatives, as often as the
    question has them, or "" if it has none."""
    return " ".join(f'"{word}"' for word in analysis.terms(question)[:MAX_LEAVES])


def content_words(question: str) -> list[str]:
    """Return the different words of the question in order, as many as keyword_search takes; without
    stop words, unless it has no others."""
    words = [word for word in analysis.terms(question) if len(word) <= MAX_KEYWORD_CHARACTERS]
    content = [word for word in words if word not in STOP_WORDS]
    return list(dict.fromkeys(content or words))[:MAX_KEYWORDS]
