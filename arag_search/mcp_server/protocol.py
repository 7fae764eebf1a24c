"""The protocol: a client's requests for tools, passages and the prompt, and their answers.

There are two kinds of failure. A mistake of the model is returned as the result of a tool, marked
as an error, with the whole message. A failure that the model cannot correct is an error of the
protocol; the server keeps running.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import asdict
from importlib.metadata import version
from importlib.resources import files
from typing import Any, TypeVar

from mcp import McpError, types
from mcp.server.lowlevel import Server

from arag_search.agent.presets import Preset
from arag_search.errors import (
    AragError,
    ArgumentError,
    UnknownChunkError,
    UnknownDocumentError,
)
from arag_search.mcp_server.access import Parts, filter_of
from arag_search.mcp_server.addresses import KINDS, read_address, template_of
from arag_search.mcp_server.catalogue import RESET, Call, Catalogue
from arag_search.mcp_server.sessions import Session
from arag_search.mcp_server.workers import Workers
from arag_search.tools.base import ToolResult

RESOURCE_NOT_FOUND = -32002
"""The protocol's code for an address without content."""
NAME = "arag-search"
META = "arag_search"
"""The key of a result's ``_meta`` that holds the numbers of a ToolResult, which a model does not
see."""
QUESTION = "question"

_READ_ONLY = types.ToolAnnotations(
    readOnlyHint=True, destructiveHint=False, idempotentHint=True, openWorldHint=False
)
_logger = logging.getLogger(__name__)
_Request = TypeVar("_Request")


def build_server(
    catalogue: Catalogue, preset: Preset, workers: Workers, parts: Parts | None = None
) -> Server[Session, Any]:
    """Build a server of the SDK that answers from the catalogue. Each connection has a Session.

    With ``parts``, every request is answered from the part that its token grants, as stored by the
    gate, and never from the whole indexes of the catalogue."""
    file = "instructions_connector.md" if catalogue.is_connector else "instructions.md"
    instructions = files(__package__ or "").joinpath(file).read_text("utf-8").strip()
    if catalogue.about:
        instructions = f"{catalogue.about}\n{instructions}"
    server: Server[Session, Any] = Server(
        NAME, version(NAME), instructions=instructions, lifespan=_session
    )
    answers = _Answers(server, catalogue, preset, workers, parts)
    # The SDK's decorator for tools would turn every exception into a result.
    server.request_handlers |= {
        types.ListToolsRequest: _as_protocol_error(answers.list_tools),
        types.CallToolRequest: _as_protocol_error(answers.call_tool),
        types.ListResourcesRequest: answers.list_resources,
        types.ListResourceTemplatesRequest: answers.list_templates,
        types.ReadResourceRequest: _as_protocol_error(answers.read_resource),
        types.ListPromptsRequest: answers.list_prompts,
        types.GetPromptRequest: _as_protocol_error(answers.get_prompt),
    }
    return server


@contextlib.asynccontextmanager
async def _session(server: Server[Session, Any]) -> AsyncGenerator[Session]:
    del server
    yield Session()


