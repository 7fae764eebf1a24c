"""Calls to a cluster: connections, time limits, retries and errors.

An attempt waits at most a few seconds for the server, and all attempts of a call together at most
its budget. The library's transport uses the hosts in turn, and sets a host aside for a while that
does not answer. It never retries by itself: only calls in ``REPEATABLE`` are sent again, here.
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import urlsplit

import orjson

from arag_search.endpoints.refusals import Secrets, basic_credentials
from arag_search.engines.opensearch.address import UNENCRYPTED_VARIABLE, Address, ConnectionOptions
from arag_search.engines.opensearch.faults import (
    UNEXPECTED,
    Fault,
    endpoint_of,
    fault_of_answer,
    fault_of_reply,
    fault_of_tls,
    unavailable,
    unexpected_answer,
)
from arag_search.errors import AragError, ArgumentError, EngineError, IndexClosedError

_Read = TypeVar("_Read")

MIN_MAJOR_VERSION = 3

Body = Mapping[str, Any] | Sequence[Mapping[str, Any]] | bytes | None
"""A sequence is sent as lines of JSON, bytes as they are."""
Params = Mapping[str, str] | None

REPEATABLE = frozenset(
    {
        *(("GET", endpoint) for endpoint in ("", "/", "_alias", "_cluster", "_count", "_doc")),
        *(("GET", endpoint) for endpoint in ("_mapping", "_stats")),
        *(("POST", endpoint) for endpoint in ("_search", "_msearch", "_count")),
        *(("POST", endpoint) for endpoint in ("_refresh", "_flush", "_forcemerge")),
        ("POST", "_bulk"),  # documents are created, or deleted, under their own ids
        ("PUT", ""),  # an index that exists already is refused
        ("PUT", "_mapping"),
        ("PUT", "_settings"),
        ("PUT", "_doc"),  # the lock of an update, with the version that it replaces
        ("DELETE", ""),
    }
)
"""Method and endpoint of the calls that do the same if they are sent twice. A change of aliases is
none of them: whoever sends one looks first whether it took effect."""

_SEARCHES = ("/_search", "/_msearch")
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 2.0
_SHORTEST_S = 0.01
"""The shortest attempt that is worth to be begun."""
_ANSWER_S = 1.0
"""How long to wait for an answer after the server should have stopped a query."""
_ASIDE_S = 5.0
_DOUBLINGS = 3
"""A host that does not answer is set aside for 5 s, and after each further failure for twice as
long, up to 40 s."""
_POOL_SIZE = 64
"""The most connections that are kept open to a host; further threads open a connection for each
request."""
_QUIET = logging.NullHandler()


class Client:
    """A connection to the cluster of an address. Threads may share it; forks create their own."""

    def __init__(self, address: Address, options: ConnectionOptions) -> None:
        """Use ``Client.connect``."""
        self.server = address.server
        """The address of the cluster, for messages."""
        self.address = address
        self.options = options
        self._secrets = Secrets.of_login(options.username, options.password)
        self._lock = threading.Lock()
        self._transport: Any = None
        self._pid = 0
        self._closed = False

    @staticmethod
    def connect(address: Address, options: ConnectionOptions | None = None) -> Client:
        """Connect, and check that the server is a supported OpenSearch.

        Raises ArgumentError if a password would be sent unencrypted to another machine,
        AccessError, UnavailableError, and EngineError for another kind of server.
        """
        options = options or ConnectionOptions.from_environment()
        exposed = options.username and not (address.is_encrypted or address.is_local)
        if exposed and not options.allow_unencrypted:
            raise ArgumentError(
                "The password would be sent over the network unencrypted.",
                where=address.server,
                allowed="https://, or http:// to this machine",
                do=f"Write https:// in the address, or set {UNENCRYPTED_VARIABLE}=1.",
            )
        client = Client(address, options)
        try:
            client.version()
        except BaseException:
            client.close()
            raise
        return client

    def version(self) -> str:
        """Return the server's version. Raises EngineError for an old one or another kind."""
        reply: Any = self.call("GET", "/", budget_s=self.options.opening_budget_s)
        version: Any = reply.get("version") if isinstance(reply, dict) else None  # pyright: ignore
        if not isinstance(version, dict) or version.get("distribution") != "opensearch":  # pyright: ignore
            raise EngineError(
                "The server is not OpenSearch.",
                where=self.server,
                allowed=f"OpenSearch {MIN_MAJOR_VERSION} or newer",
                do="Correct the address, including its prefix.",
            )
        number = self._secrets.hide(str(version.get("number")))  # pyright: ignore
        major = number.partition(".")[0]
        if not major.isdecimal() or int(major) < MIN_MAJOR_VERSION:
            raise EngineError(
                f"The server is OpenSearch {number}.",
                where=self.server,
                allowed=f"OpenSearch {MIN_MAJOR_VERSION} or newer",
                do="Update the server.",
            )
        return number

    def call(
        self,
        method: str,
        path: str,
        body: Body = None,
        params: Params = None,
        *,
        budget_s: float | None = None,
        attempt_timeout_s: float | None = None,
        query_timeout_s: float | None = None,
    ) -> Any:
        """Send a request until it is answered, and return the JSON of the answer.

        Retryable failures of a repeatable call are retried for ``budget_s`` seconds; 0 means one
        attempt. The answer is complete (see ``fault_of_answer``). A host that times out is set
        aside. After as many timeouts as there are hosts, the next attempt may take twice as long.
        With ``query_timeout_s``, after which the server stops a query, an attempt has not much more
        than that, and the first timeout is the last one.
        Raises AccessError, UnavailableError, RefusedError for any other status, EngineError.
        """
        budget_s = self.options.request_budget_s if budget_s is None else budget_s
        timeout_s = attempt_timeout_s or self.options.attempt_timeout_s
        if query_timeout_s is not None:
            timeout_s = query_timeout_s + _ANSWER_S
        until = time.monotonic() + (budget_s if (method, endpoint_of(path)) in REPEATABLE else 0.0)
        started = time.monotonic()
        pause_s = _FIRST_PAUSE_S
        attempts = timeouts = 0
        while True:
            limit_s = timeout_s if attempts == 0 else min(timeout_s, until - time.monotonic())
            outcome = self._attempt(method, path, body, params, limit_s)
            if not isinstance(outcome, Fault):
                return outcome
            attempts += 1
            is_turn_over = attempts >= len(self.address.hosts)
            wait_s = pause_s if is_turn_over and not outcome.unanswered else 0.0
            is_out_of_time = outcome.unanswered and query_timeout_s is not None
            is_last = is_out_of_time or time.monotonic() + wait_s + _SHORTEST_S >= until
            if not outcome.retryable or is_last:
                raise _final(outcome, attempts, time.monotonic() - started)
            if outcome.unanswered:
                timeouts += 1
                if timeouts % len(self.address.hosts) == 0:
                    timeout_s *= 2
            elif wait_s:
                # Spread the clients out in time.
                time.sleep(wait_s * random.uniform(0.75, 1.0))
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def read(self, reading: Callable[[Any], _Read], answer: Any) -> _Read:
        """Return what ``reading`` makes of an answer, which it must not leave for later.

        Raises EngineError if ``reading`` fails, because the answer is not one of OpenSearch. Only
        here is an error of Python's blamed on the server. So ``reading`` takes values out of the
        answer, and does nothing else.
        """
        try:
            return reading(answer)
        except AragError:
            raise
        except UNEXPECTED as error:
            raise unexpected_answer(error, self.server) from error

    def close(self) -> None:
        """Close the connections. Calls after it raise IndexClosedError."""
        with self._lock:
            self._closed = True
            if self._transport is not None and self._pid == os.getpid():
                self._transport.close()
            self._transport = None

    def _attempt(self, method: str, path: str, body: Body, params: Params, timeout_s: float) -> Any:
        outcome = self._exchange(method, path, body, params, timeout_s)
        if isinstance(outcome, Fault):
            outcome.error.what = self._secrets.hide(outcome.error.what)
        return outcome

    def _exchange(
        self, method: str, path: str, body: Body, params: Params, timeout_s: float
    ) -> Any:
        from opensearchpy.exceptions import ConnectionError, SerializationError, TransportError

        transport = self._connected()
        sent = body if isinstance(body, bytes) or body is None else encoded(body)
        params = dict(params or {})
        if path.endswith(_SEARCHES):  # the server can stop when we no longer wait
            params["cancel_after_time_interval"] = f"{int(1000 * timeout_s)}ms"
        begun = time.monotonic()
        try:
            reply = transport.perform_request(
                method, path, params=params, body=sent, timeout=timeout_s
            )
        except ConnectionError as error:
            waited = time.monotonic() - begun >= timeout_s
            return replace(self._connection_fault(error, timeout_s), unanswered=waited)
        except TransportError as error:
            return fault_of_reply(int(error.status_code), error.info or error.error, self.server)
        except (SerializationError, UnicodeDecodeError, RecursionError) as error:
            words = self._secrets.hide(str(error))[:80]
            what = f"The server's answer is not JSON: {words}"
            return Fault(False, EngineError(what, where=self.server, do="Correct the address."))
        return fault_of_answer(path, sent, reply, self.server) or reply

    def _connection_fault(self, error: Any, timeout_s: float) -> Fault:
        from opensearchpy.exceptions import ConnectionTimeout, SSLError

        if isinstance(error, ConnectionTimeout):
            return Fault(True, unavailable(f"No answer within {timeout_s:.3g} s.", self.server))
        if isinstance(error, SSLError) or self.address.is_encrypted:
            shown = self.options.client_cert is not None
            return fault_of_tls(_message(error), self.server, shown=shown)
        return Fault(True, unavailable(f"No connection: {_message(error)}", self.server))

    def _connected(self) -> Any:
        if self._transport is None or self._pid != os.getpid() or self._closed:
            with self._lock:
                if self._closed:
                    raise IndexClosedError(f"The connection to {self.server} is closed.")
                if self._transport is None or self._pid != os.getpid():
                    self._transport = _transport(self.address, self.options)
                    self._pid = os.getpid()
        return self._transport


