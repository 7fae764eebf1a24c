"""Reasons to distrust a record: the version that wrote it did not store some data, or misread
it.

Records of the current version store the spans of passages in replies. For older records, the spans
are parsed from the texts, in which a line of a passage may look like a line of a tool. The answers
of older records were parsed by other rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from arag_search.agent.answers import parse_answer
from arag_search.agent.models.base import MAX_USAGE_TOKENS
from arag_search.agent.record import Record, Step
from arag_search.tokens import CUT_MARK
from arag_search.tools.reply_text import is_told_apart, shown_tokens

_NAMED = 3


def trust_notes(older: int, doubts: Mapping[str, Sequence[str]]) -> list[str]:
    """Return notes on records that cannot be trusted, for readers of the figures; the first few
    are named."""
    notes: list[str] = []
    if older:
        records = "1 record is" if older == 1 else f"{older:,} records are"
        notes.append(
            f"{records} of an older version: where passages are is read from the text of replies, "
            "and whether an answer was cut off is not known."
        )
    for id, reasons in list(doubts.items())[:_NAMED]:
        notes.append(f"The record of {id} cannot be trusted: {'; '.join(reasons)}.")
    if len(doubts) > _NAMED:
        notes.append(
            f"Nor can {len(doubts) - _NAMED:,} more records (arag-search score --json names them)."
        )
    return notes


def doubts_of(record: Record) -> tuple[str, ...]:
    """Return why figures of this record may be wrong; nothing if there is no reason to think
    so."""
    doubts = [doubt for step in record.trajectory for doubt in _step_doubts(step)]
    highest = MAX_USAGE_TOKENS * (record.loops + len(record.trajectory) + 1)
    usage = (record.usage.prompt_tokens, record.usage.completion_tokens)
    if not all(0 <= tokens <= highest for tokens in usage):
        doubts.append("its usage and cost: no model takes so many tokens")
    if record.is_read_from_text:
        doubts += _answer_doubts(record)
    return tuple(doubts)


def _step_doubts(step: Step) -> list[str]:
    """Return the doubts about the passages of a step without stored spans."""
    if step.passages is not None:
        return []
    spans = step.spans()
    doubts: list[str] = []
    if not is_told_apart(step.tool_output, spans):
        doubts.append("several lines could begin the same passage")
    elif shown_tokens(step.tool_output, spans) != step.retrieved_tokens:
        doubts.append("the passages found have other tokens than the tool counted")
    if any(span.title.endswith(CUT_MARK) for span in spans):
        doubts.append("a title is cut, by which it is not found")
    return [f"its evidence: in step {step.step} {doubt}" for doubt in doubts]


def _answer_doubts(record: Record) -> list[str]:
    """Return what the current rules parse differently in the answer."""
    if record.status == "failed":
        return []
    shown = {id for step in record.trajectory for id in step.hit_ids}
    answer = parse_answer(record.answer, shown)
    doubts: list[str] = []
    if set(answer.wrong_ids) != set(record.wrong_ids) or set(answer.cited_ids) != set(
        record.cited_ids
    ):
        named = ", ".join(answer.wrong_ids) or "none"
        doubts.append(f"its citations: by today's rules those never shown are {named}")
    if answer.short != record.answer_short:
        doubts.append(f"its short answer: by today's rules it is {answer.short!r}")
    return doubts
