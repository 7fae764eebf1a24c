"""The folder of a batch run: the description of the run, and the records of its questions.

    DIR/run.json       preset, index, model and questions, with their fingerprints
    DIR/records.jsonl  one line per question, in the order in which they finished

A record is one write of a whole line, on disk before the next one is written. The last record of a
question counts, so that a failed question can be retried. An incomplete line that a crash left at
the end of the file is dropped; nothing else ever is.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from arag_search.agent.record import Record
from arag_search.corpus import nfc
from arag_search.errors import RunError
from arag_search.system.durable import read_plain, write_atomically
from arag_search.system.journal import JsonLinesFile, LineKind
from arag_search.tokens import encodable
from arag_search.vectors.base import EncoderIdentity

RECORDS = LineKind("record", lambda line: Record.from_json(orjson.loads(line)))
FORMAT_VERSION: Literal[1] = 1
RUN_FILE = "run.json"
RECORDS_FILE = "records.jsonl"
COMPARED = ("preset", "index", "model", "questions", "encoder")
"""The settings that must not change between two runs into one folder."""


class RunDescription(BaseModel):
    """The content of run.json: names for people, and fingerprints to compare.

    ``count`` is the number of questions in the file, ``limit`` the number of them to answer (None:
    all). ``filter`` is the scope of the index, ``encoder`` the encoder of its vectors and of
    queries, None if the preset needs none. ``versions`` say with which code the run began.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    format_version: Literal[1] = FORMAT_VERSION
    created: str
    preset: str
    index: str
    filter: str | None
    model: str
    questions: str
    count: int = Field(ge=1)
    limit: int | None = Field(ge=1)
    encoder: EncoderIdentity | None = None
    versions: dict[str, str] = Field(default_factory=dict)
    fingerprints: dict[str, str]

    @property
    def asked(self) -> int:
        """The number of questions that the run has to answer."""
        return self.count if self.limit is None else min(self.limit, self.count)

    def check_same(self, now: RunDescription, where: str) -> None:
        """Raise RunError, naming both, if ``now`` is another run."""
        other = [
            name for name in COMPARED if self.fingerprints.get(name) != now.fingerprints.get(name)
        ]
        if other:
            lines = [
                f"{name} {self._value_text(name)}, now {now._value_text(name)}" for name in other
            ]
            nouns = ["question file" if name == "questions" else name for name in other]
            raise RunError(
                f"The folder holds a run with another {' and another '.join(nouns)}.",
                where=f"{where}: {'; '.join(lines)}",
                allowed="records of one preset, index, model, question file and encoder in a "
                "folder",
                do="Name another folder, or use the same settings as that run.",
            )

    def _value_text(self, name: str) -> str:
        shown = getattr(self, name)
        if name == "encoder":
            shown = "none" if self.encoder is None else self.encoder.name
        if name == "index" and self.filter is not None:
            shown = f"{shown} with filter {self.filter}"
        fingerprint = self.fingerprints.get(name)
        return shown if fingerprint is None else f"{shown} ({fingerprint})"


@dataclass(frozen=True, slots=True)
class StoredRecords:
    """The content of a file of records: all of them, in the order in which they were written. The
    size of an incomplete last line, which is left out, is ``torn_bytes``."""

    records: Sequence[Record]
    torn_bytes: int

    @property
    def by_id(self) -> dict[str, Record]:
        """The last record of each question."""
        return {record.question_id: record for record in self.records}

    @property
    def cost(self) -> float:
        """The sum of the costs that are known."""
        return sum(max(record.total_cost or 0.0, 0.0) for record in self.records)

    def of_run(self, run: RunDescription, questions: Mapping[str, str]) -> RunRecords:
        """Separate the records of a run from records of others that the run did not replace.

        ``questions`` are the texts that the run asks, by id.
        """
        own: dict[str, Record] = {}
        foreign: dict[str, Foreign] = {}
        for record in self.records:
            id = record.question_id
            if others := _differences(record, run, questions.get(id)):
                foreign[id] = Foreign(record, others)
            else:
                own[id] = record
                foreign.pop(id, None)
        return RunRecords(own, foreign)


class Foreign(NamedTuple):
    """A record that another run wrote, and how that run differs."""

    record: Record
    differences: tuple[str, ...]


class RunRecords(NamedTuple):
    """The records of a run, the last of each question, and records of other runs, by question."""

    own: dict[str, Record]
    foreign: dict[str, Foreign]

    def foreign_text(self) -> str:
        """Return which records are of other runs, for messages: "q1 (another index), q2 ..."."""
        named = [
            f"{id} ({', '.join(f'another {name}' for name in foreign.differences)})"
            for id, foreign in self.foreign.items()
        ]
        return shorten_names(named)


