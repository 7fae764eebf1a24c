"""Handwritten records of questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from arag_search.agent.models.base import Usage
from arag_search.agent.record import Outcome, Record, Step
from arag_search.tools.replies.parts import read_spans
from arag_search.tools.tool import Status


def search(
    *ids: str,
    text: str = "",
    tool: str = "logical_search",
    tool_input: Mapping[str, Any] | None = None,
    status: Status | None = None,
    tokens: int = 100,
) -> Step:
    """Build a step that shows these chunks, by default only their ids."""
    output = text or "\n".join(["head", *(f"[{id}]" for id in ids)])
    return Step(
        step=1,
        tool_name=tool,
        tool_input=dict(tool_input or {}),
        tool_output=output,
        reasoning="",
        status=status or ("ok" if ids else "empty"),
        hit_ids=ids,
        total_hits=len(ids),
        retrieved_tokens=tokens if ids else 0,
        result_tokens=tokens + 10,
        seconds=0.5,
        passages=read_spans(output, of_read=tool == "chunk_read"),
    )


def read(*ids: str, text: str = "", tokens: int = 100) -> Step:
    """Build a step that reads these chunks."""
    return search(*ids, text=text, tool="chunk_read", tokens=tokens)


def record(
    question_id: str,
    short: str,
    *steps: Step,
    explanation: str = "",
    status: Outcome = "answered",
    seconds: float = 2.0,
) -> Record:
    return Record(
        question_id=question_id, question="?", answer=f"Answer: {short}", answer_short=short,
        explanation=explanation, cited_ids=(), wrong_ids=(), citation=None, status=status,
        failure="ModelUnavailableError: busy" if status == "failed" else None, trajectory=steps,
        total_cost=None, loops=1, tool_usage_summary={}, chunks_read_count=0, chunks_read_ids=(),
        total_retrieved_tokens=sum(step.retrieved_tokens for step in steps),
        usage=Usage(1, 1, "endpoint"), seconds=seconds, fingerprints={},
    )  # fmt: skip
