"""logical_search: the tool of LogicalRAG, Boolean, phrase and field queries ranked by BM25."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar, Literal

from pydantic import Field

from arag_search.errors import ArgumentError, UnknownChunkError
from arag_search.query.limits import MAX_CHARACTERS
from arag_search.search.results import SearchResult
from arag_search.tools.base import (
    DEFAULT_TOP_K,
    MAX_TITLES,
    MAX_TOOL_TOP_K,
    Arguments,
    ReadSet,
    ToolResult,
    error_result,
    not_run,
)
from arag_search.tools.index_description import described
from arag_search.tools.rendering import meant_id
from arag_search.tools.search import Offset, SearchTool, ShowAs, TopK


class LogicalSearchArguments(Arguments):
    """The arguments of logical_search."""

    query: str = Field(description=f"The logical query, at most {MAX_CHARACTERS:,} characters.")
    default_operator: Literal["OR", "AND"] = Field(
        "OR", description="What a space between clauses means."
    )
    top_k: TopK = DEFAULT_TOP_K
    offset: Offset = 0
    granularity: Literal["chunk", "sentence"] = Field(
        "chunk", description="Judge the conditions on a whole passage, or on one sentence."
    )
    sort: str = Field("", description="Order: FIELD:asc or FIELD:desc (metadata); empty for rank.")
    per_document: int = Field(
        0,
        ge=0,
        le=MAX_TOOL_TOP_K,
        description="Most passages per document; 0 for any number.",
    )
    show: ShowAs = "text"
    after: str = Field("", description="Id to go on after.")


class LogicalSearch(SearchTool):
    """A search by logical queries.

    Without ``operators``, AND, OR, NOT, - and ! are rejected. With ``loop_guards``, the tool takes
    sort (if the index has metadata), per_document, show and after. The description is made from the
    index, unless the preset reproduces a paper.
    """

    name = "logical_search"
    arguments = LogicalSearchArguments
    of_paper: ClassVar[Collection[str]] = ("query", "default_operator")

    def _hidden(self) -> list[str]:
        preset, manifest = self.preset, self.index.manifest
        hidden: list[str] = []
        if not preset.loop_guards:
            hidden += ["per_document", "show", "after"]
        if not preset.loop_guards or not manifest.metadata:
            hidden.append("sort")
        if not preset.operators:
            hidden.append("default_operator")
        if not manifest.has_sentences:
            hidden.append("granularity")
        return hidden

    def _description(self) -> str:
        preset = self.preset
        text = described(
            self.name,
            self.index,
            preset.reproduces,
            operators=preset.operators,
            advice=preset.tool_description == "full",
            ours=preset.explains,
        )
        if preset.reproduces is not None and preset.explains:
            text += f"\nFields of this index: {self.index.manifest.query_schema.describe()}."
        return text

    def _call(self, arguments: LogicalSearchArguments, read_set: ReadSet) -> ToolResult:
        try:
            return super()._call(arguments, read_set)
        except (ArgumentError, UnknownChunkError) as error:
            return error_result(not_run([f"{error.what} Allowed: {error.allowed}."]))

    def _after(self, id: str) -> str | None:
        if meant_id(id) == id or self.index.read([id])[0] is not None:
            return id or None
        return meant_id(id)

    def _search(self, arguments: LogicalSearchArguments) -> SearchResult:
        return self.index.logical_search(
            arguments.query,
            top_k=arguments.top_k if arguments.show == "text" else MAX_TITLES,
            offset=arguments.offset,
            default_operator=arguments.default_operator,
            granularity=arguments.granularity,
            operators=self.preset.operators,
            full_text=self.preset.full_text,
            sort=arguments.sort or None,
            per_document=arguments.per_document or None,
            relax=self.preset.relax,
            branches=self.preset.explains,
            feedback=self.preset.explains,
            show=arguments.show,
            after=self._after(arguments.after),
            published=self.preset.reproduces is not None,
        )
