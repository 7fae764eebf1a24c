"""The base of the tools that search by vectors: semantic_search, hybrid_search and naive."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from arag_search.query.limits import MAX_CHARACTERS
from arag_search.search.index import Index
from arag_search.tools.base import Paper, ToolSettings
from arag_search.tools.index_description import described
from arag_search.tools.search import ReplyStyle, SearchTool

QUERY = f"A question or statement, at most {MAX_CHARACTERS:,} characters."
WHERE = "A logical query that every passage must match; it does not rank. Empty for none."
FILTER = "Metadata clauses that every passage obeys, such as doc_id:a; empty for none."


class VectorSearchTool(SearchTool):
    """A search by vectors. ``where`` offers the argument of this name."""

    style_changes: ClassVar[dict[str, Any]] = {}
    """What is different from the style that a preset asks for."""
    takes_meaning: ClassVar[bool] = False

    def __init__(
        self,
        index: Index,
        *,
        style: ReplyStyle | None = None,
        where: bool = False,
        reproduces: Paper | None = None,
    ) -> None:
        text = described(self.name, index, reproduces, where=where, meaning=self.takes_meaning)
        if reproduces is not None and "filter" in self.arguments.model_fields:
            fields = replace(index.manifest.query_schema, metadata_only=True).describe()
            text = f"{text}\nFields for filter: {fields}."
        super().__init__(
            index,
            description=text,
            style=replace(style or ReplyStyle(), **self.style_changes),
            hidden=() if where else ("where",),
        )

    @classmethod
    def of(cls, index: Index, settings: ToolSettings) -> VectorSearchTool:
        return cls(
            index,
            style=ReplyStyle.of(settings),
            where=settings.where,
            reproduces=settings.reproduces,
        )

    def _shared(self, arguments: Any) -> dict[str, Any]:
        """Return what every search by vectors takes."""
        return {
            "where": none_if_empty(arguments.where),
            "names": True,
            "relax": self.style.relax,
        }


def none_if_empty(text: str) -> str | None:
    """Return an optional argument, or None if it was left empty."""
    return text if text.strip() else None
