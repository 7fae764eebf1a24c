"""The text given with a question before the first turn: passages, a search, or its evidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from arag_search.agent.presets import Preset
from arag_search.query.limits import MAX_CHARACTERS
from arag_search.search.index import Index
from arag_search.tokens import cut_to
from arag_search.tools.base import Tool
from arag_search.tools.document_search import DocumentSearch
from arag_search.tools.document_tool import reference_line
from arag_search.tools.naive_embedding_search import NaiveEmbeddingSearch
from arag_search.tools.references import References


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
    if preset.given_passages:
        return Given(
            NaiveEmbeddingSearch.of(index, preset),
            lambda question: {
                "query": question[:MAX_CHARACTERS],
                "top_k": preset.given_passages,
            },
        )
    return one_search(preset, index) if preset.document_settings.first_search else None


def one_search(preset: Preset, index: Index) -> Given:
    """Return the search for documents with a question as its query."""
    several = preset.document_settings.multi_query
    return Given(
        DocumentSearch.of(index, preset),
        lambda question: (
            {"queries": [question[:MAX_CHARACTERS]]}
            if several
            else {"query": question[:MAX_CHARACTERS]}
        ),
    )


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
