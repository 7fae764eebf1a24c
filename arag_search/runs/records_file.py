"""A file of records that can be appended to."""

from __future__ import annotations

from pathlib import Path

import orjson

from arag_search.agent.record import Record
from arag_search.errors import RunError
from arag_search.system.journal import ForeignLineError, JsonLinesFile


class RecordsFile:
    """A file of records, one per line, each of them on disk before ``append`` returns.

    Raises RunError if the path is a link or cannot be written to.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._lines = JsonLinesFile(path, "question_id", _is_record)
        except OSError as error:
            raise RunError(
                f"Records cannot be written ({error.strerror}).",
                where=str(path),
                allowed="a plain file in a folder that can be written",
                do="Name another place.",
            ) from error

    @property
    def is_empty(self) -> bool:
        """Whether it holds nothing."""
        return self._lines.size == 0

    def claim(self) -> bool:
        """Keep other processes from appending until ``close``. Return whether no other
        process has done so."""
        return self._lines.claim()

    def mend(self) -> int:
        """Remove an incomplete last record left by a crash, and return its number of bytes.

        Raises RunError for a last line that is not a record of a run.
        """
        try:
            return self._lines.repair()
        except ForeignLineError:
            raise self._foreign() from None

    def append(self, record: Record) -> None:
        """Write a record. Raises RunError, and leaves the file as it was, if that fails."""
        try:
            self._lines.append(record.to_line())
        except OSError as error:
            raise RunError(
                f"A record cannot be written ({error.strerror or error}).",
                where=str(self.path),
                do="Free some space and run the same command again: recorded questions are not "
                "asked again.",
            ) from error
        except ForeignLineError:
            raise self._foreign() from None

    def close(self) -> None:
        """Close the file. May be called twice."""
        self._lines.close()

    def _foreign(self) -> RunError:
        return RunError(
            "The last line is neither a record nor a part of one.",
            where=str(self.path),
            allowed="records as this version of arag-search writes them",
            do="Delete the line, or name another file.",
        )


def _is_record(line: bytes) -> bool:
    try:
        Record.from_json(orjson.loads(line))
    except (orjson.JSONDecodeError, RunError):
        return False
    return True
