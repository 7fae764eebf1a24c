"""Requests to the endpoint of a model, with retries."""

from __future__ import annotations

import base64
import math
import os
import random
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypedDict, TypeVar
from urllib.parse import urlsplit

from arag_search.endpoints.refusals import (
    Failures,
    Refusal,
    Secrets,
    refusal_error,
    refusal_of,
)
from arag_search.errors import ConfigError

KEY_VARIABLES = ("ARAG_API_KEY", "OPENAI_API_KEY")
BASE_URL_VARIABLES = ("ARAG_BASE_URL", "OPENAI_BASE_URL")
OPENAI_URL = "https://api.openai.com/v1"
DEFAULT_TIMEOUT_S = 120.0
DEFAULT_MAX_RETRIES = 5
FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 30.0
MAX_REPLY_BYTES = 16 << 20  # several times the longest reply of a language model
SHORTEST_HIDDEN_KEY = 8  # in replies: keys of local servers may be words such as "none"
NO_KEY = "none"  # sent to a local server that requires no key

_PHASES = {"ConnectTimeout": "accept the connection", "WriteTimeout": "take the request"}
"""The work that was not done in time, by the name of the error; else there was no answer."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Retry:
    """A failed call that is about to be retried: after which attempt of how many, why, and when."""

    question_id: str
    attempt: int
    attempts: int
    reason: str
    wait_s: float


@dataclass(frozen=True, slots=True)
class Request(Generic[T]):
    """A request to the endpoint of a model.

    ``send`` takes openai's client and returns its raw response. ``read`` parses a body, or raises
    ValueError with what is wrong with it. ``where`` is for messages. ``is_shown`` means that the
    result may be shown or stored, so that the key is removed from it. ``again`` is called with
    each refusal, and returns whether it changed the request, which is then sent again at once.
    """

    send: Callable[[Any], Any]
    read: Callable[[str], T]
    where: str
    question_id: str = ""
    is_shown: bool = True
    again: Callable[[Refusal], bool] = lambda refusal: False


class EndpointOptions(TypedDict, total=False):
    """The options of an Endpoint that a model passes on to it."""

    base_url: str
    key: str | None
    timeout_s: float
    max_retries: int
    on_retry: Callable[[Retry], None] | None
    sleep: Callable[[float], object] | None
    chance: Callable[[], float]


class Endpoint:
    """An address that serves a model. Safe to use from several threads.

    ``name`` is the endpoint's name of the model, and ``base_url`` its address up to ``/v1``.
    ``key`` is None if a local server requires none. ``failures`` are the errors to raise.

    A call takes at most ``timeout_s`` (``BoundedClient``), and its reply has at most
    ``max_reply_bytes``. A redirect to another scheme, host or port is not followed.

    Rate limits, timeouts, statuses 408, 409, 425, 498 and 5xx and broken connections are retried up
    to ``max_retries`` times. The wait is the time in Retry-After; one above LONGEST_RETRY_AFTER_S
    fails at once. Without it, waits double from FIRST_WAIT_S to LONGEST_WAIT_S, each shortened by
    up to half at random. ``on_retry`` is called before each wait, in the waiting thread;
    ``sleep`` waits, and ``chance`` returns random numbers in [0, 1).
    """

    def __init__(
        self,
        name: str,
        *,
        failures: Failures,
        base_url: str = OPENAI_URL,
        key: str | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        max_retries: int = DEFAULT_MAX_RETRIES,
        max_reply_bytes: int = MAX_REPLY_BYTES,
        on_retry: Callable[[Retry], None] | None = None,
        sleep: Callable[[float], object] | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.name = name
        self.base_url = base_url.rstrip("/")
        self._key = (key or "").strip()
        encoded = base64.b64encode(self._key.encode("utf-8", "surrogateescape")).decode()
        self._secrets = Secrets(self._key, encoded, mark="[key]")
        self._failures = failures
        self._timeout_s = timeout_s
        self._attempts = max_retries + 1
        self._max_reply_bytes = max_reply_bytes
        self._on_retry = on_retry
        self._closed = threading.Event()
        self._sleep = sleep or self._closed.wait
        self._chance = chance
        self._client: Any = None  # created by the first call: openai takes a second to import
        self._making_client = threading.Lock()
        self._pid = 0

    @property
    def where(self) -> str:
        """The model and its address, for messages."""
        return f"{self._failures.noun} {self.name} at {self.base_url}"

    def ask(self, request: Request[T]) -> T:
        """Send a request, with retries, and return what ``read`` returns for the reply.

        Raises the errors of ``failures``: ``unavailable`` if the last attempt failed or the
        endpoint is closed, the others at once.
        """
        attempt = 1
        while True:
            if self._closed.is_set():
                raise self._failures.unavailable(
                    f"The {self._failures.noun} was closed.", where=request.where
                )
            outcome = self._attempt(request)
            if not isinstance(outcome, Refusal):
                return outcome
            if request.again(outcome):
                continue
            is_final = not outcome.retryable or outcome.asks_too_long_a_wait
            if is_final or attempt == self._attempts:
                raise refusal_error(
                    outcome,
                    self._failures,
                    where=request.where,
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

    def hide(self, text: str) -> str:
        """Return a text of a reply without the key, unless that may be a word."""
        return self._secrets.hide(text) if len(self._key) >= SHORTEST_HIDDEN_KEY else text

    def close(self) -> None:
        """Close connections and end waits; a waiting call raises ``failures.unavailable``."""
        self._closed.set()
        with self._making_client:
            if self._client is not None:
                self._client.close()

    def check(self, others: Sequence[str] = ()) -> None:
        """Raise ConfigError with all problems of base URL, name, key, timeout and retries, and with
        the problems of ``others``. It never shows the key."""
        problems = [_base_url_problem(self.base_url)]
        if not self.name.strip():
            problems.append("model '' (the endpoint's name of a model)")
        if not (self._key.isascii() and self._key.isprintable()):
            problems.append("key with characters no HTTP header may hold (printable ASCII)")
        problems += others
        if not (math.isfinite(self._timeout_s) and self._timeout_s > 0):
            problems.append(f"timeout_s {self._timeout_s} (seconds above 0)")
        if self._attempts < 1:
            problems.append(f"max_retries {self._attempts - 1} (0 or more)")
        if any(problems):
            raise ConfigError(
                f"No endpoint takes these options: {'; '.join(filter(None, problems))}."
            )

    def _attempt(self, request: Request[T]) -> T | Refusal:
        import openai

        from arag_search.endpoints.client import CONNECT_TIMEOUT_S, UnreadableReplyError

        try:
            raw = request.send(self._shared_client())
            status, body, headers = int(raw.status_code), str(raw.text), dict(raw.headers)
        except UnreadableReplyError as error:
            raise self._failures.reply(
                f"The endpoint's reply {error}.", where=request.where
            ) from None
        except openai.APIStatusError as error:
            response = error.response
            return refusal_of(response.status_code, response.text, response.headers, self._secrets)
        except openai.APITimeoutError as error:
            phase = _PHASES.get(type(error.__cause__).__name__, "answer in full")
            is_early = phase == _PHASES["ConnectTimeout"]
            limit_s = min(self._timeout_s, CONNECT_TIMEOUT_S) if is_early else self._timeout_s
            words = f"the endpoint did not {phase} within {limit_s:g} s"
            return Refusal(words=words, retryable=True)
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            words = f"{type(cause).__name__}: {cause}".rstrip(": ")
            if "CERTIFICATE_VERIFY_FAILED" in words:
                raise self._failures.access(
                    f"The certificate of the endpoint is not trusted: {cause}",
                    where=request.where,
                    do="Name a file with its authority, such as that of a proxy: "
                    "SSL_CERT_FILE=FILE.",
                ) from None
            return Refusal(words=self._secrets.hide(words), retryable=True)
        if request.is_shown:
            body = self.hide(body)
        try:
            return request.read(body)
        except ValueError as error:
            refusal = refusal_of(status, body, headers, self._secrets)
            if refusal.status != status:  # an error inside a reply with a good status
                return refusal
            what = self._secrets.hide(f"{error}: {refusal.words}")
            raise self._failures.reply(what, where=request.where) from None

    def _shared_client(self) -> Any:
        import openai

        from arag_search.endpoints.client import BoundedClient

        with self._making_client:
            if self._client is None or self._pid != os.getpid():  # a fork would share connections
                self._pid = os.getpid()
                http = BoundedClient(
                    timeout_s=self._timeout_s, max_reply_bytes=self._max_reply_bytes
                )
                weakref.finalize(self, http.close)
                self._client = openai.OpenAI(
                    api_key=self._key or NO_KEY,
                    base_url=self.base_url,
                    max_retries=0,
                    http_client=http,
                )
            return self._client

    def _wait_s(self, attempt: int, retry_after_s: float | None) -> float:
        if retry_after_s is not None:
            # Spread the threads out in time.
            return retry_after_s * (1 + 0.1 * self._chance())
        wait_s = min(FIRST_WAIT_S * 2.0 ** (attempt - 1), LONGEST_WAIT_S)
        return wait_s * (1 - 0.5 * self._chance())


def _base_url_problem(base_url: str) -> str:
    # No message shows a password.
    with_secret = "base URL with a user, password or query (scheme, host, port, path)"
    refused = f"base URL {base_url!r} (http:// or https://, host, path)"
    if any(sign in base_url for sign in "@?#"):
        refused = with_secret
    try:
        address = urlsplit(base_url)
        has_host = bool(address.hostname) and address.port != 0
    except ValueError:  # malformed brackets or port
        return refused
    if address.username or address.password or address.query or address.fragment:
        return with_secret
    is_one_word = base_url.isprintable() and " " not in base_url
    if address.scheme not in ("http", "https") or not (has_host and is_one_word):
        return refused
    return ""


def first_set(variables: Mapping[str, str], names: Sequence[str]) -> tuple[str, str]:
    """Return value and name of the first variable that is set; two empty strings if none is.

    An empty variable counts as unset.
    """
    for name in names:
        value = variables.get(name, "").strip()
        if value:
            return value, name
    return "", ""
