"""HTTP to one host, by the client of the standard library.

The usual connections of opensearch-py take more time of a search than parsing and snippets do, all
of it under Python's lock: with many threads they are what a process is busy with. This class takes
their place (opensearch-py lets any class do so) and keeps their exceptions; a time-out is for the
whole answer.
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
"""A page of the largest passages fits; what does not fit is no answer to a request of ours."""

_WITHOUT_PASSAGES = ("/", "/_bulk")
"""Requests whose answers are shown in messages and hold nothing of the corpus, which stays as it is
even where it happens to hold a password."""


class HttpConnection(Connection):
    """Connections to one host, kept open and taken by one thread at a time."""

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
        """``pool_maxsize`` connections are kept; threads beyond that open one for each request.

        Without ``ca_certs`` the certificates count that opensearch-py takes: those of SSL_CERT_FILE
        or SSL_CERT_DIR, else certifi's.
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
        """Return status, headers and body of the answer. Raises what opensearch-py expects, and
        UnreadableReplyError."""
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
        """Close the connections that are idle; others are closed when they are given back."""
        self._http.close()

    def _raise_error(
        self, status_code: int, raw_data: str | bytes, content_type: str | None = None
    ) -> NoReturn:
        """As the library's, for a body of whatever shape."""
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
    """Kept, for a session sends the same parameters with each search."""
    return urlencode(params)


def _translated(error: OSError | HTTPException) -> Exception:
    """The exception that opensearch-py has for it."""
    if isinstance(error, TimeoutError):
        return ConnectionTimeout("TIMEOUT", str(error), error)
    if isinstance(error, ssl.SSLError):
        return SSLError("N/A", str(error), error)
    return ConnectionError("N/A", str(error) or type(error).__name__, error)
