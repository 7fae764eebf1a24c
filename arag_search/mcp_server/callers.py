"""Who sends an HTTP request: its Origin, and its token.

An Origin keeps out web pages: a page in a browser on this machine could otherwise reach loopback. A
token keeps out other machines, and other users of this one.
"""

from __future__ import annotations

import hmac
import re

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from arag_search.errors import AccessError

_SHOWN_CHARACTERS = 80


def wrong_origin(request: Request, origin: re.Pattern[str], do: str) -> Response | None:
    """Return the refusal of a request by a page whose Origin does not match, with what to ``do``;
    None if it may pass. A request without an Origin comes from no page."""
    # Duplicate headers are refused here and below: programs differ in which one they take.
    origins = request.headers.getlist("origin")
    if len(origins) <= 1 and all(map(origin.fullmatch, origins)):
        return None
    shown = origins[0][:_SHOWN_CHARACTERS]
    error = AccessError(
        "Pages of this origin may not use the server.",
        where=f"Origin: {shown}{'...' if shown != origins[0] else ''}",
        allowed="names of loopback, and those that the server was started with",
        do=do,
    )
    return PlainTextResponse(str(error), 403)


def bearer(request: Request) -> str:
    """Return the token that a request sends; an empty text if it sends none, or several."""
    headers = request.headers.getlist("authorization")
    kind, _, shown = (headers[0] if len(headers) == 1 else "").partition(" ")
    return shown.strip() if kind.lower() == "bearer" else ""


def is_same(token: str, other: str) -> bool:
    """Return whether two tokens are the same, in constant time."""
    return hmac.compare_digest(token.encode("latin-1", "replace"), other.encode("latin-1"))
