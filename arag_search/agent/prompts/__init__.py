"""The prompts, one file each, and the code that assembles them."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

SYSTEM_PROMPTS = (
    "arag",
    "logical_read",
    "logicalrag",
    "agentic_hybrid",
    "naive_rag",
    "direct_answer",
    "agentic_rag",
    "agentic_logical",
    "single_shot",
    "pi_serini",
)
"""The prompts that a preset may name; the other files are parts that the loop adds."""


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
    with_tools: bool,
    max_loops: int,
    calls_a_turn: int = 1,
    scored: bool = False,
    confidence: bool = False,
) -> str:
    """Return the first message of a question. The part about tools is left out if there are none.
    With ``scored``, the message asks for documents with scores as sources; with ``confidence``, for
    how sure the model is of its answer."""
    parts = [prompt_text(name)]
    if with_tools and plan_first:
        parts.append(prompt_text("plan"))
    if scored:
        parts.append(prompt_text("answer_form_scored"))
    elif with_tools:
        budget = f"{max_loops} tool calls"
        if calls_a_turn > 1:
            budget = f"{max_loops} turns of tool calls, up to {calls_a_turn} calls in each"
        parts.append(prompt_text("answer_form").replace("{budget}", budget))
    if confidence:
        parts.append(prompt_text("confidence"))
    return "\n\n".join(parts)
