"""A question as a search without a model takes it: its words, or those that say something."""

from __future__ import annotations

from arag_search.agent.models.offline.words import STOP_WORDS
from arag_search.query import analysis
from arag_search.query.limits import MAX_LEAVES
from arag_search.search.keywords import MAX_KEYWORD_CHARACTERS, MAX_KEYWORDS


def words_query(question: str) -> str:
    """All words of the question as alternatives of a logical query, each as often as it stands
    there; empty where it has none."""
    return " ".join(f'"{word}"' for word in analysis.terms(question)[:MAX_LEAVES])


def content_words(question: str) -> list[str]:
    """The different words of the question in its order, without small ones where it has others;
    as many as keyword_search takes."""
    words = [word for word in analysis.terms(question) if len(word) <= MAX_KEYWORD_CHARACTERS]
    content = [word for word in words if word not in STOP_WORDS]
    return list(dict.fromkeys(content or words))[:MAX_KEYWORDS]
