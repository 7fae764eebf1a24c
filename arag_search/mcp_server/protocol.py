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
from collections.abc import AsyncGenerator
from dataclasses import fields, replace
from functools import partial
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

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
    UnavailableError,
    UnknownChunkError,
    UnknownDocumentError,
)
from arag_search.mcp_server.access import filter_of
from arag_search.mcp_server.addresses import KINDS, read_address, template_of
from arag_search.mcp_server.catalogue import FOREIGN
from arag_search.mcp_server.live import LiveIndexes, Session
from arag_search.mcp_server.workers import Workers
from arag_search.tools.preset import Preset
from arag_search.tools.registry import CONNECTOR_TOOLS
from arag_search.tools.tool import ToolResult, error_result

if TYPE_CHECKING:
    from arag_search.mcp_server.folders import Coming

NAME = "arag-search"
META = "arag_search"
"""The key of a result's ``_meta`` that holds the numbers of a ToolResult, which a model does not
see."""
_NUMBERS = [
    part.name for part in fields(ToolResult) if part.name not in ("text", "passages", "structured")
]
STRUCTURED = "structuredContent"
"""The experimental capability of a client that reads structured content. The protocol has no word
for that, and a client that shows its model both would send the same object twice."""
QUESTION = "question"
MAX_SESSIONS = 1_024
"""The maximum number of sessions over HTTP. One more is refused until another one has ended."""
LIST_LIFETIME_MS = 300_000
"""How long a client may keep a list. It changes with the index, and with the access file."""

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


def build_server(
    live: LiveIndexes, preset: Preset, workers: Workers, *, by_grant: bool = False
) -> Server[Session]:
    """Build a server of the SDK that answers from the served indexes.

    With ``by_grant``, every request is answered from the part that its token grants, as stored by
    the gate, and never from the whole indexes."""
    is_connector = all(name in CONNECTOR_TOOLS for name in preset.tools)
    file = "instructions_connector.md" if is_connector else "instructions.md"
    instructions = files(__package__ or "").joinpath(file).read_text("utf-8").strip()
    if live.about:
        instructions = f"{live.about}\n{instructions}"
    answers = _Answers(live, preset, workers, by_grant)
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
    server.middleware[:] = [_as_protocol_errors, answers.repaired]  # and none that traces
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


class _Answers:
    """The answers to the requests of a client."""

    def __init__(self, live: LiveIndexes, preset: Preset, workers: Workers, by_grant: bool) -> None:
        self.live = live
        self.preset = preset
        self.workers = workers
        self.by_grant = by_grant

        @functools.lru_cache(MAX_SESSIONS)
        def session_of(_: str) -> Session:
            return Session()

        self.session_of = session_of

    def _session(self, context: _Context) -> Session:
        # Over stdio, the process has one conversation. A request over HTTP that stands alone gets a
        # new one, so that its reply is complete.
        if context.request is None:
            return context.lifespan_context
        id_ = context.request.headers.get(MCP_SESSION_ID_HEADER)
        is_held = id_ and context.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS
        return self.session_of(id_) if is_held else Session(is_held=False)

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

    async def repaired(self, ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
        """Answer a request once more if it meets an index that is then built again."""
        try:
            return await call_next(ctx)
        except AragError as error:
            folder = self.live.folder_of(error)
            if folder is None or not await self.workers.run(partial(folder.withdraw, error)):
                raise
        return await call_next(ctx)

    async def list_tools(self, context: _Context, _: _Page) -> types.ListToolsResult:
        filter = self._filter(context)
        await self._coming(context, LARGE_FILES)
        tools = await self.workers.run(partial(self.live.offered, filter))
        if not _reads_structured(context):  # a schema would oblige replies to have an object
            tools = [tool.model_copy(update={"output_schema": None}) for tool in tools]
        return types.ListToolsResult(tools=tools)

    async def call_tool(
        self, context: _Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        filter, session = self._filter(context), self._session(context)
        coming = await self._coming(context)
        if coming is not None:
            return _tool_answer(error_result(f"{coming.text} Call again in a moment."))
        arguments = params.arguments or {}
        try:
            result = await self.live.call(params.name, arguments, session, filter, self.workers)
        except UnavailableError:
            if self.live.coming() is None:
                raise
            return await self.call_tool(context, params)  # comparing the files met damage
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
        filter = self._filter(context)
        await self._coming(context)

        def read() -> str:
            self.live.compare()
            return read_address(params.uri, self.live.indexes(filter))

        text = await self.workers.run(read)
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
        raise _protocol_error(types.INVALID_PARAMS, error) from error
    except AragError as error:
        _logger.warning("%s", error)
        raise _protocol_error(types.INTERNAL_ERROR, error) from error
    except Exception as error:
        _logger.exception("A request failed.")
        unexpected = AragError(
            f"The request failed unexpectedly ({type(error).__name__}).",
            do="The server's log has the cause: report it.",
        )
        raise _protocol_error(types.INTERNAL_ERROR, unexpected) from error


def _protocol_error(code: int, error: AragError) -> MCPError:
    return MCPError(code, str(error), type(error).__name__)
