"""arag-search mcp: the tools for any client that speaks the Model Context Protocol."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, NoReturn

import typer

from arag_search.cli.options.index import Opening
from arag_search.cli.options.parser import Typed, suggest_presets, with_groups
from arag_search.cli.output.printing import INTERRUPTED, say
from arag_search.errors import ArgumentError
from arag_search.system.imports import import_building_late, import_without

if TYPE_CHECKING:
    from arag_search.mcp_server.listening import Listening
    from arag_search.mcp_server.live import LiveIndexes
    from arag_search.mcp_server.stdio import Channel
    from arag_search.tools.preset import Preset

_EXPOSED = "Other machines can connect, and may use up its connections: put a proxy in front."


class HttpOptions(NamedTuple):
    """The options of the transport http."""

    host: Annotated[
        str | None,
        typer.Option(
            help="The address that http listens on; any but loopback needs a token.  "
            "[default: 127.0.0.1]",
            metavar="HOST",
        ),
    ] = None
    port: Annotated[
        int | None,
        typer.Option(help="The port of http; 0 takes any.  [default: 8765]", metavar="N"),
    ] = None
    token_env: Annotated[
        str | None,
        typer.Option(
            help="The environment variable with the token that HTTP clients must send.",
            metavar="NAME",
        ),
    ] = None
    access: Annotated[
        Path | None,
        typer.Option(
            help="A YAML file that maps the SHA-256 of tokens to filters: HTTP clients must send "
            "one of the tokens, and see the documents that its filter admits. The file is read "
            "again when it changes.",
            metavar="FILE",
        ),
    ] = None
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            help="Another host name by which HTTP clients reach this server, such as that of "
            "a proxy; any but loopback needs a token. May be repeated.",
            metavar="NAME",
        ),
    ] = None

    log: Annotated[
        Literal["text", "json"] | None,
        typer.Option(help="How http logs each call: a line of text or JSON.  [default: text]"),
    ] = None
    metrics_port: Annotated[
        int | None,
        typer.Option(
            help="Answer Prometheus on this port of 127.0.0.1; 0 takes any.", metavar="N",
            min=0, max=65_535,
        ),
    ] = None  # fmt: skip
    log_queries: Annotated[
        bool, typer.Option("--log-queries", help="Log the beginning of queries, too.")
    ] = False

    def listen(self) -> Listening:
        """Listen as the options say. Raises ArgumentError."""
        from arag_search.mcp_server.listening import DEFAULT_HOST, DEFAULT_PORT, listen

        return listen(
            DEFAULT_HOST if self.host is None else self.host,
            DEFAULT_PORT if self.port is None else self.port,
            self.token_env,
            self.allow_host or [],
            has_access_file=self.access is not None,
        )


@with_groups
def mcp_command(
    indexes: Annotated[
        list[str],
        typer.Argument(
            help="The folder of an index or of files, or NAME=FOLDER; names distinguish several.",
            metavar="INDEX...",
        ),
    ],
    preset: Annotated[
        str | None,
        typer.Option(
            help="The preset, which sets the tools and their replies: a name, or the path of a "
            ".yaml file.  [default: logical_read]",
            metavar="PRESET",
            autocompletion=suggest_presets,
        ),
    ] = None,
    transport: Annotated[
        Literal["stdio", "http"], typer.Option(help="How clients connect.")
    ] = "stdio",
    *,
    http: HttpOptions,
    workers: Annotated[
        int, typer.Option(help="The number of calls that run at once.", metavar="N", min=1, max=256)
    ] = 8,
    describe: Annotated[
        list[str] | None,
        typer.Option(
            help="A sentence on what an index holds, which clients read before the tools: TEXT, "
            "with several indexes NAME=TEXT for each; may be repeated.",
            metavar="TEXT",
        ),
    ] = None,
    opening: Opening,
    typed: Typed,
) -> int:
    """Serve indexes to models, over the Model Context Protocol.

    A client, such as a desktop assistant or an editor, starts this command itself (stdio) or
    connects to it (http). The client gets the tools of the preset, passages and documents by
    address (arag://INDEX/chunk/ID), and the preset's instructions as a prompt. The preset connector
    has the tools search and fetch, which connectors of ChatGPT need.

    The server takes new builds and updates of its indexes without a restart. For a folder of files,
    the first start builds an index in the cache, and the server keeps it up to date.

    Examples:

    \b
      arag-search mcp my-index
      arag-search mcp notes/
      arag-search mcp wiki=my-index notes=notes-index
      arag-search mcp my-index --describe 'Notes of the Vivaldi project.'
      arag-search mcp my-index --transport http --port 8765
      arag-search mcp my-index --preset connector --transport http

    The exit code is 0 if the client disconnected, 130 after Ctrl-C, and 1 for a failure. It is 143
    after SIGTERM, or if the process that started the server has ended.
    """
    from arag_search.system.extras import check_extra

    check_extra("mcp", "mcp")
    if http.metrics_port is not None:
        check_extra("mcp", "prometheus-client", "prometheus_client")
    import_building_late("mcp_types.methods")  # models of all versions: a client speaks one
    from arag_search.engines.opensearch.address import is_address
    from arag_search.mcp_server.live import LiveIndexes
    from arag_search.mcp_server.served import check_count, descriptions
    from arag_search.tools.preset_files import DEFAULT_PRESET, load_preset
    from index_jobs.updates.opening import folder_of

    typed.check_one("token_env", "access")
    settings = load_preset(DEFAULT_PRESET if preset is None else preset)
    locations = _locations(indexes, opening.vectors)
    check_count(settings, locations)
    about = descriptions(describe or [], locations)
    with ExitStack() as stack:
        is_http = transport == "http"
        entrance = stack.enter_context(http.listen()) if is_http else _channel(typed)
        live = LiveIndexes(locations, settings, about)
        stack.callback(live.close)

        def serve(name: str, location: str) -> None:
            live.open(name, opening.opening(location, is_long=is_http))
            if settings.matching == "substring" and is_address(location):
                say(f"{settings.name}: each keyword_search reads all passages of {name} from the "
                    "server, since it matches substrings. arag_full looks words up.")  # fmt: skip

        for name, location in locations.items():
            folder = folder_of(location, fresh=opening.fresh, yes=opening.yes)
            if folder is None:
                serve(name, location)
            else:
                from arag_search.mcp_server.folders import ServedFolder

                served = ServedFolder(folder, partial(serve, name), fresh=opening.fresh)
                live.folders.append(stack.enter_context(served))
        for folder in live.folders:
            folder.serve(waits=is_http)
        try:
            code, is_idle = _serve(live, settings, entrance, http, workers)
            is_idle = all([is_idle, *(folder.stop() for folder in live.folders)])
        except KeyboardInterrupt:  # a second Ctrl-C while waiting for calls
            code, is_idle = INTERRUPTED, False
        if not is_idle:
            _leave(code)
    if code:
        _leave(code)
    return 0


def _leave(code: int) -> NoReturn:
    """End the process without waiting for threads in the middle of a call, or of a line."""
    if code == INTERRUPTED:
        say("arag-search: interrupted.")
    sys.stderr.flush()
    os._exit(code)


def _locations(indexes: list[str], vectors: Path | None) -> dict[str, str]:
    from arag_search.mcp_server.served import named_locations

    locations = named_locations(indexes)
    if vectors is not None and len(locations) > 1:
        raise ArgumentError(
            f"--vectors is one folder, and there are {len(locations)} indexes.",
            allowed="--vectors with one index",
            do="Leave it out where the vectors are in the folders of the indexes.",
        )
    return locations


def _channel(typed: Typed) -> Channel:
    """Claim standard input and output before anything else could print."""
    from arag_search.mcp_server import WEB

    import_without("mcp.server.lowlevel", *WEB)
    from arag_search.mcp_server.stdio import claim_stdio

    typed.check_effect("--transport http", *HttpOptions._fields)
    return claim_stdio()


def _serve(
    live: LiveIndexes,
    preset: Preset,
    entrance: Channel | Listening,
    http: HttpOptions,
    at_once: int,
) -> tuple[int, bool]:
    """Serve, and return the exit code with whether all calls have ended."""
    from arag_search.mcp_server.calls import log_lines, report_call
    from arag_search.mcp_server.protocol import build_server
    from arag_search.mcp_server.serving import run_until_signalled
    from arag_search.mcp_server.stdio import Channel, serve_stdio
    from arag_search.mcp_server.workers import Workers

    grants = None
    if http.access is not None:
        from arag_search.mcp_server.access import AccessFile

        grants = AccessFile(http.access, live.check)
    workers = Workers(at_once, is_shared=not isinstance(entrance, Channel))
    with ExitStack() as stack:
        metrics = None
        if http.metrics_port is not None:
            from arag_search.mcp_server.metrics import Metrics, scraped

            metrics = Metrics(live, workers)
            port = stack.enter_context(scraped(metrics, http.metrics_port))
            say(f"Prometheus is answered at http://127.0.0.1:{port}/metrics.")
        note = None if metrics is None else metrics.note
        report = partial(report_call, with_query=http.log_queries, note=note)
        server = build_server(live, preset, workers, by_grant=grants is not None, on_call=report)
        if isinstance(entrance, Channel):
            serve = partial(serve_stdio, server, entrance)
        else:
            from arag_search.mcp_server.http import Readiness, serve_http

            ready = Readiness(live, workers)
            serve = partial(serve_http, server, entrance, ready, access=grants, metrics=metrics)
            log_lines(as_json=http.log == "json")
            say(f"Serving {', '.join(live.names)} at {entrance.url}; stop with Ctrl-C.")
            if not entrance.is_local:
                say(_EXPOSED)
        return run_until_signalled(serve), workers.close()
