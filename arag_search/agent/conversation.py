"""Conversations of several questions, which reuse what was found (AgenticRAG, section 3.1)."""

from __future__ import annotations

import errno
import functools
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from pydantic import TypeAdapter

from arag_search.agent.loop import Agent, OnStep
from arag_search.agent.record import Record
from arag_search.agent.state import State
from arag_search.errors import ConfigError, RunError
from arag_search.system.durable import full_disk_advice, write_atomically
from arag_search.system.lock import HeldError, hold

FORMAT = 1


@dataclass(slots=True)
class SavedConversation:
    """A conversation as stored in a file: its index and preset, the record of each question, and
    the state after the last one."""

    index: str
    preset: str
    fingerprints: dict[str, str]
    state: dict[str, Any] | None = None
    records: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    format: int = FORMAT

    def all_records(self) -> list[Record]:
        """Return the records of the questions, in their order."""
        return [Record.from_json(record) for record in self.records]


class Conversation:
    """Questions to one agent, each of which may use what was found for those before.

    With ``saved``, a stored conversation continues. Raises ConfigError if it had another index or
    preset, because its references and replies would not fit.
    """

    def __init__(self, agent: Agent, saved: SavedConversation | None = None) -> None:
        self.agent = agent
        self.saved = saved or SavedConversation(
            agent.index.location, agent.preset.name, dict(agent.fingerprints)
        )
        _check_same(self.saved, agent)
        state = self.saved.state
        self._state = None if state is None else State.from_json(state)

    def follow(self, agent: Agent) -> None:
        """Go on with an agent over a newer state of the index."""
        self.agent = agent
        self.saved.fingerprints["index"] = agent.fingerprints["index"]

    def ask(self, question: str, on_step: OnStep | None = None) -> Record:
        """Answer the next question. Raises ArgumentError for an empty question, and for a second
        one with a preset without tools of documents."""
        question_id = f"question-{len(self.saved.records) + 1}"
        if self._state is None:
            state = self.agent.start(question, question_id)
        else:
            state = State.from_json(self._state.to_json())  # kept as it is if this one fails
            self.agent.follow_up(state, question, question_id)
        record = self.agent.resume(state, on_step)
        self.saved.records.append(record.to_json())
        if record.status != "failed":
            self._state = state
            self.saved.state = state.to_json()
        return record

    def save(self, path: Path) -> None:
        """Write the conversation to a file, as a whole or not at all. Raises RunError."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            option = orjson.OPT_NON_STR_KEYS | orjson.OPT_APPEND_NEWLINE
            write_atomically(path, orjson.dumps(self.saved, option=option), shared=True)
        except OSError as error:
            raise _unwritable(path, error) from error


def read_conversation(path: Path) -> SavedConversation:
    """Read a conversation from a file. Raises ConfigError for anything else."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        saved = _adapter().validate_python(orjson.loads(path.read_bytes()))
        if saved.format != FORMAT:
            raise ValueError(saved.format)
        saved.all_records()
        if saved.state is not None:
            State.from_json(saved.state)
    except OSError as error:
        raise ConfigError(
            f"The conversation cannot be read ({error.strerror}).",
            where=str(path),
            do="Name a file that arag-search ask --continue FILE has written.",
        ) from error
    except (ValueError, RunError) as error:  # of JSON, of a field, of a record
        raise ConfigError(
            "The file is not a conversation.",
            where=str(path),
            allowed="files that this version of arag-search ask --continue writes",
            do="Name another file.",
        ) from error
    return saved


@contextmanager
def held_conversation(path: Path) -> Generator[SavedConversation | None]:
    """Hold a conversation while it is continued, and read it; None if the file is new.

    Raises RunError if another process holds it, or if the folder cannot be written, and
    ConfigError.
    """
    lock = path.with_name(f".{path.name}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = hold(lock, "arag-search ask, process ")
    except HeldError as error:
        raise RunError(
            "The conversation is being continued by another process.",
            where=f"{path}, {error.holder}",
            allowed="one process for a conversation",
            do="Wait until it has ended, or begin a conversation of your own.",
        ) from None
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        yield read_conversation(path) if os.path.lexists(path) else None
    finally:
        with suppress(OSError):
            lock.unlink()
        os.close(descriptor)


def _unwritable(path: Path, error: OSError) -> RunError:
    return RunError(
        f"The conversation cannot be written ({error.strerror or error}).",
        where=str(path),
        allowed="a file in a folder that can be written",
        do=full_disk_advice(error) or "Name another file.",
    )


def _check_same(saved: SavedConversation, agent: Agent) -> None:
    names = (("preset", "preset"), ("index", "index (or filter)"))
    before, now = saved.fingerprints, agent.fingerprints
    wrong = [name for key, name in names if before.get(key) != now.get(key)]
    if wrong:
        raise ConfigError(
            f"The conversation was held with another {' and another '.join(wrong)}.",
            where=f"index {saved.index}, preset {saved.preset}",
            allowed="the same index, unchanged, and the same preset",
            do="Name them, or begin a new conversation.",
        )


@functools.cache
def _adapter() -> TypeAdapter[SavedConversation]:
    return TypeAdapter(SavedConversation)
