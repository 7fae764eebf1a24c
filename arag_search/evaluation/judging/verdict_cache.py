"""The file of verdicts: one line for each reply with a verdict, looked up by the request. Readers
take the verdict from the reply, so that lines that were read by other rules do no harm."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path

import orjson

from arag_search.errors import RunError
from arag_search.system.journal import JsonLinesFile, LineKind


def _reply(line: bytes) -> tuple[str, str]:
    match orjson.loads(line):
        case {"key": str(key), "verdict": str(), "reply": str(reply)}:
            return key, reply
        case {"key": str(key), "verdict": str()}:
            return key, ""
        case _:
            raise RunError('A verdict is {"key", "verdict"}.')


_VERDICTS = LineKind("verdict", _reply)


class VerdictCache:
    """Replies with verdicts by key, kept in a file of JSON lines; None keeps them in memory.

    A line is on disk before ``put`` returns. Several processes may append to one file. Raises
    RunError if the file cannot be read or written, or has other lines.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._replies = {} if path is None else dict(_VERDICTS.read_all(path)[0])

    def __len__(self) -> int:
        return len(self._replies)

    def get(self, key: str) -> str | None:
        """Return the stored reply, "" if only its verdict was stored; None without either."""
        return self._replies.get(key)

    def put(self, key: str, question_id: str, verdict: str, reply: str) -> None:
        """Keep a verdict, with the reply that gave it."""
        row = {"key": key, "question_id": question_id, "verdict": verdict, "reply": reply}
        line = orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
        with self._lock:
            if self.path is not None:
                with closing(JsonLinesFile(self.path, _VERDICTS)) as lines:
                    lines.append(line)
            self._replies[key] = reply
