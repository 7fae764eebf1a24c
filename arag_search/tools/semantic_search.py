"""semantic_search: the tool of A-RAG that finds passages by what their sentences mean (Eq. 3)."""

from __future__ import annotations

from pydantic import Field

from arag_search.search.results import SearchResult
from arag_search.tools.base import DEFAULT_TOP_K, MAX_TOOL_OFFSET, MAX_TOOL_TOP_K, Arguments
from arag_search.tools.vector_search import FILTER, QUERY, WHERE, VectorSearchTool, none_if_empty


class SemanticSearchArguments(Arguments):
    """The arguments of semantic_search."""

    query: str = Field(description=QUERY)
    top_k: int = Field(DEFAULT_TOP_K, ge=1, le=MAX_TOOL_TOP_K, description="Passages to show.")
    offset: int = Field(0, ge=0, le=MAX_TOOL_OFFSET, description="Passages to skip.")
    where: str = Field("", description=WHERE)
    filter: str = Field("", description=FILTER)


class SemanticSearch(VectorSearchTool):
    """A search that shows, of each passage, the sentences nearest to the query."""

    name = "semantic_search"
    arguments = SemanticSearchArguments

    def _search(self, arguments: SemanticSearchArguments) -> SearchResult:
        return self.index.semantic_search(
            arguments.query,
            top_k=arguments.top_k,
            offset=arguments.offset,
            filter=none_if_empty(arguments.filter),
            **self._shared(arguments),
        )
