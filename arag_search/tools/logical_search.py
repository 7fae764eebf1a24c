"""logical_search: the tool of LogicalRAG, Boolean, phrase and field queries ranked by BM25."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field

from arag_search.query.limits import MAX_CHARACTERS
from arag_search.search.index import Index
from arag_search.search.results import SearchResult
from arag_search.tools.base import (
    DEFAULT_TOP_K,
    MAX_TOOL_OFFSET,
    MAX_TOOL_TOP_K,
    Arguments,
    Description,
    ToolSettings,
    describe,
)
from arag_search.tools.search import ReplyStyle, SearchTool

_ON_GRANULARITY = re.compile(r'(\n- | )granularity "sentence" .*? counts sentences\.')


class LogicalSearchArguments(Arguments):
    """The arguments of logical_search."""

    query: str = Field(description=f"The logical query, at most {MAX_CHARACTERS:,} characters.")
    default_operator: Literal["OR", "AND"] = Field(
        "OR", description="What a space between clauses means."
    )
    top_k: int = Field(DEFAULT_TOP_K, ge=1, le=MAX_TOOL_TOP_K, description="Passages to show.")
    offset: int = Field(0, ge=0, le=MAX_TOOL_OFFSET, description="Passages to skip.")
    granularity: Literal["chunk", "sentence"] = Field(
        "chunk", description="Judge the conditions on a whole passage, or on one sentence."
    )


class LogicalSearch(SearchTool):
    """A search by logical queries.

    ``operators`` False rejects AND, OR, NOT, - and !; ``description`` is "full" or "syntax".
    """

    name = "logical_search"
    arguments = LogicalSearchArguments

    def __init__(
        self,
        index: Index,
        *,
        description: Description = "full",
        operators: bool = True,
        style: ReplyStyle | None = None,
    ) -> None:
        hidden: list[str] = []
        if not operators:
            hidden.append("default_operator")
        if not index.manifest.has_sentences:
            hidden.append("granularity")
        name = f"logical_search_{description}" + ("" if operators else "_no_operators")
        text = describe(name)
        if "granularity" in hidden:
            text = _ON_GRANULARITY.sub("", text)
        fields = f"Fields of this index: {index.manifest.query_schema.describe()}."
        super().__init__(index, description=f"{text}\n{fields}", style=style, hidden=hidden)
        self.operators = operators

    @classmethod
    def of(cls, index: Index, settings: ToolSettings) -> LogicalSearch:
        return cls(
            index,
            description=settings.tool_description,
            operators=settings.operators,
            style=ReplyStyle.of(settings),
        )

    def _search(self, arguments: LogicalSearchArguments) -> SearchResult:
        return self.index.logical_search(
            arguments.query,
            top_k=arguments.top_k,
            offset=arguments.offset,
            default_operator=arguments.default_operator,
            granularity=arguments.granularity,
            operators=self.operators,
            full_text=self.style.full_text,
        )
