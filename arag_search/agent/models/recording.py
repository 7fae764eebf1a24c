"""The file of recorded replies: one JSON object on each line, one line for each call.

A line holds the digest of the request, by which it is looked up, and enough about the request to
say where another one differs, but not its text.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from arag_search.agent.models.base import Message, ModelReply, ModelRequest
from arag_search.errors import ConfigError, RunError
from arag_search.system.durable import room_advice
from arag_search.system.journal import ForeignLineError, JsonLinesFile, split_lines

PREVIEW_CHARACTERS = 80
_SHORT = 8


@dataclass(frozen=True, slots=True)
class ToolKey:
    """A summary of a tool: a digest of each line of its description, and of each argument by name.
    ``rest`` is the digest of the whole tool."""

    name: str
    description: tuple[str, ...]
    arguments: Mapping[str, str]
    rest: str

    @classmethod
    def of(cls, tool: Mapping[str, Any]) -> ToolKey:
        """Summarise a tool. O(tool)."""
        lines = description_lines(tool)
        arguments = tool_arguments(tool)
        return cls(
            _tool_name(tool),
            tuple(_digest([line])[:_SHORT] for line in lines),
            {name: _digest([schema])[:_SHORT] for name, schema in arguments.items()},
            _digest([tool])[:_SHORT],
        )


@dataclass(frozen=True, slots=True)
class RequestKey:
    """A summary of a request. ``digest`` covers everything except the question's id; ``messages``
    are the digests of the messages, ``tools`` the names of the tools. ``tool_keys`` summarise the
    tools, and are empty in recordings of versions that did not store them."""

    digest: str
    messages: tuple[str, ...]
    tools: tuple[str, ...]
    tool_keys: tuple[ToolKey, ...] = ()

    @classmethod
    def of(cls, request: ModelRequest) -> RequestKey:
        """Summarise a request. O(request)."""
        messages = [_digest(_message_parts(message)) for message in request.messages]
        names = tuple(_tool_name(tool) for tool in request.tools)
        keys = tuple(map(ToolKey.of, request.tools))
        return cls(_digest([messages, list(request.tools)]), tuple(messages), names, keys)


@dataclass(frozen=True, slots=True)
class Recorded:
    """One recorded call. ``session`` is the same for all calls recorded by one RecordingModel;
    ``last`` is the beginning of the last message of the request. ``too_long`` is the endpoint's
    ContextLengthError, if there was one instead of a reply."""

    question_id: str
    session: str
    model: str
    key: RequestKey
    last: str
    reply: ModelReply | None
    too_long: str | None = None


class RecordingFile:
    """A file to which whole lines are appended, from any thread or process.

    On opening, an incomplete last line left by a killed recorder is removed. Raises ConfigError if
    the file cannot be written, or ends with something other than a recorded reply.
    """

    def __init__(self, file: Path | str) -> None:
        self.file = Path(file)
        try:
            self._lines = JsonLinesFile(self.file, "question_id", _is_recorded)
            self._lines.repair()
        except OSError as error:
            raise ConfigError(
                f"Replies cannot be recorded ({error.strerror}).",
                where=str(self.file),
                do=room_advice(error),
            ) from error
        except ForeignLineError:
            self._lines.close()
            raise ConfigError(
                "Replies cannot be recorded: the last line of the file is not a recorded reply.",
                where=str(self.file),
                allowed="a new file, or one that replies were recorded to",
                do="Name another file.",
            ) from None

    def append(self, recorded: Recorded) -> None:
        """Write one line. Raises RunError if it cannot be written completely."""
        line = json.dumps(_adapter().dump_python(recorded, mode="json")).encode() + b"\n"
        try:
            self._lines.append(line)
        except OSError as error:
            raise RunError(
                f"A reply cannot be recorded ({error.strerror}).",
                where=str(self.file),
                do=room_advice(error),
            ) from error
        except ForeignLineError:
            raise RunError(
                "A reply cannot be recorded: another program wrote to the file.",
                where=str(self.file),
                do="Record to another file.",
            ) from None

    def close(self) -> None:
        """Close the file. May be called twice."""
        self._lines.close()


def read_recording(file: Path) -> tuple[list[Recorded], str]:
    """Return all calls in a file, and the SHA-256 of its content.

    If a later session has begun a question again, only the calls of that session are returned: the
    earlier ones belong to an unfinished attempt. A broken last line is ignored, because it means
    that the recorder was killed. Raises ConfigError naming any other broken line.
    """
    try:
        data = file.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"The recording cannot be read ({error.strerror}).", where=str(file)
        ) from error
    lines = split_lines(data)
    calls: list[Recorded] = []
    for number, line in enumerate(lines, start=1):
        call = _parse_line(line)
        if call is not None:
            calls.append(call)
        elif number < len(lines):
            raise ConfigError(
                f"Line {number} of the recording is damaged.",
                where=str(file),
                do="Remove the line, or record again.",
            )
    latest = {call.question_id: call.session for call in calls if call.question_id}
    current = [call for call in calls if latest.get(call.question_id, call.session) == call.session]
    return current, hashlib.sha256(data).hexdigest()


def preview(message: Message) -> str:
    """Return the beginning of a message, on one line."""
    text = " ".join(message.content.split()) or " ".join(
        f"{call.name}({call.arguments})" for call in message.tool_calls
    )
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= PREVIEW_CHARACTERS else text[: PREVIEW_CHARACTERS - 3] + "..."


def _parse_line(line: bytes) -> Recorded | None:
    """Return the call in a line; None if the line is broken."""
    try:
        return _adapter().validate_json(line)
    except ValidationError:
        return None


def _is_recorded(line: bytes) -> bool:
    return _parse_line(line) is not None


@functools.cache
def _adapter() -> TypeAdapter[Recorded]:
    return TypeAdapter(Recorded)


def _message_parts(message: Message) -> list[object]:
    calls = [[call.id, call.name, call.arguments] for call in message.tool_calls]
    return [message.role, message.content, calls, message.tool_call_id]


def _tool_name(tool: Mapping[str, Any]) -> str:
    return str(tool.get("function", tool).get("name", ""))


def description_lines(tool: Mapping[str, Any]) -> list[str]:
    """Return the lines of a tool's description."""
    return str(tool.get("function", tool).get("description", "")).split("\n")


def tool_arguments(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schemas of a tool's arguments by name; empty if it has no such schema."""
    schema: object = tool.get("function", tool).get("parameters")
    properties: object = (
        cast(dict[str, object], schema).get("properties") if _is_object(schema) else None
    )
    return cast(dict[str, Any], properties) if _is_object(properties) else {}


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _digest(parts: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]
