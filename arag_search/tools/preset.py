"""Preset: which tools a model gets, how they work and reply, and the bounds of their loop.

``preset_files`` loads presets from files. Models and endpoints are not part of them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema

from arag_search.engines.base import Matching
from arag_search.tools.registry import DOCUMENT_TOOLS, OTHER_NAMES, TOOLS
from arag_search.vectors.base import VectorUnit

Description = Literal["full", "syntax"]
Given = Literal["none", "evidence", "search", "passages"]
Paper = Literal["A-RAG", "LogicalRAG", "AgenticRAG"]
"""The papers whose systems presets reproduce."""
ReplyPaper = Literal["A-RAG", "LogicalRAG"]
"""The papers in whose style tools can reply."""
SearchBackend = Literal["auto", "words", "hybrid", "semantic", "logical"]

SYSTEM_PROMPTS = (
    "arag",
    "arag_paper",
    "logical_read",
    "logicalrag",
    "agentic_hybrid",
    "naive_rag",
    "direct_answer",
    "agentic_rag",
    "agentic_logical",
    "single_shot",
    "memory_agent",
)
"""The prompts that a preset may name; the other files are parts that the loop adds."""

MIN_RESULT_TOKENS = 200
DEFAULT_RESULT_TOKENS = 4_000
FULL_TEXT_RESULT_TOKENS = 12_000
"""The maximum tokens of a result if whole passages are shown instead of snippets."""
GIVEN_PASSAGES = 5
"""The passages that ``given: passages`` shows."""
MAX_CALLS_A_TURN = 8
_MAX_LOOPS = 1_000
_MIN_BUDGET = 1_000


def _check_tool_name(name: str) -> str:
    name = OTHER_NAMES.get(name, name)
    if name not in TOOLS:
        raise ValueError(f"there is no tool {name!r}")
    return name


ToolName = Annotated[
    str, AfterValidator(_check_tool_name), WithJsonSchema({"type": "string", "enum": list(TOOLS)})
]


class Preset(BaseModel):
    """The checked content of a preset file: how a question is answered.

    A file may leave out a key that has a default here; a key with its default does not enter
    fingerprints.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: str = Field(min_length=1, description="The name of the preset in records.")
    description: str = Field(description="What the preset is for, in a sentence.")
    tools: Annotated[tuple[ToolName, ...], Field(strict=False)] = Field(
        description="The tools that the model may call; none for an answer without a search."
    )
    prompt: str = Field(
        description="The system prompt: a name, or a file ending in .md beside the preset."
    )
    plan_first: bool = Field(description="Whether to ask for a short plan before the first search.")
    max_loops: int = Field(
        ge=1, le=_MAX_LOOPS, description="Turns with tools before an answer is forced."
    )
    token_budget: int = Field(
        ge=_MIN_BUDGET,
        description="Tokens of all messages before an answer is forced or, with "
        "context_management, a summary.",
    )
    loop_guards: bool = Field(
        description="Whether a repeated call is answered with a nudge, steps that show nothing new "
        "with a note, and searches take arguments that help on: logical_search sort and "
        "show, keyword_search show."
    )
    max_result_tokens: int = Field(
        ge=MIN_RESULT_TOKENS, description="The maximum tokens of one tool result."
    )
    full_text: bool = Field(description="Whether searches show whole passages, not snippets.")
    operators: bool = Field(description="Whether logical_search takes AND, OR and NOT.")
    tool_description: Description = Field(
        description="What logical_search describes: its syntax and advice, or its syntax alone."
    )
    matching: Matching = Field(
        description="What keyword_search counts: whole tokens, or substrings as A-RAG's code does."
    )
    given: Given = Field(
        description="What is given with the question: the passages that the file of questions "
        "names as evidence, one search for the question itself, or the five passages nearest to "
        "it by passage vectors."
    )
    whole_up_to_tokens: int = Field(
        default=0,
        ge=0,
        description="Searches show passages of up to this many tokens whole; 0 for none.",
    )
    relax: bool = Field(
        default=False,
        description="Whether a logical search that finds nothing shows the passages that miss the "
        "fewest of its conditions.",
    )
    pointers: int = Field(
        default=0,
        ge=0,
        le=5,
        description="How many documents a search shows whose names stand in the sentences above: a "
        "sentence of each.",
    )
    where: bool = Field(
        default=False,
        description="Whether searches by vectors take where, a logical query that passages must "
        "match.",
    )
    reproduces: Paper | None = Field(
        default=None,
        description="The paper whose tool descriptions, arguments and query language this preset "
        "keeps; A-RAG and LogicalRAG make one call a turn.",
    )
    replies: ReplyPaper | None = Field(
        default=None,
        description="The paper whose replies searches and chunk_read give: ids and text, without "
        "counts, notes or corrected queries, and only the paper's arguments; A-RAG asks for no "
        "form of the answer; null for ours.",
    )
    search_backend: SearchBackend = Field(
        default="auto",
        description="How the tool search ranks: by BM25 of the words, vectors, both merged, or "
        "logical queries; auto is hybrid where there are vectors, else words.",
    )
    multi_query: bool = Field(
        default=True,
        description="Whether the tool search takes up to five queries at once, or one.",
    )
    semantic_find: bool = Field(
        default=True, description="Whether find can compare by meaning, where there are vectors."
    )
    context_management: bool = Field(
        default=True,
        description="Whether, with the tool summarize, a long conversation leads to a warning and, "
        "at token_budget, to a summary.",
    )
    switcher: bool = Field(
        default=False,
        description="Whether rules send simple questions to one search without a loop.",
    )
    memory_tokens: int = Field(
        default=0,
        ge=0,
        description="The maximum tokens of a memory that is carried through max_loops passages in "
        "the order of the corpus, instead of tools; 0 for none.",
    )

    @property
    def needed_vectors(self) -> dict[str, VectorUnit]:
        """The tools and keys that need vectors, with the unit of the vectors."""
        needed: dict[str, VectorUnit] = {}
        for name in self.tools:
            unit = TOOLS[name].vectors
            if unit is not None:
                needed[name] = unit
        if self.given == "passages":
            needed["given: passages"] = "passage"
        searches = "search" in self.tools or self.given == "search"
        if searches and self.search_backend in ("hybrid", "semantic"):
            needed["search"] = "passage"
        return needed

    @property
    def uses_documents(self) -> bool:
        """Whether the preset has document tools, so that answers cite references."""
        return not DOCUMENT_TOOLS.isdisjoint(self.tools)

    @property
    def cites_documents(self) -> bool:
        """Whether answers cite references, with scores."""
        return self.uses_documents or self.given in ("search", "evidence")

    @property
    def manages_context(self) -> bool:
        """Whether a long conversation is summarized; the preset then needs the tool summarize."""
        return self.context_management and "summarize" in self.tools

    @property
    def calls_a_turn(self) -> int:
        """The maximum number of tool calls of one reply that are run."""
        return 1 if self.reproduces in ("A-RAG", "LogicalRAG") else MAX_CALLS_A_TURN

    @property
    def asks_for_form(self) -> bool:
        """Whether the answer is asked for in lines: answer, explanation, sources."""
        return self.replies != "A-RAG"

    @property
    def explains(self) -> bool:
        """Whether replies say more than a paper's: how a query was understood, and what helps."""
        return self.replies is None


def plain_preset(**keys: object) -> Preset:
    """Return the preset of a tool that no loop calls: with these keys, else plain defaults. Raises
    ValidationError for keys that no preset may have."""
    defaults = {
        "name": "plain",
        "description": "A tool by itself.",
        "tools": (),
        "prompt": "",
        "plan_first": False,
        "max_loops": 1,
        "token_budget": _MIN_BUDGET,
        "loop_guards": False,
        "max_result_tokens": DEFAULT_RESULT_TOKENS,
        "full_text": False,
        "operators": True,
        "tool_description": "full",
        "matching": "token",
        "given": "none",
    }
    return Preset.model_validate({**defaults, **keys})


PLAIN = plain_preset()
