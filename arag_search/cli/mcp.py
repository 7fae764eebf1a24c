"""arag-search mcp: the tools for any client that speaks the Model Context Protocol."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, NoReturn

import typer

from arag_search.cli.options.index import Opening, folder_index
from arag_search.cli.options.parser import suggest_presets, with_groups
from arag_search.cli.output.printing import INTERRUPTED, say
from arag_search.errors import AragError, ArgumentError
from arag_search.system.progress import PlainProgress

if TYPE_CHECKING:
    from arag_search.mcp_server.folders import ServedFolder
    from arag_search.mcp_server.listening import Listening
    from arag_search.mcp_server.live import Coming, LiveIndexes
    from arag_search.mcp_server.served import ServedIndex
    from arag_search.mcp_server.stdio import Channel
    from arag_search.search.index import Index
    from arag_search.tools.preset import Preset
    from index_jobs.updates.folder_index import FolderIndex


class HttpOptions(NamedTuple):
    """The options of the transport http."""

    host: Annotated[
        str | None,
        typer.Option(
            help="The address that http listens on; any but loopback needs a token.  "
            "[default: 127.0.0.1]",
            metavar="HOST",
            show_default=False,
        ),
    ] = None
    port: Annotated[
        int | None,
        typer.Option(
            help="The port of http; 0 takes any.  [default: 8765]", metavar="N", show_default=False
        ),
    ] = None
    token_env: Annotated[
        str | None,
        typer.Option(
            help="The environment variable with the token that HTTP clients must send.",
            metavar="NAME",
            show_default=False,
        ),
    ] = None
    access: Annotated[
        Path | None,
        typer.Option(
            help="A YAML file that maps the SHA-256 of tokens to filters: HTTP clients must send "
            "one of the tokens, and see the documents that its filter admits. The file is read "
            "again when it changes.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            help="Another host name by which HTTP clients reach this server, such as that of "
            "a proxy; any but loopback needs a token. May be repeated.",
            metavar="NAME",
            show_default=False,
        ),
    ] = None

    def listen(self) -> Listening:
        """Listen as the options say. Raises ArgumentError."""
        from arag_search.mcp_server.listening import DEFAULT_HOST, DEFAULT_PORT, listen

        if self.token_env is not None and self.access is not None:
            raise ArgumentError(
                "--token-env and --access are both given.",
                allowed="one of them",
                do="Put the hash of the token into the file, and leave out --token-env.",
            )
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
            show_default=False,
        ),
    ] = None,
    tools: Annotated[
        str | None,
        typer.Option(
            help="The tools instead of a preset, separated by commas.",
            metavar="TOOL,...",
            show_default=False,
        ),
    ] = None,
    max_result_tokens: Annotated[
        int | None,
        typer.Option(
            help="The most tokens of a result, if the client takes fewer than the preset gives.",
            metavar="N",
            show_default=False,
        ),
    ] = None,
    transport: Annotated[
        Literal["stdio", "http"], typer.Option(help="How clients connect.")
    ] = "stdio",
    *,
    http: HttpOptions,
    describe: Annotated[
        list[str] | None,
        typer.Option(
            help="A sentence on what an index holds, which clients read before the tools: TEXT, "
            "with several indexes NAME=TEXT for each; may be repeated.",
            metavar="TEXT",
            show_default=False,
        ),
    ] = None,
    opening: Opening,
) -> int:
    """Serve indexes to models, over the Model Context Protocol.

    A client, such as a desktop assistant or an editor, starts this command itself (stdio) or
    connects to it (http). The client gets the tools of the preset, chunks and documents by address
    (arag://INDEX/chunk/ID), and the preset's instructions as a prompt. The preset connector has the
    tools search and fetch, which connectors of ChatGPT need.

    Served indexes follow builds and updates. Of a folder of files, an index is built in the cache
    on the first start; while the server runs, the index follows the files.

    Examples:

    \b
      arag-search mcp my-index
      arag-search mcp notes/
      arag-search mcp wiki=my-index notes=notes-index
      arag-search mcp my-index --describe 'Notes of the Vivaldi project.'
      arag-search mcp my-index --transport http --port 8765
      arag-search mcp my-index --preset connector --transport http

    The exit code is 0 if the client disconnected, 130 after Ctrl-C, 143 after SIGTERM, and 1 for a
    failure.
    """
    from arag_search.mcp_server.live import LiveIndexes
    from arag_search.mcp_server.served import check_count, descriptions, served_preset
    from arag_search.system.extras import check_extra

    check_extra("mcp", "mcp")
    settings = served_preset(preset, tools, max_result_tokens)
    locations = _locations(indexes, opening.vectors)
    check_count(settings, locations)
    about = descriptions(describe or [], locations)
    entrance = http.listen() if transport == "http" else _channel(http)
    with ExitStack() as stack:
        stack.enter_context(entrance)
        live = LiveIndexes({}, settings, about, tuple(locations))
        stack.callback(live.close)
        opened = _Opened(live, opening, settings, about)
        folders: dict[str, ServedFolder] = {}
        for name, location in locations.items():
            folder = folder_index(location, fresh=opening.fresh, yes=opening.yes)
            if folder is None:
                opened.add(name, location)
            else:
                sample = partial(opened.add_sample, name) if len(locations) == 1 else None
                served = _served_folder(folder, sample, fresh=opening.fresh)
                folders[name] = stack.enter_context(served)
        opened.add_folders(folders, waits=transport == "http")
        code, is_idle = _serve(live, settings, entrance, http.access)
        is_idle = all([is_idle, *(folder.stop() for folder in folders.values())])
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


def _served_folder(
    folder: FolderIndex, use_sample: Callable[[str], None] | None, *, fresh: bool
) -> ServedFolder:
    from arag_search.mcp_server.folders import ServedFolder

    if fresh:
        with folder.held():
            folder.bring_in_step(PlainProgress(sys.stderr), fresh=True)
    return ServedFolder(folder, use_sample)


class _Opened:
    """The indexes of a server as they are opened, those of folders once they are built."""

    def __init__(
        self, live: LiveIndexes, opening: Opening, preset: Preset, about: dict[str, str]
    ) -> None:
        self._live = live
        self._opening = opening
        self._preset = preset
        self._about = about
        self._failure = ""

    def add(self, name: str, location: str) -> None:
        """Open an index and serve it. Raises what opening raises."""
        prepared = partial(self._served, name)
        self._live.add(name, self._opening.opening(location).follow(prepared))

    def _served(self, name: str, index: Index) -> ServedIndex:
        from arag_search.mcp_server.served import ServedIndex

        return ServedIndex.of(name, index, self._preset, self._about.get(name, ""))

    def add_folders(self, folders: dict[str, ServedFolder], *, waits: bool) -> None:
        """Open the indexes of folders once they are there, at once where they are. Otherwise they
        are waited for here if the server ``waits``, and in a thread while it serves."""
        coming = {name: folder for name, folder in folders.items() if folder.coming() is not None}
        for name, folder in folders.items():
            if waits:
                folder.wait()
            if waits or name not in coming:
                self.add(name, str(folder.index.location))
        if coming and not waits:
            self._live.coming = lambda: self._coming(coming)
            threading.Thread(target=self._await, args=(coming,), daemon=True).start()

    def _coming(self, coming: dict[str, ServedFolder]) -> Coming | None:
        from arag_search.mcp_server.live import Coming

        if self._failure:
            return Coming(self._failure)
        missing = [name for name in coming if not self._live.has(name)]
        if not missing:
            return None
        return coming[missing[0]].coming() or Coming("The index is being opened.")

    def _await(self, coming: dict[str, ServedFolder]) -> None:
        """Open the indexes of folders as they are built."""
        for name, folder in coming.items():
            try:
                if folder.wait():
                    self.add(name, str(folder.index.location))
            except AragError as error:
                self._failure = str(error)
                say(f"arag-search: {error}")
                return

    def add_sample(self, name: str, location: str) -> None:
        """Serve the tools of an index of some files until the index of all is there."""
        self._live.sample = self._served(name, self._opening.opening(location).open())


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


def _channel(http: HttpOptions) -> Channel:
    """Claim standard input and output before anything else could print."""
    from arag_search.mcp_server.stdio import claim_stdio

    given = {name: value for name, value in http._asdict().items() if value is not None}
    of_http = [f"--{name.replace('_', '-')}" for name in given]
    if of_http:
        raise ArgumentError(
            f"{', '.join(of_http)} {'is' if len(of_http) == 1 else 'are'} for http.",
            allowed="with --transport http",
            do="Add --transport http, or leave it out.",
        )
    return claim_stdio()


def _serve(
    live: LiveIndexes,
    preset: Preset,
    entrance: Channel | Listening,
    access: Path | None,
) -> tuple[int, bool]:
    """Serve, and return the exit code with whether all calls have ended."""
    from arag_search.mcp_server.access import AccessFile
    from arag_search.mcp_server.http import serve_http
    from arag_search.mcp_server.protocol import build_server
    from arag_search.mcp_server.serving import run_until_signalled
    from arag_search.mcp_server.stdio import Channel, serve_stdio
    from arag_search.mcp_server.workers import Workers

    grants = None if access is None else AccessFile(access, live.check)
    workers = Workers()
    server = build_server(live, preset, workers, by_grant=grants is not None)
    if isinstance(entrance, Channel):
        serve = partial(serve_stdio, server, entrance)
    else:
        serve = partial(serve_http, server, entrance, access=grants)
        say(f"Serving {', '.join(live.names)} at {entrance.url}; stop with Ctrl-C.")
        if not entrance.is_local:
            say("Other machines can connect, and may use up its connections: put a proxy in front.")
    try:
        return run_until_signalled(serve), workers.close()
    except KeyboardInterrupt:  # a second Ctrl-C while waiting for calls
        return INTERRUPTED, False
