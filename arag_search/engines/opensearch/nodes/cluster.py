"""A local cluster in a data folder: start it, ask how it is, end it.

``<data>/cluster.json`` remembers the nodes and their processes; ``<data>/node-N`` holds a node, its
files in ``data`` and its log in ``node.log``. One cluster a folder, always of as many nodes as at
its first start.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from arag_search.engines.jars import cache_folder
from arag_search.engines.opensearch.nodes import jars, ports, processes
from arag_search.engines.opensearch.nodes.health import Health, ask_health
from arag_search.engines.opensearch.nodes.node import NodeFile
from arag_search.engines.opensearch.nodes.record import (
    ClusterRecord,
    NodeRecord,
    held,
    read_record,
    write_record,
)
from arag_search.engines.opensearch.nodes.settings import (
    HEAP,
    MODULES,
    Place,
    check_heap,
    java_flags,
    node_settings,
)
from arag_search.errors import ArgumentError, EngineError, UnavailableError

DEFAULT_PORT = 9200
NODE_COUNTS = (1, 3)
START_LIMIT_S = 180.0
END_LIMIT_S = 30.0
_PORTS_LIMIT_S = 10.0
_POLL_S = 0.2
_LOG_LINES = 12
_LOG_BYTES = 100_000


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """A node as it is: ``pid`` is None where it does not run."""

    name: str
    url: str
    pid: int | None
    log: Path


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """A cluster as it is; ``health`` is None where no node answers.

    ``started`` counts the nodes that this call started, ``ended`` those that it ended.
    """

    data: Path
    url: str
    nodes: tuple[NodeStatus, ...]
    health: Health | None
    started: int = 0
    ended: int = 0

    @property
    def ready(self) -> bool:
        """Whether all nodes are together and the cluster is green or yellow."""
        return self.health is not None and self.health.is_ready(len(self.nodes))

    @property
    def running(self) -> int:
        return sum(each.pid is not None for each in self.nodes)


@dataclass(frozen=True, slots=True)
class _Options:
    """How nodes are started, see ``up``."""

    heap: str
    owned: bool
    short_lived: bool


def default_data() -> Path:
    """The data folder where none is named: below the cache folder."""
    return cache_folder() / "opensearch-nodes"


def up(
    data: Path,
    *,
    nodes: int | None = None,
    port: int | None = None,
    heap: str = HEAP,
    owned: bool = False,
    short_lived: bool = False,
) -> ClusterStatus:
    """Start the cluster of ``data``, or what of it does not run, and wait until it is ready.

    ``nodes`` is 1 (default) or 3; the first listens on ``port`` (default 9200, 0 for any that is
    free), the others on those after it. Where it runs already, that is what the result says.
    ``owned`` nodes end with this process; ``short_lived`` ones start in half the time, and search
    slower than others once these are warm. Raises ArgumentError where the folder holds another
    number of nodes or they run on another port; EngineError where a port is taken or a node ends at
    its start; UnavailableError where the cluster is not ready after 180 s. What was started is
    ended then.
    """
    if nodes is not None and nodes not in NODE_COUNTS:
        raise ArgumentError(
            f"A local cluster of {nodes} nodes is not offered.", where="--nodes", allowed="1 or 3"
        )
    ports.check_number(port)
    check_heap(heap)
    with held(data):
        record = _planned(data, nodes, port)
        ended = [each for each in record.nodes if not each.runs]
        waiting = [each.place for each in ended]
        if waiting:
            was_there = any(each.process is not None for each in ended)
            ports.check_free(waiting, wait_s=_PORTS_LIMIT_S if was_there else 0.0)
            options = _Options(heap, owned, short_lived)
            record = _start(data, record, waiting, options)
        else:
            _wait(data, record, {})
        return replace(_status(data, record), started=len(waiting))


def status(data: Path) -> ClusterStatus | None:
    """How the cluster of ``data`` is; None where there never was one."""
    record = read_record(data)
    return None if record is None else _status(data, record)


def down(data: Path) -> ClusterStatus | None:
    """End the nodes that ``up`` started there, and no other process; None where never any was.

    In order, which takes a second or two; one that does not end in 30 s is killed. Data and logs
    stay.
    """
    if read_record(data) is None:
        return None
    with held(data):
        record = read_record(data)
        if record is None:
            return None
        ended = _end(record.nodes)
        record = replace(record, nodes=tuple(replace(each, process=None) for each in record.nodes))
        write_record(data, record)
        return replace(_status(data, record), ended=ended)


def _planned(data: Path, nodes: int | None, port: int | None) -> ClusterRecord:
    """The cluster that is to be there when ``up`` ends."""
    record = read_record(data)
    if record is None:
        places = ports.places(nodes or NODE_COUNTS[0], DEFAULT_PORT if port is None else port)
        return ClusterRecord(tuple(NodeRecord(each, None) for each in places))
    count = len(record.nodes)
    if nodes not in (None, count):
        raise ArgumentError(
            f"The data folder holds a cluster of {_nodes(count)}.",
            where=str(data),
            allowed=f"--nodes {count}",
            do="Leave --nodes out, or name another folder with --data.",
        )
    first = record.nodes[0].place.http_port
    if port in (None, first) or (port == 0 and record.running):
        return record
    if record.running:
        raise ArgumentError(
            f"The cluster runs on port {first}.",
            where=record.url,
            allowed=f"--port {first}",
            do="Leave --port out, or end it first: arag-search opensearch down",
        )
    moved = ports.places(count, port)
    return replace(record, nodes=tuple(NodeRecord(each, None) for each in moved))


def _start(
    data: Path, record: ClusterRecord, waiting: Sequence[Place], options: _Options
) -> ClusterRecord:
    """Start these nodes, and end them again where they do not become a cluster."""
    class_path = jars.class_path()
    offsets: dict[str, int] = {}
    try:
        for place in waiting:
            folder = data.absolute() / place.name
            settings = node_settings(place, record.places, data.absolute(), formed=record.formed)
            flags = java_flags(folder, options.heap, short_lived=options.short_lived)
            NodeFile(class_path, flags, MODULES, settings).write(folder)
            log = _log(data, place)
            offsets[place.name] = log.stat().st_size if log.exists() else 0
            started = NodeRecord(place, processes.start_node(folder, log, owned=options.owned))
            record = replace(
                record,
                nodes=tuple(started if each.place == place else each for each in record.nodes),
            )
            write_record(data, record)  # at once: ``down`` finds it whatever happens next
        _wait(data, record, offsets)
    except BaseException:
        _end([each for each in record.nodes if each.place.name in offsets])
        raise
    if not record.formed:
        record = replace(record, formed=True)
        write_record(data, record)
    return record


def _wait(data: Path, record: ClusterRecord, offsets: dict[str, int]) -> None:
    """Until the cluster is ready; ``offsets`` is where the logs of the started nodes begin."""
    last = time.monotonic() + START_LIMIT_S
    while True:
        for each in record.nodes:
            if not each.runs:
                raise EngineError(
                    f"{each.place.name} ended while the cluster was starting.",
                    where=_log_end(_log(data, each.place), offsets.get(each.place.name, 0)),
                    do="Mend what the log says, then start again: arag-search opensearch up",
                )
        # Each node by itself: the first may know of all before the last answers.
        found = [ask_health(each.url) for each in record.places]
        if all(each is not None and each.is_ready(len(found)) for each in found):
            return
        if time.monotonic() > last:
            first = record.nodes[0].place
            raise UnavailableError(
                f"The cluster of {_nodes(len(found))} is not ready after {START_LIMIT_S:.0f} s.",
                where=_log_end(_log(data, first), offsets.get(first.name, 0)),
                do="See the logs; a machine without free memory or processor is slow to start.",
            )
        time.sleep(_POLL_S)


def _end(nodes: Sequence[NodeRecord]) -> int:
    """End what runs of these nodes; how many did."""
    last = time.monotonic() + END_LIMIT_S
    asked = [
        each.process
        for each in nodes
        if each.process is not None and processes.ask_to_end(each.process)
    ]
    for process in asked:
        processes.end(process, last - time.monotonic())
    return len(asked)


def _status(data: Path, record: ClusterRecord) -> ClusterStatus:
    answers = (ask_health(each.place.url) for each in record.nodes if each.runs)
    return ClusterStatus(
        data=data,
        url=record.url,
        nodes=tuple(
            NodeStatus(
                name=each.place.name,
                url=each.place.url,
                pid=each.process.pid if each.process is not None and each.runs else None,
                log=_log(data, each.place),
            )
            for each in record.nodes
        ),
        health=next((each for each in answers if each is not None), None),
    )


def _log(data: Path, place: Place) -> Path:
    return data / place.name / "node.log"


def _log_end(log: Path, offset: int) -> str:
    """A log by its path and the last lines that were written from ``offset`` on."""
    with log.open("rb") as lines:
        lines.seek(max(offset, log.stat().st_size - _LOG_BYTES))
        text = lines.read().decode("utf-8", "replace")
    shown = [line[:300] for line in text.splitlines()[-_LOG_LINES:]]
    return "\n  ".join([f"{log}, which ends:", *shown])


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"
