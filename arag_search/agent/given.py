"""The text that is given with a question before the first turn: passages, a search, or its
evidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from arag_search.errors import ConfigError
from arag_search.query.limits import MAX_CHARACTERS
from arag_search.search.index import Index
from arag_search.tokens import cut_to
from arag_search.tools.conversation import References
from arag_search.tools.documents.lines import reference_line
from arag_search.tools.documents.search import DocumentSearch
from arag_search.tools.passages.vectors import NaiveEmbeddingSearch
from arag_search.tools.preset import GIVEN_PASSAGES, Preset
from arag_search.tools.registry import CONNECTOR_TOOLS
from arag_search.tools.tool import Tool
from arag_search.vectors.base import EncoderIdentity


def check_for_agent(preset: Preset) -> None:
    """Raise ConfigError for a preset whose tools are only for clients of the MCP server."""
    tools = [name for name in preset.tools if name in CONNECTOR_TOOLS]
    if tools:
        raise ConfigError(
            f"Preset {preset.name} has only tools for connectors: {', '.join(tools)}.",
            allowed="arag-search mcp with this preset, or another preset",
            do="See them with: arag-search presets",
        )


def encoder_of(preset: Preset, index: Index) -> EncoderIdentity | None:
    """Return the encoder for the preset's queries; None if the preset needs no vectors."""
    return index.open_vectors().encoder.identity if preset.needed_vectors else None


class Evidence(NamedTuple):
    """A text that a file of questions names as evidence, and the title of its document, which may
    be empty."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Given:
    """A search that is made for every question, and its arguments for a question."""

    tool: Tool
    arguments_for: Callable[[str], dict[str, Any]]


def given_by(preset: Preset, index: Index) -> Given | None:
    """Return the search whose result accompanies every question; None if there is none."""
    if preset.given == "passages":
        return Given(
            NaiveEmbeddingSearch(index, preset),
            lambda question: {"query": question[:MAX_CHARACTERS], "top_k": GIVEN_PASSAGES},
        )
    return one_search(preset, index) if preset.given == "search" else None


def one_search(preset: Preset, index: Index) -> Given:
    """Return the search for documents with a question as its query."""
    key = "queries" if preset.multi_query else "query"

    def arguments_for(question: str) -> dict[str, Any]:
        query = question[:MAX_CHARACTERS]
        return {key: [query] if key == "queries" else query}

    return Given(DocumentSearch(index, preset), arguments_for)


def evidence_text(evidence: Sequence[Evidence], references: References, max_tokens: int) -> str:
    """Return the texts of evidence, each under a reference, up to a maximum number of tokens. Texts
    with the same title share a reference."""
    search = references.begin_search()
    blocks: list[str] = []
    for number, (title, text) in enumerate(evidence):
        doc_id = title or f"evidence {number + 1}"
        reference = references.of_document(doc_id, title, search)
        blocks.append(f"{reference_line(reference)}\n{text.strip()}")
    return cut_to("\n".join(blocks), max_tokens)
