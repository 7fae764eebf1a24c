"""ScriptedModel: replies written beforehand."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from arag_search.agent.models.base import ModelReply, ModelRequest
from arag_search.errors import ModelReplyError

Script = Sequence[ModelReply | Exception] | Callable[[ModelRequest], ModelReply]


class ScriptedModel:
    """A model that returns the replies of a script.

    The entries of a sequence are returned in order, one for each request from any thread; an
    exception among them is raised. A function is called with each request, in the requesting
    thread. The model sleeps ``delay_s`` before each reply, to imitate an endpoint.

    Raises ModelReplyError after the end of the script. ``requests`` holds all requests, in order.
    """

    name = "scripted"
    fingerprint = "scripted"

    def __init__(self, script: Script, *, delay_s: float = 0) -> None:
        self._script = script
        self._delay_s = delay_s
        self._lock = threading.Lock()
        self.requests: list[ModelRequest] = []

    def reply(self, request: ModelRequest) -> ModelReply:
        with self._lock:
            position = len(self.requests)
            self.requests.append(request)
        if self._delay_s:
            time.sleep(self._delay_s)
        if callable(self._script):
            return self._script(request)
        if position >= len(self._script):
            raise ModelReplyError(
                f"The script is over: it has {len(self._script)} replies, "
                f"and reply {position + 1} was requested.",
                where=f"question {request.question_id}" if request.question_id else "",
            )
        entry = self._script[position]
        if isinstance(entry, Exception):
            raise entry
        return entry

    def close(self) -> None:
        """Nothing to free."""
