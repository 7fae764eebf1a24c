"""ScriptedModel: replies written beforehand, for tests, benches and dry runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from arag_search.agent.models.base import ModelReply, ModelRequest
from arag_search.errors import ModelReplyError

Script = Sequence[ModelReply | Exception] | Callable[[ModelRequest], ModelReply]


class ScriptedModel:
    """Gives the replies of a script.

    A sequence is given out in order, one entry a request, whoever asks; an exception in it is
    raised. A function is called with each request, from the thread that asks. ``delay_s`` is slept
    before each reply, as an endpoint would take it.

    Raises ModelReplyError when the script is over. ``requests`` holds what was asked, in order.
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
                f"and reply {position + 1} was asked for.",
                where=f"question {request.question_id}" if request.question_id else "",
            )
        entry = self._script[position]
        if isinstance(entry, Exception):
            raise entry
        return entry

    def close(self) -> None:
        """Nothing to free."""
