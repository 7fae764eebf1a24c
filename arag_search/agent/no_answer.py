"""Replies of a model that are no answer, with a sentence on each and advice on what to do."""

from __future__ import annotations

from arag_search.agent.models.base import REFUSED, UNNAMED, ModelReply, Verdict
from arag_search.errors import ModelReplyError

_CUT_OFF = {
    "length": "it reached the token limit of a reply",
    "content_filter": "the endpoint's content filter withheld the rest",
    UNNAMED: "it stops within a sentence, and the endpoint names no finish reason",
}
_NO_ANSWER: dict[Verdict, tuple[str, str, str]] = {
    "calls": (
        "a tool call where only an answer was left",
        "",
        "Try another model, or allow more turns (max_loops of the preset).",
    ),
    "thoughts": (
        "thoughts and no answer",
        "",
        "Allow the model longer replies, or switch its thoughts off.",
    ),
    "unread call": (
        "a tool call that this server left in the text",
        "calls that the server reads, <tool_call> with JSON, and the JSON of one call",
        "Start it with a tool parser for this model (vLLM: --tool-call-parser).",
    ),
}
"""For each kind of reply that is no answer: its description, what is allowed, and what to do."""
_NOTHING = ("neither text nor a tool call", "", "Try another model, or other settings of it.")


def no_answer_error(reply: ModelReply, model: str, turn: int) -> ModelReplyError:
    """Return the error for a second reply that is neither an answer nor a call that may be made."""
    what, allowed, do = _NO_ANSWER.get(reply.verdict, _NOTHING)
    if reply.problem:
        what, allowed = f"a tool call that the server refused ({reply.problem})", ""
        do = "Try another model, or other settings of it."
    cut_off = "" if reply.cut is None else f"; {_cut_off(reply.cut)}"
    return ModelReplyError(
        f"The model replied twice with {what}{cut_off}.",
        where=f"model {model}, turn {turn}",
        allowed=allowed,
        do=do,
    )


def cut_off_error(reply: ModelReply, model: str) -> ModelReplyError:
    """Return the error for an answer that is incomplete, or a refusal of the model."""
    what = f"The answer was cut off: {_cut_off(reply.cut or '')}."
    do = "Allow the model longer replies"
    if reply.cut == REFUSED:
        what, do = f"The model refused to answer: {reply.text[:200]!r}.", "Ask in other words"
    return ModelReplyError(
        what,
        where=f"model {model}, finish reason {reply.cut}",
        do=f"{do}, or try another model.",
    )


def _cut_off(ending: str) -> str:
    return _CUT_OFF.get(ending, f"it ended with {ending[:80]!r}")
