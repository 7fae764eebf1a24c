"""RecordingModel and ReplayModel: recording the replies of a run, and replaying them without a
network."""

from __future__ import annotations

import threading
import uuid
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from arag_search.agent.models.base import ChatModel, Message, ModelReply, ModelRequest
from arag_search.agent.models.recording import (
    Recorded,
    RecordingFile,
    RequestKey,
    ToolKey,
    description_lines,
    preview,
    read_recording,
)
from arag_search.errors import ContextLengthError, NotRecordedError


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
        try:
            reply = self._model.reply(request)
        except ContextLengthError as error:
            self._append(request, key, last, None, str(error.what))
            raise
        self._append(request, key, last, reply, None)
        return reply

    def close(self) -> None:
        self._model.close()
        self._file.close()

    def _append(
        self,
        request: ModelRequest,
        key: RequestKey,
        last: str,
        reply: ModelReply | None,
        too_long: str | None,
    ) -> None:
        self._file.append(
            Recorded(
                question_id=request.question_id,
                session=self._session,
                model=self._model.name,
                key=key,
                last=last,
                reply=reply,
                too_long=too_long,
            )
        )


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
            own = (place for place, call in enumerate(left) if call.question_id == question_id)
            return left.pop(next(own, 0)) if left else None

    def _not_recorded(self, key: RequestKey, request: ModelRequest) -> NotRecordedError:
        question = f"question {request.question_id}" if request.question_id else "the question"
        return NotRecordedError(
            f"A call of {question} was not recorded: {self._difference(key, request)}.",
            where=str(self._file),
            do="Replay with the preset, index and questions of the recorded run, or record again.",
        )

    def _difference(self, key: RequestKey, request: ModelRequest) -> str:
        """Describe how the nearest recorded call differs."""
        if not self._calls:
            return "the recording is empty"
        times = sum(call.key.digest == key.digest for call in self._calls)
        if times:
            return f"it is in the recording {_times(times)}, and is asked once more"
        own = [call for call in self._calls if call.question_id == request.question_id]
        near = max(own or self._calls, key=lambda call: _common(call.key, key))
        common = _common(near.key, key)
        if common == len(key.messages):
            if len(near.key.messages) == common:
                return _tool_difference(near.key, key, request)
            return f"no recorded call has just these {common} messages"
        message = request.messages[common]
        place = f"message {common + 1} ({message.role})"
        if len(near.key.messages) == common:
            return f"the recording ends before {place}, which begins {preview(message)!r}"
        recorded = self._recorded_preview(near, common)
        return f"{place} differs: {preview(message)!r} now, {recorded}"

    def _recorded_preview(self, near: Recorded, place: int) -> str:
        """Return the beginning of a recorded message, if it was the last message of some call."""
        start = near.key.messages[: place + 1]
        for call in self._calls:
            if call.key.messages == start:
                return f"recorded {call.last!r}"
        return "its text is not in the recording"


def _tool_difference(recorded: RequestKey, now: RequestKey, request: ModelRequest) -> str:
    """Describe how the tools of a recorded request differ."""
    if recorded.tools != now.tools:
        names = [", ".join(tools) or "none" for tools in (recorded.tools, now.tools)]
        return f"the tools differ (recorded: {names[0]}; now: {names[1]})"
    if not recorded.tool_keys:
        return (
            f"the tools differ: they have the recorded names ({', '.join(now.tools)}), but other "
            "descriptions or arguments, as over another index"
        )
    pairs = zip(recorded.tool_keys, now.tool_keys, request.tools, strict=True)
    differences = [text for pair in pairs if (text := _difference_of_tool(*pair))]
    return f"the tools differ: {'; '.join(differences)}"


def _difference_of_tool(recorded: ToolKey, now: ToolKey, tool: Mapping[str, Any]) -> str:
    """Describe how one tool differs; return an empty text if it does not."""
    if recorded.rest == now.rest:
        return ""
    gone = [name for name in recorded.arguments if name not in now.arguments]
    new = [name for name in now.arguments if name not in recorded.arguments]
    changed = [
        name
        for name, digest in now.arguments.items()
        if recorded.arguments.get(name, digest) != digest
    ]
    differences = [
        f"{what} {', '.join(names)}"
        for what, names in (
            ("lacks the argument", gone),
            ("has the new argument", new),
            ("has other bounds or words for", changed),
        )
        if names
    ]
    lines = description_lines(tool)
    others = [
        line
        for line, digest in zip(lines, now.description, strict=True)
        if digest not in recorded.description
    ]
    if others:
        differences.append(
            f"is described otherwise, now {preview(Message('system', others[-1]))!r}"
        )
    elif recorded.description != now.description:
        differences.append("is described otherwise, with fewer lines or in another order")
    return f"tool {now.name} {' and '.join(differences) or 'has another schema'}"


def _common(recorded: RequestKey, other: RequestKey) -> int:
    """Return how many messages two requests have in common from the start."""
    count = 0
    for mine, its in zip(recorded.messages, other.messages, strict=False):
        if mine != its:
            break
        count += 1
    return count


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
