"""naive_embedding_search: the one tool of A-RAG (Naive), whole passages by one vector each."""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field

from arag_search.search.index import Index
from arag_search.search.results import SearchResult
from arag_search.tools.base import (
    DEFAULT_TOP_K,
    MAX_TOOL_TOP_K,
    Arguments,
    Paper,
    ToolSettings,
)
from arag_search.tools.index_description import described
from arag_search.tools.search import ReplyStyle, SearchTool
from arag_search.tools.semantic_search import QUERY, WHERE, none_if_empty


class NaiveEmbeddingSearchArguments(Arguments):
    """The arguments of naive_embedding_search."""

    query: str = Field(description=QUERY)
    top_k: int = Field(DEFAULT_TOP_K, ge=1, le=MAX_TOOL_TOP_K, description="Passages to show.")
    where: str = Field("", description=WHERE)


class NaiveEmbeddingSearch(SearchTool):
    """A search by passage vectors that shows the first page of whole passages. ``where`` offers the
    argument of this name."""

    name = "naive_embedding_search"
    arguments = NaiveEmbeddingSearchArguments

    def __init__(
        self,
        index: Index,
        *,
        style: ReplyStyle | None = None,
        where: bool = False,
        reproduces: Paper | None = None,
    ) -> None:
        style = replace(style or ReplyStyle(), full_text=True, max_offset=0)
        text = described(self.name, index, reproduces, where=where)
        super().__init__(index, description=text, style=style, hidden=() if where else ("where",))

    @classmethod
    def of(cls, index: Index, settings: ToolSettings) -> NaiveEmbeddingSearch:
        return cls(
            index,
            style=ReplyStyle.of(settings),
            where=settings.where,
            reproduces=settings.reproduces,
        )

    def _search(self, arguments: NaiveEmbeddingSearchArguments) -> SearchResult:
        return self.index.naive_embedding_search(
            arguments.query,
            top_k=arguments.top_k,
            where=none_if_empty(arguments.where),
            names=self.style.marked,
            relax=self.style.relax,
        )
