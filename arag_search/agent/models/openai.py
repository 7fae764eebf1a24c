"""OpenAIModel: any endpoint that speaks OpenAI's chat completions."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any, Unpack

from arag_search.agent.models.base import NO_CALL, ModelReply, ModelRequest, write_messages
from arag_search.agent.models.replies import read_reply
from arag_search.endpoints.calls import (
    KEY_VARIABLES,
    Endpoint,
    EndpointOptions,
    Request,
)
from arag_search.endpoints.refusals import Failures, Refusal, is_about
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

    ``name`` and ``options`` are those of Endpoint. ``temperature`` (0 to 2), ``top_p`` (0 to 1),
    ``reasoning_effort``, ``seed`` and ``max_tokens`` of a reply (1 or more, its reasoning included)
    are sent only if they are set.

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
        self._refused = set[str]()  # options that the endpoint says it does not have

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
        sent = dict[str, Any]()

        def send(client: Any) -> Any:
            nonlocal sent
            wanted = _call_options(request)
            sent = {name: value for name, value in wanted.items() if name not in self._refused}
            # Newer models refuse the older name, and other servers do not know the newer one.
            if self._bound and _MAX_TOKENS in self._refused:
                sent |= self._bound
            elif self._bound:
                sent[_MAX_TOKENS] = self._bound["max_tokens"]
            tools = {"tools": list(request.tools)} if request.tools else {}
            create: Any = client.chat.completions.with_raw_response.create
            messages = write_messages(request.messages)
            return create(
                model=self.name, messages=messages, stream=False, **self._sampling, **tools, **sent
            )

        def again(refusal: Refusal) -> bool:
            refused = [name for name in sent if name != "max_tokens" and is_about(refusal, name)]
            self._refused.update(refused)
            return bool(refused)

        question = f"question {request.question_id}, " if request.question_id else ""
        reply = self._endpoint.ask(
            Request(
                send,
                lambda body: read_reply(body, len(request.messages), request.offered),
                f"{question}{self._endpoint.where}",
                request.question_id,
                again=again,
            )
        )
        hide = self._endpoint.hide  # a key in pieces is only whole once these are joined
        return replace(reply, text=hide(reply.text), reasoning=hide(reply.reasoning))

    def close(self) -> None:
        """Free connections and end waits; a waiting call raises ModelUnavailableError."""
        self._endpoint.close()


def _call_options(request: ModelRequest) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if request.logprobs:
        options |= {"logprobs": True, "top_logprobs": _TOP_LOGPROBS}
    if request.tools and not request.parallel_calls:
        options["parallel_tool_calls"] = False
    if request.tools and request.tool_choice == NO_CALL:
        options["tool_choice"] = NO_CALL
    elif request.tools and request.tool_choice is not None:
        options["tool_choice"] = {"type": "function", "function": {"name": request.tool_choice}}
    return options
