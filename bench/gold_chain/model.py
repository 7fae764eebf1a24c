"""GoldChainModel: the policy behind the interface of language models, for use by the unchanged
agent."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from arag_search.agent.models.base import Message, ModelReply, ModelRequest, ToolCall
from arag_search.errors import ModelReplyError
from arag_search.tokens import count_tokens
from arag_search.tools.reply_text import is_refused, offers_more, passages_in
from bench.gold_chain.chain import Chain
from bench.gold_chain.policy import POLICY_VERSION, Call, ReadCall, Reply, Setting, Shown, walk


class GoldChainModel:
    """A rule-based searcher that knows the chain of each question and the evidence of its hops.

    ``chains`` are by question id. Everything else is read from the request: the model keeps nothing
    between calls. Its last reply says how many hops were found; the model does not answer
    questions.

    Raises ModelReplyError for a question without a chain, and for a history that is not its own.
    """

    name = "gold chain"

    def __init__(self, chains: Mapping[str, Chain], setting: Setting) -> None:
        self._chains = chains
        self._setting = setting

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the policy and the setting."""
        text = f"{POLICY_VERSION} {self._setting}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def reply(self, request: ModelRequest) -> ModelReply:
        """Return the next call, or the end if nothing is left to do or no tool may be called."""
        chain = self._chains.get(request.question_id)
        if chain is None:
            raise ModelReplyError(
                "The gold-chain agent does not know the chain of this question.",
                where=f"question {request.question_id}",
                allowed=f"one of {len(self._chains)} questions",
            )
        results = [message for message in request.messages if message.role == "tool"]
        steps = walk(chain, self._setting)
        try:
            call = next(steps)
            for result, made in zip(results, _calls(request.messages), strict=True):
                _check(call, made, request.question_id)
                call = steps.send(reply_of(call, result.content))
        except StopIteration as end:
            shown = sum(hop.shown for hop in end.value)
            return ModelReply(f"{shown} of {len(chain.links)} hops were found.")
        if not request.may_call:
            return ModelReply("The search was ended.")
        written = json.dumps(call.arguments, ensure_ascii=False)
        return ModelReply("", (ToolCall(f"gold-chain-{len(results) + 1}", call.tool, written),))

    def close(self) -> None:
        """Do nothing; the model holds no resources."""


def _calls(messages: tuple[Message, ...] | list[Message]) -> list[ToolCall]:
    return [call for message in messages for call in message.tool_calls]


def _check(call: Call, made: ToolCall, question_id: str) -> None:
    """Raise ModelReplyError if another call was made than this policy makes."""
    if (made.name, json.loads(made.arguments)) != (call.tool, call.arguments):
        raise ModelReplyError(
            "The history is not of this policy.", where=f"question {question_id}, {made.name}"
        )


def reply_of(call: Call, text: str) -> Reply:
    """Convert the text of a result."""
    shown = tuple(
        Shown(passage.id, count_tokens(passage.title) + count_tokens(passage.text), passage.text)
        for passage in passages_in(text, of_read=isinstance(call, ReadCall))
    )
    refused = not shown and is_refused(text)
    return Reply(shown, offers_more(text), refused, count_tokens(text))
