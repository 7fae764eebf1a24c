"""The tools that search by vectors.

- semantic_search, of A-RAG: passages by what their sentences mean (Eq. 3).
- hybrid_search, of LogicalRAG's Agentic Hybrid: BM25 and vectors, merged by rank.
- naive_embedding_search, of A-RAG (Naive): whole passages, by one vector each.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic import Field

from arag_search.query.limits import MAX_CHARACTERS
from arag_search.search.asked import Hybrid, Meaning, Naive
from arag_search.search.index import Index
from arag_search.tools.passages.search import SearchTool, argument_of, arguments_of
from arag_search.tools.preset import PLAIN, Preset

_QUERY = str, Field(description=f"A question or statement, at most {MAX_CHARACTERS:,} characters.")


class VectorSearchTool(SearchTool):
    """A search by vectors."""

    def _hidden(self) -> tuple[str, ...]:
        return () if self.preset.where else ("where",)

    def _features(self) -> dict[str, bool]:
        return {"where": self.preset.where}

    def _description(self) -> str:
        text, preset = super()._description(), self.preset
        has_filter = "filter" in self.arguments.model_fields
        if preset.reproduces is not None and preset.explains and has_filter:
            schema = replace(self.index.manifest.query_schema, metadata_only=True)
            text += f"\nFields for filter: {schema.describe()}."
        return text

    def _options(self, arguments: Any) -> dict[str, Any]:
        del arguments
        return {"names": self.preset.explains, "relax": self.preset.relax}


class SemanticSearch(VectorSearchTool):
    """A search that shows, of each passage, the sentences nearest to the query."""

    name = "semantic_search"
    asked = Meaning
    arguments = arguments_of(Meaning, "query", "top_k", "offset", "where", "filter", query=_QUERY)
    of_paper = ("query", "top_k")


class HybridSearch(VectorSearchTool):
    """A search by words and vectors of passages."""

    name = "hybrid_search"
    asked = Hybrid
    arguments = arguments_of(
        Hybrid,
        *("query", "max_results", "offset", "where", "filter"),
        query=_QUERY,
        max_results=argument_of(Hybrid, "top_k"),
    )
    of_paper = ("query", "max_results")

    def _options(self, arguments: Any) -> dict[str, Any]:
        return {
            **super()._options(arguments),
            "full_text": self.preset.full_text,
            "top_k": arguments.max_results,
        }


class NaiveEmbeddingSearch(VectorSearchTool):
    """A search by passage vectors that shows the first page of whole passages."""

    name = "naive_embedding_search"
    asked = Naive
    arguments = arguments_of(Naive, "query", "top_k", "where", query=_QUERY)
    of_paper = ("query", "top_k")
    max_offset = 0

    def __init__(self, index: Index, preset: Preset = PLAIN) -> None:
        super().__init__(index, preset.model_copy(update={"full_text": True}))
