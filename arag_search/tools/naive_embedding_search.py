"""naive_embedding_search: the one tool of A-RAG (Naive), whole passages by one vector each."""

from __future__ import annotations

from pydantic import Field

from arag_search.search.results import SearchResult
from arag_search.tools.base import DEFAULT_TOP_K, MAX_TOOL_TOP_K, Arguments
from arag_search.tools.vector_search import QUERY, WHERE, VectorSearchTool


class NaiveEmbeddingSearchArguments(Arguments):
    """The arguments of naive_embedding_search."""

    query: str = Field(description=QUERY)
    top_k: int = Field(DEFAULT_TOP_K, ge=1, le=MAX_TOOL_TOP_K, description="Passages to show.")
    where: str = Field("", description=WHERE)


class NaiveEmbeddingSearch(VectorSearchTool):
    """A search by passage vectors that shows the first page of whole passages."""

    name = "naive_embedding_search"
    arguments = NaiveEmbeddingSearchArguments
    style_changes = {"full_text": True, "max_offset": 0}  # noqa: RUF012

    def _search(self, arguments: NaiveEmbeddingSearchArguments) -> SearchResult:
        return self.index.naive_embedding_search(
            arguments.query, top_k=arguments.top_k, **self._shared(arguments)
        )
