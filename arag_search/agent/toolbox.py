"""The tools that a preset gives, over one index."""

from __future__ import annotations

from arag_search.config import Preset, ToolName
from arag_search.errors import NotServedError
from arag_search.index import Index
from arag_search.tools.base import Tool
from arag_search.tools.chunk_read import ChunkRead
from arag_search.tools.keyword_search import KeywordSearch
from arag_search.tools.logical_search import LogicalSearch
from arag_search.tools.search import ReplyStyle

NEEDS: dict[ToolName, str] = {"keyword_search": "exact"}
"""Parts of an index that a build may leave out, by the tool that cannot do without."""


def tools_of(preset: Preset, index: Index) -> dict[str, Tool]:
    """The tools by name, in the order of the preset.

    Raises NotServedError naming all tools that the index was built without.
    """
    missing: list[ToolName] = [
        name for name in preset.tools if NEEDS.get(name) in index.manifest.without
    ]
    if missing:
        parts = ",".join(dict.fromkeys(NEEDS[name] for name in missing))
        raise NotServedError(
            f"The index does not serve {', '.join(missing)}, which preset {preset.name} needs.",
            where=index.location,
            do=f"Build it again without --without {parts}, or take another preset.",
        )
    return {name: _tool(name, preset, index) for name in preset.tools}


def _tool(name: ToolName, preset: Preset, index: Index) -> Tool:
    style = ReplyStyle(
        full_text=preset.full_text,
        suppress_shown=preset.suppress_shown,
        chunk_read="chunk_read" in preset.tools,
        max_result_tokens=preset.max_result_tokens,
    )
    match name:
        case "logical_search":
            return LogicalSearch(
                index,
                description=preset.tool_description,
                operators=preset.operators,
                style=style,
            )
        case "keyword_search":
            return KeywordSearch(index, matching=preset.matching, style=style)
        case "chunk_read":
            return ChunkRead(index, max_result_tokens=preset.max_result_tokens)
