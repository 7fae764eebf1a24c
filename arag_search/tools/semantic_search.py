"""semantic_search: the tool of A-RAG that finds passages by what their sentences mean (Eq. 3)."""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field

from arag_search.query.limits import MAX_CHARACTERS
from arag_search.search.index import Index
from arag_search.search.results import SearchResult
from arag_search.tools.base import (
    DEFAULT_TOP_K,
    MAX_TOOL_OFFSET,
    MAX_TOOL_TOP_K,
    Arguments,
    Paper,
    ToolSettings,
)
from arag_search.tools.index_description import described
from arag_search.tools.search import ReplyStyle, SearchTool

QUERY = f"A question or statement, at most {MAX_CHARACTERS:,} characters."
WHERE = "A logical query that every passage must match; it does not rank. Empty for none."
FILTER = "Metadata clauses that every passage obeys, such as doc_id:a; empty for none."


class SemanticSearchArguments(Arguments):
    """The arguments of semantic_search."""

    query: str = Field(description=QUERY)
    top_k: int = Field(DEFAULT_TOP_K, ge=1, le=MAX_TOOL_TOP_K, description="Passages to show.")
    offset: int = Field(0, ge=0, le=MAX_TOOL_OFFSET, description="Passages to skip.")
    where: str = Field("", description=WHERE)
    filter: str = Field("", description=FILTER)


class SemanticSearch(SearchTool):
    """A search that shows, of each passage, the sentences nearest to the query. ``where`` offers
    the argument of this name."""

    name = "semantic_search"
    arguments = SemanticSearchArguments

    def __init__(
        self,
        index: Index,
        *,
        style: ReplyStyle | None = None,
        where: bool = False,
        reproduces: Paper | None = None,
    ) -> None:
        text = with_filter(self.name, index, reproduces, where=where)
        super().__init__(index, description=text, style=style, hidden=() if where else ("where",))

    @classmethod
    def of(cls, index: Index, settings: ToolSettings) -> SemanticSearch:
        return cls(
            index,
            style=ReplyStyle.of(settings),
            where=settings.where,
            reproduces=settings.reproduces,
        )

    def _search(self, arguments: SemanticSearchArguments) -> SearchResult:
        return self.index.semantic_search(
            arguments.query,
            top_k=arguments.top_k,
            offset=arguments.offset,
            filter=none_if_empty(arguments.filter),
            where=none_if_empty(arguments.where),
            names=self.style.marked,
            relax=self.style.relax,
        )


def with_filter(name: str, index: Index, reproduces: Paper | None, **features: bool) -> str:
    """Return the description of a tool with a filter, and the fields that it may name."""
    text = described(name, index, reproduces, **features)
    if reproduces is None:
        return text
    fields = replace(index.manifest.query_schema, metadata_only=True).describe()
    return f"{text}\nFields for filter: {fields}."


def none_if_empty(text: str) -> str | None:
    """Return an optional argument, or None if it was left empty."""
    return text if text.strip() else None
