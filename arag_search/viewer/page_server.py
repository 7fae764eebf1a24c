"""The server of the page to search by hand, for the browsers of one user on this machine.

It listens on loopback. The page holds nothing of the index, so everybody may load it; its questions
need a random token. The printed address has the token in its fragment, which browsers send to
nobody. Other users can see the arguments of processes, so the browser that the command opens gets a
ticket. A ticket serves once, and brings the token.
"""

from __future__ import annotations

import re
import secrets
from contextlib import nullcontext, suppress
from functools import partial

import anyio
import anyio.to_thread
import orjson
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from arag_search.errors import AccessError, AragError, ArgumentError
from arag_search.mcp_server.callers import bearer, is_same, wrong_origin
from arag_search.mcp_server.listening import Listening
from arag_search.mcp_server.web import WebServer
from arag_search.viewer.frame import SEARCH_SCRIPTS, SEARCH_STYLES, asset, search_page
from arag_search.viewer.search_page import QUESTIONS, Asked, SearchPage

AT_ONCE = 4
"""The number of searches that run at once."""
SEARCHES = ("call", "why", "fields", "open")
MAX_BODY_BYTES = 200_000
_JSON = "application/json"
_OWN_PAGE = "Use the page whose address arag-search view prints."
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class PageServer:
    """A server of one page. ``address`` is printed, ``ticket_address`` is for the browser that the
    command opens."""

    def __init__(self, page: SearchPage, listening: Listening) -> None:
        self._page = page
        self._listening = listening
        self._token = secrets.token_urlsafe(32)
        self._ticket = secrets.token_urlsafe(32)
        self._limiter = anyio.CapacityLimiter(AT_ONCE)
        self._origin = re.compile(listening.origin_pattern)
        self.address = f"{listening.address}/#token={self._token}"
        self.ticket_address = f"{listening.address}/#token={self._ticket}"

    async def serve(self, stopping: anyio.Event) -> None:
        """Serve until ``stopping`` is set."""
        web = WebServer(self.application())
        async with anyio.create_task_group() as group:
            group.start_soon(partial(web.serve, [self._listening.socket]))
            await stopping.wait()
            web.should_exit = True

    def application(self) -> Starlette:
        """Return the application, which a test can ask without a socket."""
        names = ["about", *QUESTIONS]
        routes = [
            Route("/", self._html),
            Route("/{name}", self._asset),
            *(Route(f"/ask/{name}", self._answer, methods=["POST"]) for name in names),
        ]
        hosts = Middleware(TrustedHostMiddleware, self._listening.names, www_redirect=False)
        handlers = {404: _no_path, 405: _no_path}
        return Starlette(routes=routes, middleware=[hosts], exception_handlers=handlers)

    async def _html(self, _: Request) -> Response:
        return Response(search_page(), 200, _HEADERS, "text/html; charset=utf-8")

    async def _asset(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in SEARCH_SCRIPTS + SEARCH_STYLES:
            raise HTTPException(404)
        kind = "text/css" if name in SEARCH_STYLES else "text/javascript"
        return Response(asset(name), 200, _HEADERS, f"{kind}; charset=utf-8")

    async def _answer(self, request: Request) -> Response:
        refused = wrong_origin(request, self._origin, _OWN_PAGE) or self._wrong_token(request)
        if refused is not None:
            return refused
        body = b""
        with suppress(ClientDisconnect):
            async for piece in request.stream():
                body += piece
                if len(body) > MAX_BODY_BYTES:
                    error = ArgumentError(
                        "The question is too long.", allowed=f"{MAX_BODY_BYTES} B"
                    )
                    return PlainTextResponse(str(error), 413, _HEADERS)
        question = request.url.path.rpartition("/")[2]
        async with self._limiter if question in SEARCHES else nullcontext():
            if await request.is_disconnected():  # a newer question took its place
                return Response(status_code=204)
            answer = await anyio.to_thread.run_sync(self._answered, question, body)
        return Response(answer, 200, _HEADERS, _JSON)

    def _answered(self, question: str, body: bytes) -> bytes:
        """Return the answer, or the problem in its place, as JSON."""
        try:
            if question == "about":
                answer = {"token": self._token, **self._page.about()}
            else:
                answer = self._page.answer(question, Asked.model_validate_json(body))
        except AragError as error:
            answer = {"problem": str(error)}
        except ValidationError as error:
            answer = {"problem": f"The question cannot be read: {error}\nDo: Load the page again."}
        return orjson.dumps(answer, default=tuple)

    def _wrong_token(self, request: Request) -> Response | None:
        token = bearer(request)
        if is_same(token, self._token):
            return None
        if self._ticket and is_same(token, self._ticket) and request.url.path == "/ask/about":
            self._ticket = ""
            return None
        error = AccessError(
            "The token is missing or wrong.",
            do="Open the address that arag-search view printed, in this browser.",
        )
        return PlainTextResponse(str(error), 401, _HEADERS)


async def _no_path(_: Request, __: Exception) -> Response:
    error = ArgumentError("There is nothing at this path.", allowed="/")
    return PlainTextResponse(str(error), 404, _HEADERS)
