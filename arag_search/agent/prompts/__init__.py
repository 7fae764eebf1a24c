"""The prompts, one file each, and the code that assembles them."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from arag_search.tools.descriptions import with_features
from arag_search.tools.preset import Preset
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


def system_prompt(preset: Preset) -> str:
    """Return the first message of every question. The part about tools is left out if there are
    none. A prompt of this package may have parts for single tools, in the notation of tool
    descriptions."""
    text = prompt_text(preset.prompt)
    if preset.prompt in SYSTEM_PROMPTS:
        text = with_features(text, {tool: tool in preset.tools for tool in TOOLS})
    parts = [text]
    if preset.tools and preset.plan_first:
        parts.append(prompt_text("plan"))
    if preset.asks_for_form and preset.cites_documents:
        parts.append(prompt_text("answer_form_scored"))
    elif preset.asks_for_form and preset.tools:
        budget = f"{preset.max_loops} tool calls"
        if (calls := preset.calls_a_turn) > 1:
            budget = f"{preset.max_loops} turns of tool calls, up to {calls} calls in each"
        parts.append(prompt_text("answer_form").replace("{budget}", budget))
    return "\n\n".join(parts)
