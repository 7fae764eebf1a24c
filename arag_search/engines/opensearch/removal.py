"""Deletion of documents by their ids, retried until it is acknowledged."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, cast

from arag_search.engines.opensearch.client import Client
from arag_search.engines.opensearch.faults import deepest_reason
from arag_search.errors import BuildError, UnavailableError

_BATCH = 2_000
_WAIT_S = 60.0
_PAUSE_S = 0.2
_NOT_FOUND, _RETRYABLE = 404, (429, 503)


def remove_documents(client: Client, places: Sequence[tuple[str, int, str]], where: str) -> None:
    """Delete the documents at these places (alias, ordinal, routing), and ignore missing ones.

    Raises UnavailableError if the cluster accepts no deletions for a minute, BuildError if the
    index is gone.
    """
    for at in range(0, len(places), _BATCH):
        left = list(places[at : at + _BATCH])
        until = time.monotonic() + _WAIT_S
        while left:
            left, reason = _try(client, left, where)
            if left and time.monotonic() > until:
                raise UnavailableError(
                    f"The server deleted no documents for {_WAIT_S:g} s: {reason}",
                    where=where,
                    do="Check the cluster. Then run the same command again to resume.",
                )
            if left:
                time.sleep(_PAUSE_S)


def _try(
    client: Client, places: list[tuple[str, int, str]], where: str
) -> tuple[list[tuple[str, int, str]], str]:
    """Send the deletions once. Return those to retry, and the reason."""
    lines = [
        {"delete": {"_index": alias, "_id": str(ordinal), "routing": routing}}
        for alias, ordinal, routing in places
    ]
    params = {"filter_path": "items.*.status,items.*.error"}
    reply = client.call("POST", "/_bulk", lines, params, attempt_timeout_s=120)
    again: list[tuple[str, int, str]] = []
    reason = ""
    for place, item in zip(places, reply["items"], strict=True):
        answer = cast("dict[str, Any]", item["delete"])
        status = int(answer["status"])
        if status in _RETRYABLE:
            again.append(place)
            reason = deepest_reason(answer)
        elif "error" in answer or not (status < 300 or status == _NOT_FOUND):
            raise BuildError(
                f"A document cannot be deleted: {deepest_reason(answer)}",
                where=where,
                do="Run the same command again.",
            )
    return again, reason
