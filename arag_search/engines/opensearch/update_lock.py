"""The lock of an update, in a separate index next to the updated one.

``<physical>.lock`` holds one document that names the updating process. It is written only if it has
not changed since it was read, so that only one of two simultaneous updates gets the lock. A lock
whose process has died is taken over.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from typing import Any

from arag_search.engines.opensearch.client import Client
from arag_search.engines.opensearch.schema import lock_name
from arag_search.engines.opensearch.site import is_running, this_builder
from arag_search.errors import AragError, IndexLockedError, RefusedError

_ATTEMPTS = 5
_RENEW_EVERY_S = 30.0
_SETTINGS = {
    "settings": {"index": {"number_of_shards": 1, "auto_expand_replicas": "0-1"}},
    "mappings": {"dynamic": False},
}


class UpdateLock:
    """The lock of one physical index: ``take`` it, ``renew`` it while working, ``release`` it."""

    def __init__(self, client: Client, physical: str, where: str) -> None:
        self._client = client
        self._index = lock_name(physical)
        self._where = where
        self._token = secrets.token_hex(8)
        self._version: dict[str, str] = {}
        self._renewed = 0.0
        self._about: dict[str, Any] = {}

    def take(self) -> Mapping[str, Any]:
        """Take the lock. Return the document of a dead process that held it, empty if none did.

        Raises IndexLockedError if another process holds it.
        """
        for _ in range(_ATTEMPTS):
            self._make_index()
            try:
                reply: Any = self._client.call("GET", f"/{self._index}/_doc/holder")
            except RefusedError as error:
                if error.status != 404:
                    raise
                reply = {}
            holder = self._client.read(_holder, reply)
            if holder and holder["token"] != self._token and _is_held(holder):
                raise self._locked(holder)
            version = {"op_type": "create"}
            if holder:
                version = self._client.read(_version, reply)
            try:
                self._write(version)
            except RefusedError as error:
                if error.status not in (404, 409):
                    raise
                continue  # another process took or released it meanwhile, or an answer was lost
            return {} if holder.get("token") == self._token else holder
        raise self._locked({})

    def renew(self, about: Mapping[str, Any] | None = None) -> None:
        """Record that this process is working, and on what. Raises IndexLockedError if another
        process has taken over the lock."""
        if about is None and time.monotonic() - self._renewed < _RENEW_EVERY_S:
            return
        self._about = dict(about or self._about)
        try:
            self._write(self._version)
        except RefusedError as error:
            if error.status not in (404, 409):
                raise
            self.take()  # still ours if only the answer was lost

    def release(self) -> None:
        """Release the lock. Never raises: a lock left behind is that of a dead process."""
        try:
            self._client.call("DELETE", f"/{self._index}", attempt_timeout_s=60)
        except AragError:
            return

    def _make_index(self) -> None:
        try:
            self._client.call("PUT", f"/{self._index}", _SETTINGS, attempt_timeout_s=60)
        except RefusedError as error:
            if error.kind != "resource_already_exists_exception":
                raise

    def _write(self, version: Mapping[str, str]) -> None:
        holder = {**this_builder(), "token": self._token, "about": self._about}
        reply = self._client.call("PUT", f"/{self._index}/_doc/holder", holder, version)
        self._renewed = time.monotonic()
        self._version = self._client.read(_version, reply)

    def _locked(self, holder: Mapping[str, Any]) -> IndexLockedError:
        who = f" (process {holder['process']} on {holder['machine']})" if holder else ""
        return IndexLockedError(
            f"Another update is running there{who}.",
            where=self._where,
            do="Wait for it, or stop it.",
        )


def _holder(reply: Any) -> dict[str, Any]:
    """Return the process that a document of the lock names; empty without a document."""
    source = reply.get("_source", {})
    if not source:
        return {}
    return {
        "token": str(source["token"]),
        "machine": str(source["machine"]),
        "process": int(source["process"]),
        "started": str(source["started"]),
        "seen": float(source["seen"]),
        "about": source.get("about"),
    }


def _version(reply: Any) -> dict[str, str]:
    """Return the version of the lock in an answer, on which the next change of it depends."""
    return {
        "if_seq_no": str(reply["_seq_no"]),
        "if_primary_term": str(reply["_primary_term"]),
    }


def _is_held(holder: Mapping[str, Any]) -> bool:
    own = this_builder()
    return all(holder[part] == own[part] for part in ("machine", "process", "started")) or (
        is_running(holder)
    )