def _transport(address: Address, options: ConnectionOptions) -> Any:
    """Return the library's transport to all hosts of an address, with its own retries off."""
    from opensearchpy.connection.http_urllib3 import Urllib3HttpConnection
    from opensearchpy.exceptions import HTTP_EXCEPTIONS, TransportError
    from opensearchpy.serializer import JSONSerializer
    from opensearchpy.transport import Transport

    class Http(Urllib3HttpConnection):
        """The library's connections, for refusals whose body has any shape."""

        def _raise_error(
            self, status_code: int, raw_data: str | bytes, content_type: str | None = None
        ) -> None:
            try:
                info = orjson.loads(raw_data)
            except orjson.JSONDecodeError:
                info = None
            raise HTTP_EXCEPTIONS.get(status_code, TransportError)(status_code, raw_data, info)

    class Json(JSONSerializer):
        """The library's serializer with a faster parser. Bodies are bytes already."""

        def loads(self, s: str) -> Any:
            try:
                return orjson.loads(s)
            except orjson.JSONDecodeError:
                return super().loads(s)

        def dumps(self, data: Any) -> Any:
            return data if isinstance(data, bytes) else super().dumps(data)

    for name in ("opensearch", "urllib3"):
        logger = logging.getLogger(name)
        if _QUIET not in logger.handlers:
            logger.addHandler(_QUIET)  # otherwise the libraries print on stderr what we raise
    tls: dict[str, Any] = {}
    if address.is_encrypted:
        tls = {
            "use_ssl": True,
            "ca_certs": options.ca_certs,
            "client_cert": options.client_cert,
            "client_key": options.client_key,
        }
    headers = {"content-type": "application/json"}
    if options.username:  # the library's http_auth knows Latin-1 only
        login = basic_credentials(options.username, options.password)
        headers["authorization"] = f"Basic {login}"
    return Transport(
        [
            {"host": parts.hostname, "port": parts.port, "url_prefix": address.prefix}
            for parts in map(urlsplit, address.hosts)
        ],
        connection_class=Http,
        serializer=Json(),
        max_retries=0,
        retry_on_timeout=True,  # with no retries: a host that hangs is set aside as a dead one is
        retry_on_status=(),
        dead_timeout=_ASIDE_S,
        timeout_cutoff=_DOUBLINGS,
        pool_maxsize=_POOL_SIZE,
        headers=headers,
        **tls,
    )


def encoded(body: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> bytes:
    """Return a body as JSON, or several as lines of JSON."""
    if isinstance(body, Mapping):
        return orjson.dumps(body)
    return b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in body)


def _message(error: Any) -> str:
    text = " ".join(str(error.error).split())
    # HTTPConnection(host='h', port=1): Failed to establish a new connection: [Errno 111] ...
    return text.rpartition("new connection: ")[2][:300]


def _final(fault: Fault, attempts: int, seconds: float) -> Exception:
    error = fault.error
    if fault.retryable and attempts > 1:
        error.what = f"{error.what.rstrip('.')} ({attempts} attempts in {seconds:.0f} s)."
    return error
