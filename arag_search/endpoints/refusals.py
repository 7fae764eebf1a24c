"""The refusals of endpoints, and the errors that we raise for them."""

from __future__ import annotations

import base64
import email.utils
import json
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast
from urllib.parse import unquote

from arag_search.errors import AragError
from arag_search.system.progress import duration

LONGEST_RETRY_AFTER_S = 120.0
MAX_WORDS = 300  # characters of the endpoint's own words in a message
_RETRYABLE_STATUSES = frozenset({408, 409, 425, 429, 498})  # 498: no room for Groq's flex tier
_KEY_STATUSES = frozenset({401, 403})
_ITEM_STATUSES = frozenset({400, 413, 422})
_NOT_FINITE = re.compile(r"\bnan\b|not[- ]finite|non-finite", re.IGNORECASE)
_SAME_REFUSALS = 4
_PAYMENT_CODES = frozenset({"insufficient_quota", "billing_not_active"})
_MODEL_CODES = frozenset({"model_not_found", "invalid_model"})
_MODEL_WORDS = ("is not a valid model",)
_KEY_WORDS = ("api key not valid", "invalid api key", "incorrect api key")
_LENGTH_STATUSES = frozenset({400, 413, 422, 500})
_PROMPT = re.compile(
    r"context|prompt|\binputs?\b|\bmessages\b|batch size|tokens per request"
    r"|request(?:ed)? (?:token|exceed|is too)"
)
_LIMIT = re.compile(
    r"exceed|too (?:long|large|many)|longer than|overflow|maximum|limit|window|range of|<="
    r"|per request"
)
_UNREAD_CALL = re.compile(
    r"tool_use_failed|error parsing tool call|tool call validation failed"
    r"|failed to parse (?:the )?(?:tool call|input at pos)|invalid sequence as part of tooluse",
    re.IGNORECASE,
)
"""What servers say of a call of their own model: Groq, Ollama, llama.cpp and Bedrock."""
_PARAMETER = re.compile(r"['\"`](?!messages\[\d+\]\.content)\w+[\[.][^'\"`]*['\"`]")
"""A quoted part of a request that is not its text, such as 'tools[1].function.description'."""
_OWN_PARAMETERS = ("", "messages", "prompt", "input", "inputs")
"""What ``param`` is in errors about the text of a request."""
_STATUS_OF_CODE = {
    "server_error": 500,
    "internal_server_error": 500,
    "internal_error": 500,
    "api_error": 500,
    "bad_gateway": 502,
    "service_unavailable": 503,
    "overloaded_error": 503,
    "overloaded": 503,
    "unavailable": 503,
    "timeout": 504,
    "timeout_error": 504,
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "resource_exhausted": 429,
    "too_many_requests": 429,
    "insufficient_quota": 429,
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "model_not_found": 404,
    "not_found_error": 404,
}
"""The statuses that go with the names of errors, for endpoints that send errors with status 200."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why there is no reply.

    - ``status``: 0 if the endpoint did not answer.
    - ``retryable``: whether another attempt may succeed, after ``retry_after_s`` seconds if given.
    - ``codes``: all names that the endpoint gives the error.
    - ``param``: the argument that the endpoint finds wrong. ``whole``: all of its text.
    - ``is_too_long``: the request does not fit. ``is_not_finite``: the model computed no number.
    - ``unread_call``: the text that the server could not read as a call, empty if it does not say.
      None: there was no such call.
    """

    words: str
    retryable: bool
    status: int = 0
    codes: frozenset[str] = frozenset()
    retry_after_s: float | None = None
    param: str = ""
    whole: str = ""
    is_too_long: bool = False
    unread_call: str | None = None
    is_not_finite: bool = False

    @property
    def asks_too_long_a_wait(self) -> bool:
        """Whether the endpoint asks for a longer wait than a command takes upon itself."""
        return self.retry_after_s is not None and self.retry_after_s > LONGEST_RETRY_AFTER_S


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


class ItemRefusals:
    """The last outcomes of requests for a single item each. Refusals in the same words in a row are
    a fault of all requests, not of the items. Safe to use from several threads."""

    def __init__(self) -> None:
        self.has_answer = False
        self._lock = threading.Lock()
        self._words = ""
        self._count = 0

    def add(self, words: str) -> bool:
        """Note the words of a refusal, "" for an answer. Return whether every fourth item in a row
        was now refused in the same words."""
        with self._lock:
            self.has_answer = self.has_answer or not words
            self._count = self._count + 1 if words == self._words else 1
            self._words = words
            return bool(words) and self._count % _SAME_REFUSALS == 0


