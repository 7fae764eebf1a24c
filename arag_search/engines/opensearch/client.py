"""Calls to a cluster: connections, time limits, retries and errors.

An attempt waits at most a few seconds for the server, and all attempts of a call together at most
its budget. Hosts are used in turn, except hosts that are down (``hosts.py``). Only calls in
``REPEATABLE`` are sent again, here.
"""

from __future__ import annotations

import json
import logging
import os
import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

import orjson

from arag_search.endpoints.refusals import Secrets, basic_credentials
from arag_search.engines.base import DEFAULT_SEARCH_TIMEOUT_S, Deadline
from arag_search.engines.opensearch.address import UNENCRYPTED_VARIABLE, Address, ConnectionOptions
from arag_search.engines.opensearch.faults import (
    PASSWORD_VARIABLE,
    UNEXPECTED,
    Fault,
    endpoint_of,
    fault_of_answer,
    fault_of_reply,
    fault_of_tls,
    unavailable,
    unexpected_answer,
)
from arag_search.engines.opensearch.hosts import LOOK_S, HostDownError, Hosts
from arag_search.errors import AccessError, AragError, ArgumentError, EngineError, IndexClosedError
from arag_search.system.calls import current_call
from arag_search.system.secrets import read_secret

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

KNOWN_SERVERS: set[str] = set()
"""The addresses at which this process has met a supported OpenSearch."""
_SEARCHES = ("/_search", "/_msearch")
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 2.0
_SHORTEST_S = 0.01
"""The shortest attempt that is worth to be begun."""
_ANSWER_S = 1.0
"""How long to wait for an answer after the server should have stopped a query."""
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
        self._hosts: Hosts | None = None
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
            if address.server not in KNOWN_SERVERS:
                client.version()
        except BaseException:
            client.close()
            raise
        KNOWN_SERVERS.add(address.server)
        return client

    def version(self) -> str:
        """Return the server's version. Raises EngineError for an old one or another kind."""
        reply: Any = self.call("GET", "/", budget_s=self.options.opening_budget_s)
        version: Any = reply.get("version") if isinstance(reply, dict) else None  # pyright: ignore
        what, do = "not OpenSearch", "Correct the address, including its prefix."
        if isinstance(version, dict) and version.get("distribution") == "opensearch":  # pyright: ignore
            number = self._secrets.hide(str(version.get("number")))  # pyright: ignore
            major = number.partition(".")[0]
            if major.isdecimal() and int(major) >= MIN_MAJOR_VERSION:
                return number
            what, do = f"OpenSearch {number}", "Update the server."
        allowed = f"OpenSearch {MIN_MAJOR_VERSION} or newer"
        raise EngineError(f"The server is {what}.", where=self.server, allowed=allowed, do=do)

    def call(
        self,
        method: str,
        path: str,
        body: Body = None,
        params: Params = None,
        *,
        budget_s: float | None = None,
        attempt_timeout_s: float | None = None,
        deadline: Deadline | None = None,
        waits: bool = True,
    ) -> Any:
        """Send a request until it is answered, and return the JSON of the answer.

        Retryable failures of a repeatable call are retried for ``budget_s`` seconds; 0 means one
        attempt. The answer is complete (see ``fault_of_answer``). After as many timeouts as there
        are hosts, the next attempt may take twice as long. Unless the call ``waits`` for a server
        that is down, it fails at once then.
        With a deadline, at which the server stops a query, the first attempt has a little more than
        its whole time. No attempt begins after it. Raises AccessError, UnavailableError,
        RefusedError for any other status, and EngineError. Raises QueryTimeoutError if a host that
        answers otherwise did not answer in the time of the deadline.
        """
        budget_s = self.options.request_budget_s if budget_s is None else budget_s
        timeout_s = attempt_timeout_s or self.options.attempt_timeout_s
        started = time.monotonic()
        budget_s = budget_s if waits else min(budget_s, DEFAULT_SEARCH_TIMEOUT_S)
        until = started + (budget_s if (method, endpoint_of(path)) in REPEATABLE else 0.0)
        if deadline is not None:
            timeout_s, until = deadline.timeout_s + _ANSWER_S, min(until, deadline.until)
        pause_s = _FIRST_PAUSE_S
        attempts = timeouts = 0
        while True:
            limit_s = timeout_s if attempts == 0 else min(timeout_s, until - time.monotonic())
            used = self.options
            outcome = self._exchange(method, path, body, params, limit_s)
            if not isinstance(outcome, Fault):
                return outcome
            outcome.error.what = self._secrets.hide(outcome.error.what)
            if isinstance(outcome.error, AccessError) and self._renew(used):
                continue
            attempts += 1
            if not waits and outcome.retryable and (since := self.down_since) is not None:
                what = f"The search server does not answer (since {since:%H:%M})."
                raise unavailable(what, self.server) from outcome.error
            if deadline is not None and outcome.unanswered:
                if self._hosts is not None and self._hosts.is_settling:
                    what = "The search server has just come back, and does not answer searches yet."
                    raise unavailable(what, self.server) from outcome.error
                raise deadline.exceeded() from outcome.error
            is_turn_over = attempts >= len(self.address.hosts)
            wait_s = pause_s if is_turn_over and not outcome.unanswered else 0.0
            if not outcome.retryable or time.monotonic() + wait_s + _SHORTEST_S >= until:
                raise _final(outcome, attempts, time.monotonic() - started)
            if outcome.unanswered:
                timeouts += 1
                if timeouts % len(self.address.hosts) == 0:
                    timeout_s *= 2
            elif wait_s:
                # Spread the clients out in time.
                time.sleep(wait_s * random.uniform(0.75, 1.0))
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    @property
    def down_since(self) -> datetime | None:
        """The local time since which no host answers; None if one does, as far as known."""
        return None if self._hosts is None else self._hosts.down_since

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
            if self._hosts is not None and self._pid == os.getpid():
                self._hosts.close()
            self._hosts = None

    def _renew(self, used: ConnectionOptions) -> bool:
        """Read the password again if a file has it; return whether it is another one than was
        ``used``. Files for TLS are read for each new connection."""
        with self._lock:
            if self.options is used and os.environ.get(f"{PASSWORD_VARIABLE}_FILE"):
                password = read_secret(PASSWORD_VARIABLE)
                if password != used.password:
                    self.options = replace(used, password=password)
                    self._secrets = Secrets.of_login(used.username, password)
                    self._hosts = None
        return self.options is not used

    def _exchange(
        self, method: str, path: str, body: Body, params: Params, timeout_s: float
    ) -> Any:
        from opensearchpy.exceptions import ConnectionError, TransportError

        hosts = self._connected()
        sent = body if isinstance(body, bytes) or body is None else encoded(body)
        params, headers = dict(params or {}), dict[str, str]()
        if path == "/_bulk" or (method, endpoint_of(path)) == ("PUT", "_doc"):
            params["pipeline"] = "_none"  # a template may set one for all indexes
        if path.endswith(_SEARCHES):  # the server can stop when we no longer wait
            params["cancel_after_time_interval"] = f"{int(1000 * timeout_s)}ms"
        if (asking := current_call.get()) is not None:
            asking.round_trips += 1
            headers["x-opaque-id"] = asking.id
        begun = time.monotonic()
        try:
            reply = _json_of(
                hosts.request(
                    method, path, params=params, body=sent, timeout=timeout_s, headers=headers
                )
            )
        except HostDownError as down:
            return self._fault(down.args[0], LOOK_S)
        except TransportError as error:
            waited = isinstance(error, ConnectionError) and time.monotonic() - begun >= timeout_s
            return replace(self._fault(error, timeout_s), unanswered=waited)
        except (ValueError, RecursionError) as error:
            words = self._secrets.hide(str(error))[:80]
            what = f"The server's answer is not JSON: {words}"
            return Fault(False, EngineError(what, where=self.server, do="Correct the address."))
        return fault_of_answer(path, sent, reply, self.server) or reply

    def _fault(self, error: Any, timeout_s: float) -> Fault:
        from opensearchpy.exceptions import ConnectionError, ConnectionTimeout, SSLError

        if not isinstance(error, ConnectionError):
            return fault_of_reply(int(error.status_code), error.info or error.error, self.server)
        if isinstance(error, ConnectionTimeout):
            return Fault(True, unavailable(f"No answer within {timeout_s:.3g} s.", self.server))
        if isinstance(error, SSLError) or self.address.is_encrypted:
            shown, authority = self.options.client_cert is not None, self.options.ca_certs
            return fault_of_tls(_message(error), self.server, shown=shown, authority=authority)
        lost = unavailable(f"No connection: {_message(error)}", self.server)
        if "aborted" in lost.what:
            lost.do = f"{lost.do} If the server speaks TLS, write https:// in the address."
        return Fault(True, lost)

    def _connected(self) -> Hosts:
        if self._hosts is None or self._pid != os.getpid() or self._closed:
            with self._lock:
                if self._closed:
                    raise IndexClosedError(f"The connection to {self.server} is closed.")
                if self._hosts is None or self._pid != os.getpid():
                    self._hosts = _hosts(self.address, self.options)
                    self._pid = os.getpid()
        return self._hosts


def _hosts(address: Address, options: ConnectionOptions) -> Hosts:
    """Return all hosts of an address, without a connection yet."""
    from opensearchpy.connection.http_urllib3 import Urllib3HttpConnection
    from opensearchpy.exceptions import HTTP_EXCEPTIONS, TransportError

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

    for name in ("opensearch", "urllib3"):
        logger = logging.getLogger(name)
        if _QUIET not in logger.handlers:
            logger.addHandler(_QUIET)  # otherwise the libraries print on stderr what we raise
    common: dict[str, Any] = {"url_prefix": address.prefix, "pool_maxsize": _POOL_SIZE}
    if address.is_encrypted:
        common |= {
            "use_ssl": True,
            "ca_certs": options.ca_certs,
            "client_cert": options.client_cert,
            "client_key": options.client_key,
        }
    headers = {"content-type": "application/json"}
    if options.username:  # the library's http_auth knows Latin-1 only
        login = basic_credentials(options.username, options.password)
        headers["authorization"] = f"Basic {login}"
    places = map(urlsplit, address.hosts)
    return Hosts([Http(at.hostname or "", at.port, headers=headers, **common) for at in places])


def _json_of(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return json.loads(text)  # it also takes NaN and halves of surrogate pairs


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
