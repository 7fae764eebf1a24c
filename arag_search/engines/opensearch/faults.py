"""The meaning of failed calls: whether a retry may help, and the error to raise if not.

A lost node arrives as status 500 with its cause deep inside, and a partial answer as status 200.
Their causes distinguish both from queries that fail everywhere.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from arag_search.errors import (
    AccessError,
    AragError,
    ArgumentError,
    EngineError,
    QueryTimeoutError,
    RefusedError,
    UnavailableError,
)

USERNAME_VARIABLE = "OPENSEARCH_USERNAME"
PASSWORD_VARIABLE = "OPENSEARCH_PASSWORD"
CA_CERTS_VARIABLE = "OPENSEARCH_CA_CERTS"
CLIENT_CERT_VARIABLE = "OPENSEARCH_CLIENT_CERT"
CLIENT_KEY_VARIABLE = "OPENSEARCH_CLIENT_KEY"

MAX_REASON_CHARACTERS = 500
_TIME_EXCEEDED = "time_exceeded_exception"
_PHASE_EXCEEDED = ("query_phase_execution_exception", "Time exceeded")
"""The causes of a search that reached its ``timeout`` and may not give a partial answer."""

_RETRYABLE_STATUSES = frozenset({408, 429, 502, 503, 504})
_BLOCKED = frozenset({"cluster_block_exception", "index_create_block_exception"})
"""Errors of blocks. They have the status 403 of missing permissions or, after a full disk, the
status 429 of a busy server. With status 503 the cluster is not ready."""
_CLOSED = "index_closed_exception"
_BLOCK = re.compile(r"\[(?:FORBIDDEN|TOO_MANY_REQUESTS)/(\d+)/")
BLOCKS = {
    "5": "index.blocks.read_only",
    "6": "cluster.blocks.read_only",
    "7": "index.blocks.read",
    "8": "index.blocks.write",
    "9": "index.blocks.metadata",
    "10": "cluster.blocks.create_index",
    "12": "index.blocks.read_only_allow_delete",
    "13": "cluster.blocks.read_only_allow_delete",
}
"""The settings that set a block, by the number in its reason."""
OF_DISKS = [BLOCKS[number] for number in ("10", "12", "13")]
"""The blocks that the server sets itself, and takes away when there is room again."""
_EXPENSIVE = "search.allow_expensive_queries"
_RETRYABLE = frozenset({
    "circuit_breaking_exception", "cluster_manager_not_discovered_exception",
    "connect_transport_exception", "illegal_index_shard_state_exception",
    "no_shard_available_action_exception", "node_closed_exception", "node_disconnected_exception",
    "node_not_connected_exception", "opensearch_rejected_execution_exception",
    "receive_timeout_transport_exception", "rejected_execution_exception",
    "shard_not_found_exception", "task_cancelled_exception", "unavailable_shards_exception",
})  # fmt: skip
"""Causes in the nodes, not in the request."""


_REJECTED_CERTIFICATE = (
    "ALERT_BAD_CERTIFICATE", "ALERT_CERTIFICATE", "ALERT_HANDSHAKE_FAILURE", "ALERT_UNKNOWN_CA",
    "ALERT_UNSUPPORTED_CERTIFICATE",
)  # fmt: skip
"""How servers report that they reject our certificate."""

_CERTIFICATES = {
    "has expired": ("has expired", "Renew it on the server, or set the clock of this machine."),
    "not yet valid": ("is not valid yet", "Set the clock of this machine or of the server."),
    "match": ("is for another host", "Write a host that it names in the address, or renew it."),
}
"""The fault of a certificate, and what to do, by words of OpenSSL or urllib3."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A failed call. ``retryable``: another attempt, perhaps at another node, may succeed.
    ``unanswered``: the server did not answer within the time of the attempt."""

    retryable: bool
    error: AragError
    unanswered: bool = False


def fault_of_reply(status: int, body: Any, server: str) -> Fault:
    """Return the fault of an answer with an error status."""
    why = deepest_reason(body) or f"status {status}"
    causes = list(_causes(body))
    kinds = {kind for kind, _ in causes}
    if any(map(_is_time_exceeded, causes)):
        return Fault(False, _out_of_time(server))
    if any(_EXPENSIVE in reason for _, reason in causes):
        return Fault(False, _not_allowed(server))
    if (kinds & _BLOCKED and status != 503) or _CLOSED in kinds:
        return Fault(False, _blocked(why, server))
    if status in _RETRYABLE_STATUSES or (status >= 500 and kinds & _RETRYABLE):
        return Fault(True, unavailable(f"The server is not able to answer: {why}", server))
    if status == 401:
        return Fault(False, _rejected_credentials(why, server))
    if status == 403:
        return Fault(
            False,
            AccessError(
                f"The user has no permission for this: {why}",
                where=server,
                do="Give the user a role for it, or use another user.",
            ),
        )
    kind = causes[0][0] if causes else ""
    what = f"The server refused (status {status}): {why}"
    return Fault(False, RefusedError(what, status=status, kind=kind, where=server))


def _blocked(why: str, server: str) -> EngineError:
    """Return the error for a block, or for a closed index."""
    names = [BLOCKS[number] for number in _BLOCK.findall(why) if number in BLOCKS]
    kinds = " and ".join(sorted({name.partition(".")[0] for name in names}))
    if _CLOSED in why:
        do = "Open the index (POST /INDEX/_open)"
    elif any(name in OF_DISKS for name in names):
        do = "Free disk space on the nodes, after which the server lifts the block"
    else:
        do = f"Set {', '.join(names) or 'it'} to null in the settings of the {kinds or 'server'}"
    what = "The index is closed" if _CLOSED in why else "The server blocks this"
    shown = f" ({', '.join(names)})" if names else ""
    return EngineError(f"{what}{shown}: {why}", where=server, do=f"{do}; repeat the command then.")


def _not_allowed(server: str) -> ArgumentError:
    return ArgumentError(
        f"The search server takes no prefixes and no fuzzy words ({_EXPENSIVE}: false).",
        where=server,
        allowed="words, phrases, titles and metadata fields",
        do=f"Write whole words, or set {_EXPENSIVE} to null on the server.",
    )


def endpoint_of(path: str) -> str:
    """Return the part of a path that begins with an underscore, such as ``_search``; empty if the
    path names indexes alone."""
    return "/" if path == "/" else next((p for p in path.split("/") if p.startswith("_")), "")


def fault_of_answer(path: str, sent: bytes | None, answer: Any, server: str) -> Fault | None:
    """Return the fault of an answer with status 200; None if it is complete.

    A search must have searched all shards, and each search and each action of a bulk request must
    have an outcome. An answer that lacks the fields that say so is a fault as well.
    """
    endpoint = endpoint_of(path)
    try:
        if endpoint in ("_search", "_count"):
            return _incomplete(answer, server, all_copies=False)
        if endpoint in ("_refresh", "_flush", "_forcemerge", "_stats"):
            return _incomplete(answer, server, all_copies=True)
        if endpoint == "_msearch":
            return _incomplete_searches(answer["responses"], sent or b"", server)
        if endpoint == "_bulk":
            is_deletion = (sent or b"").startswith(b'{"delete"')
            actions = (sent or b"").count(b"\n") // (1 if is_deletion else 2)
            return _cut(len(answer["items"]), actions, "items", server)
    except UNEXPECTED as error:
        return Fault(False, unexpected_answer(error, server))
    return None


def _incomplete_searches(answers: Any, sent: bytes, server: str) -> Fault | None:
    if cut := _cut(len(answers), sent.count(b"\n") // 2, "responses", server):
        return cut
    faults = [
        fault_of_reply(answer["status"], answer, server)
        if "error" in answer
        else _incomplete(answer, server, all_copies=False)
        for answer in answers
    ]
    # A fault that is not retryable decides.
    return min(filter(None, faults), key=lambda fault: fault.retryable, default=None)


def _cut(count: int, expected: int, what: str, server: str) -> Fault | None:
    if count == expected:
        return None
    error = unexpected_answer(f"{count:,} {what} for {expected:,} requests", server)
    return Fault(False, error)


def _incomplete(answer: Any, server: str, *, all_copies: bool) -> Fault | None:
    """Return the fault of an answer that lacks shards, or was stopped. ``all_copies``: the request
    also goes to replicas, some of which may be unassigned."""
    shards = answer["_shards"]
    total, failed = shards["total"], shards["failed"]
    if failed:
        failures = _objects(shards.get("failures"))
        causes = [pair for failure in failures for pair in _chain(failure.get("reason"))]
        if any(map(_is_time_exceeded, causes)):
            return Fault(False, _out_of_time(server))
        why = ": ".join(causes[-1])[:MAX_REASON_CHARACTERS] if causes else "no reason is given"
        error = unavailable(f"{failed} of {total} shards did not answer: {why}", server)
        return Fault(any(kind in _RETRYABLE for kind, _ in causes), error)
    clusters = answer.get("_clusters", {"total": 0, "successful": 0})
    for searched in ({"total": 0, "successful": 0} if all_copies else shards, clusters):
        if searched["successful"] != searched["total"] or (
            searched is clusters and (clusters.get("skipped"))
        ):
            why = f"{searched['successful']} of {searched['total']} shards or clusters answered"
            return Fault(False, unexpected_answer(why, server))
    if answer.get("timed_out"):
        return Fault(False, _out_of_time(server))
    if answer.get("terminated_early"):
        return Fault(False, unavailable("The search ended early on the server.", server))
    return None


UNEXPECTED = (
    AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError, struct.error
)  # fmt: skip
"""The errors that reading an answer raises if it is not one of OpenSearch."""


def unexpected_answer(why: Exception | str, server: str) -> EngineError:
    """Return the error for an answer that OpenSearch would not give."""
    words = why if isinstance(why, str) else f"{type(why).__name__}: {why}"
    return EngineError(
        f"The server does not answer as OpenSearch does ({words[:MAX_REASON_CHARACTERS]}).",
        where=server,
        do="See what answers at this address: a proxy may change or cut answers.",
    )


def _is_time_exceeded(cause: tuple[str, str]) -> bool:
    return cause[0] == _TIME_EXCEEDED or cause == _PHASE_EXCEEDED


def _out_of_time(server: str) -> QueryTimeoutError:
    return QueryTimeoutError(
        "The search ran out of time on the server.", where=server, do="Narrow the query."
    )


def unavailable(what: str, server: str) -> UnavailableError:
    """Return the error for a server that does not answer properly now, but may do so later."""
    return UnavailableError(
        what, where=server, do="Check that all nodes are running, then try again."
    )


def fault_of_tls(why: str, server: str, *, shown: bool, authority: str | None = None) -> Fault:
    """Return the fault of a TLS connection that could not be opened, or broke. ``shown`` means
    that we presented a certificate, ``authority`` is the file of authorities that we trust."""
    if "WRONG_VERSION_NUMBER" in why or "RECORD_LAYER_FAILURE" in why:
        error = EngineError(
            "The server does not speak TLS.", where=server, do="Write http:// in the address."
        )
    elif "CERTIFICATE_VERIFY_FAILED" in why or "doesn't match" in why:
        do = f"Name the file of its authority: {CA_CERTS_VARIABLE}=FILE."
        untrusted = "is not trusted", f"Put its authority into {authority}." if authority else do
        fault, do = next((row for word, row in _CERTIFICATES.items() if word in why), untrusted)
        error = AccessError(f"The certificate of the server {fault}: {why}", where=server, do=do)
    elif any(alert in why for alert in _REJECTED_CERTIFICATE):
        error = AccessError(
            f"The server does not accept the certificate of the client: {why}",
            where=server,
            do=f"Name one that it trusts, and its key: {CLIENT_CERT_VARIABLE}=FILE "
            f"{CLIENT_KEY_VARIABLE}=FILE.",
        )
    else:
        lost = unavailable(f"No connection: {why}", server)
        if not shown:  # some servers just close the connection then
            lost.do = f"{lost.do} A server may ask for a certificate: {CLIENT_CERT_VARIABLE}=FILE."
        return Fault(True, lost)
    return Fault(False, error)


def deepest_reason(body: Any) -> str:
    """Return the innermost cause of an error as ``type: reason`` in one line."""
    causes = list(_causes(body))
    if not causes:
        return " ".join(str(body or "").split())[:MAX_REASON_CHARACTERS]
    kind, why = causes[-1]
    return f"{kind}: {why}"[:MAX_REASON_CHARACTERS] if why else kind


def _rejected_credentials(why: str, server: str) -> AccessError:
    return AccessError(
        f"The server does not accept the user and the password: {why}",
        where=server,
        allowed=f"{USERNAME_VARIABLE} and {PASSWORD_VARIABLE} as the server knows them",
        do="Set both.",
    )


def _causes(body: Any) -> Iterator[tuple[str, str]]:
    """Yield type and reason of an error and of all its causes, the innermost last."""
    error = body.get("error") if isinstance(body, dict) else None  # pyright: ignore
    if isinstance(error, str):
        yield error, ""
    if not isinstance(error, dict):
        return
    outer: Any = error  # pyright: ignore
    yield _cause(outer)
    for cause in _objects(outer.get("root_cause")):
        yield _cause(cause)
    for failure in _objects(outer.get("failed_shards")):
        yield from _chain(failure.get("reason"))
    yield from _chain(outer.get("caused_by"))


def _objects(value: Any) -> list[Any]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []  # pyright: ignore


def _chain(error: Any) -> Iterator[tuple[str, str]]:
    while isinstance(error, dict):
        link: Any = error  # pyright: ignore
        yield _cause(link)
        error = link.get("caused_by")


def _cause(error: Any) -> tuple[str, str]:
    return str(error.get("type", "error")), " ".join(str(error.get("reason") or "").split())
