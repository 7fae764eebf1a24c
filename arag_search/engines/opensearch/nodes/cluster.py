"""A local cluster in a data folder: start it, report its status, stop it.

``<data>/cluster.json`` holds the ports of the nodes, whose number is fixed at the first start.
``<data>/node-N`` belongs to a node, with its files in ``data`` and its log in ``node.log``. A node
holds a lock on its ``node.pid`` from before its process begins until that process has ended,
however it ends. So whoever finds the file locked has the id of the process that runs the node, and
no other process ever has that id. A list in the cache folder names the data folders, so that
``down`` and ``status`` find a cluster whose folder is not given.
"""

from __future__ import annotations

import contextlib
import errno
import http.client
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arag_search.engines.jars import cache_folder, heap_megabytes
from arag_search.engines.opensearch.nodes import jars, node
from arag_search.errors import ArgumentError, EngineError, UnavailableError
from arag_search.system.durable import write_atomically
from arag_search.system.lock import locked, try_lock
from arag_search.system.progress import counted

DEFAULT_PORT = 9200
HEAP = "512m"
START_LIMIT_S = 180.0
END_LIMIT_S = 30.0

_LOOPBACK = "127.0.0.1"
_CLUSTER_FILE = "cluster.json"
_TRANSPORT_OFFSET = 100
_HIGHEST_PORT = 65_535 - _TRANSPORT_OFFSET - 2
_MIN_HEAP_MB = 256
_PORTS_LIMIT_S = 10.0
_KILL_LIMIT_S = 10.0
_HEALTH_LIMIT_S = 5.0
_POLL_S = 0.1
_LOG_LINES = 12
_LOG_BYTES = 100_000

Ports = tuple[int, int]
"""The HTTP port and the transport port of a node."""


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """A node; ``pid`` is the id of its process, None if it does not run."""

    name: str
    url: str
    pid: int | None
    log: Path


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """The status of a cluster. ``health`` is green, yellow or red, None if no node answers; a
    ``ready`` one is green or yellow and all its nodes have joined.

    ``url`` lists all nodes, as the first part of the address of an index. ``started`` counts the
    nodes that this call started, ``ended`` those that it stopped.
    """

    data: Path
    nodes: tuple[NodeStatus, ...]
    health: str | None
    ready: bool
    started: int = 0
    ended: int = 0

    @property
    def url(self) -> str:
        return "http://" + ",".join(node.url.removeprefix("http://") for node in self.nodes)

    @property
    def running(self) -> int:
        return sum(node.pid is not None for node in self.nodes)


def default_data() -> Path:
    """Return the default data folder, in the cache folder."""
    return cache_folder() / "opensearch-nodes"


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
) -> ClusterStatus:
    """Start the nodes of the cluster of ``data`` that do not run, and wait until it is ready.

    ``nodes`` is 1 (default) or 3; the first listens on ``port`` (default 9200, 0 for any free
    port), the others on the ports after it. If all nodes run already, the result says so.
    ``owned`` nodes end with this process; ``short_lived`` nodes are compiled quickly, and search
    more slowly than others that are warm. Raises ArgumentError if the folder has another number of
    nodes or they run on another port; EngineError if a port is in use or a node ends during the
    start; UnavailableError if the cluster is not ready after 180 s. After an error, the nodes that
    were started are stopped.
    """
    _check_options(nodes, port, heap)
    with _alone(data):
        all_ports, is_new = _planned(data, nodes, port)
        stopped = [number for number in range(len(all_ports)) if _pid(data, number) is None]
        sizes = [_log_size(data, number) for number in range(len(all_ports))]
        _check_free([all_ports[number] for number in stopped], 0 if is_new else _PORTS_LIMIT_S)
        class_path = jars.class_path() if stopped else []
        write_atomically(data / _CLUSTER_FILE, json.dumps(all_ports).encode())
        try:
            for number in stopped:
                node.prepare(
                    _folder(data, number).absolute(),
                    class_path,
                    _settings(data.absolute(), number, all_ports),
                    heap=heap,
                    short_lived=short_lived,
                )
                _start(_folder(data, number), owned=owned)
            _wait(data, all_ports, sizes)
        except BaseException:
            _end(data, stopped)
            raise
        return _status(data, all_ports, started=len(stopped))


