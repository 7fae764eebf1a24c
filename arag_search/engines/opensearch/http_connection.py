"""HTTP to one host, with the standard library's client.

The usual connections of opensearch-py take more of a search's time than parsing and snippets, all
of it under Python's global lock: with many threads a process does little else. This class replaces
them, as opensearch-py allows, and raises the same exceptions. A timeout covers the whole answer.
"""

from __future__ import annotations

import base64
import functools
import ssl
import time
from collections.abc import Collection, Mapping
from http.client import HTTPException
from typing import Any, NoReturn
from urllib.parse import urlencode

import orjson
from opensearchpy.connection.base import Connection
from opensearchpy.exceptions import (
    HTTP_EXCEPTIONS,
    ConnectionError,
    ConnectionTimeout,
    SSLError,
    TransportError,
)

from arag_search.endpoints.host import HttpHost, UnreadableReplyError
from arag_search.endpoints.redaction import Secrets

MAX_ANSWER_BYTES = 256 << 20
"""A page of the largest passages fits; a larger answer is not one to a request of ours."""

_WITHOUT_PASSAGES = ("/", "/_bulk")
"""Requests whose answers appear in messages and contain nothing of the corpus. Passages are never
changed, even if they happen to contain a password."""


class HttpConnection(Connection):
    """Connections to one host, kept open and used by one thread at a time."""

    headers: dict[str, str]

    def __init__(
        self,
        host: str,
        *,
        http_auth: tuple[str, str] | None = None,
        ca_certs: str | None = None,
        client_cert: str | None = None,
        client_key: str | None = None,
        pool_maxsize: int = 10,
        **others: Any,
    ) -> None:
        """Keep ``pool_maxsize`` connections; further threads open one for each request.

        The default of ``ca_certs`` is opensearch-py's: SSL_CERT_FILE or SSL_CERT_DIR, otherwise
        certifi's.
        """
        super().__init__(host=host, **others)
        if http_auth is not None:
            token = base64.b64encode(":".join(http_auth).encode()).decode()
            self.headers["authorization"] = f"Basic {token}"
        self._secrets = Secrets.of_login(*(http_auth or ("", "")))
        self._certificates = (ca_certs, client_cert, client_key)
        self._http = HttpHost(
            self.hostname,
            self.port,
            tls=self._context if self.use_ssl else None,
            max_reply_bytes=MAX_ANSWER_BYTES,
            max_idle=pool_maxsize,
        )

    def perform_request(
        self,
        method: str,
        url: str,
        params: Mapping[str, Any] | None = None,
        body: bytes | None = None,
        timeout: float | None = None,
        ignore: Collection[int] = (),
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any, str]:
        """Return status, headers and body of the answer. Raises the exceptions of opensearch-py,
        and UnreadableReplyError."""
        target = self.url_prefix + url
        if params:
            target = f"{target}?{_query_string(tuple(params.items()))}"
        sent: Mapping[str, str] = {**self.headers, **(headers or {})}
        begun = time.perf_counter()
        try:
            reply = self._http.exchange(
                method, target, body, sent, self.timeout if timeout is None else timeout
            )
        except (OSError, HTTPException) as error:
            seconds = time.perf_counter() - begun
            where = self.host + target
            self.log_request_fail(method, where, target, body, seconds, exception=error)
            raise _translated(error) from error
        seconds = time.perf_counter() - begun
        status, received = reply.status, reply.headers
        self._raise_warnings(received.get_all("warning", ()))
        try:
            text = reply.body.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise UnreadableReplyError("is not UTF-8") from None
        where = self.host + target
        is_refused = not 200 <= status < 300 and status not in ignore
        if is_refused or url.endswith(_WITHOUT_PASSAGES):
            text = self._secrets.hide_in_json(text)
        if is_refused:
            self.log_request_fail(method, where, target, body, seconds, status, text)
            self._raise_error(status, text, received.get("content-type"))
        self.log_request_success(method, where, target, body, status, text, seconds)
        return status, received, text

    def close(self) -> None:
        """Close the idle connections; others are closed when they are returned."""
        self._http.close()

    def _raise_error(
        self, status_code: int, raw_data: str | bytes, content_type: str | None = None
    ) -> NoReturn:
        """Raise as the library does, for bodies of any shape."""
        try:
            info = orjson.loads(raw_data)
        except orjson.JSONDecodeError:
            info = None
        raise HTTP_EXCEPTIONS.get(status_code, TransportError)(status_code, raw_data, info)

    def _context(self) -> ssl.SSLContext:
        ca_certs, client_cert, client_key = self._certificates
        context = ssl.create_default_context(cafile=ca_certs or self.default_ca_certs())
        if client_cert is not None:
            context.load_cert_chain(client_cert, client_key)
        return context


@functools.lru_cache(maxsize=256)
def _query_string(params: tuple[tuple[str, Any], ...]) -> str:
    """Encode parameters. Cached because a session sends the same with each search."""
    return urlencode(params)


def _translated(error: OSError | HTTPException) -> Exception:
    """Return the exception that opensearch-py has for an error."""
    if isinstance(error, TimeoutError):
        return ConnectionTimeout("TIMEOUT", str(error), error)
    if isinstance(error, ssl.SSLError):
        return SSLError("N/A", str(error), error)
    return ConnectionError("N/A", str(error) or type(error).__name__, error)