def _differences(record: Record, run: RunDescription, question: str | None) -> tuple[str, ...]:
    """Name what differs between a record and its run. Fields that either lacks are not compared."""
    differences = [
        name
        for name in COMPARED
        if name in record.fingerprints
        and name in run.fingerprints
        and record.fingerprints[name] != run.fingerprints[name]
    ]
    if question is not None and _as_asked(record.question) != _as_asked(question):
        differences.append("question")
    return tuple(differences)


def _as_asked(question: str) -> str:
    return " ".join(encodable(nfc(question)).split())


def read_description(folder: Path) -> RunDescription:
    """Return the description of the run in the folder. Raises RunError if there is none."""
    path = folder / RUN_FILE
    try:
        return RunDescription.model_validate_json(read_plain(path.resolve()))
    except OSError as error:
        raise RunError(
            f"There is no run ({error.strerror}).",
            where=str(path),
            allowed="the folder that was given as `out`",
        ) from error
    except ValidationError as error:
        wrong = ", ".join(
            ".".join(map(str, problem["loc"])) or "all of it" for problem in error.errors()
        )
        raise RunError(
            f"The description of the run cannot be read: {wrong}.",
            where=str(path),
            do="Use the release that wrote it, or run into another folder.",
        ) from error


def read_records(folder: Path) -> StoredRecords:
    """Return the records in the folder. Raises RunError naming a line that is broken, unless it is
    the last, torn by a crash."""
    return StoredRecords(*RECORDS.read_all(folder / RECORDS_FILE))


class RunFolder:
    """A folder that this process alone writes to, until it is closed. A context manager.

    ``records`` are those in it when it was opened, ``previous`` is the description that the run
    had then (None: new).
    """

    def __init__(self, folder: Path, description: RunDescription) -> None:
        """Create the folder, or reopen it for the same run.

        Raises RunError for another run, a folder in use, and one with other contents.
        """
        self.folder = folder
        _check_usable(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._is_open = True
        self._file = JsonLinesFile(folder / RECORDS_FILE, RECORDS)
        try:
            if not self._file.claim():
                raise RunError(
                    "Another run is writing to the folder.",
                    where=str(folder),
                    do="Wait until it has ended, or name another folder.",
                )
            self.previous = read_description(folder) if (folder / RUN_FILE).exists() else None
            self._describe(description)
            self.records = read_records(folder)
            self.dropped_bytes = self._file.repair()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._is_open = False
            self._file.close()

    def append(self, record: Record) -> None:
        """Write a record and wait until it is on disk; threads take turns.

        Raises RunError if it cannot be written, or the folder was closed in the meantime.
        """
        with self._lock:
            if not self._is_open:
                raise RunError("The folder of the run is closed.", where=str(self.folder))
            self._file.append(record.to_line())

    def discard(self) -> None:
        """Remove a run that was begun here and has no record."""
        if self.previous is None and not self._file.size:
            for name in (RUN_FILE, RECORDS_FILE):
                (self.folder / name).unlink(missing_ok=True)

    def _describe(self, now: RunDescription) -> None:
        """Write the description of the run; for an existing run, only a larger limit."""
        path = self.folder / RUN_FILE
        if self.previous is not None:
            self.previous.check_same(now, str(path))
            if now.asked <= self.previous.asked:
                return
            now = self.previous.model_copy(update={"limit": now.limit})
        write_atomically(path, orjson.dumps(now.model_dump(), option=orjson.OPT_INDENT_2) + b"\n")


def _check_usable(folder: Path) -> None:
    """Raise RunError if the path is not a folder, or holds something other than a run."""
    if not folder.exists() or (folder / RUN_FILE).exists():
        return
    if not folder.is_dir():
        raise RunError("The place for the run is not a folder.", where=str(folder))
    others = [path for path in sorted(folder.iterdir()) if not _is_begun(path)]
    if others:
        raise RunError(
            "The folder is not empty and holds no run: "
            f"{shorten_names([path.name for path in others])}.",
            where=str(folder),
            allowed="a new or empty folder, or that of an earlier run",
            do="Name another folder.",
        )


def _is_begun(path: Path) -> bool:
    """Return whether the file is left over from a run that was killed as it began."""
    is_empty_file = path.name == RECORDS_FILE and path.is_file() and not path.stat().st_size
    return is_empty_file or path.name == RUN_FILE + ".new"


def shorten_names(names: Sequence[str]) -> str:
    """Return the first three names, and how many more there are, for messages."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