def refusal_of(status: int, body: str, headers: Mapping[str, str], secrets: Secrets) -> Refusal:
    """Return the refusal in a response, in the endpoint's words without the secrets.

    If the status is good, an error in the body decides: its own status, as gateways wrap them, or
    its name.
    """
    try:
        content: object = json.loads(body.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        content = None
    error = _error_in(content)
    codes = frozenset(
        str(value).lower()
        for key in ("code", "type", "status")
        if (value := error.get(key)) and isinstance(value, str | int)
    )
    if status < 400:
        meant = [known for known in map(_status_of, sorted(codes)) if known]
        status = meant[0] if meant else status
    words = _words_of(error) or body
    if 300 <= status < 400:
        words = unquote(_location(headers))
    whole = f"{words} {body}"
    param = str(error.get("param") or "")
    is_too_long = _is_too_long(status, param, f"{' '.join(codes)} {whole}".lower())
    is_not_finite = status == 500 and bool(_NOT_FINITE.search(whole))
    waits = (status in _RETRYABLE_STATUSES or status >= 500) and not codes & _PAYMENT_CODES
    return Refusal(
        words=_shown(words, secrets) or "no explanation",
        retryable=waits and not (is_too_long or is_not_finite),
        status=status,
        codes=frozenset(map(secrets.hide, codes)),
        retry_after_s=_retry_after_s(headers, error),
        param=param,
        whole=secrets.hide(whole),
        is_too_long=is_too_long,
        unread_call=_unread_call(error, words, whole, secrets),
        is_not_finite=is_not_finite,
    )


def fields_of(value: object) -> Mapping[str, object]:
    """Return a JSON object; an empty one for anything else."""
    return cast(dict[str, object], value) if isinstance(value, dict) else {}


def items_of(value: object) -> list[object]:
    """Return a JSON list; an empty one for anything else."""
    return cast(list[object], value) if isinstance(value, list) else []


def _error_in(content: object) -> Mapping[str, object]:
    """Return the fields of the error in a body. They are its own, the fields of its first choice,
    or the fields of the body. They are empty if the body is no JSON object, nor a list with one."""
    fields = fields_of(next(iter(items_of(content)), content))
    choices = items_of(fields.get("choices"))
    if not fields.get("error") and choices and isinstance(choices[0], dict):
        fields = fields_of(cast(object, choices[0]))
    inner = fields.get("error")
    if isinstance(inner, str):
        return {"message": inner, **fields}
    return fields_of(cast(object, inner)) if isinstance(inner, dict) else fields


def _unread_call(
    error: Mapping[str, object], words: str, whole: str, secrets: Secrets
) -> str | None:
    if _UNREAD_CALL.search(whole) is None:
        return None
    written = error.get("failed_generation")
    quoted = words.partition("raw='")[2].rpartition("', err=")[0]
    return secrets.hide(written if isinstance(written, str) else quoted)


def _status_of(code: str) -> int:
    """Return the status that the code of an error means; 0 for none."""
    if code.isdecimal() and len(code) == 3:
        return int(code) if code >= "400" else 0
    return _STATUS_OF_CODE.get(code, 0)


def _words_of(error: Mapping[str, object]) -> str:
    # Behind a gateway's message stands what the provider said.
    message = error.get("message") or error.get("detail")
    words = message if isinstance(message, str) else ""
    if message and not words:
        words = json.dumps(message, ensure_ascii=False)
    metadata = fields_of(error.get("metadata"))
    raw, provider = metadata.get("raw"), metadata.get("provider_name")
    if isinstance(raw, str) and raw:
        try:
            inner = _words_of(_error_in(json.loads(raw)))
        except (ValueError, RecursionError):
            inner = ""
        named = f" ({provider})" if isinstance(provider, str) else ""
        words = f"{words}{named}: {inner or raw}"
    return words


def is_about(refusal: Refusal, option: str) -> bool:
    """Return whether the endpoint refuses an option, by its name anywhere in the error."""
    is_named = re.search(rf"(?<!\w){re.escape(option)}(?!\w)", f"{refusal.param} {refusal.whole}")
    return refusal.status in (400, 404, 422, 501) and is_named is not None


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
    if refusal.retryable and refusal.asks_too_long_a_wait:
        wait = duration(refusal.retry_after_s or 0)
        return failures.unavailable(
            f"The endpoint asks to wait {wait} (status {status}): {words}",
            where=where,
            allowed=f"waits of up to {LONGEST_RETRY_AFTER_S:.0f} s",
            do=f"Run the same command again in {wait}.",
        )
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
    if refusal.is_too_long:
        error = failures.length(f"The request is too long for the model: {words}", where=where)
        error.refused = words
        return error
    if status in _KEY_STATUSES or _says(words, _KEY_WORDS):
        refused = "refused the key" if has_key else "requires a key"
        return failures.access(
            f"The endpoint {refused} (status {status}): {words}",
            where=where,
            do=f"Set {' or '.join(failures.key_variables)} to a key that {base_url} accepts.",
        )
    if status == 402 or refusal.codes & _PAYMENT_CODES:
        return failures.access(
            f"The endpoint requires payment (status {status}): {words}", where=where
        )
    if status == 404 or refusal.codes & _MODEL_CODES or _says(words, _MODEL_WORDS):
        return failures.access(
            f"The endpoint does not know model {model!r} (status {status}): {words}",
            where=where,
            do=f"Name a model that {base_url} serves, or correct the base URL "
            "(it often ends in /v1).",
        )
    error = failures.reply(
        f"The endpoint refused the request (status {status}): {words}", where=where
    )
    error.refused = words if status in _ITEM_STATUSES or refusal.is_not_finite else ""
    return error


def _is_too_long(status: int, param: str, said: str) -> bool:
    """Return whether a limit is named, and as one of the prompt, not of another parameter."""
    if status not in _LENGTH_STATUSES or re.split(r"[.\[]", param)[0] not in _OWN_PARAMETERS:
        return False
    said = _PARAMETER.sub("", said)
    return status == 413 or bool(_PROMPT.search(said) and _LIMIT.search(said))


def _says(words: str, phrases: tuple[str, ...]) -> bool:
    lowered = words.lower()
    return any(phrase in lowered for phrase in phrases)


def _shown(words: str, secrets: Secrets) -> str:
    words = " ".join(secrets.hide(words).split())
    return words if len(words) <= MAX_WORDS else words[: MAX_WORDS - 3] + "..."


def _location(headers: Mapping[str, str]) -> str:
    """Return where a redirect leads, without possible secrets: user, password and query."""
    target = headers.get("location", "").partition("?")[0].partition("#")[0]
    scheme, slashes, rest = target.rpartition("//")
    authority, slash, path = rest.partition("/")
    return f"{scheme}{slashes}{authority.rpartition('@')[2]}{slash}{path}"


def _retry_after_s(headers: Mapping[str, str], error: Mapping[str, object]) -> float | None:
    """Return the seconds after which the endpoint asks for a retry; None if it does not say.

    Retry-After is a number of seconds (also written "37s") or a date; ``retry-after-ms`` is more
    exact if present. Google writes ``retryDelay`` in the details of the error.
    """
    delays = [fields_of(item).get("retryDelay") for item in items_of(error.get("details"))]
    given = [(headers.get("retry-after-ms"), 0.001), (headers.get("retry-after"), 1.0)]
    for value, unit_s in (*given, *((delay, 1.0) for delay in delays)):
        if not isinstance(value, str):
            continue
        try:
            seconds = float(value.strip().removesuffix("s")) * unit_s
        except ValueError:
            try:
                seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
            except (ValueError, OverflowError):
                continue
        if seconds == seconds:  # not NaN
            return max(seconds, 0.0)
    return None


_SHORTEST_SECRET = 4  # anything shorter occurs in every text


class Secrets:
    """Keys and passwords that no text may show. They are found as they are, and with any of their
    characters written as in JSON (also within JSON), an address or HTML. ``mark`` replaces them.
    Values of fewer than 4 characters are ignored."""

    def __init__(self, *values: str, mark: str) -> None:
        long = [value for value in values if len(value) >= _SHORTEST_SECRET]
        forms = ("".join(map(_forms_of, value)) for value in long)
        self._pattern = re.compile("|".join(forms) or "(?!)")
        self._mark = mark

    @classmethod
    def of_login(cls, username: str, password: str) -> Secrets:
        """Return the secrets of HTTP's Basic authentication, which sends them in base64."""
        login = (f"{username}:{password}", basic_credentials(username, password))
        return cls(*(login if password else ()), password, mark="[password]")

    def hide(self, text: str) -> str:
        """Return the text without the secrets."""
        return self._pattern.sub(lambda _: self._mark, text)


def basic_credentials(username: str, password: str) -> str:
    """Return a login as HTTP's Basic authentication sends it: in UTF-8 as by curl, with the bytes
    of the environment that are not."""
    return base64.b64encode(f"{username}:{password}".encode("utf-8", "surrogateescape")).decode()


def _forms_of(character: str) -> str:
    """Return a pattern of a character, as it is and as others write it."""
    units = character.encode("utf-16-be", "surrogatepass").hex()
    escape = "".join(rf"\\{{1,8}}u{units[at : at + 4]}" for at in range(0, len(units), 4))
    percent = re.sub("(..)", r"%\1", character.encode("utf-8", "replace").hex())
    number = ord(character)
    plain = (r"\\{0,8}" if character in '"\\/' else "") + re.escape(character)
    return f"(?:{plain}|(?i:{escape}|{percent}|&#(?:{number}|x{number:x});))"