def status(data: Path) -> ClusterStatus | None:
    """Return the status of the cluster of ``data``; None if there never was one."""
    ports = _read_ports(data)
    return None if ports is None else _status(data, ports)


def down(data: Path) -> ClusterStatus | None:
    """Stop the nodes that ``up`` started, and no other process; None if there never was a cluster.

    An orderly shutdown takes a second or two; a node that does not end within 30 s is killed. Data
    and logs are kept.
    """
    if _read_ports(data) is None:
        return None
    with _alone(data):
        ports = _read_ports(data)
        if ports is None:
            return None
        ended = _end(data, range(len(ports)))
        return _status(data, ports, ended=ended)


# Planning


def _check_options(nodes: int | None, port: int | None, heap: str) -> None:
    if nodes not in (None, 1, 3):
        raise ArgumentError(
            f"A local cluster of {nodes} nodes is not offered.", where="--nodes", allowed="1 or 3"
        )
    if port not in (None, 0) and not 1024 <= port <= _HIGHEST_PORT:
        raise ArgumentError(
            f"Port {port} cannot be the port of the first node.",
            where="--port",
            allowed=f"1024 to {_HIGHEST_PORT:,}, or 0 for any free port",
        )
    if heap_megabytes(heap) < _MIN_HEAP_MB:
        raise ArgumentError(
            f'The heap of a node is "{heap}".',
            where="--heap",
            allowed=f"a whole number with m or g, such as 512m or 2g; at least {_MIN_HEAP_MB}m",
        )


def _planned(data: Path, nodes: int | None, port: int | None) -> tuple[list[Ports], bool]:
    """Return the ports of the nodes that ``up`` is to start, and whether they were not used yet."""
    ports = _read_ports(data)
    if ports is None:
        return _new_ports(nodes or 1, DEFAULT_PORT if port is None else port), True
    if nodes not in (None, len(ports)):
        raise ArgumentError(
            f"The data folder has a cluster of {counted(len(ports), 'node')}.",
            where=str(data),
            allowed=f"--nodes {len(ports)}",
            do="Leave --nodes out, or name another folder with --data.",
        )
    first = ports[0][0]
    runs = any(_pid(data, number) is not None for number in range(len(ports)))
    if port in (None, first) or (port == 0 and runs):
        return ports, False
    if runs:
        raise ArgumentError(
            f"The cluster runs on port {first}.",
            where=_url(ports[0]),
            allowed=f"--port {first}",
            do=f"Leave --port out, or stop it first: {stop_command(data)}",
        )
    return _new_ports(len(ports), port), True


def _new_ports(count: int, first: int) -> list[Ports]:
    """Assign ports: HTTP from ``first`` on, transport 100 higher; for 0, any free ports."""
    if first:
        return [(first + number, first + number + _TRANSPORT_OFFSET) for number in range(count)]
    with contextlib.ExitStack() as bound:
        sockets = [bound.enter_context(socket.socket()) for _ in range(2 * count)]
        for bound_socket in sockets:
            bound_socket.bind((_LOOPBACK, 0))
        free = [bound_socket.getsockname()[1] for bound_socket in sockets]
    return list(zip(free[::2], free[1::2], strict=True))


def _check_free(ports: Sequence[Ports], wait_s: float) -> None:
    """Raise EngineError, which names every port that is still in use after ``wait_s``.

    The system may release the ports of a killed process only some time after its end.
    """
    numbers = sorted({number for pair in ports for number in pair})
    _wait_until(lambda: all(map(_is_free, numbers)), wait_s)
    if taken := [number for number in numbers if not _is_free(number)]:
        named = ", ".join(map(str, taken))
        raise EngineError(
            f"Ports are in use: {named}." if len(taken) > 1 else f"Port {named} is in use.",
            where=_LOOPBACK,
            allowed="ports on which nothing listens; a node takes two, 100 apart",
            do="Choose others with --port (0 takes any), or stop the process that listens there.",
        )


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # Like the node: a port on which only closed connections linger is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_LOOPBACK, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise
    return True


