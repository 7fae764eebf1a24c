"""The protocol: a client's requests for tools, passages and the prompt, and their answers.

There are two kinds of failure. A mistake of the model is returned as the result of a tool, marked
as an error, with the whole message. A failure that the model cannot correct is an error of the
protocol; the server keeps running.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import asdict
from importlib.metadata import version
from importlib.resources import files
from typing import Any, ParamSpec, TypeVar

from mcp import MCPError, types
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from arag_search.agent.presets import Preset
from arag_search.errors import (
    AragError,
    ArgumentError,
    UnknownChunkError,
    UnknownDocumentError,
)
from arag_search.mcp_server.access import Parts, filter_of
from arag_search.mcp_server.addresses import KINDS, read_address, template_of
from arag_search.mcp_server.catalogue import Call, Catalogue
from arag_search.mcp_server.query_log import QueryLog
from arag_search.mcp_server.workers import Workers
from arag_search.tools.base import ReadSet, ToolResult
from arag_search.tools.references import Searches

NAME = "arag-search"
META = "arag_search"
"""The key of a result's ``_meta`` that holds the numbers of a ToolResult, which a model does not
see."""
QUESTION = "question"
MAX_SESSIONS = 1_024
"""The maximum number of sessions over HTTP. One more is refused until another one has ended."""
LIST_LIFETIME_MS = 300_000
"""How long a client may keep a list. It changes with a filter in the access file, or a restart."""

_LISTS: tuple[CacheableMethod, ...] = (
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
)
_READ_ONLY = types.ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
_logger = logging.getLogger(__name__)
_P = ParamSpec("_P")
_Result = TypeVar("_Result")
_Page = types.PaginatedRequestParams | None


class Session:
    """The read sets of one conversation, one for each index. Two sessions share nothing. Searches
    are numbered only if the conversation ``is_held`` here until the next call."""

    def __init__(self, *, is_held: bool = True) -> None:
        self._is_held = is_held
        self._read_sets: dict[str, ReadSet] = {}

    def read_set(self, index: str) -> ReadSet:
        """Return what was shown from an index. A call works on a copy, which is added when its
        reply is made. So a call that was cancelled before has shown nothing, and a reply that was
        lost in transit counts as shown."""
        searches = Searches() if self._is_held else None
        return self._read_sets.setdefault(index, ReadSet(is_kept=False, searches=searches))


def build_server(
    catalogue: Catalogue, preset: Preset, workers: Workers, parts: Parts | None = None
) -> Server[Session]:
    """Build a server of the SDK that answers from the catalogue.

    With ``parts``, every request is answered from the part that its token grants, as stored by the
    gate, and never from the whole indexes of the catalogue."""
    file = "instructions_connector.md" if catalogue.is_connector else "instructions.md"
    instructions = files(__package__ or "").joinpath(file).read_text("utf-8").strip()
    if catalogue.about:
        instructions = f"{catalogue.about}\n{instructions}"
    answers = _Answers(catalogue, preset, workers, parts)
    server = Server(
        NAME,
        version=version(NAME),
        instructions=instructions,
        lifespan=_session,
        cache_hints=dict.fromkeys(_LISTS, CacheHint(LIST_LIFETIME_MS)),
        get_tool_input_schema=lambda _: None,  # no argument is mirrored in a header
        on_list_tools=_as_protocol_error(answers.list_tools),
        on_call_tool=_as_protocol_error(answers.call_tool),
        on_list_resources=answers.list_resources,
        on_list_resource_templates=answers.list_templates,
        on_read_resource=_as_protocol_error(answers.read_resource),
        on_list_prompts=answers.list_prompts,
        on_get_prompt=_as_protocol_error(answers.get_prompt),
    )
    if preset.uses_documents:
        server.middleware.append(_within_a_session)
    return server


def log_searches(server: Server[Session], log: QueryLog) -> None:
    """Log the searches of a server."""

    async def logged(ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
        began = time.perf_counter()
        result = await call_next(ctx)
        if ctx.method == "tools/call" and isinstance(result, dict):  # as it is sent
            log.note(ctx.params or {}, result.get("_meta", {}).get(META, {}), began)
        return result

    server.middleware.append(logged)


async def _within_a_session(ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
    """Send a client that needs no session back to one: the names of documents belong to it."""
    version = ctx.protocol_version
    if ctx.request is None or version in HANDSHAKE_PROTOCOL_VERSIONS:
        return await call_next(ctx)
    text = "The names of documents belong to a session, which begins with initialize."
    versions = {"supported": list(HANDSHAKE_PROTOCOL_VERSIONS), "requested": version}
    raise MCPError(types.UNSUPPORTED_PROTOCOL_VERSION, text, versions)


@contextlib.asynccontextmanager
async def _session(server: Server[Session]) -> AsyncGenerator[Session]:
    del server
    yield Session()


_Context = ServerRequestContext[Session]


def _new_session(id_: str) -> Session:
    del id_
    return Session()


class _Answers:
    """The answers to the requests of a client."""

    def __init__(
        self, catalogue: Catalogue, preset: Preset, workers: Workers, parts: Parts | None
    ) -> None:
        self.catalogue = catalogue
        self.preset = preset
        self.workers = workers
        self.parts = parts
        self.session_of = functools.lru_cache(MAX_SESSIONS)(_new_session)

    def _session(self, context: _Context) -> Session:
        """Return the conversation of a request: that of the process over stdio, and over HTTP that
        of the session, or a new one for a request that stands alone, so that its reply is
        complete."""
        if context.request is None:
            return context.lifespan_context
        id_ = context.request.headers.get(MCP_SESSION_ID_HEADER)
        is_held = id_ and context.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS
        return self.session_of(id_) if is_held else Session(is_held=False)

    async def _visible(self, context: _Context) -> Catalogue:
        """Return the tools over the part that the client of this request may see."""
        if self.parts is None:
            return self.catalogue
        parts, filter = self.parts, filter_of(context.request)
        return await self.workers.run(lambda: parts.catalogue(filter))

    async def list_tools(self, context: _Context, _: _Page) -> types.ListToolsResult:
        tools = [
            types.Tool(
                name=tool.name,
                description=tool.description,
                input_schema=dict(tool.parameters),
                output_schema=None if tool.output_schema is None else dict(tool.output_schema),
                annotations=_READ_ONLY,
            )
            for tool in (await self._visible(context)).offered
        ]
        return types.ListToolsResult(tools=tools)

    async def call_tool(
        self, context: _Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        call = (await self._visible(context)).call(params.name, params.arguments or {})
        return _tool_answer(await self._run(call, context) if isinstance(call, Call) else call)

    async def _run(self, call: Call, context: _Context) -> ToolResult:
        before = self._session(context).read_set(call.served.name)
        seen = before.copy()
        result = await self.workers.run(
            lambda: call.tool.run(call.arguments, seen, skips_unknown=True)
        )
        before.add(seen)
        return result

    async def list_resources(self, context: _Context, _: _Page) -> types.ListResourcesResult:
        del context
        return types.ListResourcesResult(resources=[])  # see the templates

    async def list_templates(
        self, context: _Context, _: _Page
    ) -> types.ListResourceTemplatesResult:
        del context
        templates = [
            types.ResourceTemplate(
                name=f"{index} {kind}",
                uri_template=template_of(index, kind),
                description=f"A {kind} of the index {index}, by its percent-encoded id.",
                mime_type="text/plain",
            )
            for index in self.catalogue.served
            for kind in KINDS
        ]
        return types.ListResourceTemplatesResult(resource_templates=templates)

    async def read_resource(
        self, context: _Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        served = (await self._visible(context)).served
        text = await self.workers.run(lambda: read_address(params.uri, served))
        contents = types.TextResourceContents(uri=params.uri, mime_type="text/plain", text=text)
        return types.ReadResourceResult(contents=[contents])

    async def list_prompts(self, context: _Context, _: _Page) -> types.ListPromptsResult:
        del context
        prompt = types.Prompt(
            name=self.preset.name,
            description=self.preset.description,
            arguments=[
                types.PromptArgument(
                    name=QUESTION, description="What is to be answered.", required=False
                )
            ],
        )
        return types.ListPromptsResult(prompts=[prompt])

    async def get_prompt(
        self, context: _Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        del context
        arguments = params.arguments or {}
        if params.name != self.preset.name:
            raise ArgumentError(
                f'There is no prompt "{params.name[:80]}".', allowed=self.preset.name
            )
        unknown = [name for name in arguments if name != QUESTION]
        if unknown:
            raise ArgumentError(
                f'The prompt has no argument "{unknown[0][:80]}".', allowed=QUESTION
            )
        question = arguments.get(QUESTION, "").strip()
        text = "\n\n".join(part for part in (self.preset.system_prompt, question) if part)
        message = types.PromptMessage(
            role="user", content=types.TextContent(type="text", text=text)
        )
        return types.GetPromptResult(description=self.preset.description, messages=[message])


def _tool_answer(result: ToolResult) -> types.CallToolResult:
    """Convert a result for a client.

    Numbers go to ``_meta``, because several clients show a model structured content instead of the
    text. Connectors expect the object of their JSON as structured content.
    """
    numbers = asdict(result)
    structured = numbers.pop("structured")
    del numbers["text"], numbers["passages"]  # a client reads the text
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=result.text)],
        structured_content=structured,
        is_error=result.status == "error",
        _meta={META: numbers},
    )


def _as_protocol_error(
    answer: Callable[_P, Awaitable[_Result]],
) -> Callable[_P, Awaitable[_Result]]:
    """Return the handler with its exceptions converted to protocol errors, with our message and
    without a traceback."""

    @functools.wraps(answer)
    async def answered(*arguments: _P.args, **named: _P.kwargs) -> _Result:
        try:
            return await answer(*arguments, **named)
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

    return answered


def _protocol_error(code: int, error: AragError) -> MCPError:
    return MCPError(code, str(error), type(error).__name__)
