"""arag-search opensearch: local OpenSearch nodes without Docker, for development and tests."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from arag_search.cli.app import SETTINGS
from arag_search.cli.output.printing import print_json, print_text
from arag_search.engines.opensearch.nodes import cluster
from arag_search.engines.opensearch.nodes.cluster import ClusterStatus, default_data, stop_command
from arag_search.engines.opensearch.nodes.jars import OPENSEARCH_VERSION
from arag_search.errors import ArgumentError

Data = Annotated[
    str | None,
    typer.Option(
        "--data",
        help="The folder of the cluster.  [default: opensearch-nodes in the cache folder]",
        metavar="DIR",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def up_command(
    nodes: Annotated[
        int | None,
        typer.Option(
            "--nodes",
            help="Number of nodes, 1 or 3; each is a process.  [default: as in the folder, else 1]",
            metavar="N",
            show_default=False,
        ),
    ] = None,
    data: Data = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            help="HTTP port of the first node; 0 takes any.  [default: as in the folder, else "
            "9200]",
            metavar="P",
            show_default=False,
        ),
    ] = None,
    heap: Annotated[
        str, typer.Option("--heap", help="Java heap of each node, such as 2g.", metavar="SIZE")
    ] = "512m",
    json: AsJson = False,
) -> int:
    """Start a local OpenSearch cluster and wait until it is ready.

    The nodes listen on this machine only, without passwords. They run until arag-search opensearch
    down stops them; data and logs stay on disk. If the cluster is running, this reports it, and
    starts the nodes that have stopped. The first start downloads about 60 MB.

    Examples:

    \b
      arag-search opensearch up --port 9400
      arag-search opensearch up --nodes 3 --data my-cluster
    """
    folder = _folder(data)
    return _show(cluster.up(folder, nodes=nodes, port=port, heap=heap), json)


def status_command(data: Data = None, json: AsJson = False) -> int:
    """Show whether the local cluster is running, and where. The exit code is 1 if it is not ready.

    Examples:

    \b
      arag-search opensearch status
      arag-search opensearch status --data my-cluster --json
    """
    folder = _folder(data)
    status = cluster.status(folder)
    if status is None:
        return _show_none(folder, json, 1)
    _show(status, json)
    return 0 if status.ready else 1


def down_command(data: Data = None, json: AsJson = False) -> int:
    """Stop the nodes that arag-search opensearch up started. Data and logs stay on disk.

    Examples:

    \b
      arag-search opensearch down
      arag-search opensearch down --data my-cluster
    """
    folder = _folder(data)
    status = cluster.down(folder)
    return _show_none(folder, json, 0) if status is None else _show(status, json)


opensearch_command = typer.Typer(
    help="Start and stop local OpenSearch nodes, without Docker.", add_completion=False, **SETTINGS
)
"""The three commands together."""
opensearch_command.command("up")(up_command)
opensearch_command.command("status")(status_command)
opensearch_command.command("down")(down_command)


def _folder(data: str | None) -> Path:
    if data == "":
        raise ArgumentError(
            "The folder of the cluster has no name.",
            where="--data",
            do="Name it, or leave --data out.",
        )
    return default_data() if data is None else Path(data)


def _show(status: ClusterStatus, as_json: bool) -> int:
    if as_json:
        print_json(_status_json(status), pretty=True)
    else:
        print_text("\n".join(_lines(status)))
    return 0


def _show_none(folder: Path, as_json: bool, code: int) -> int:
    if as_json:
        print_json({"data": str(folder), "url": None, "nodes": []}, pretty=True)
    else:
        print_text(f"No local cluster has been started in {folder}.")
    return code


def _status_json(status: ClusterStatus) -> dict[str, Any]:
    return {
        "data": str(status.data),
        "url": status.url,
        "ready": status.ready,
        "status": status.health,
        "nodes": [
            {"name": node.name, "url": node.url, "pid": node.pid, "log": str(node.log)}
            for node in status.nodes
        ],
        "started": status.started,
        "ended": status.ended,
    }


def _lines(status: ClusterStatus) -> list[str]:
    lines = [f"OpenSearch {OPENSEARCH_VERSION} {_state(status)}"]
    for node in status.nodes:
        process = "not running" if node.pid is None else f"process {node.pid}"
        lines.append(f"  {node.name}  {node.url}  {process}, log {node.log}")
    if status.ready:
        lines.append(f"Address of an index: {status.url}/NAME")
        lines.append(f"To stop the cluster: {stop_command(status.data)}")
    return lines


def _state(status: ClusterStatus) -> str:
    """Describe what was done, or else the state of the cluster."""
    every = len(status.nodes)
    if not status.running:
        ended = f"; {status.ended} of {every} ended now" if status.ended else ""
        return f"does not run{ended}"
    health = status.health or "no answer"
    started = f"; {status.started} started now" if status.started else ""
    return f"at {status.url}: {health}, {status.running} of {every} nodes running{started}"