def _settings(data: Path, number: int, all_ports: Sequence[Ports]) -> dict[str, str | list[str]]:
    http_port, transport_port = all_ports[number]
    return {
        "cluster.name": "arag-search",
        "node.name": _name(number),
        "network.host": _LOOPBACK,
        "http.port": str(http_port),
        "transport.port": str(transport_port),
        "discovery.type": "zen",
        "discovery.seed_hosts": [f"{_LOOPBACK}:{transport}" for _, transport in all_ports],
        # Nodes that have formed a cluster once ignore this.
        "cluster.initial_cluster_manager_nodes": [_name(peer) for peer in range(len(all_ports))],
        "path.repo": str(data / "snapshots"),
        # A bulk request that arrives after its index was deleted must not create it again.
        "action.auto_create_index": "false",
        "action.destructive_requires_name": "true",
        # Absolute: 85 to 95 % of a large shared disk may be full with room to spare.
        "cluster.routing.allocation.disk.watermark.low": "2gb",
        "cluster.routing.allocation.disk.watermark.high": "1gb",
        "cluster.routing.allocation.disk.watermark.flood_stage": "500mb",
    }


# Files


def _name(number: int) -> str:
    return f"node-{number + 1}"


def _folder(data: Path, number: int) -> Path:
    return data / _name(number)


def _log(data: Path, number: int) -> Path:
    return _folder(data, number) / "node.log"


def _log_size(data: Path, number: int) -> int:
    log = _log(data, number)
    return log.stat().st_size if log.exists() else 0


def _log_end(data: Path, number: int, start: int) -> str:
    """Return the path of a log and the last of the lines that follow ``start``."""
    path = _log(data, number)
    with path.open("rb") as log:
        log.seek(max(start, path.stat().st_size - _LOG_BYTES))
        text = log.read().decode("utf-8", "replace")
    shown = [line[:300] for line in text.splitlines()[-_LOG_LINES:]]
    return "\n  ".join([f"{path}, which ends:", *shown])


def _read_ports(data: Path) -> list[Ports] | None:
    """Read the ports of the nodes of a data folder; None if it never had a cluster."""
    try:
        loaded: Any = json.loads((data / _CLUSTER_FILE).read_bytes())
        return [(int(http), int(transport)) for http, transport in loaded]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise EngineError(
            f"{_CLUSTER_FILE} cannot be read ({error.strerror}).", where=str(data)
        ) from error
    except (ValueError, TypeError) as error:
        raise EngineError(
            f"{_CLUSTER_FILE} does not describe a local cluster.",
            where=str(data),
            do="Name another folder with --data.",
        ) from error


