"""logical_search: the tool of LogicalRAG, Boolean, phrase and field queries ranked by BM25."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

from arag_search.errors import ArgumentError, UnknownChunkError
from arag_search.search.asked import Search
from arag_search.search.shown.writing import meant_id
from arag_search.tools.base import ReadSet, ToolResult, error_result, not_run
from arag_search.tools.index_description import described
from arag_search.tools.search import SearchTool, arguments_of


class LogicalSearch(SearchTool):
    """A search by logical queries.

    Without ``operators``, AND, OR, NOT, - and ! are rejected. With ``loop_guards``, the tool takes
    sort (if the index has metadata), per_document, show and after. The description is made from the
    index, unless the preset reproduces a paper.
    """

    name = "logical_search"
    asked = Search
    arguments = arguments_of(
        Search, "query", "default_operator", "top_k", "offset", "granularity", "sort",
        "per_document", "show", "after",
    )  # fmt: skip
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

    def _call(self, arguments: Any, read_set: ReadSet) -> ToolResult:
        try:
            return super()._call(arguments, read_set)
        except (ArgumentError, UnknownChunkError) as error:
            return error_result(not_run([f"{error.what} Allowed: {error.allowed}."]))

    def _after(self, id: str) -> str | None:
        if meant_id(id) == id or self.index.read([id])[0] is not None:
            return id or None
        return meant_id(id)

    def _options(self, arguments: Any) -> dict[str, Any]:
        preset = self.preset
        return {
            "operators": preset.operators,
            "full_text": preset.full_text,
            "relax": preset.relax,
            "branches": preset.explains,
            "feedback": preset.explains,
            "published": preset.reproduces is not None,
            "after": self._after(arguments.after),
        }
