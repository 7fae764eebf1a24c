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
from arag_search.system.journal import JsonLinesFile, LineKind

PREVIEW_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class RequestKey:
    """A summary of a request. ``digest`` covers everything except the question's id. ``messages``
    are the digests of the messages, and ``tools`` has the digest of each tool by its name."""

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


def read_recording(file: Path) -> tuple[list[Recorded], str]:
    """Return all calls in a file, and the SHA-256 of its content.

    If a later session has begun a question again, only the calls of that session are returned: the
    earlier ones belong to an unfinished attempt. A torn last line is ignored, because it means
    that the recorder was killed. Raises ConfigError, and RunError naming any other broken line.
    """
    try:
        with file.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise ConfigError(
            f"The recording cannot be read ({error.strerror}).", where=str(file)
        ) from error
    calls, _ = _CALLS.read_all(file)
    latest = {call.question_id: call.session for call in calls if call.question_id}
    current = [call for call in calls if latest.get(call.question_id, call.session) == call.session]
    return current, digest


def preview(message: Message) -> str:
    """Return the beginning of a message, on one line."""
    text = " ".join(message.content.split()) or " ".join(
        f"{call.name}({call.arguments})" for call in message.tool_calls
    )
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= PREVIEW_CHARACTERS else text[: PREVIEW_CHARACTERS - 3] + "..."


@functools.cache
def _adapter() -> TypeAdapter[Recorded]:
    return TypeAdapter(Recorded)


def _read_line(line: bytes) -> Recorded:
    try:
        return _adapter().validate_json(line)
    except ValidationError as error:
        raise RunError("The line is not a recorded call.") from error


_CALLS = LineKind("recorded call", _read_line)


def _message_parts(message: Message) -> list[object]:
    calls = [[call.id, call.name, call.arguments] for call in message.tool_calls]
    return [message.role, message.content, calls, message.tool_call_id]


def _digest(parts: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


class RecordingModel:
    """A model whose replies are also appended to a file, for ReplayModel.

    A ContextLengthError is recorded too, because an agent continues after it; other errors are not,
    so that a failed request can be repeated. Several threads, and several processes with a
    RecordingModel each, may write one file. Raises RunError if the file cannot be written, from
    ``reply`` too.
    """

    def __init__(self, model: ChatModel, file: Path | str) -> None:
        self._model = model
        self._file = JsonLinesFile(Path(file), _CALLS)
        self._file.repair()
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
            call = Recorded(question_id, self._session, name, key, last, reply, too_long)
            line = json.dumps(_adapter().dump_python(call, mode="json"))
            self._file.append(f"{line}\n".encode())

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
    replies are returned in the recorded order, each only once. Replies to the same question come
    first. Raises NotRecordedError for any other request, with the first message that differs;
    ConfigError if the file cannot be read.
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
