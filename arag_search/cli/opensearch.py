"""arag-search opensearch: local OpenSearch nodes without Docker, for development and tests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from arag_search.engines.opensearch.nodes.cluster import ClusterStatus

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
            help="How many, 1 or 3, each a process.  [default: as in the folder, else 1]",
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
        str, typer.Option("--heap", help="Memory of each node's Java, such as 2g.", metavar="SIZE")
    ] = "512m",
    json: AsJson = False,
) -> int:
    """Start a local OpenSearch cluster and wait until it is ready.

    The nodes listen on this machine only, without passwords. They go on running until they are
    ended by down; their data and logs stay. A cluster that runs already is reported, and a node of
    it that has ended is started again. The first time, about 60 MB are downloaded.

    Examples:

    \b
      arag-search opensearch up --port 9400
      arag-search opensearch up --nodes 3 --data my-cluster
    """
    from arag_search.engines.opensearch.nodes import cluster

    folder = _folder(data)
    return _show(cluster.up(folder, nodes=nodes, port=port, heap=heap), json)


def status_command(data: Data = None, json: AsJson = False) -> int:
    """Show whether the local cluster runs, and where. Exit code 1 where it is not ready.

    Examples:

    \b
      arag-search opensearch status
      arag-search opensearch status --data my-cluster --json
    """
    from arag_search.engines.opensearch.nodes import cluster

    folder = _folder(data)
    found = cluster.status(folder)
    if found is None:
        return _show_none(folder, json, 1)
    _show(found, json)
    return 0 if found.ready else 1


def down_command(data: Data = None, json: AsJson = False) -> int:
    """End the nodes that up started. Data and logs stay.

    Examples:

    \b
      arag-search opensearch down
      arag-search opensearch down --data my-cluster
    """
    from arag_search.engines.opensearch.nodes import cluster

    folder = _folder(data)
    found = cluster.down(folder)
    return _show_none(folder, json, 0) if found is None else _show(found, json)


def opensearch_commands() -> typer.Typer:
    """The three commands as one group."""
    group = typer.Typer(
        rich_markup_mode=None,
        help="Start and end local OpenSearch nodes, without Docker.",
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    group.command("up")(up_command)
    group.command("status")(status_command)
    group.command("down")(down_command)
    return group


def _folder(data: str | None) -> Path:
    from arag_search.engines.opensearch.nodes.cluster import default_data
    from arag_search.errors import ArgumentError

    if data == "":
        raise ArgumentError(
            "The folder of the cluster has no name.",
            where="--data",
            do="Name it, or leave --data out.",
        )
    return default_data() if data is None else Path(data)


def _show(found: ClusterStatus, as_json: bool) -> int:
    from arag_search.cli.output.results import print_json, print_text

    if as_json:
        print_json(_status_json(found), pretty=True)
    else:
        print_text("\n".join(_lines(found)))
    return 0


def _show_none(folder: Path, as_json: bool, code: int) -> int:
    from arag_search.cli.output.results import print_json, print_text

    if as_json:
        print_json({"data": str(folder), "url": None, "nodes": []}, pretty=True)
    else:
        print_text(f"No local cluster has been started in {folder}.")
    return code


def _status_json(found: ClusterStatus) -> dict[str, Any]:
    return {
        "data": str(found.data),
        "url": found.url,
        "ready": found.ready,
        "status": None if found.health is None else found.health.status,
        "nodes": [
            {"name": each.name, "url": each.url, "pid": each.pid, "log": str(each.log)}
            for each in found.nodes
        ],
        "started": found.started,
        "ended": found.ended,
    }


def _lines(found: ClusterStatus) -> list[str]:
    from arag_search.engines.opensearch.nodes.jars import OPENSEARCH_VERSION

    lines = [f"OpenSearch {OPENSEARCH_VERSION} {_state(found)}"]
    for each in found.nodes:
        process = "not running" if each.pid is None else f"process {each.pid}"
        lines.append(f"  {each.name}  {each.url}  {process}, log {each.log}")
    if found.ready:
        lines.append(f"An index there: {found.url}/NAME. To end it: arag-search opensearch down")
    return lines


def _state(found: ClusterStatus) -> str:
    """In words: what was done, or else how it is."""
    every = len(found.nodes)
    if not found.running:
        ended = f"; {found.ended} of {every} ended now" if found.ended else ""
        return f"does not run{ended}"
    health = "no answer" if found.health is None else found.health.status
    started = f"; {found.started} started now" if found.started else ""
    return f"at {found.url}: {health}, {found.running} of {every} nodes run{started}"
