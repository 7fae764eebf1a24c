"""What one endpoint accepts of a request, as its refusals show.

Endpoints that speak OpenAI's protocol differ in what they require and refuse of a conversation. A
refused request is changed and sent again at once. What helped is remembered for the endpoint and
its model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from arag_search.agent.models.base import ModelRequest, write_message
from arag_search.endpoints.refusals import Refusal, fields_of, is_about, items_of

NO_NULL = "content: null"
"""The change that sends an empty text for a content of null."""
LINE_BETWEEN = "a line between roles"
"""The change that puts a line of the assistant before a user message behind another or a result."""
_LINE = "Understood."
_THOUGHTS, _SIGNATURE = "reasoning_content", "thought_signature"
_NO_THOUGHTS = (
    " "  # Kimi and DeepSeek require a value, and some of their servers one that is not empty
)
_NO_SIGNATURE = {"google": {_SIGNATURE: "skip_thought_signature_validator"}}
"""What Google documents for calls that its model has not made."""

_ROLE_ORDER = re.compile(r"unexpected role|after role|roles must alternate|message_order", re.I)
_NULL = re.compile(r"\bcontent\b|\bnull\b|<nil>|\bnone(?:type)?\b", re.I)
_REQUIRED = re.compile(r"\bmissing\b|\bmust be (?:passed|provided|present)|\bexpected `", re.I)
_STALE = re.compile(r"signature|encrypted|cannot be modified", re.I)
_UNNAMED_STATUSES = (400, 422)
_TEMPLATE_STATUSES = (400, 422, 500)  # llama.cpp and TGI answer 500 where a template refuses


class Dialect:
    """The changes that requests to an endpoint need: names of options and keys to leave out, keys
    to add (with "+"), NO_NULL and LINE_BETWEEN. ``accepted`` are the keys beside text and calls
    that the endpoint took back. Threads may share it."""

    def __init__(self) -> None:
        self.changes = frozenset[str]()
        self.accepted = frozenset[str]()


class Attempt:
    """One request in an endpoint's dialect, and what its refusals change in it.

    ``origin`` names the endpoint: what stands beside a message goes back to where it came from.
    ``options`` are the options that the endpoint may refuse.
    """

    def __init__(
        self, dialect: Dialect, request: ModelRequest, origin: str, options: Mapping[str, Any]
    ) -> None:
        self._dialect = dialect
        self._request = request
        self._origin = origin
        self._options = options
        self._changes = set(dialect.changes)
        self._trial = set[str]()  # the changes after a refusal that names nothing
        self._tried = set[str]()
        self._carried = set[str]()  # the keys beside text and calls that the request has
        self._has_null = False

    def options(self) -> dict[str, Any]:
        """Return the options that were not refused."""
        return {name: of for name, of in self._options.items() if name not in self._changes}

    def messages(self) -> list[dict[str, Any]]:
        """Return the messages of the request as JSON values."""
        self._carried = set[str]()
        messages: list[dict[str, Any]] = []
        for message in self._request.messages:
            written = write_message(message)
            if message.beside:
                self._add_beside(written, message.beside)
            follows = messages and messages[-1]["role"] in ("user", "tool")
            if LINE_BETWEEN in self._changes and written["role"] == "user" and follows:
                messages.append({"role": "assistant", "content": _LINE})
            messages.append(written)
        for written in messages:
            if written["role"] == "assistant":
                self._add_required(written)
            if NO_NULL in self._changes and written["content"] is None:
                written["content"] = ""
        self._has_null = any(written["content"] is None for written in messages)
        return messages

    def again(self, refusal: Refusal) -> bool:
        """Change the request after a refusal; return whether it changed."""
        if refusal.is_too_long:
            return False
        changes = set(self._named(refusal)) - self._changes
        if not changes and refusal.status in _UNNAMED_STATUSES:
            # Change one thing at a time: what did not help is undone.
            self._changes -= self._trial
            unknown = self._carried - self._dialect.accepted
            beside = self._carried if _STALE.search(refusal.whole) else unknown
            null = {NO_NULL} if self._has_null else set[str]()
            trials = (trial - self._tried for trial in (beside, null))
            changes = self._trial = next(filter(None, trials), set[str]())
            self._tried |= changes
        self._changes |= changes
        return bool(changes)

    def succeed(self) -> None:
        """Remember what the endpoint accepted. Keys that it took before stay."""
        dialect = self._dialect
        dialect.changes |= self._changes - (self._trial & dialect.accepted)
        dialect.accepted |= self._carried

    def _named(self, refusal: Refusal) -> Iterator[str]:
        """Yield the changes that a refusal asks for."""
        said = refusal.whole
        yield from (name for name in self._options if is_about(refusal, name))
        if _REQUIRED.search(said):
            yield from (f"+{key}" for key in (_THOUGHTS, _SIGNATURE) if key in said)
        else:
            yield from (key for key in self._carried if is_about(refusal, key))
        if refusal.status not in _TEMPLATE_STATUSES:
            return
        if _ROLE_ORDER.search(said):
            yield LINE_BETWEEN
        elif self._has_null and _NULL.search(said):
            yield NO_NULL

    def _add_beside(self, written: dict[str, Any], beside: str) -> None:
        kept = fields_of(json.loads(beside))
        if kept.get("from") != self._origin:
            return
        message = self._accepted(fields_of(kept.get("message")))
        calls = items_of(message.pop("tool_calls", None))
        written.update(message)
        for call, other in zip(written.get("tool_calls", ()), calls, strict=False):
            more = self._accepted(fields_of(other))
            call["function"] |= self._accepted(fields_of(more.pop("function", None)))
            call |= more

    def _accepted(self, fields: Mapping[str, object]) -> dict[str, Any]:
        """Return the fields that the endpoint does not refuse, and note them."""
        kept = {key: value for key, value in fields.items() if key not in self._changes}
        self._carried |= kept.keys() - {"tool_calls", "function"}
        return kept

    def _add_required(self, written: dict[str, Any]) -> None:
        if f"+{_THOUGHTS}" in self._changes and not written.get(_THOUGHTS):
            written[_THOUGHTS] = _NO_THOUGHTS
        calls = written.get("tool_calls", ())
        is_unsigned = calls and not any("extra_content" in call for call in calls)
        if f"+{_SIGNATURE}" in self._changes and is_unsigned:
            calls[0]["extra_content"] = _NO_SIGNATURE
