"""Queries from a question without a model: all of its words, or those with content."""

from __future__ import annotations

from arag_search.agent.models.offline import STOP_WORDS
from arag_search.query import analysis
from arag_search.query.limits import MAX_LEAVES
from arag_search.search.keywords import MAX_KEYWORD_CHARACTERS, MAX_KEYWORDS


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
