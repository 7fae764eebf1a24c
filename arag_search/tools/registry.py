"""Every tool that a model may call, once. Presets, the agent, the command line, the MCP server, the
viewer and measures of searches read this list.

To add a tool, write its module and its description file, and add its line here.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from arag_search.vectors.base import VectorUnit

Kind = Literal["search", "read", "control"]
QueryForm = Literal["logical", "keywords", "words", "meaning"]
"""How a tool reads its query: in the query language, as a list of keywords, by its words and
vectors, or by vectors alone."""


@dataclass(frozen=True, slots=True)
class RegisteredTool:
    """A tool with its name.

    - ``kind``: "search" finds passages, "read" shows text by the id of a passage or document, and
      "control" does neither.
    - ``query_form``: None for a tool without a single query of one form.
    - ``documents``: whether the tool needs a conversation that remembers references.
    - ``knows_repeats``: whether the tool itself says what it showed before.
    - ``defined_as``: the module and the name of its class, such as ``documents.find.Find``.
    - ``part``: the part of an index that the tool needs and a build may leave out.
    - ``vectors``: the unit of the vectors that the tool ranks by.
    - ``connector_name``: the name that clients of the MCP server see, for the tools of connectors.
      These reply in JSON, and our agent does not use them.
    - ``of_loop``: whether the tool changes the conversation, which servers leave to their clients.
    """

    name: str
    defined_as: str
    query_form: QueryForm | None
    kind: Kind = "search"
    part: Literal["sentences", "exact"] | None = None
    vectors: VectorUnit | None = None
    documents: bool = False
    knows_repeats: bool = False
    connector_name: str | None = None
    of_loop: bool = False

    @property
    def offered_name(self) -> str:
        """The name that clients of the MCP server see."""
        return self.connector_name or self.name


_TOOLS = (
    RegisteredTool(
        "logical_search",
        "passages.logical.LogicalSearch",
        "logical",
    ),
    RegisteredTool("keyword_search", "passages.keyword.KeywordSearch", "keywords", part="exact"),
    RegisteredTool(
        "semantic_search",
        "passages.vectors.SemanticSearch",
        "meaning",
        vectors="sentence",
    ),
    RegisteredTool(
        "hybrid_search",
        "passages.vectors.HybridSearch",
        "words",
        vectors="passage",
    ),
    RegisteredTool(
        "naive_embedding_search",
        "passages.vectors.NaiveEmbeddingSearch",
        "meaning",
        vectors="passage",
    ),
    RegisteredTool("chunk_read", "passages.read.ChunkRead", None, kind="read", knows_repeats=True),
    RegisteredTool(
        "connector_search",
        "passages.connector.ConnectorSearch",
        "logical",
        connector_name="search",
    ),
    RegisteredTool(
        "connector_fetch",
        "passages.connector.ConnectorFetch",
        None,
        kind="control",
        connector_name="fetch",
    ),
    RegisteredTool(
        "search",
        "documents.search.DocumentSearch",
        None,
        documents=True,
    ),
    RegisteredTool("find", "documents.find.Find", None, kind="read", documents=True),
    RegisteredTool(
        "open",
        "documents.open.OpenLines",
        None,
        kind="read",
        documents=True,
        knows_repeats=True,
    ),
    RegisteredTool(
        "summarize",
        "documents.summarize.Summarize",
        None,
        kind="control",
        documents=True,
        of_loop=True,
    ),
)
TOOLS = {tool.name: tool for tool in _TOOLS}
CONNECTOR_TOOLS = {tool.name: tool for tool in _TOOLS if tool.connector_name is not None}
FOUND_BY_SEARCH = frozenset(
    tool.name for tool in _TOOLS if tool.kind == "search" and tool.name not in CONNECTOR_TOOLS
)
READ_TOOLS = frozenset(tool.name for tool in _TOOLS if tool.kind == "read")
DOCUMENT_TOOLS = frozenset(tool.name for tool in _TOOLS if tool.documents)
OTHER_NAMES = {"read_chunk": "chunk_read"}
"""Other names of tools, by which presets, measures and calls may name them; A-RAG's code has
``read_chunk`` where its paper has ``chunk_read``."""


def meant_tool(name: str, offered: Collection[str]) -> str:
    """Return the offered tool that a name stands for: its own or another name of it, also in a
    wrapper such as ``functions.``. Return the name itself if it is not exactly one tool."""
    if name in offered:
        return name
    names = {tool: tool for tool in offered}
    names.update((other, tool) for other, tool in OTHER_NAMES.items() if tool in offered)
    meant = {
        tool
        for known, tool in names.items()
        if re.fullmatch(rf"(?:.*[.:/])?{re.escape(known)}(?::\d+)?", name)
    }
    return meant.pop() if len(meant) == 1 else name
