"""The file of verdicts: one line for each verdict, looked up by the request."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path
from typing import cast

import orjson

from arag_search.errors import RunError
from arag_search.system.journal import ForeignLineError, JsonLinesFile, split_lines


class VerdictCache:
    """Verdicts by key, kept in a file of JSON lines; None keeps them in memory.

    A line is on disk before ``put`` returns. An incomplete line that a crash left at the end of
    the file is ignored, and removed before the next line is written. Several processes may
    append to one file. Raises RunError if the file cannot be read or written, or is not a file
    of verdicts.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._verdicts = {} if path is None else _read(path)

    def __len__(self) -> int:
        return len(self._verdicts)

    def get(self, key: str) -> str | None:
        """Return the stored verdict, or None."""
        return self._verdicts.get(key)

    def put(self, key: str, question_id: str, verdict: str, reply: str) -> None:
        """Keep a verdict, with the reply that gave it."""
        row = {"key": key, "question_id": question_id, "verdict": verdict, "reply": reply}
        line = orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
        with self._lock:
            if self.path is not None:
                _append(self.path, line)
            self._verdicts[key] = verdict


def _read(path: Path) -> dict[str, str]:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _unusable(path, "read", error) from error
    lines = split_lines(raw)
    verdicts: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        match _row(line):
            case {"key": str(key), "verdict": str(verdict)}:
                verdicts[key] = verdict
            case None if verdicts or number < len(lines) or not raw.endswith(b"\n"):
                continue  # the torn line of a crash
            case _:
                raise _foreign(f"{path}, line {number}")
    return verdicts


def _row(line: bytes) -> object:
    try:
        return cast(object, orjson.loads(line))
    except orjson.JSONDecodeError:
        return None


def _append(path: Path, line: bytes) -> None:
    try:
        with closing(JsonLinesFile(path, "key", _is_verdict)) as lines:
            lines.append(line)
    except OSError as error:
        raise _unusable(path, "written", error) from error
    except ForeignLineError:
        raise _foreign(str(path)) from None


def _is_verdict(line: bytes) -> bool:
    match _row(line):
        case {"key": str(), "verdict": str()}:
            return True
        case _:
            return False


def _foreign(where: str) -> RunError:
    return RunError(
        "The file is not a file of verdicts.",
        where=where,
        allowed='lines of {"key", "verdict"} as a judge writes them',
        do="Name another file.",
    )


def _unusable(path: Path, what: str, error: OSError) -> RunError:
    return RunError(
        f"The file of verdicts cannot be {what} ({error.strerror}).",
        where=str(path),
        do="Name another file, or make room.",
    )
