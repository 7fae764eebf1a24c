"""A local cluster in a data folder: start it, report its status, stop it.

``<data>/cluster.json`` records the nodes and their processes; ``<data>/node-N`` belongs to a node,
with its files in ``data`` and its log in ``node.log``. A folder has one cluster, whose number of
nodes is fixed at its first start.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from arag_search.engines.aot_cache import cache_flags, cache_path, create_in_background
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
from arag_search.engines.opensearch.nodes.started import (
    note_ended,
    note_started,
    running_folders,
)
from arag_search.errors import ArgumentError, EngineError, UnavailableError
from arag_search.system.wording import counted

DEFAULT_PORT = 9200
NODE_COUNTS = (1, 3)
START_LIMIT_S = 180.0
END_LIMIT_S = 30.0
CACHE_KIND = "node-classes"
_TRAINING = "arag_search.engines.opensearch.nodes.training"
_PORTS_LIMIT_S = 10.0
_POLL_S = 0.2
_LOG_LINES = 12
_LOG_BYTES = 100_000


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """The status of a node; ``pid`` is None if it does not run."""

    name: str
    url: str
    pid: int | None
    log: Path


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """The status of a cluster; ``health`` is None if no node answers.

    ``started`` counts the nodes that this call started, ``ended`` those that it stopped.
    """

    data: Path
    url: str
    nodes: tuple[NodeStatus, ...]
    health: Health | None
    started: int = 0
    ended: int = 0

    @property
    def ready(self) -> bool:
        """Whether all nodes have joined and the cluster is green or yellow."""
        return self.health is not None and self.health.is_ready(len(self.nodes))

    @property
    def running(self) -> int:
        return sum(node.pid is not None for node in self.nodes)


@dataclass(frozen=True, slots=True)
class _Options:
    """Options of starting nodes; see ``up``."""

    heap: str
    owned: bool
    short_lived: bool
    flags: Sequence[str]


def default_data() -> Path:
    """Return the default data folder, in the cache folder."""
    return cache_folder() / "opensearch-nodes"


def running_data() -> Path:
    """Return the data folder of the local cluster that runs, or the default one if none does.

    Raises ArgumentError if several run.
    """
    running = running_folders(default_data())
    if len(running) > 1:
        raise ArgumentError(
            f"{len(running)} local clusters are running.",
            allowed=" or ".join(f"--data {shlex.quote(str(folder))}" for folder in running),
            do="Name one with --data.",
        )
    return running[0] if running else default_data()


def stop_command(data: Path) -> str:
    """Return the command that stops the cluster of a data folder."""
    named = "" if data == default_data() else f" --data {shlex.quote(str(data))}"
    return f"arag-search opensearch down{named}"


def up(
    data: Path,
    *,
    nodes: int | None = None,
    port: int | None = None,
    heap: str = HEAP,
    owned: bool = False,
    short_lived: bool = False,
    flags: Sequence[str] = (),
) -> ClusterStatus:
    """Start the nodes of the cluster of ``data`` that do not run, and wait until it is ready.

    ``nodes`` is 1 (default) or 3; the first listens on ``port`` (default 9200, 0 for any free
    port), the others on the ports after it. If all nodes run already, the result says so.
    ``owned`` nodes end with this process; ``short_lived`` nodes are compiled quickly, and search
    more slowly than others that are warm; ``flags`` are given to Java in place of a cache of
    classes. Raises ArgumentError if the folder has another number of nodes or they run on another
    port; EngineError if a port is in use or a node ends during the start; UnavailableError if the
    cluster is not ready after 180 s. After an error, the nodes that were started are stopped.
    """
    if nodes is not None and nodes not in NODE_COUNTS:
        raise ArgumentError(
            f"A local cluster of {nodes} nodes is not offered.", where="--nodes", allowed="1 or 3"
        )
    ports.check_number(port)
    check_heap(heap)
    with held(data):
        record = _planned(data, nodes, port)
        if not owned:
            note_started(data)  # before the start, so that ``down`` finds it whatever happens next
        stopped = [node for node in record.nodes if not node.runs]
        places = [node.place for node in stopped]
        if places:
            ran_before = any(node.process is not None for node in stopped)
            ports.check_free(places, wait_s=_PORTS_LIMIT_S if ran_before else 0.0)
            options = _Options(heap, owned, short_lived, flags)
            record = _start(data, record, places, options)
        else:
            _wait(data, record, {})
        return replace(_status(data, record), started=len(places))


def status(data: Path) -> ClusterStatus | None:
    """Return the status of the cluster of ``data``; None if there never was one."""
    record = read_record(data)
    return None if record is None else _status(data, record)


def down(data: Path) -> ClusterStatus | None:
    """Stop the nodes that ``up`` started, and no other process; None if there never was a cluster.

    An orderly shutdown takes a second or two; a node that does not end within 30 s is killed. Data
    and logs are kept.
    """
    if read_record(data) is None:
        return None
    with held(data):
        record = read_record(data)
        if record is None:
            return None
        ended = _end(record.nodes)
        record = replace(record, nodes=tuple(replace(node, process=None) for node in record.nodes))
        write_record(data, record)
        note_ended(data)
        return replace(_status(data, record), ended=ended)


def _planned(data: Path, nodes: int | None, port: int | None) -> ClusterRecord:
    """Return the cluster that ``up`` is to start."""
    record = read_record(data)
    if record is None:
        places = ports.places(nodes or NODE_COUNTS[0], DEFAULT_PORT if port is None else port)
        return ClusterRecord(tuple(NodeRecord(place, None) for place in places))
    count = len(record.nodes)
    if nodes not in (None, count):
        raise ArgumentError(
            f"The data folder has a cluster of {counted(count, 'node')}.",
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
            do=f"Leave --port out, or stop it first: {stop_command(data)}",
        )
    moved = ports.places(count, port)
    return replace(record, nodes=tuple(NodeRecord(place, None) for place in moved))


def _start(
    data: Path, record: ClusterRecord, places: Sequence[Place], options: _Options
) -> ClusterRecord:
    """Start these nodes; if they do not form a cluster, stop them again."""
    class_path = jars.class_path()
    cache = cache_path(CACHE_KIND, class_path)
    more_flags = options.flags or cache_flags(cache)
    offsets: dict[str, int] = {}
    try:
        for place in places:
            folder = data.absolute() / place.name
            settings = node_settings(place, record.places, data.absolute(), formed=record.formed)
            flags = java_flags(folder, options.heap, short_lived=options.short_lived)
            NodeFile(class_path, [*flags, *more_flags], MODULES, settings).write(folder)
            log = _log(data, place)
            offsets[place.name] = log.stat().st_size if log.exists() else 0
            started = NodeRecord(place, processes.start_node(folder, log, owned=options.owned))
            record = replace(
                record,
                nodes=tuple(started if node.place == place else node for node in record.nodes),
            )
            write_record(data, record)  # at once, so that ``down`` finds it whatever happens next
        _wait(data, record, offsets)
    except BaseException:
        _end([node for node in record.nodes if node.place.name in offsets])
        raise
    if not record.formed:
        record = replace(record, formed=True)
        write_record(data, record)
    if not options.flags:
        create_in_background(cache, _TRAINING)
    return record


def _wait(data: Path, record: ClusterRecord, offsets: dict[str, int]) -> None:
    """Wait until the cluster is ready; ``offsets`` are the starts of the new parts of logs."""
    last = time.monotonic() + START_LIMIT_S
    while True:
        for node in record.nodes:
            if not node.runs:
                raise EngineError(
                    f"{node.place.name} ended while the cluster was starting.",
                    where=_log_end(_log(data, node.place), offsets.get(node.place.name, 0)),
                    do="Fix what the log reports, then start again: arag-search opensearch up",
                )
        # Ask every node: the first may know of all nodes before the last one answers.
        answers = [ask_health(place.url) for place in record.places]
        if all(health is not None and health.is_ready(len(answers)) for health in answers):
            return
        if time.monotonic() > last:
            first = record.nodes[0].place
            raise UnavailableError(
                f"The cluster of {counted(len(answers), 'node')} is not ready after "
                f"{START_LIMIT_S:.0f} s.",
                where=_log_end(_log(data, first), offsets.get(first.name, 0)),
                do="See the logs; a machine that lacks memory or processor time starts slowly.",
            )
        time.sleep(_POLL_S)


def _end(nodes: Sequence[NodeRecord]) -> int:
    """Stop those of these nodes that run, and return how many did."""
    last = time.monotonic() + END_LIMIT_S
    asked = [
        node.process
        for node in nodes
        if node.process is not None and processes.ask_to_end(node.process)
    ]
    for process in asked:
        processes.end(process, last - time.monotonic())
    return len(asked)


def _status(data: Path, record: ClusterRecord) -> ClusterStatus:
    answers = (ask_health(node.place.url) for node in record.nodes if node.runs)
    return ClusterStatus(
        data=data,
        url=record.url,
        nodes=tuple(
            NodeStatus(
                name=node.place.name,
                url=node.place.url,
                pid=node.process.pid if node.process is not None and node.runs else None,
                log=_log(data, node.place),
            )
            for node in record.nodes
        ),
        health=next((health for health in answers if health is not None), None),
    )


def _log(data: Path, place: Place) -> Path:
    return data / place.name / "node.log"


def _log_end(log: Path, offset: int) -> str:
    """Return the path of a log and the last of the lines that follow ``offset``."""
    with log.open("rb") as lines:
        lines.seek(max(offset, log.stat().st_size - _LOG_BYTES))
        text = lines.read().decode("utf-8", "replace")
    shown = [line[:300] for line in text.splitlines()[-_LOG_LINES:]]
    return "\n  ".join([f"{log}, which ends:", *shown])
