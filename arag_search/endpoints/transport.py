"""The transport of openai's client: an HttpHost with its bounds, for one origin only."""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping
from http.client import HTTPException, IncompleteRead
from urllib.parse import unquote, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx2

from arag_search.endpoints.host import HttpHost, HttpReply, Proxy
from arag_search.errors import ConfigError

_PORTS = {"http": 80, "https": 443}
_FOLLOWED = frozenset({307, 308})  # other redirects turn a POST into a GET
_MAX_REDIRECTS = 5
_OWN_HEADERS = frozenset({"accept-encoding", "connection", "content-length", "host"})
_BODY_HEADERS = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class EndpointTransport(httpx2.BaseTransport):
    """A transport to the origin of ``base_url``.

    ``timeout_s`` bounds a whole exchange, including redirects within the origin. A redirect to
    another origin is returned as a reply. Raises ConfigError if the environment names a proxy
    that is not an HTTP proxy.
    """

    def __init__(
        self, base_url: str, *, timeout_s: float, connect_timeout_s: float, max_reply_bytes: int
    ) -> None:
        parts = urlsplit(base_url)
        host = parts.hostname or ""
        self._origin = _origin(base_url)
        self._timeout_s = timeout_s
        self._host = HttpHost(
            host,
            parts.port or _PORTS[parts.scheme],
            tls=httpx2.create_ssl_context if parts.scheme == "https" else None,
            max_reply_bytes=max_reply_bytes,
            connect_timeout_s=connect_timeout_s,
            proxy=_proxy(parts.scheme, host),
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        headers = {
            name: value for name, value in request.headers.items() if name not in _OWN_HEADERS
        }
        try:
            reply = self._exchange(request.method, str(request.url), request.read(), headers)
        except TimeoutError as error:
            raise httpx2.ReadTimeout(str(error), request=request) from error
        except IncompleteRead as error:
            why = "peer closed connection in the middle of its reply"
            raise httpx2.RemoteProtocolError(why, request=request) from error
        except HTTPException as error:
            why = f"{type(error).__name__} {error}".strip()
            raise httpx2.RemoteProtocolError(why, request=request) from error
        except OSError as error:
            raise httpx2.ConnectError(str(error), request=request) from error
        kept = [
            (name.encode("latin-1", "replace"), str(value).encode("latin-1", "replace"))
            for name, value in reply.headers.items()
            if name.lower() not in _BODY_HEADERS
        ]
        return httpx2.Response(reply.status, headers=kept, content=reply.body, request=request)

    def close(self) -> None:
        self._host.close()

    def _exchange(
        self, method: str, url: str, body: bytes, headers: Mapping[str, str]
    ) -> HttpReply:
        until = time.monotonic() + self._timeout_s
        for _ in range(_MAX_REDIRECTS):
            parts = urlsplit(url)
            target = f"{parts.path or '/'}?{parts.query}".removesuffix("?")
            reply = self._host.exchange(method, target, body, headers, until - time.monotonic())
            if reply.status not in _FOLLOWED:
                return reply
            new_url = _redirected(url, reply.headers.get("location", ""))
            if new_url is None or _origin(new_url) != self._origin:
                return reply
            url = new_url
        raise HTTPException(f"redirected {_MAX_REDIRECTS} times")


def _redirected(url: str, location: str) -> str | None:
    """Return where a redirect leads; None for anything but a URL of printable ASCII."""
    if not (location.isascii() and location.isprintable()) or " " in location:
        return None
    try:
        joined = urljoin(url, location)
        _origin(joined)
    except ValueError:  # malformed brackets or port
        return None
    return joined


def _origin(url: str) -> tuple[str, str | None, int | None]:
    """Return scheme, host and port. Raises ValueError for a malformed URL."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)


def _proxy(scheme: str, host: str) -> Proxy | None:
    """Return the proxy that the environment names for a host. Errors never show its password."""
    proxies = getproxies()
    url = proxies.get(scheme) or proxies.get("all")
    if not url or proxy_bypass(host):
        return None
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        port = parts.port or 80
    except ValueError:
        parts, port = urlsplit("//"), 0
    if parts.scheme != "http" or not parts.hostname:
        raise ConfigError(
            f"The proxy that the environment names for {scheme}:// cannot be used.",
            allowed="http://HOST:PORT",
            do=f"Correct {scheme.upper()}_PROXY or ALL_PROXY, or add {host} to NO_PROXY.",
        )
    if parts.username is None:
        return Proxy(parts.hostname, port)
    login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return Proxy(parts.hostname, port, f"Basic {base64.b64encode(login.encode()).decode()}")