@contextlib.contextmanager
def _alone(data: Path) -> Generator[None]:
    """Exclude other calls that start or stop nodes of ``data``, after waiting for them."""
    try:
        data.mkdir(parents=True, exist_ok=True)
        lock = os.open(data / "cluster.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
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


# Processes


def _start(folder: Path, *, owned: bool) -> None:
    """Start the node of ``folder``; an owned node ends with this process, however that ends.

    Ctrl-C and the closing of the terminal do not reach it. Its output is appended to its log.
    """
    with contextlib.ExitStack() as files:
        pid_file = os.open(folder / "node.pid", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        files.callback(os.close, pid_file)  # the lock stays: the node has the same open file
        while not try_lock(pid_file):
            time.sleep(_POLL_S)  # ``status`` probes it right now
        os.ftruncate(pid_file, 0)
        log = files.enter_context((folder / "node.log").open("ab"))
        input_ = subprocess.DEVNULL
        if owned:
            input_, _ = os.pipe()  # the other end closes with this process
            files.callback(os.close, input_)
        command = [sys.executable, "-m", node.__name__, str(folder.absolute()), str(pid_file)]
        child = subprocess.Popen(
            command + ["--owned"] * owned,
            stdin=input_,
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=[pid_file],
            start_new_session=True,
        )
    child.returncode = 0  # it is not waited for here, which Python would warn about


def _pid(data: Path, number: int) -> int | None:
    """Return the id of the process of a node; None if the node does not run."""
    try:
        pid_file = os.open(_folder(data, number) / "node.pid", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        while not try_lock(pid_file, shared=True):
            if text := os.pread(pid_file, 20, 0).strip():
                return int(text)
            time.sleep(_POLL_S)  # the process begins right now
        return None
    finally:
        os.close(pid_file)


def _wait(data: Path, ports: Sequence[Ports], sizes: Sequence[int]) -> None:
    """Wait until the cluster is ready; ``sizes`` are the sizes of the logs before the start."""
    last = time.monotonic() + START_LIMIT_S
    while True:
        for number in range(len(ports)):
            if _pid(data, number) is None:
                raise EngineError(
                    f"{_name(number)} ended while the cluster was starting.",
                    where=_log_end(data, number, sizes[number]),
                    do="Fix what the log reports, then start again: arag-search opensearch up",
                )
        # Ask every node: the first may know of all nodes before the last one answers.
        if all(_is_ready(_ask_health(pair), len(ports)) for pair in ports):
            return
        if time.monotonic() > last:
            raise UnavailableError(
                f"The cluster of {counted(len(ports), 'node')} is not ready after "
                f"{START_LIMIT_S:.0f} s.",
                where=_log_end(data, 0, sizes[0]),
                do="See the logs; a machine that lacks memory or processor time starts slowly.",
            )
        time.sleep(_POLL_S)


def _end(data: Path, numbers: Sequence[int]) -> int:
    """Stop those of these nodes that run, by force after 30 s. Return how many did."""
    running = [number for number in numbers if _pid(data, number) is not None]
    for number in running:
        _signal(data, number, signal.SIGTERM)
        _signal(data, number, signal.SIGCONT)  # a suspended process handles no other signal
    last = time.monotonic() + END_LIMIT_S
    for number in running:
        if not _ended(data, number, last - time.monotonic()):
            _signal(data, number, signal.SIGKILL)
            _ended(data, number, _KILL_LIMIT_S)
    return len(running)


def _signal(data: Path, number: int, signal_: signal.Signals) -> None:
    pid = _pid(data, number)
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal_)


def _ended(data: Path, number: int, limit_s: float) -> bool:
    """Wait until a node has ended. Return whether it has within ``limit_s``."""
    pid = _pid(data, number)
    if not _wait_until(lambda: _pid(data, number) is None, limit_s):
        return False
    if pid is not None:
        with contextlib.suppress(ChildProcessError):  # another process started it
            os.waitpid(pid, 0)
    return True


def _wait_until(condition: Callable[[], bool], limit_s: float) -> bool:
    """Wait until a condition holds. Return whether it does within ``limit_s``."""
    last = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() >= last:
            return False
        time.sleep(_POLL_S)
    return True


# Status


def _url(ports: Ports) -> str:
    return f"http://{_LOOPBACK}:{ports[0]}"


def _status(
    data: Path, ports: Sequence[Ports], *, started: int = 0, ended: int = 0
) -> ClusterStatus:
    nodes = tuple(
        NodeStatus(_name(number), _url(pair), _pid(data, number), _log(data, number))
        for number, pair in enumerate(ports)
    )
    answers = (
        _ask_health(pair) for pair, node in zip(ports, nodes, strict=True) if node.pid is not None
    )
    health = next((health for health in answers if health is not None), None)
    name = None if health is None else health[0]
    return ClusterStatus(data, nodes, name, _is_ready(health, len(ports)), started, ended)


def _is_ready(health: tuple[str, int] | None, nodes: int) -> bool:
    return health is not None and health[0] in ("green", "yellow") and health[1] == nodes


def _ask_health(ports: Ports) -> tuple[str, int] | None:
    """Ask a node for the health of its cluster and the number of joined nodes; None if it does not
    answer yet."""
    connection = http.client.HTTPConnection(_LOOPBACK, ports[0], timeout=_HEALTH_LIMIT_S)
    try:
        connection.request("GET", "/_cluster/health")
        reply = connection.getresponse()
        body: Any = json.loads(reply.read())
        if reply.status != 200:
            return None
        return str(body["status"]), int(body["number_of_nodes"])
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return None
    finally:
        connection.close()
