"""The prompts, one file each, and the code that assembles them."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from pathlib import Path

import orjson

from arag_search.tools.descriptions import with_features
from arag_search.tools.preset import SYSTEM_PROMPTS, Preset
from arag_search.tools.registry import TOOLS

REPLIES_VERSION = 6
"""The version of replies: increase it when tools answer the same call, or describe themselves,
differently."""

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


def preset_fingerprint(preset: Preset) -> str:
    """Return name and hash, which are equal for two presets with the same requests to a model. The
    hash leaves out the description and the place of the prompt, and includes the version of the
    replies."""
    keys = preset.model_dump(mode="json", exclude={"description", "prompt"})
    for key, field in type(preset).model_fields.items():
        if not field.is_required() and getattr(preset, key) == field.default:
            del keys[key]
    keys["replies"] = REPLIES_VERSION
    keys["system_prompt"] = system_prompt(preset)
    digest = hashlib.sha256(orjson.dumps(keys, option=orjson.OPT_SORT_KEYS)).hexdigest()
    return f"{preset.name}-{digest[:16]}"
