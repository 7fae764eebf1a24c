"""The wording of the results of a step and the citations of an answer, wherever a record is
shown."""

from __future__ import annotations

from arag_search.agent.record import Record, Step
from arag_search.agent.refusal import is_refusal
from arag_search.tools.registry import TOOLS


def hits_text(step: Step) -> str:
    """Return in words how many passages a step found or read, or that it failed."""
    if step.status == "error":
        return "refused"
    if step.tool_name in TOOLS and TOOLS[step.tool_name].of_metadata:
        return "values listed"
    if step.references:
        count = len(step.references)
        return f"{count} documents" if count != 1 else "1 document"
    if step.tool_name == "summarize":
        return "context freed"
    shown = len(step.hit_ids)
    if step.total_hits is None:
        return f"{shown} {'read' if step.is_read else 'nearest'}"
    total = f"{step.total_hits:,}"
    if not step.total_is_exact:
        total = f"more than {total}"
    return f"{shown} of {total} hits"


def citation_warning(record: Record) -> str:
    """Return what is wrong with the citations of an answer; the text is empty if nothing is wrong,
    or if the answer is a refusal."""
    if record.citation == "wrong":
        warning = f"Wrongly cited, never shown to the model: {', '.join(record.wrong_ids)}."
        if record.invented_ids:
            warning += f"\nNo passage has these ids: {', '.join(record.invented_ids)}."
        return warning
    if record.citation == "uncited" and not is_refusal(record.answer_short):
        return "Uncited: the answer names no passage that it rests on."
    return ""
