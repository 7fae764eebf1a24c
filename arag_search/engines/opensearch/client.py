"""Calls to a cluster: over which connection, for how long, how often, and what failures are called.

An attempt takes a few seconds at most, however slowly its answer comes, all attempts of a call
together its budget. Each goes to another of the hosts. The library below neither retries nor logs
what we raise.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from arag_search.endpoints.redaction import Secrets
from arag_search.engines.opensearch.address import Address
from arag_search.engines.opensearch.connection import UNENCRYPTED_VARIABLE, ConnectionOptions
from arag_search.engines.opensearch.faults import (
    Fault,
    RefusedError,
    fault_of_reply,
    fault_of_tls,
    unavailable,
)
from arag_search.engines.opensearch.hosts import Host, Hosts
from arag_search.engines.opensearch.shapes import Exchange, fault_of_shape
from arag_search.errors import ArgumentError, EngineError, IndexClosedError

MIN_MAJOR_VERSION = 3

Body = Mapping[str, Any] | Sequence[Mapping[str, Any]] | bytes | None
"""A sequence is sent as lines, bytes as they are."""
Params = Mapping[str, str] | None
AfterTimeout = Callable[[float], tuple[Body, Params]]
"""Gives what to send after an attempt that was not answered in time. It may send requests itself,
until the time that it is given, of ``time.monotonic``."""

__all__ = [
    "AfterTimeout",
    "Body",
    "Client",
    "Params",
    "RefusedError",
    "encoded",
]

_SEARCHES = ("/_search", "/_msearch")
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 2.0
_ANSWER_S = 1.0
"""For so long an answer is waited for after the server should have stopped a query."""


class Client:
    """A connection to the cluster of an address. Threads may share it; forks make their own."""

    def __init__(self, address: Address, options: ConnectionOptions) -> None:
        """Use ``Client.connect``."""
        self.server = address.server
        """The address of the cluster, for messages."""
        self._address = address
        self._options = options
        self._secrets = Secrets.of_login(options.username, options.password)
        self._lock = threading.Lock()
        self._hosts: Hosts | None = None
        self._pid = 0
        self._closed = False

    @staticmethod
    def connect(address: Address, options: ConnectionOptions | None = None) -> Client:
        """Connect, and see that the server is an OpenSearch we know.

        Raises ArgumentError for a password that would go unencrypted to another machine,
        AccessError, UnavailableError, and EngineError for another kind of server.
        """
        options = options or ConnectionOptions.from_environment()
        exposed = options.username and not (address.is_encrypted or address.is_local)
        if exposed and not options.allow_unencrypted:
            raise ArgumentError(
                "The password would go over the network unencrypted.",
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
        """The version of the server. Raises EngineError for one that is too old or another kind."""
        found: Any = self.call("GET", "/", budget_s=self._options.opening_budget_s)
        version: Any = found.get("version") if isinstance(found, dict) else None  # pyright: ignore
        if not isinstance(version, dict) or version.get("distribution") != "opensearch":  # pyright: ignore
            raise EngineError(
                "The server is not an OpenSearch.",
                where=self.server,
                allowed=f"OpenSearch {MIN_MAJOR_VERSION} or newer",
                do="Correct the address, its prefix included.",
            )
        number = str(version.get("number"))  # pyright: ignore
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
        after_timeout: AfterTimeout | None = None,
        budget_s: float | None = None,
        attempt_timeout_s: float | None = None,
        query_timeout_s: float | None = None,
    ) -> Any:
        """Send a request until it is answered; the JSON of the answer.

        Failures that may pass are retried for ``budget_s`` seconds; 0 is one attempt. The answer is
        whole and has the shape that the request demands (see shapes.py). A host that does not
        answer in time is set aside, unless there is ``after_timeout`` to find out whether it is to
        blame. After as many such attempts as there are hosts, the next may take twice as long. A
        query that the server stops by itself after ``query_timeout_s`` has this time from its
        second attempt on, and no attempt has much more.
        Raises AccessError, UnavailableError, RefusedError for any other status, EngineError.
        """
        budget_s = self._options.request_budget_s if budget_s is None else budget_s
        timeout_s = attempt_timeout_s or self._options.attempt_timeout_s
        started = time.monotonic()
        pause_s = _FIRST_PAUSE_S
        attempts = 0
        too_short = 0
        while True:
            begun = time.monotonic()
            if query_timeout_s is not None and (too_short or timeout_s > query_timeout_s):
                timeout_s = query_timeout_s + _ANSWER_S
            limit_s = timeout_s if attempts == 0 else min(timeout_s, started + budget_s - begun)
            found = self._attempt(method, path, body, params, limit_s, blame=after_timeout is None)
            if not isinstance(found, Fault):
                return found
            attempts += 1
            now = time.monotonic()
            if not found.passing or now + pause_s >= started + budget_s:
                raise _final(found, attempts, now - started)
            # A query that the server has stopped when we gave it up is answered at that moment.
            if found.unanswered or (query_timeout_s is not None and now - begun >= limit_s):
                # A node that hangs is given up soon, and is not given all that is left when it is
                # asked again; a slow search has its time.
                too_short += 1
                if too_short % len(self._address.hosts) == 0:
                    timeout_s *= 2
                if after_timeout is not None:
                    body, params = after_timeout(started + budget_s)
                    now = time.monotonic()
                    if now >= started + budget_s:
                        raise _final(found, attempts, now - started)
            elif attempts >= len(self._address.hosts):
                # Not all clients at once.
                time.sleep(pause_s * random.uniform(0.75, 1.0))
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    @property
    def hosts(self) -> Sequence[Host]:
        """The hosts of the address, for ``ask``."""
        return self._connected().all

    def ask(
        self,
        host: Host,
        method: str,
        path: str,
        body: Body = None,
        params: Params = None,
        *,
        timeout_s: float,
        blame: bool = True,
    ) -> Any:
        """Send a request once, to one host, whether it is set aside or not; the JSON of the answer,
        or the Fault. ``blame`` sets the host aside where it does not answer in time."""
        return self._attempt(method, path, body, params, timeout_s, host=host, blame=blame)

    def close(self) -> None:
        """Close the connections. Calls after it raise IndexClosedError."""
        with self._lock:
            self._closed = True
            if self._hosts is not None and self._pid == os.getpid():
                self._hosts.close()

    def _attempt(
        self,
        method: str,
        path: str,
        body: Body,
        params: Params,
        timeout_s: float,
        *,
        host: Host | None = None,
        blame: bool,
    ) -> Any:
        """The answer, or the Fault, without our password; of the host whose turn it is, where none
        is given."""
        outcome = self._exchange(method, path, body, params, timeout_s, host, blame)
        if isinstance(outcome, Fault):
            outcome.error.what = self._secrets.hide(outcome.error.what)
        return outcome

    def _exchange(
        self,
        method: str,
        path: str,
        body: Body,
        params: Params,
        timeout_s: float,
        host: Host | None,
        blame: bool,
    ) -> Any:
        from opensearchpy.exceptions import ConnectionError, SerializationError, TransportError

        from arag_search.endpoints.host import UnreadableReplyError

        hosts = self._connected()
        host = host or hosts.next()
        params = dict(params or {})
        if path.endswith(_SEARCHES):  # the server need not go on when we have given up
            params["cancel_after_time_interval"] = f"{int(1000 * timeout_s)}ms"
        begun = time.monotonic()
        try:
            found = host.transport.perform_request(
                method, path, params=params, body=_data(body), timeout=timeout_s
            )
        except ConnectionError as error:
            waited = time.monotonic() - begun >= timeout_s
            if blame or not waited:
                hosts.set_aside(host)
            return replace(self._connection_fault(error, timeout_s), unanswered=waited)
        except TransportError as error:
            hosts.answered(host)
            return fault_of_reply(int(error.status_code), error.info or error.error, self.server)
        except (SerializationError, UnicodeDecodeError, RecursionError) as error:
            hosts.answered(host)
            words = self._secrets.hide(str(error))[:80]
            what = f"The server answers something else than JSON: {words}"
            return Fault(False, EngineError(what, where=self.server, do="Correct the address."))
        except UnreadableReplyError as error:
            hosts.answered(host)
            what = f"The server's answer {error}."
            return Fault(False, EngineError(what, where=self.server, do="Correct the address."))
        hosts.answered(host)
        exchange = Exchange(method, path, params, body, found, self.server)
        return fault_of_shape(exchange) or found

    def _connection_fault(self, error: Any, timeout_s: float) -> Fault:
        from opensearchpy.exceptions import ConnectionTimeout, SSLError

        if isinstance(error, ConnectionTimeout):
            return Fault(True, unavailable(f"No answer within {timeout_s:.3g} s.", self.server))
        if isinstance(error, SSLError) or self._address.is_encrypted:
            return self._tls_fault(error)
        return Fault(True, unavailable(f"No connection: {_said(error)}", self.server))

    def _tls_fault(self, error: Any) -> Fault:
        shown = self._options.client_cert is not None
        return fault_of_tls(_said(error), self.server, shown=shown)

    def _connected(self) -> Hosts:
        if self._hosts is None or self._pid != os.getpid() or self._closed:
            with self._lock:
                if self._closed:
                    raise IndexClosedError(f"The connection to {self.server} is closed.")
                if self._hosts is None or self._pid != os.getpid():
                    self._hosts = Hosts(self._address, self._options)
                    self._pid = os.getpid()
        return self._hosts


def encoded(body: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> bytes:
    """A body as JSON, or several as lines of JSON."""
    if isinstance(body, Mapping):
        return orjson.dumps(body)
    return b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in body)


def _data(body: Body) -> bytes | None:
    return body if isinstance(body, bytes) or body is None else encoded(body)


def _said(error: Any) -> str:
    """What the library below the library said, in one line."""
    text = " ".join(str(error.error).split())
    # HTTPConnection(host='h', port=1): Failed to establish a new connection: [Errno 111] ...
    return text.rpartition("new connection: ")[2][:300]


def _final(fault: Fault, attempts: int, seconds: float) -> Exception:
    error = fault.error
    if fault.passing and attempts > 1:
        error.what = f"{error.what.rstrip('.')} ({attempts} attempts in {seconds:.0f} s)."
    return error
