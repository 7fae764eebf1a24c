"""The protocol: a client's requests for tools, passages and the prompt, and their answers.

There are two kinds of failure. A mistake of the model is returned as the result of a tool, marked
as an error, with the whole message. A failure that the model cannot correct is an error of the
protocol; the server keeps running.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Hashable
from dataclasses import fields, replace
from functools import partial
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import mcp.types as types
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError

from arag_search.agent.prompts import system_prompt
from arag_search.errors import (
    AragError,
    ArgumentError,
    BusyError,
    UnavailableError,
    UnknownChunkError,
    UnknownDocumentError,
)
from arag_search.mcp_server.access import filter_of, grant_of
from arag_search.mcp_server.addresses import KINDS, read_address, template_of
from arag_search.mcp_server.calls import ServedCall, query_of, report_call, served_call
from arag_search.mcp_server.catalogue import FOREIGN
from arag_search.mcp_server.gate import FAILURE
from arag_search.mcp_server.live import LiveIndexes, Session
from arag_search.mcp_server.messages import BUSY, RETRY_AFTER_S, UNAVAILABLE
from arag_search.mcp_server.workers import Workers
from arag_search.system.calls import current_call
from arag_search.tools.preset import Preset
from arag_search.tools.registry import CONNECTOR_TOOLS, meant_tool
from arag_search.tools.tool import ToolResult, error_result
from arag_search.tools.toolbox import offered_names

if TYPE_CHECKING:
    from arag_search.mcp_server.folders import Coming

NAME = "arag-search"
META = "arag_search"
"""The key of a result's ``_meta`` that holds the numbers of a ToolResult, which a model does not
see."""
_NUMBERS = [
    part.name
    for part in fields(ToolResult)
    if part.name not in ("text", "passages", "structured", "search_result")
]
STRUCTURED = "structuredContent"
"""The experimental capability of a client that reads structured content. The protocol has no word
for that, and a client that shows its model both would send the same object twice."""
QUESTION = "question"
MAX_SESSIONS = 1_024
"""The maximum number of sessions over HTTP. One more is refused until another one has ended."""
LIST_LIFETIME_MS = 300_000
"""How long a client may keep a list. It changes with the index, and with the access file."""

_FAILURES = {
    BUSY: ("busy", 429), UNAVAILABLE: ("unavailable", 503), types.INTERNAL_ERROR: ("broken", 500)
}  # fmt: skip
"""The outcomes of calls, and the statuses of requests that stand alone. In a session, the status of
an error is 200. At any other status, clients of 2025 in Python end the session, and clients in
TypeScript lose the code."""
PATIENCE_S = 10.0
"""Seconds for which a request waits for an index that is being built."""
LARGE_FILES = 300
"""The number of files of a folder above which the list of tools does not wait."""
_PROGRESS_S = 0.2
"""Seconds between two looks at that build."""

_LISTS: tuple[CacheableMethod, ...] = (
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
)
_logger = logging.getLogger(__name__)
_Page = types.PaginatedRequestParams | None
OnCall = Callable[[ServedCall], None]


def build_server(
    live: LiveIndexes,
    preset: Preset,
    workers: Workers,
    *,
    by_grant: bool = False,
    on_call: OnCall = report_call,
) -> Server[Session]:
    """Build a server of the SDK that answers from the served indexes.

    With ``by_grant``, every request is answered from the part that its token grants, as stored by
    the gate, and never from the whole indexes. ``on_call`` gets each call over HTTP when it has
    ended."""
    is_connector = all(name in CONNECTOR_TOOLS for name in preset.tools)
    file = "instructions_connector.md" if is_connector else "instructions.md"
    instructions = files(__package__ or "").joinpath(file).read_text("utf-8").strip()
    if live.about:
        instructions = f"{live.about}\n{instructions}"
    answers = _Answers(live, preset, workers, by_grant, on_call)
    server = Server(
        NAME,
        version=version(NAME),
        instructions=instructions,
        lifespan=_session,
        cache_hints=dict.fromkeys(_LISTS, CacheHint(LIST_LIFETIME_MS)),
        get_tool_input_schema=lambda _: None,  # no argument is mirrored in a header
        on_list_tools=answers.list_tools,
        on_call_tool=answers.call_tool,
        on_list_resources=answers.list_resources,
        on_list_resource_templates=answers.list_templates,
        on_read_resource=answers.read_resource,
        on_list_prompts=answers.list_prompts,
        on_get_prompt=answers.get_prompt,
    )
    server.middleware[:] = [answers.observed, _as_protocol_errors, answers.repaired]  # none traces
    if preset.uses_documents:
        server.middleware.append(_within_a_session)
    return server


async def _within_a_session(ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
    # Clients of 2026 are sent back to a session: the names of documents belong to it.
    version = ctx.protocol_version
    if ctx.request is None or version in HANDSHAKE_PROTOCOL_VERSIONS:
        return await call_next(ctx)
    text = "The names of documents belong to a session, which begins with initialize."
    versions = {"supported": list(HANDSHAKE_PROTOCOL_VERSIONS), "requested": version}
    raise MCPError(types.UNSUPPORTED_PROTOCOL_VERSION, text, versions)


@contextlib.asynccontextmanager
async def _session(_: Server[Session]) -> AsyncGenerator[Session]:
    yield Session()


_Context = ServerRequestContext[Session]
_Asked = TypeVar("_Asked")


class _Answers:
    """The answers to the requests of a client."""

    def __init__(
        self, live: LiveIndexes, preset: Preset, workers: Workers, by_grant: bool, on_call: OnCall
    ) -> None:
        self.live = live
        self.preset = preset
        self.workers = workers
        self.by_grant = by_grant
        self.on_call = on_call

        @functools.lru_cache(MAX_SESSIONS)
        def session_of(_: str) -> Session:
            return Session()

        self.session_of = session_of

    def _session(self, context: _Context) -> Session:
        # Over stdio, the process has one conversation. A request over HTTP that stands alone gets a
        # new one, so that its reply is complete.
        if context.request is None:
            return context.lifespan_context
        id_ = _session_id(context)
        return self.session_of(id_) if id_ else Session(is_held=False)

    def _client(self, context: _Context) -> Hashable:
        """Return the client of a call: a token of the access file, else a session, else an address.
        The single client over stdio is None."""
        if context.request is None:
            return None
        grant, address = grant_of(context.request), context.request.client
        return (grant and grant.digest) or _session_id(context) or (address and address.host)

    def _filter(self, context: _Context) -> str | None:
        return filter_of(context.request) if self.by_grant else None

    async def _coming(self, context: _Context, most_files: float = math.inf) -> Coming | None:
        """Wait a while for an index that is being built, unless of more files, with progress for
        the client. Return how far it is if it takes longer."""
        until = anyio.current_time() + PATIENCE_S
        shown = -1
        while (coming := self.live.coming()) is not None and anyio.current_time() < until:
            if coming.has_failed or (coming.total or 0) > most_files:
                break
            if coming.done > shown:
                shown = coming.done
                await context.session.report_progress(shown, coming.total, coming.text)
            await anyio.sleep(_PROGRESS_S)
        return coming

    async def observed(self, ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
        """Give a request over HTTP its id, and report a call once it has ended."""
        if ctx.request is None:
            return await call_next(ctx)
        grant, begun = grant_of(ctx.request), time.monotonic()
        call = ServedCall(secrets.token_hex(8), token="" if grant is None else grant.name)
        context = current_call.set(call)
        try:
            return await call_next(ctx)
        finally:
            current_call.reset(context)
            call.ms = round(1000 * (time.monotonic() - begun))
            if call.tool:
                self.on_call(call)

    async def _run(self, context: _Context, ask: Callable[[], _Asked]) -> _Asked:
        """Run what a client asks of the indexes in its turn, and note when that came."""
        asked = time.monotonic()

        def begin() -> _Asked:
            served_call().queue_ms = round(1000 * (time.monotonic() - asked))
            return ask()

        return await self.workers.run(begin, self._client(context))

    async def repaired(self, ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
        """Answer a request once more if it meets an index that is then built again."""
        try:
            return await call_next(ctx)
        except AragError as error:
            folder = self.live.folder_of(error)
            if folder is None or not await self.workers.beside(partial(folder.withdraw, error)):
                raise
        return await call_next(ctx)

    async def list_tools(self, context: _Context, _: _Page) -> types.ListToolsResult:
        filter = self._filter(context)
        await self._coming(context, LARGE_FILES)
        tools = await self.workers.beside(partial(self.live.offered, filter))
        if not _reads_structured(context):  # a schema would oblige replies to have an object
            tools = [tool.model_copy(update={"output_schema": None}) for tool in tools]
        return types.ListToolsResult(tools=tools)

    async def call_tool(
        self, context: _Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        filter, session = self._filter(context), self._session(context)
        arguments, call = params.arguments or {}, served_call()
        tools, name = offered_names(self.preset).values(), params.name
        call.tool = tool if (tool := meant_tool(name, tools)) in tools else "unknown"
        call.query = query_of(arguments)
        coming = await self._coming(context)
        if coming is not None:
            call.outcome = "unavailable"
            if coming.has_failed and context.request is not None:
                raise UnavailableError(coming.text)
            return _tool_answer(error_result(f"{coming.text} Call again in a moment."))
        run = partial(self._run, context)
        try:
            result = await self.live.call(params.name, arguments, session, filter, run)
        except UnavailableError:
            if self.live.coming() is None:
                raise
            return await self.call_tool(context, params)  # comparing the files met damage
        call.outcome, call.hits, call.tokens = result.status, result.total, result.tokens
        result = result if _reads_structured(context) else replace(result, structured=None)
        return _tool_answer(result)

    async def list_resources(self, _: _Context, __: _Page) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[])  # see the templates

    async def list_templates(self, _: _Context, __: _Page) -> types.ListResourceTemplatesResult:
        templates = [
            types.ResourceTemplate(
                name=f"{index} {kind}",
                uri_template=template_of(index, kind),
                description=f"A {kind} of the index {index}, by its percent-encoded id.",
                mime_type="text/plain",
            )
            for index in self.live.names
            for kind in KINDS
        ]
        return types.ListResourceTemplatesResult(resource_templates=templates)

    async def read_resource(
        self, context: _Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        filter, call = self._filter(context), served_call()
        call.tool = context.method
        await self._coming(context)

        def read() -> str:
            self.live.compare()
            return read_address(params.uri, self.live.indexes(filter))

        text = await self._run(context, read)
        call.outcome = "ok"
        contents = types.TextResourceContents(
            uri=params.uri, mime_type="text/plain", text=text, _meta=FOREIGN
        )
        return types.ReadResourceResult(contents=[contents])

    async def list_prompts(self, _: _Context, __: _Page) -> types.ListPromptsResult:
        name, what = self.preset.name, self.preset.description
        question = types.PromptArgument(name=QUESTION, description="What is to be answered.")
        prompt = types.Prompt(name=name, description=what, arguments=[question])
        return types.ListPromptsResult(prompts=[prompt])

    async def get_prompt(
        self, _: _Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        arguments = params.arguments or {}
        if params.name != self.preset.name:
            raise ArgumentError(
                f'There is no prompt "{params.name[:80]}".', allowed=self.preset.name
            )
        for unknown in arguments.keys() - {QUESTION}:
            raise ArgumentError(f'The prompt has no argument "{unknown[:80]}".', allowed=QUESTION)
        question = arguments.get(QUESTION, "").strip()
        text = "\n\n".join(part for part in (system_prompt(self.preset), question) if part)
        message = types.PromptMessage(
            role="user", content=types.TextContent(type="text", text=text)
        )
        return types.GetPromptResult(description=self.preset.description, messages=[message])


def _session_id(context: _Context) -> str | None:
    """Return the session over HTTP that a request belongs to, None if it stands alone."""
    if context.request is None or context.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
        return None
    return context.request.headers.get(MCP_SESSION_ID_HEADER)


def _reads_structured(context: _Context) -> bool:
    capabilities = context.session.client_capabilities
    return capabilities is not None and STRUCTURED in (capabilities.experimental or {})


def _tool_answer(result: ToolResult) -> types.CallToolResult:
    # Numbers go to _meta, because several clients show a model structured content instead of the
    # text.
    numbers = {name: getattr(result, name) for name in _NUMBERS}
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=result.text)],
        structured_content=None if result.structured is None else dict(result.structured),
        is_error=result.status == "error",
        _meta=FOREIGN | {META: numbers},
    )


async def _as_protocol_errors(ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
    # Every failure becomes an error of the protocol, with our message and without a traceback.
    try:
        return await call_next(ctx)
    except (MCPError, ValidationError):  # of the SDK, which answers them
        raise
    except (UnknownChunkError, UnknownDocumentError, ArgumentError) as error:
        served_call().outcome = "refused"
        data = {"error": type(error).__name__}
        raise MCPError(types.INVALID_PARAMS, str(error), data) from error
    except Exception as error:
        raise _failure(ctx, error) from error


def _failure(ctx: ServerRequestContext[Any], error: Exception) -> MCPError:
    """Return the error of the protocol for a failure, which the log has. Over HTTP, only the log
    names servers, folders and variables: clients learn whether another try is worth it."""
    name, is_passing = type(error).__name__, isinstance(error, UnavailableError)
    if isinstance(error, AragError):
        _logger.warning("%s", error)
        shown = error
    else:
        _logger.exception("A request failed.")
        what = f"The request failed unexpectedly ({name})."
        shown = AragError(what, do="The server's log has the cause: report it.")
    passing = BUSY if isinstance(error, BusyError) else UNAVAILABLE
    code = passing if is_passing else types.INTERNAL_ERROR
    if ctx.request is not None and code == UNAVAILABLE:
        shown = AragError("The search is not available now.", do="Try again in a moment.")
    elif ctx.request is not None and code != BUSY:
        where = f"request {served_call().id}"
        shown = AragError("The search failed.", where=where, do="Report it: the log has the cause.")
    served_call().outcome, status = _FAILURES[code]
    if ctx.request is not None and ctx.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
        ctx.request.scope[FAILURE] = status
    data = {"error": name} | ({"retry_after_s": RETRY_AFTER_S} if is_passing else {})
    return MCPError(code, str(shown), data)