class _Answers:
    """The answers to the requests of a client."""

    def __init__(
        self,
        server: Server[Session, Any],
        catalogue: Catalogue,
        preset: Preset,
        workers: Workers,
        parts: Parts | None,
    ) -> None:
        self.server = server
        self.catalogue = catalogue
        self.preset = preset
        self.workers = workers
        self.parts = parts

    async def _visible(self) -> Catalogue:
        """Return the tools over the part that the client of this request may see."""
        if self.parts is None:
            return self.catalogue
        parts, filter = self.parts, filter_of(self.server.request_context.request)
        return await self.workers.run(lambda: parts.catalogue(filter))

    async def list_tools(self, _: types.ListToolsRequest) -> types.ServerResult:
        tools = [
            types.Tool(
                name=tool.name,
                description=tool.description,
                inputSchema=dict(tool.parameters),
                outputSchema=None if tool.output_schema is None else dict(tool.output_schema),
                annotations=_READ_ONLY,
            )
            for tool in (await self._visible()).offered
        ]
        return types.ServerResult(types.ListToolsResult(tools=tools))

    async def call_tool(self, request: types.CallToolRequest) -> types.ServerResult:
        name, arguments = request.params.name, request.params.arguments or {}
        session = self.server.request_context.lifespan_context
        if name == RESET and self.catalogue.offers(RESET):
            result = self.catalogue.reset_result(arguments)
            if result.status == "ok":
                session.reset()
            return _tool_answer(result)
        call = (await self._visible()).call(name, arguments)
        result = await self._run(call, session) if isinstance(call, Call) else call
        return _tool_answer(result)

    async def _run(self, call: Call, session: Session) -> ToolResult:
        before = session.read_set(call.served.name)
        seen = before.copy()
        result = await self.workers.run(
            lambda: call.tool.run(call.arguments, seen, skips_unknown=True)
        )
        before.add(seen)
        return result

    async def list_resources(self, _: types.ListResourcesRequest) -> types.ServerResult:
        return types.ServerResult(types.ListResourcesResult(resources=[]))  # see the templates

    async def list_templates(self, _: types.ListResourceTemplatesRequest) -> types.ServerResult:
        templates = [
            types.ResourceTemplate(
                name=f"{index} {kind}",
                uriTemplate=template_of(index, kind),
                description=f"A {kind} of the index {index}, by its percent-encoded id.",
                mimeType="text/plain",
            )
            for index in self.catalogue.served
            for kind in KINDS
        ]
        return types.ServerResult(types.ListResourceTemplatesResult(resourceTemplates=templates))

    async def read_resource(self, request: types.ReadResourceRequest) -> types.ServerResult:
        uri = request.params.uri
        served = (await self._visible()).served
        text = await self.workers.run(lambda: read_address(str(uri), served))
        contents = types.TextResourceContents(uri=uri, mimeType="text/plain", text=text)
        return types.ServerResult(types.ReadResourceResult(contents=[contents]))

    async def list_prompts(self, _: types.ListPromptsRequest) -> types.ServerResult:
        prompt = types.Prompt(
            name=self.preset.name,
            description=self.preset.description,
            arguments=[
                types.PromptArgument(
                    name=QUESTION, description="What is to be answered.", required=False
                )
            ],
        )
        return types.ServerResult(types.ListPromptsResult(prompts=[prompt]))

    async def get_prompt(self, request: types.GetPromptRequest) -> types.ServerResult:
        arguments = request.params.arguments or {}
        if request.params.name != self.preset.name:
            raise ArgumentError(
                f'There is no prompt "{request.params.name[:80]}".', allowed=self.preset.name
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
        return types.ServerResult(
            types.GetPromptResult(description=self.preset.description, messages=[message])
        )


def _tool_answer(result: ToolResult) -> types.ServerResult:
    """Convert a result for a client.

    Numbers go to ``_meta``, because several clients show a model structured content instead of the
    text. Connectors expect the object of their JSON as structured content.
    """
    numbers = asdict(result)
    structured = numbers.pop("structured")
    del numbers["text"], numbers["passages"]  # a client reads the text
    return types.ServerResult(
        types.CallToolResult(
            content=[types.TextContent(type="text", text=result.text)],
            structuredContent=structured,
            isError=result.status == "error",
            _meta={META: numbers},
        )
    )


def _as_protocol_error(
    answer: Callable[[_Request], Awaitable[types.ServerResult]],
) -> Callable[[_Request], Awaitable[types.ServerResult]]:
    """Return the handler with its exceptions converted to protocol errors, with our message and
    without a traceback."""

    @functools.wraps(answer)
    async def answered(request: _Request) -> types.ServerResult:
        try:
            return await answer(request)
        except (UnknownChunkError, UnknownDocumentError) as error:
            raise _protocol_error(RESOURCE_NOT_FOUND, error) from error
        except ArgumentError as error:
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


def _protocol_error(code: int, error: AragError) -> McpError:
    return McpError(types.ErrorData(code=code, message=str(error), data=type(error).__name__))
