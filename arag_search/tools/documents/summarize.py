"""summarize: the tool of AgenticRAG with which a model frees its context (section 3.4).

It does not use the index: the loop removes what is not kept, see ``arag_search/agent/context.py``.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from arag_search.tools.documents.lines import named_reference
from arag_search.tools.tool import Arguments, ReadSet, Tool, ToolResult

MAX_KEPT = 50
MAX_SUMMARY_CHARACTERS = 8_000

ReferenceId = Annotated[str, Field(min_length=1, max_length=60)]


class SummarizeArguments(Arguments):
    """The arguments of summarize."""

    summary: str = Field(
        min_length=1,
        max_length=MAX_SUMMARY_CHARACTERS,
        description="What is known, what is open, and what to do next.",
    )
    candidate_reference_ids: list[ReferenceId] = Field(
        max_length=MAX_KEPT, description="The documents whose text is still needed."
    )


class Summarize(Tool):
    """A tool that names the references whose content is to be kept."""

    name = "summarize"
    arguments = SummarizeArguments

    def _call(self, arguments: SummarizeArguments, read_set: ReadSet) -> ToolResult:
        named, known = arguments.candidate_reference_ids, read_set.references
        kept = [named_reference(id, known).id for id in named]
        text = f"Kept: {', '.join(f'[{id}]' for id in dict.fromkeys(kept))}."
        return ToolResult(text, "ok", kept=tuple(kept))
