"""OpenAIModel: any endpoint that speaks OpenAI's chat completions."""

from __future__ import annotations

import hashlib
import json
import math
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from arag_search.agent.models.base import ModelReply, ModelRequest
from arag_search.agent.models.refusals import Refusal, is_about, refusal_error, refusal_of
from arag_search.agent.models.wire import read_reply, write_messages
from arag_search.errors import ConfigError, ModelReplyError, ModelUnavailableError

OPENAI_URL = "https://api.openai.com/v1"
DEFAULT_TIMEOUT_S = 120.0
DEFAULT_MAX_RETRIES = 5
FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 30.0
LONGEST_RETRY_AFTER_S = 120.0
CONNECT_TIMEOUT_S = 10.0
NO_KEY = "none"  # what a local server that wants no key is sent


@dataclass(frozen=True, slots=True)
class Retry:
    """A call that failed and is made again: after which attempt of how many, why, and when."""

    question_id: str
    attempt: int
    attempts: int
    reason: str
    wait_s: float


class OpenAIModel:
    """A model behind an OpenAI-compatible endpoint, one tool call a reply where the endpoint
    listens.

    ``name`` is the endpoint's name of the model, ``base_url`` its address up to ``/v1``, ``key``
    None where a local server wants none. Of ``temperature`` (0 to 2), ``top_p`` (0 to 1),
    ``reasoning_effort`` and ``seed`` only those that are set are sent.

    Rate limits, time-outs (``timeout_s`` without a byte), statuses 408, 409, 425 and 5xx and cut
    connections are tried again up to ``max_retries`` times: after what Retry-After says, at most
    LONGEST_RETRY_AFTER_S, else after waits that double from FIRST_WAIT_S to LONGEST_WAIT_S, cut by
    up to half at random. ``on_retry`` is told of each, in the thread that waits; ``sleep`` waits,
    and ``chance`` gives random numbers of [0, 1).

    Raises ConfigError for options that no endpoint takes. One object serves all threads. ``close``
    ends waits.
    """

    def __init__(
        self,
        name: str,
        *,
        base_url: str = OPENAI_URL,
        key: str | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        reasoning_effort: str | None = None,
        seed: int | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        max_retries: int = DEFAULT_MAX_RETRIES,
        on_retry: Callable[[Retry], None] | None = None,
        sleep: Callable[[float], object] | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        sampling = {
            "temperature": temperature,
            "top_p": top_p,
            "reasoning_effort": reasoning_effort,
            "seed": seed,
        }
        self.name = name
        self.base_url = base_url.rstrip("/")
        self._key = (key or "").strip()
        self._sampling = {option: value for option, value in sampling.items() if value is not None}
        self._attempts = max_retries + 1
        self._check(timeout_s, max_retries)
        self._on_retry = on_retry
        self._closed = threading.Event()
        self._sleep = sleep or self._closed.wait
        self._chance = chance
        self._one_call_option = True  # until the endpoint says that it has no such option

        self._timeout_s = timeout_s
        self._client: Any = None  # made by the first call: openai takes a second to import
        self._making_client = threading.Lock()

    def __repr__(self) -> str:
        return f"OpenAIModel({self.name!r}, base_url={self.base_url!r})"

    @property
    def fingerprint(self) -> str:
        """SHA-256 of name, base URL and the sampling options that are set."""
        parts = {"model": self.name, "base_url": self.base_url, **self._sampling}
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def reply(self, request: ModelRequest) -> ModelReply:
        """The endpoint's reply, after as many attempts as are allowed.

        Raises ModelAccessError, ContextLengthError and ModelReplyError at once,
        ModelUnavailableError when the last attempt failed or the model is closed.
        """
        attempt = 1
        while True:
            if self._closed.is_set():
                raise ModelUnavailableError("The model was closed.", where=self._where(request))
            asked_for_one_call = bool(request.tools) and self._one_call_option
            outcome = self._attempt(request, asked_for_one_call)
            if isinstance(outcome, ModelReply):
                return outcome
            if asked_for_one_call and is_about(outcome, "parallel_tool_calls"):
                self._one_call_option = False
                continue
            if not outcome.passing or attempt == self._attempts:
                raise refusal_error(
                    outcome,
                    where=self._where(request),
                    model=self.name,
                    base_url=self.base_url,
                    has_key=bool(self._key),
                    attempts=attempt,
                )
            wait_s = self._wait_s(attempt, outcome.retry_after_s)
            if self._on_retry is not None:
                self._on_retry(
                    Retry(request.question_id, attempt, self._attempts, outcome.words, wait_s)
                )
            self._sleep(wait_s)
            attempt += 1

    def close(self) -> None:
        """Free connections and end waits; a call that waits raises ModelUnavailableError."""
        self._closed.set()
        with self._making_client:
            if self._client is not None:
                self._client.close()

    def _attempt(self, request: ModelRequest, ask_for_one_call: bool) -> ModelReply | Refusal:
        import openai

        options: dict[str, Any] = dict(self._sampling)
        if request.tools:
            options["tools"] = list(request.tools)
            if ask_for_one_call:
                options["parallel_tool_calls"] = False
        create: Any = self._opened().chat.completions.with_raw_response.create
        try:
            raw: Any = create(model=self.name, messages=write_messages(request.messages), **options)
            status, body, headers = int(raw.status_code), str(raw.text), dict(raw.headers)
        except openai.APIStatusError as error:
            response = error.response
            return refusal_of(response.status_code, response.text, response.headers, self._key)
        except openai.APITimeoutError:
            return Refusal(words="the endpoint did not answer in time", passing=True)
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            return Refusal(words=f"{type(cause).__name__}: {cause}".rstrip(": "), passing=True)
        try:
            return read_reply(body, len(request.messages))
        except ValueError as error:
            refusal = refusal_of(status, body, headers, self._key)
            if refusal.status != status:  # an error in the clothes of a reply
                return refusal
            raise ModelReplyError(f"{error}: {refusal.words}", where=self._where(request)) from None

    def _opened(self) -> Any:
        """The one client of all threads."""
        import openai

        with self._making_client:
            if self._client is None:
                self._client = openai.OpenAI(
                    api_key=self._key or NO_KEY,
                    base_url=self.base_url,
                    timeout=openai.Timeout(
                        self._timeout_s, connect=min(self._timeout_s, CONNECT_TIMEOUT_S)
                    ),
                    max_retries=0,
                )
            return self._client

    def _wait_s(self, attempt: int, retry_after_s: float | None) -> float:
        if retry_after_s is not None:
            # Not all threads at the same instant.
            return min(retry_after_s * (1 + 0.1 * self._chance()), LONGEST_RETRY_AFTER_S)
        wait_s = min(FIRST_WAIT_S * 2.0 ** (attempt - 1), LONGEST_WAIT_S)
        return wait_s * (1 - 0.5 * self._chance())

    def _where(self, request: ModelRequest) -> str:
        question = f"question {request.question_id}, " if request.question_id else ""
        return f"{question}model {self.name} at {self.base_url}"

    def _check(self, timeout_s: float, max_retries: int) -> None:
        """Raise ConfigError with every option that no endpoint takes. Never shows the key."""
        problems: list[str] = []
        if problem := _base_url_problem(self.base_url):
            problems.append(problem)
        if not self.name.strip():
            problems.append("model '' (the endpoint's name of a model)")
        if not (self._key.isascii() and self._key.isprintable()):
            problems.append("key with characters no HTTP header may hold (printable ASCII)")
        for option, highest in (("temperature", 2.0), ("top_p", 1.0)):
            value = self._sampling.get(option)
            if value is not None and not 0 <= float(value) <= highest:
                problems.append(f"{option} {value} (0 to {highest:g})")
        if not (math.isfinite(timeout_s) and timeout_s > 0):
            problems.append(f"timeout_s {timeout_s} (seconds above 0)")
        if max_retries < 0:
            problems.append(f"max_retries {max_retries} (0 or more)")
        if problems:
            raise ConfigError("No endpoint takes these options: " + "; ".join(problems) + ".")


def _base_url_problem(base_url: str) -> str:
    """What is wrong with a base URL; empty where nothing is. Never shows a password."""
    refused = f"base URL {base_url!r} (http:// or https://, host, path)"
    with_secret = "base URL with a user, password or query (scheme, host, port, path)"
    try:
        address = urlsplit(base_url)
        has_host = bool(address.hostname) and address.port != 0
    except ValueError:  # brackets or a port that are none
        return refused if "@" not in base_url else with_secret
    if address.username or address.password or address.query or address.fragment:
        return with_secret
    is_one_word = base_url.isprintable() and " " not in base_url
    if address.scheme not in ("http", "https") or not (has_host and is_one_word):
        return refused
    return ""
