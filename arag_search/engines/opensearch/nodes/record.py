"""The record of a local cluster: ``cluster.json`` in its data folder, next to a lock file."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Generator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from arag_search.engines.opensearch.nodes.settings import Place
from arag_search.errors import EngineError
from arag_search.system.durable import write_atomically
from arag_search.system.lock import locked
from arag_search.system.processes import Process

RECORD_FILE = "cluster.json"
RECORD_VERSION = 1
_LOCK_FILE = "cluster.lock"


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """A node: its place, and the process that was started last; None if it was stopped."""

    place: Place
    process: Process | None

    @property
    def runs(self) -> bool:
        return self.process is not None and self.process.runs


@dataclass(frozen=True, slots=True)
class ClusterRecord:
    """A cluster; ``formed`` says that all its nodes have joined once."""

    nodes: tuple[NodeRecord, ...]
    formed: bool = False

    @property
    def places(self) -> tuple[Place, ...]:
        return tuple(node.place for node in self.nodes)

    @property
    def running(self) -> int:
        return sum(node.runs for node in self.nodes)

    @property
    def url(self) -> str:
        """All nodes as the first part of a location: ``URL/name``."""
        return "http://" + ",".join(place.url.removeprefix("http://") for place in self.places)


def read_record(data: Path) -> ClusterRecord | None:
    """Read the cluster of a data folder; None if it never had one. Raises EngineError."""
    path = data / RECORD_FILE
    try:
        loaded: Any = json.loads(path.read_bytes())
        if loaded["version"] != RECORD_VERSION:
            raise ValueError(loaded["version"])
        nodes = tuple(
            NodeRecord(
                Place(**node["place"]), Process(**node["process"]) if node["process"] else None
            )
            for node in loaded["nodes"]
        )
        return ClusterRecord(nodes, bool(loaded["formed"]))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise EngineError(
            f"{RECORD_FILE} cannot be read ({error.strerror}).", where=str(data)
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise EngineError(
            f"{RECORD_FILE} is not the record of a local cluster.",
            where=str(data),
            do="Name another folder with --data.",
        ) from error


def write_record(data: Path, record: ClusterRecord) -> None:
    """Put the record in place of the one before, all of it or nothing."""
    content = json.dumps({"version": RECORD_VERSION, **asdict(record)}, indent=2)
    write_atomically(data / RECORD_FILE, content.encode())


@contextlib.contextmanager
def held(data: Path) -> Generator[None]:
    """Hold the lock of a data folder during the block, after waiting for it. Raises EngineError."""
    try:
        data.mkdir(parents=True, exist_ok=True)
        lock = os.open(data / _LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise EngineError(
            f"The data folder cannot be written ({error.strerror}).",
            where=str(data),
            do="Name another folder with --data.",
        ) from error
    try:
        with locked(lock):
            yield
    finally:
        os.close(lock)
