"""The refusals of endpoints, and the errors that we raise for them."""

from __future__ import annotations

import base64
import email.utils
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast
from urllib.parse import unquote

from arag_search.errors import AragError

MAX_WORDS = 300  # characters of the endpoint's own words in a message
_RETRYABLE_STATUSES = frozenset({408, 409, 425, 429})
_KEY_STATUSES = frozenset({401, 403})
_PAYMENT_CODES = frozenset({"insufficient_quota", "billing_not_active"})
_MODEL_CODES = frozenset({"model_not_found", "invalid_model"})
_MODEL_WORDS = ("is not a valid model",)
_KEY_WORDS = ("api key not valid", "invalid api key", "incorrect api key")
# How compatible servers say that a request is too long, in lower case.
_LENGTH_WORDS = (
    "context_length_exceeded",
    "exceed_context_size",
    "maximum context length",
    "maximum model length",
    "model's context length",
    "context length exceeded",
    "exceeds the context length",
    "exceeds context length",
    "available context size",
    "context window",
    "context limit",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "maximum number of tokens allowed",
    "reduce the length of the messages",
    "`max_new_tokens` must be <=",
    "tokens per request",
    "maximum allowed batch size",
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why there is no reply. ``status`` is 0 if the endpoint did not answer;
    ``retryable`` means that another attempt may succeed, after ``retry_after_s`` seconds if the
    endpoint says so."""

    words: str
    retryable: bool
    status: int = 0
    code: str = ""
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """The errors to raise for a kind of endpoint, the noun for what it serves, and the environment
    variables with its key."""

    noun: str
    access: type[AragError]
    unavailable: type[AragError]
    reply: type[AragError]
    length: type[AragError]
    key_variables: tuple[str, ...]


def refusal_of(status: int, body: str, headers: Mapping[str, str], secrets: Secrets) -> Refusal:
    """Return the refusal in a response, in the endpoint's words without the secrets.

    If the body holds an error with its own status, as gateways wrap them, that status counts.
    """
    words, code = body, ""
    try:
        content: object = json.loads(body)
    except (ValueError, RecursionError):
        content = None
    if isinstance(content, dict):
        fields = cast(dict[str, object], content)
        inner = fields.get("error")
        if isinstance(inner, dict):
            fields = cast(dict[str, object], inner)
        elif isinstance(inner, str):
            fields = {"message": inner, **fields}
        raw_code = fields.get("code") or fields.get("type") or ""
        code = str(raw_code)
        if status < 400 and type(raw_code) is int and 400 <= raw_code < 600:
            status = raw_code
        message = fields.get("message") or fields.get("detail")
        if message:
            is_text = isinstance(message, str)
            words = message if is_text else json.dumps(message, ensure_ascii=False)
    if 300 <= status < 400:
        words = unquote(_location(headers))
    retryable = (status in _RETRYABLE_STATUSES or status >= 500) and code not in _PAYMENT_CODES
    return Refusal(
        words=_shown(words, secrets) or "no explanation",
        retryable=retryable and not _is_too_long(code, words),
        status=status,
        code=secrets.hide(code),
        retry_after_s=_retry_after_s(headers),
    )


def is_about(refusal: Refusal, option: str) -> bool:
    """Return whether the endpoint refuses an option, by its name."""
    return refusal.status in (400, 422) and option in refusal.words


def refusal_error(
    refusal: Refusal,
    failures: Failures,
    *,
    where: str,
    model: str,
    base_url: str,
    has_key: bool,
    attempts: int,
) -> AragError:
    """Return the error to raise for a refusal that is not retried."""
    status, words = refusal.status, refusal.words
    if refusal.retryable:
        tries = "1 attempt" if attempts == 1 else f"{attempts} attempts"
        shown = f"status {status}: {words}" if status else words
        advice = {
            0: f"Check that {base_url} is the right address, or try again later.",
            429: "Try again later, or with fewer workers.",
        }
        return failures.unavailable(
            f"The endpoint gave no reply in {tries} ({shown}).",
            where=where,
            do=advice.get(status, "Try again later."),
        )
    if 300 <= status < 400:
        return failures.access(
            f"The endpoint redirects to another address (status {status}): {words}",
            where=where,
            allowed="redirects within one scheme, host and port",
            do="Make that address the base URL, if questions and passages may go there.",
        )
    if status == 413 or _is_too_long(refusal.code, words):
        return failures.length(f"The request is too long for the model: {words}", where=where)
    if status in _KEY_STATUSES or _says(words, _KEY_WORDS):
        refused = "refused the key" if has_key else "requires a key"
        return failures.access(
            f"The endpoint {refused} (status {status}): {words}",
            where=where,
            do=f"Set {' or '.join(failures.key_variables)} to a key that {base_url} accepts.",
        )
    if status == 402 or refusal.code in _PAYMENT_CODES:
        return failures.access(
            f"The endpoint requires payment (status {status}): {words}", where=where
        )
    if status == 404 or refusal.code in _MODEL_CODES or _says(words, _MODEL_WORDS):
        return failures.access(
            f"The endpoint does not know model {model!r} (status {status}): {words}",
            where=where,
            do=f"Name a model that {base_url} serves, or correct the base URL "
            "(it often ends in /v1).",
        )
    return failures.reply(
        f"The endpoint refused the request (status {status}): {words}", where=where
    )


def _is_too_long(code: str, words: str) -> bool:
    return _says(f"{code} {words}", _LENGTH_WORDS)


def _says(words: str, phrases: tuple[str, ...]) -> bool:
    lowered = words.lower()
    return any(phrase in lowered for phrase in phrases)


def _shown(words: str, secrets: Secrets) -> str:
    """Return the words in one line, without the secrets, cut to MAX_WORDS."""
    words = " ".join(secrets.hide(words).split())
    return words if len(words) <= MAX_WORDS else words[: MAX_WORDS - 3] + "..."


def _location(headers: Mapping[str, str]) -> str:
    """Return where a redirect leads, without possible secrets: user, password and query."""
    target = headers.get("location", "").partition("?")[0].partition("#")[0]
    scheme, slashes, rest = target.rpartition("//")
    authority, slash, path = rest.partition("/")
    return f"{scheme}{slashes}{authority.rpartition('@')[2]}{slash}{path}"


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds after which the endpoint asks for a retry; None if it does not say.

    Retry-After is a number of seconds or a date; ``retry-after-ms`` is more exact if present.
    """
    for header, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(header)
        if value is None:
            continue
        try:
            seconds = float(value) * unit_s
        except ValueError:
            try:
                seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
            except (ValueError, OverflowError):
                continue
        if seconds == seconds:  # not NaN
            return max(seconds, 0.0)
    return None


# Keys and passwords, removed from what servers say before it is shown or stored


_SHORTEST_SECRET = 4  # anything shorter occurs in every text


class Secrets:
    """Values that no text may show, as they are and as JSON has them. Values of fewer than 4
    characters are ignored.

    ``mark`` replaces them.
    """

    def __init__(self, *values: str, mark: str) -> None:
        long = [value for value in values if len(value) >= _SHORTEST_SECRET]
        self._forms = [form for value in long for form in (json.dumps(value)[1:-1], value)]
        self._mark = mark

    @classmethod
    def of_login(cls, username: str, password: str) -> Secrets:
        """Return the secrets of HTTP's Basic authentication, which sends them in base64."""
        login = f"{username}:{password}" if password else ""
        return cls(login, base64.b64encode(login.encode()).decode(), password, mark="[password]")

    def hide(self, text: str) -> str:
        """Return the text without the secrets."""
        for form in self._forms:
            text = text.replace(form, self._mark)
        return text
