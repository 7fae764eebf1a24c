"""The prompts, one file each, and the code that assembles them."""

from __future__ import annotations

from collections.abc import Collection
from importlib.resources import files
from pathlib import Path

from arag_search.tools.index_description import with_features
from arag_search.tools.registry import TOOLS

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

PASSAGES_ABOVE = "Passages:\n"
QUESTION_BELOW = "\n\nQuestion: "
"""The headings of a message with passages above the question (A-RAG's Naive RAG)."""


def prompt_text(name: str) -> str:
    """Return the text of a prompt: one of this package, or a file with a path that ends in
    ``.md``."""
    if name.endswith(".md"):
        return Path(name).read_text("utf-8").strip()
    return files(__name__).joinpath(f"{name}.md").read_text("utf-8").strip()


def system_prompt(
    name: str,
    *,
    plan_first: bool,
    tools: Collection[str],
    max_loops: int,
    calls_a_turn: int = 1,
    scored: bool = False,
    answer_form: bool = True,
) -> str:
    """Return the first message of a question. The part about tools is left out if there are none.
    With ``scored``, the message asks for documents with scores as sources; without ``answer_form``,
    for no form of the answer. A prompt of this package may have parts for single tools, in the
    notation of tool descriptions."""
    text = prompt_text(name)
    if name in SYSTEM_PROMPTS:
        text = with_features(text, {tool: tool in tools for tool in TOOLS})
    parts = [text]
    if tools and plan_first:
        parts.append(prompt_text("plan"))
    if not answer_form:
        return "\n\n".join(parts)
    if scored:
        parts.append(prompt_text("answer_form_scored"))
    elif tools:
        budget = f"{max_loops} tool calls"
        if calls_a_turn > 1:
            budget = f"{max_loops} turns of tool calls, up to {calls_a_turn} calls in each"
        parts.append(prompt_text("answer_form").replace("{budget}", budget))
    return "\n\n".join(parts)
