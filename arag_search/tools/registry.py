"""Every tool that a model may call, once: presets, the agent, the command line, the MCP server, the
viewer and measures of searches read this list.

To add a tool, write its module and its description file, and add its line here.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Literal, cast

if TYPE_CHECKING:
    from arag_search.tools.base import Tool
    from arag_search.vectors.base import VectorUnit

QueryForm = Literal["logical", "keywords", "words", "meaning"]
"""How a tool reads its query: in the query language, as a list of keywords, by its words and
vectors, or by vectors alone."""


@dataclass(frozen=True, slots=True)
class RegisteredTool:
    """A tool by its name, which is also that of its module.

    ``query_form`` is None for a tool that reads passages by id instead of searching. ``part`` is
    the part of an index that the tool needs and a build may leave out; ``vectors`` are those that
    it ranks by, "chosen" if the preset chooses them. ``connector_name`` is the name that clients of
    the MCP server see, for the tools that connectors demand: these reply in JSON, and no agent of
    ours has them.
    """

    name: str
    class_name: str
    query_form: QueryForm | None
    part: Literal["sentences", "exact"] | None = None
    vectors: VectorUnit | Literal["chosen"] | None = None
    connector_name: str | None = None

    @property
    def offered_name(self) -> str:
        """The name that clients of the MCP server see."""
        return self.connector_name or self.name

    @property
    def short_name(self) -> str:
        """The name on the command line: its first word."""
        return self.name.partition("_")[0]

    @property
    def tool_class(self) -> type[Tool]:
        """The class, imported here so that ``--help`` stays fast."""
        module = import_module(f"{__package__}.{self.name}")
        return cast("type[Tool]", getattr(module, self.class_name))


_TOOLS = (
    RegisteredTool("logical_search", "LogicalSearch", "logical"),
    RegisteredTool("keyword_search", "KeywordSearch", "keywords", part="exact"),
    RegisteredTool("semantic_search", "SemanticSearch", "meaning", vectors="sentence"),
    RegisteredTool("hybrid_search", "HybridSearch", "words", vectors="chosen"),
    RegisteredTool("naive_embedding_search", "NaiveEmbeddingSearch", "meaning", vectors="passage"),
    RegisteredTool("chunk_read", "ChunkRead", None),
    RegisteredTool("connector_search", "ConnectorSearch", "logical", connector_name="search"),
    RegisteredTool("connector_fetch", "ConnectorFetch", None, connector_name="fetch"),
)
TOOLS = {tool.name: tool for tool in _TOOLS}
CONNECTOR_TOOLS = {tool.name: tool for tool in _TOOLS if tool.connector_name is not None}
SEARCH_TOOLS = {
    tool.name: tool
    for tool in _TOOLS
    if tool.query_form is not None and tool.name not in CONNECTOR_TOOLS
}
READ_TOOLS = TOOLS.keys() - SEARCH_TOOLS.keys() - CONNECTOR_TOOLS.keys()
