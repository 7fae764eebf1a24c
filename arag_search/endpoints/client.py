"""The HTTP client beneath openai's: bounds on time and size, for one origin only."""

from __future__ import annotations

import time
from typing import Any

import httpx2

from arag_search.errors import ConfigError

_CONNECT_TIMEOUT_S = 10.0
_FOLLOWED = frozenset({307, 308})  # other redirects turn a POST into a GET
_MAX_REDIRECTS = 5
_BODY_HEADERS = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class UnreadableReplyError(Exception):
    """A reply that is too large or wrongly compressed; its text continues "The reply "."""


class BoundedClient(httpx2.Client):
    """A client that reads whole replies of at most ``max_reply_bytes``, also after decompression.

    An exchange ends ``timeout_s`` after it began, however slowly the body arrives; the first byte
    may take as long again. Redirects are followed within one scheme, host and port, others are
    returned, because questions and passages may not go anywhere else. Raises ConfigError for a
    proxy of the environment that is not an HTTP proxy; from ``send`` also UnreadableReplyError.
    """

    def __init__(self, *, timeout_s: float, max_reply_bytes: int) -> None:
        connect_s = min(timeout_s, _CONNECT_TIMEOUT_S)
        try:
            super().__init__(timeout=httpx2.Timeout(timeout_s, connect=connect_s))
        except (ValueError, ImportError, httpx2.InvalidURL):
            raise ConfigError(
                "A proxy that the environment names cannot be used.",
                allowed="http://HOST:PORT",
                do="Correct HTTP_PROXY, HTTPS_PROXY or ALL_PROXY, or unset it.",
            ) from None
        self._timeout_s = timeout_s
        self._max_reply_bytes = max_reply_bytes

    def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        options["stream"] = True
        until = time.monotonic() + self._timeout_s
        for _ in range(_MAX_REDIRECTS):
            response = super().send(request, **options)
            try:
                body = self._body(response, until)
            finally:
                response.close()
            following = response.next_request if response.status_code in _FOLLOWED else None
            if following is None or _origin(following) != _origin(request):
                headers = [
                    (name, value)
                    for name, value in response.headers.multi_items()
                    if name not in _BODY_HEADERS
                ]
                return httpx2.Response(
                    response.status_code, headers=headers, content=body, request=request
                )
            request = following
        raise httpx2.TooManyRedirects(f"redirected {_MAX_REDIRECTS} times", request=request)

    def _body(self, response: httpx2.Response, until: float) -> bytes:
        too_large = UnreadableReplyError(f"is larger than {self._max_reply_bytes / 1e6:,.0f} MB")
        if int(response.headers.get("content-length", "0")) > self._max_reply_bytes:
            raise too_large
        body = bytearray()
        try:
            for piece in response.iter_bytes():
                body += piece
                if len(body) > self._max_reply_bytes:
                    raise too_large
                if time.monotonic() > until:
                    raise httpx2.ReadTimeout("timed out", request=response.request)
        except httpx2.DecodingError as error:
            raise UnreadableReplyError(f"cannot be decompressed ({error})") from None
        return bytes(body)


def _origin(request: httpx2.Request) -> tuple[str, str, int | None]:
    return request.url.scheme, request.url.host, request.url.port
