"""The tools that search by vectors: semantic_search, the tool of A-RAG that finds passages by what
their sentences mean (Eq. 3), hybrid_search of LogicalRAG's Agentic Hybrid, BM25 and vectors merged
by rank, and naive_embedding_search of A-RAG (Naive), whole passages by one vector each.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic import Field

from arag_search.query.limits import MAX_CHARACTERS
from arag_search.search.index import Index
from arag_search.search.results import SearchResult
from arag_search.tools.base import DEFAULT_TOP_K, Arguments
from arag_search.tools.index_description import described
from arag_search.tools.preset import PLAIN, Preset
from arag_search.tools.search import Offset, SearchTool, TopK

QUERY = f"A question or statement, at most {MAX_CHARACTERS:,} characters."
WHERE = "A logical query that every passage must match; it does not rank. Empty for none."
FILTER = "Metadata clauses that every passage obeys, such as doc_id:a; empty for none."


class VectorSearchTool(SearchTool):
    """A search by vectors."""

    def _hidden(self) -> tuple[str, ...]:
        return () if self.preset.meaning else ("where",)

    def _description(self) -> str:
        preset, names = self.preset, self.arguments.model_fields
        text = described(
            self.name,
            self.index,
            preset.reproduces,
            where=preset.meaning,
            meaning="meaning" in names,
            whole=preset.full_text,
            ours=preset.explains,
        )
        if preset.reproduces is not None and preset.explains and "filter" in names:
            schema = replace(self.index.manifest.query_schema, metadata_only=True)
            text += f"\nFields for filter: {schema.describe()}."
        return text

    def _shared(self, arguments: Any) -> dict[str, Any]:
        return {
            "where": none_if_empty(arguments.where),
            "names": self.preset.explains,
            "relax": self.preset.relax,
        }


def none_if_empty(text: str) -> str | None:
    """Return an optional argument, or None if it was left empty."""
    return text if text.strip() else None


class SemanticSearchArguments(Arguments):
    """The arguments of semantic_search."""

    query: str = Field(description=QUERY)
    top_k: TopK = DEFAULT_TOP_K
    offset: Offset = 0
    where: str = Field("", description=WHERE)
    filter: str = Field("", description=FILTER)


class SemanticSearch(VectorSearchTool):
    """A search that shows, of each passage, the sentences nearest to the query."""

    name = "semantic_search"
    arguments = SemanticSearchArguments
    of_paper = ("query", "top_k")

    def _search(self, arguments: SemanticSearchArguments) -> SearchResult:
        return self.index.semantic_search(
            arguments.query,
            top_k=arguments.top_k,
            offset=arguments.offset,
            filter=none_if_empty(arguments.filter),
            **self._shared(arguments),
        )


LOGICAL_QUERY = (
    f"The logical query, at most {MAX_CHARACTERS:,} characters; empty for the words of meaning."
)
MEANING = "A question or statement; empty for the words of query."


class HybridSearchArguments(Arguments):
    """The arguments of hybrid_search."""

    query: str = Field(description=QUERY)
    max_results: TopK = DEFAULT_TOP_K
    offset: Offset = 0
    where: str = Field("", description=WHERE)
    filter: str = Field("", description=FILTER)


class LogicalHybridSearchArguments(HybridSearchArguments):
    """The arguments of hybrid_search with a logical query and a meaning."""

    query: str = Field("", description=LOGICAL_QUERY)
    meaning: str = Field("", description=MEANING)


class HybridSearch(VectorSearchTool):
    """A search by words and vectors of passages."""

    name = "hybrid_search"
    arguments = HybridSearchArguments
    of_paper = ("query", "max_results")

    def __init__(self, index: Index, preset: Preset = PLAIN) -> None:
        if preset.meaning:
            self.arguments = LogicalHybridSearchArguments
        super().__init__(index, preset)

    def _search(self, arguments: HybridSearchArguments) -> SearchResult:
        return self.index.hybrid_search(
            arguments.query,
            top_k=arguments.max_results,
            offset=arguments.offset,
            filter=none_if_empty(arguments.filter),
            meaning=getattr(arguments, "meaning", None),
            full_text=self.preset.full_text,
            **self._shared(arguments),
        )


class NaiveEmbeddingSearchArguments(Arguments):
    """The arguments of naive_embedding_search."""

    query: str = Field(description=QUERY)
    top_k: TopK = DEFAULT_TOP_K
    where: str = Field("", description=WHERE)


class NaiveEmbeddingSearch(VectorSearchTool):
    """A search by passage vectors that shows the first page of whole passages."""

    name = "naive_embedding_search"
    arguments = NaiveEmbeddingSearchArguments
    of_paper = ("query", "top_k")
    max_offset = 0

    def __init__(self, index: Index, preset: Preset = PLAIN) -> None:
        super().__init__(index, preset.model_copy(update={"full_text": True}))

    def _search(self, arguments: NaiveEmbeddingSearchArguments) -> SearchResult:
        return self.index.naive_embedding_search(
            arguments.query, top_k=arguments.top_k, **self._shared(arguments)
        )
