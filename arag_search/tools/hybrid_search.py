"""hybrid_search: the tool of LogicalRAG's Agentic Hybrid, BM25 and vectors merged by rank."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from arag_search.query.limits import MAX_CHARACTERS
from arag_search.search.index import Index
from arag_search.search.results import SearchResult
from arag_search.tools.base import (
    DEFAULT_TOP_K,
    MAX_TOOL_OFFSET,
    MAX_TOOL_TOP_K,
    Arguments,
    ToolSettings,
)
from arag_search.tools.search import ReplyStyle
from arag_search.tools.vector_search import FILTER, QUERY, WHERE, VectorSearchTool, none_if_empty
from arag_search.vectors.base import VectorUnit

LOGICAL_QUERY = (
    f"The logical query, at most {MAX_CHARACTERS:,} characters; empty for the words of meaning."
)
MEANING = "A question or statement; empty for the words of query."


class HybridSearchArguments(Arguments):
    """The arguments of hybrid_search."""

    query: str = Field(description=QUERY)
    max_results: int = Field(
        DEFAULT_TOP_K, ge=1, le=MAX_TOOL_TOP_K, description="Passages to show."
    )
    offset: int = Field(0, ge=0, le=MAX_TOOL_OFFSET, description="Passages to skip.")
    where: str = Field("", description=WHERE)
    filter: str = Field("", description=FILTER)


class LogicalHybridSearchArguments(HybridSearchArguments):
    """The arguments of hybrid_search with a logical query and a meaning."""

    query: str = Field("", description=LOGICAL_QUERY)
    meaning: str = Field("", description=MEANING)


class HybridSearch(VectorSearchTool):
    """A search by words and vectors that shows whole passages. ``vectors`` are those of passages,
    or of sentences (Eq. 3)."""

    name = "hybrid_search"
    arguments: ClassVar[type[Arguments]] = HybridSearchArguments
    style_changes = {"full_text": True}  # noqa: RUF012
    vectors: VectorUnit = "passage"

    @classmethod
    def of(cls, index: Index, settings: ToolSettings) -> HybridSearch:
        kind = LogicalHybridSearch if settings.meaning else cls
        tool = kind(
            index,
            style=ReplyStyle.of(settings),
            where=settings.where,
            reproduces=settings.reproduces,
        )
        tool.vectors = settings.vectors
        return tool

    def _search(self, arguments: HybridSearchArguments) -> SearchResult:
        return self.index.hybrid_search(
            arguments.query,
            top_k=arguments.max_results,
            offset=arguments.offset,
            filter=none_if_empty(arguments.filter),
            meaning=getattr(arguments, "meaning", None),
            vectors=self.vectors,
            **self._shared(arguments),
        )


class LogicalHybridSearch(HybridSearch):
    """A hybrid search by a logical query, and by the meaning of a sentence."""

    arguments = LogicalHybridSearchArguments
    takes_meaning = True
