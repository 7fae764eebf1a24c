"""Which titles a record shows, read from the texts that the model saw."""

from __future__ import annotations

import re

from arag_search.agent.record import Record, Step
from arag_search.tools.chunk_read import READ_BEFORE

_AFTER_TITLE = re.compile(r"(?:, part \d+ of \d+)?(?: \(shown before\))?$")


def shown_titles(record: Record) -> set[str]:
    """The titles of all passages that the tools showed, as they stand in the results."""
    return {title for step in record.trajectory for title in _titles(step)}


def _titles(step: Step) -> list[str]:
    """Titles stand in lines ``[id] title, part i of n``; which ids were shown is known."""
    heads = tuple(f"[{one}] " for one in step.hit_ids)
    found: list[str] = []
    if not heads:
        return found
    for line in step.tool_output.splitlines():
        head = next((one for one in heads if line.startswith(one)), None)
        if head is not None:
            title = _AFTER_TITLE.sub("", line[len(head) :])
            if title and title != READ_BEFORE:
                found.append(title)
    return found
