"""Recorded replies of a model: written beside a run, and given again to the same requests without a
network."""

from __future__ import annotations

import functools
import hashlib
import json
import threading
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from arag_search.agent.models.base import ChatModel, Message, ModelReply, ModelRequest
from arag_search.errors import ConfigError, ContextLengthError, NotRecordedError, RunError
from arag_search.system.durable import full_disk_advice
from arag_search.system.journal import ForeignLineError, JsonLinesFile, split_lines

PREVIEW_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class RequestKey:
    """A summary of a request. ``digest`` covers everything except the question's id; ``messages``
    are the digests of the messages, ``tools`` those of the tools by name."""

    digest: str
    messages: tuple[str, ...]
    tools: Mapping[str, str]

    @classmethod
    def of(cls, request: ModelRequest) -> RequestKey:
        """Summarise a request. O(request)."""
        messages = [_digest(_message_parts(message)) for message in request.messages]
        digests = (_digest([tool]) for tool in request.tools)
        tools = dict(zip(request.offered, digests, strict=True))
        return cls(_digest([messages, list(request.tools)]), tuple(messages), tools)


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
            self._lines = JsonLinesFile(self.file, "question_id", _parse_line)
            self._lines.repair()
        except OSError as error:
            raise ConfigError(
                f"Replies cannot be recorded ({error.strerror}).",
                where=str(self.file),
                do=full_disk_advice(error),
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
                do=full_disk_advice(error),
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
    try:
        return _adapter().validate_json(line)
    except ValidationError:
        return None


@functools.cache
def _adapter() -> TypeAdapter[Recorded]:
    return TypeAdapter(Recorded)


def _message_parts(message: Message) -> list[object]:
    calls = [[call.id, call.name, call.arguments] for call in message.tool_calls]
    return [message.role, message.content, calls, message.tool_call_id]


def _digest(parts: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


class RecordingModel:
    """A model whose replies are also appended to a file, for ReplayModel.

    A ContextLengthError is recorded too, because an agent continues after it; other errors are not,
    so that a failed request can be repeated. Several threads, and several processes with a
    RecordingModel each, may write one file. Raises ConfigError if the file cannot be written,
    and from ``reply`` RunError if the disk is full.
    """

    def __init__(self, model: ChatModel, file: Path | str) -> None:
        self._model = model
        self._file = RecordingFile(file)
        self._session = uuid.uuid4().hex[:12]

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def fingerprint(self) -> str:
        return self._model.fingerprint

    def reply(self, request: ModelRequest) -> ModelReply:
        key = RequestKey.of(request)  # before the caller adds to its messages
        last = preview(request.messages[-1]) if request.messages else ""

        def record(reply: ModelReply | None, too_long: str | None = None) -> None:
            name, question_id = self._model.name, request.question_id
            self._file.append(
                Recorded(question_id, self._session, name, key, last, reply, too_long)
            )

        try:
            reply = self._model.reply(request)
        except ContextLengthError as error:
            record(None, str(error.what))
            raise
        record(reply)
        return reply

    def close(self) -> None:
        self._model.close()
        self._file.close()


class ReplayModel:
    """The replies in a file that RecordingModel wrote.

    A request is looked up by its messages and tools. If a request was recorded several times, its
    replies are returned in the recorded order, those of the same question first, each only once.
    Raises NotRecordedError for any other request, with the first message that differs; ConfigError
    if the file cannot be read.
    """

    def __init__(self, file: Path | str) -> None:
        self._file = Path(file)
        self._calls, self.fingerprint = read_recording(self._file)
        self._unused: defaultdict[str, list[Recorded]] = defaultdict(list)
        for call in self._calls:
            self._unused[call.key.digest].append(call)
        self._lock = threading.Lock()
        models = sorted({call.model for call in self._calls})
        self.name = f"replay of {', '.join(models)}" if models else "replay"

    def reply(self, request: ModelRequest) -> ModelReply:
        key = RequestKey.of(request)
        call = self._take(key, request.question_id)
        if call is None:
            raise self._not_recorded(key, request)
        if call.reply is None:
            raise ContextLengthError(call.too_long or "", where=str(self._file))
        return call.reply

    def close(self) -> None:
        """Nothing to free."""

    def _take(self, key: RequestKey, question_id: str) -> Recorded | None:
        with self._lock:
            left = self._unused.get(key.digest, [])
            own = (
                position for position, call in enumerate(left) if call.question_id == question_id
            )
            return left.pop(next(own, 0)) if left else None

    def _not_recorded(self, key: RequestKey, request: ModelRequest) -> NotRecordedError:
        question = f"question {request.question_id}" if request.question_id else "the question"
        return NotRecordedError(
            f"A call of {question} was not recorded: {self._difference(key, request)}.",
            where=str(self._file),
            do="Replay with the preset, index and questions of the recorded run, or record again.",
        )

    def _difference(self, key: RequestKey, request: ModelRequest) -> str:
        if not self._calls:
            return "the recording is empty"
        times = sum(call.key.digest == key.digest for call in self._calls)
        if times:
            often = "once" if times == 1 else f"{times} times"
            return f"it is in the recording {often}, and is asked once more"
        own = [call for call in self._calls if call.question_id == request.question_id]
        near = max(own or self._calls, key=lambda call: _common(call.key, key))
        common = _common(near.key, key)
        if common == len(key.messages):
            if len(near.key.messages) == common:
                return _tool_difference(near.key, key)
            return f"no recorded call has just these {common} messages"
        message = request.messages[common]
        position = f"message {common + 1} ({message.role})"
        if len(near.key.messages) == common:
            return f"the recording ends before {position}, which begins {preview(message)!r}"
        recorded = self._recorded_preview(near, common)
        return f"{position} differs: {preview(message)!r} now, {recorded}"

    def _recorded_preview(self, near: Recorded, position: int) -> str:
        """Return the beginning of a recorded message, if it was the last message of some call."""
        start = near.key.messages[: position + 1]
        for call in self._calls:
            if call.key.messages == start:
                return f"recorded {call.last!r}"
        return "its text is not in the recording"


def _tool_difference(recorded: RequestKey, now: RequestKey) -> str:
    if list(recorded.tools) != list(now.tools):
        names = [", ".join(tools) or "none" for tools in (recorded.tools, now.tools)]
        return f"the tools differ (recorded: {names[0]}; now: {names[1]})"
    others = [name for name, digest in now.tools.items() if recorded.tools[name] != digest]
    return (
        f"the tools differ: {', '.join(others)} with another description or other arguments, as "
        "over another index"
    )


def _common(recorded: RequestKey, other: RequestKey) -> int:
    """Return how many messages two requests have in common from the start."""
    count = 0
    for mine, its in zip(recorded.messages, other.messages, strict=False):
        if mine != its:
            break
        count += 1
    return count
