"""OpenAIModel: any endpoint that speaks OpenAI's chat completions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Unpack

from arag_search.agent.models.base import NO_CALL, ModelReply, ModelRequest
from arag_search.agent.models.dialect import Attempt, Dialect
from arag_search.agent.models.replies import is_other_model, read_reply, read_unread_call
from arag_search.endpoints.calls import KEY_VARIABLES, Endpoint, EndpointOptions, Request
from arag_search.endpoints.refusals import Failures, Refusal
from arag_search.errors import (
    ContextLengthError,
    ModelAccessError,
    ModelReplyError,
    ModelUnavailableError,
)

FAILURES = Failures(
    noun="model",
    access=ModelAccessError,
    unavailable=ModelUnavailableError,
    reply=ModelReplyError,
    length=ContextLengthError,
    key_variables=KEY_VARIABLES,
)


_MAX_TOKENS = "max_completion_tokens"
_TOP_LOGPROBS = 5


class OpenAIModel:
    """A model behind an OpenAI-compatible endpoint. Unless a request allows several tool calls in a
    reply, it asks for a single call, which not every endpoint honours.

    ``name`` and ``options`` are as in Endpoint. The other arguments are sent only if they are set:

    - ``temperature``: 0 to 2. ``top_p``: 0 to 1.
    - ``reasoning_effort``, ``seed``.
    - ``max_tokens``: the most tokens of a reply with its reasoning, 1 or more.

    Raises ConfigError for options that no endpoint accepts. One object serves all threads.
    ``close`` ends all waiting.
    """

    def __init__(
        self,
        name: str,
        *,
        temperature: float | None = None,
        top_p: float | None = None,
        reasoning_effort: str | None = None,
        seed: int | None = None,
        max_tokens: int | None = None,
        **options: Unpack[EndpointOptions],
    ) -> None:
        sampling = {
            "temperature": temperature,
            "top_p": top_p,
            "reasoning_effort": reasoning_effort,
            "seed": seed,
        }
        self._sampling = {option: value for option, value in sampling.items() if value is not None}
        self._bound = {} if max_tokens is None else {"max_tokens": max_tokens}
        self._endpoint = Endpoint(name, failures=FAILURES, **options)
        self.name, self.base_url = self._endpoint.name, self._endpoint.base_url
        problems = [f"max_tokens {n} (1 or more)" for n in self._bound.values() if n < 1]
        for option, value, highest in (("temperature", temperature, 2), ("top_p", top_p, 1)):
            if value is not None and not 0 <= value <= highest:
                problems.append(f"{option} {value} (0 to {highest})")
        self._endpoint.check(problems)
        self._dialect = Dialect()

    def __repr__(self) -> str:
        return f"OpenAIModel({self.name!r}, base_url={self.base_url!r})"

    @property
    def fingerprint(self) -> str:
        """SHA-256 of name, base URL and the sampling options that are set."""
        parts = {"model": self.name, "base_url": self.base_url, **self._sampling, **self._bound}
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def reply(self, request: ModelRequest) -> ModelReply:
        """Return the endpoint's reply, with as many attempts as are allowed.

        Raises ModelAccessError, ContextLengthError and ModelReplyError at once,
        ModelUnavailableError when the last attempt failed or the model is closed.
        """
        origin, position = self._endpoint.where, len(request.messages)
        attempt = Attempt(self._dialect, request, origin, _call_options(request, self._bound))

        def send(client: Any) -> Any:
            # Newer models refuse the older name, and other servers do not know the newer one.
            options = attempt.options()
            bound = {} if _MAX_TOKENS in options else self._bound
            tools = {"tools": list(request.tools)} if request.tools else {}
            options = {**self._sampling, **tools, **options, **bound}
            create: Any = client.chat.completions.with_raw_response.create
            return create(model=self.name, messages=attempt.messages(), stream=False, **options)

        def again(refusal: Refusal) -> bool:
            if refusal.unread_call is not None:
                raise _UnreadCallError(refusal)
            return attempt.again(refusal)

        def read(body: str) -> ModelReply:
            return read_reply(body, position, request.offered, origin, self._dialect.changes)

        question = f"question {request.question_id}, " if request.question_id else ""
        where = f"{question}{self._endpoint.where}"
        try:
            reply = self._endpoint.ask(Request(send, read, where, request.question_id, again=again))
        except _UnreadCallError as error:
            written, words = error.refusal.unread_call or "", error.refusal.words
            return read_unread_call(written, words, position, request.offered)
        attempt.succeed()
        hide = self._endpoint.hide  # a key in pieces is only whole once these are joined
        other = reply.other_model if is_other_model(self.name, reply.other_model) else ""
        text, reasoning = hide(reply.text), hide(reply.reasoning)
        return replace(reply, text=text, reasoning=reasoning, other_model=other)

    def close(self) -> None:
        """Free connections and end waits; a waiting call raises ModelUnavailableError."""
        self._endpoint.close()


class _UnreadCallError(Exception):
    """A refusal of a call that the model wrote, which is a reply of the model."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.words)
        self.refusal = refusal


def _call_options(request: ModelRequest, bound: Mapping[str, int]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if bound:
        options[_MAX_TOKENS] = bound["max_tokens"]
    if request.logprobs:
        options |= {"logprobs": True, "top_logprobs": _TOP_LOGPROBS}
    if request.tools and not request.parallel_calls:
        options["parallel_tool_calls"] = False
    if request.tools and request.tool_choice == NO_CALL:
        options["tool_choice"] = NO_CALL
    elif request.tools and request.tool_choice is not None:
        options["tool_choice"] = {"type": "function", "function": {"name": request.tool_choice}}
    return options
