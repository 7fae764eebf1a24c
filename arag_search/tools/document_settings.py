"""The keys of a preset for document tools, and for the loop around them (AgenticRAG)."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from arag_search.errors import NotServedError, VectorsNotFoundError, VectorsNotNamedError
from arag_search.search.index import Index
from arag_search.vectors.base import VectorUnit

SearchBackend = Literal["auto", "words", "hybrid", "semantic", "logical"]
MAX_CALLS_A_TURN = 8


class DocumentSettings(BaseModel):
    """The block ``documents`` of a preset. Its defaults are those of the paper or, where it gives
    none, our choice."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    search_backend: SearchBackend = Field(
        default="auto",
        description="How search ranks: by BM25 of the words, vectors, both merged, or logical "
        "queries; auto is hybrid where there are vectors, else words.",
    )
    multi_query: bool = Field(
        default=True, description="Whether search takes up to five queries at once, or one."
    )
    results_per_query: int = Field(
        default=10, ge=1, le=20, description="Documents that each query of search may add."
    )
    results_per_call: int = Field(
        default=0, ge=0, le=100, description="The most documents that a search shows; 0: no bound."
    )
    reuse_references: bool = Field(
        default=True, description="Whether a document that is found again keeps its reference."
    )
    semantic_find: bool = Field(
        default=True, description="Whether find can compare by meaning, where there are vectors."
    )
    find_context_lines: int = Field(
        default=2, ge=0, le=20, description="Lines that find shows before and after a match."
    )
    find_result_tokens: int = Field(
        default=11_000, ge=200, description="The maximum tokens of a reply of find."
    )
    open_lines: int = Field(
        default=1_800, ge=1, le=20_000, description="The most lines that open shows."
    )
    calls_a_turn: int = Field(
        default=0,
        ge=0,
        le=MAX_CALLS_A_TURN,
        description="Tool calls of one reply that are run; 0 runs all, at most 8.",
    )
    context_management: bool = Field(
        default=True,
        description="Whether a long conversation leads to a warning and a summary; token_budget "
        "then has no effect.",
    )
    context_threshold: int = Field(
        default=128_000, ge=2_000, description="Tokens at which summarize is forced."
    )
    context_warning: float = Field(
        default=0.9, gt=0, le=1, description="The share of the threshold at which a line warns."
    )
    context_keep: float = Field(
        default=0.5,
        gt=0,
        le=1,
        description="The share of the threshold that kept content may take.",
    )
    reply_reserve: int = Field(
        default=4_000, ge=0, description="Tokens kept free for the next reply of the model."
    )
    given_evidence: bool = Field(
        default=False,
        description="Whether the passages that a question file names as evidence are given with "
        "the question, instead of tools.",
    )
    first_search: bool = Field(
        default=False, description="Whether one search for the question itself comes first."
    )
    switcher: Literal["rules", "model"] | None = Field(
        default=None,
        description="What sends simple questions to one search without a loop: rules, or a call of "
        "the model; null for neither.",
    )


def vector_units(index: Index) -> frozenset[VectorUnit]:
    """Return the units of the vectors of an index; empty if it has none. Raises the errors of
    opening existing vectors."""
    try:
        return frozenset(index.open_vectors().vectors.units)
    except (NotServedError, VectorsNotFoundError, VectorsNotNamedError):
        return frozenset()


def chosen_backend(settings: DocumentSettings, index: Index) -> SearchBackend:
    """Return the backend of search over an index."""
    if settings.search_backend != "auto":
        return settings.search_backend
    return "hybrid" if vector_units(index) else "words"
