"""The site of an index on OpenSearch: its live and unfinished physical indexes, and their builders.

``<name>`` and ``<name>.sentences`` are aliases, switched in one call when a build is finished. The
previously live physical index is kept, older ones of ours are deleted. An unfinished one is resumed
if its signature is the same. An index without our ``_meta`` is never touched.
"""

from __future__ import annotations

import os
import platform
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from arag_search.engines.opensearch.client import Client
from arag_search.engines.opensearch.schema import (
    Meta,
    building_alias,
    is_physical,
    lock_name,
    physical_name,
    read_meta,
    sentences_name,
)
from arag_search.engines.write import signature_difference
from arag_search.errors import (
    BuildError,
    IndexDamagedError,
    IndexExistsError,
    IndexLockedError,
    IndexVersionError,
    RefusedError,
    UnavailableError,
)
from arag_search.system.processes import Process, this_process

SIGNATURE_KEY = "signature"
BUILDER_KEY = "builder"
SEEN_S = 900.0
"""The time for which a builder on another machine counts as running after it was last seen: longer
than it waits for a lost node."""

GREEN_S = 600.0
"""How long to wait for the copies of the shards before an index is published."""

SWITCH_S = 60.0
"""How long the cluster may be unable to switch aliases."""
_PAUSE_S = 1.0

KEPT = 1
"""How many finished indexes besides the live one a build keeps for rollback."""

_IF_EXISTS = {"ignore_unavailable": "true"}


@dataclass(frozen=True, slots=True)
class _Physical:
    """A chunk index that has our ``_meta``."""

    name: str
    meta: Meta | None
    """None if it is of another version, or damaged."""

    is_unfinished: bool
    has_sentences: bool
    created_ms: int


class OpenSearchSite:
    """A name on a cluster. Nothing is locked: a builder is known by what it writes into
    ``_meta``."""

    def __init__(self, client: Client, name: str, where: str, *, keep: int = KEPT) -> None:
        """``keep`` is how many finished indexes besides the new one are kept when it is published:
        the previously live one, then the newest."""
        self._client = client
        self._keep = keep
        self._name = name
        self._where = where
        self._live_before: str | None = None

    def check_name(self, *, overwrite: bool) -> None:
        """Raise IndexExistsError if there is an index and ``overwrite`` is not set, or one that is
        not ours."""
        self._live_before = self._live()
        if self._live_before is not None and not overwrite:
            raise IndexExistsError(
                "There is an index already.",
                where=self._where,
                do="Add `overwrite=True` to replace it, or name another index.",
            )

    def begin(self, signature: Mapping[str, Any]) -> tuple[str, bool, str]:
        """Return the physical name to build, whether its build is resumed, and why or why not.

        Raises IndexLockedError if another builder is running.
        """
        unfinished = [physical for physical in self._physical().values() if physical.is_unfinished]
        for physical in unfinished:
            self._check_builder(physical)
        why = ""
        for physical in unfinished:
            meta = physical.meta
            before = _signature(meta)
            is_whole = physical.has_sentences or (meta is not None and meta.sentences is None)
            if is_whole and before == signature:
                return physical.name, True, "nothing has changed since it was stopped"
            why = (
                signature_difference(before, signature)
                if is_whole
                else "the unfinished index is damaged"
            )
            self._delete(physical.name)
        return physical_name(self._name, datetime.now(UTC), secrets.token_hex(4)), False, why

    def check_alone(self, physical: str) -> None:
        """Raise IndexLockedError if another builder began at the same time, and first."""
        for other in self._physical().values():
            if other.is_unfinished and other.name < physical:
                self._check_builder(other)

    def discard(self, physical: str) -> None:
        """Delete an unfinished index. Tries once: the next build deletes what remains."""
        unfinished = self._physical(budget_s=0).get(physical)
        if unfinished is not None and unfinished.is_unfinished:
            self._delete(physical, budget_s=0)

    def publish(self, physical: str, has_sentences: bool) -> None:
        """Restore the replicas, wait for them, switch the aliases, and delete older indexes.
        ``check_name`` comes first.

        Raises BuildError if another build was published meanwhile.
        """
        self._restore_replicas([physical, *([sentences_name(physical)] if has_sentences else [])])
        if self._live() != self._live_before:
            raise self._overtaken()
        old = self._live_before
        self._switch(old, physical, has_sentences)
        finished = [
            other
            for other in self._physical().values()
            if not other.is_unfinished and other.name != physical
        ]
        finished.sort(key=lambda other: (other.name == old, other.created_ms), reverse=True)
        for surplus in finished[self._keep :]:
            self._delete(surplus.name)

    def _switch(self, old: str | None, new: str, has_sentences: bool) -> None:
        """Move the names from one index to another in one call, which also ends its build. Raises
        BuildError if the new one is not live afterwards."""
        actions = [_remove(new, building_alias(new))]
        if has_sentences:
            sentences = sentences_name(new)
            actions.append(_remove(sentences, building_alias(sentences)))
        if old is not None:
            actions.append(_remove(old, self._name))
            if (replaced := self._physical().get(old)) is not None and replaced.has_sentences:
                actions.append(_remove(sentences_name(old), sentences_name(self._name)))
        actions.append(_add(new, self._name))
        if has_sentences:
            actions.append(_add(sentences_name(new), sentences_name(self._name)))
        until = time.monotonic() + SWITCH_S
        while True:
            try:
                self._client.call("POST", "/_aliases", {"actions": actions}, attempt_timeout_s=60)
                return
            except RefusedError as error:
                # If an answer was lost and the switch was sent again, nothing is left to remove.
                if self._live() == new:
                    return
                raise self._overtaken() from error
            except UnavailableError:
                if self._live() == new:
                    return
                if time.monotonic() > until:
                    raise
                time.sleep(_PAUSE_S)

    # Physical indexes

    def _live(self) -> str | None:
        """Return the physical index behind the name; None if the name is free. Raises
        IndexExistsError if it is not ours."""
        path = f"/{self._name},{sentences_name(self._name)}/_alias"
        has_name = self._client.read(
            lambda reply: {index: self._name in info["aliases"] for index, info in reply.items()},
            self._client.call("GET", path, params=_IF_EXISTS),
        )
        chunks = [index for index in has_name if has_name[index]]
        ours = self._physical()
        expected = {*chunks, *map(sentences_name, chunks)}
        if len(chunks) > 1 or set(has_name) - expected or not set(chunks) <= set(ours):
            foreign = sorted(set(has_name) - {*ours, *map(sentences_name, ours)})
            raise IndexExistsError(
                "There is an index of that name that arag-search index did not build"
                f" ({', '.join(foreign or sorted(has_name))}).",
                where=self._where,
                allowed="a name that is free, or that of an index of ours with `overwrite=True`",
                do="Name another index.",
            )
        return chunks[0] if chunks else None

    def _physical(self, budget_s: float | None = None) -> dict[str, _Physical]:
        """Return the chunk indexes of ours for this name, oldest first."""
        reply = self._client.call(
            "GET",
            f"/{self._name}-*",
            params={"filter_path": "*.aliases,*.mappings._meta,*.settings.index.creation_date"},
            budget_s=budget_s,
            attempt_timeout_s=60,
        )
        return self._client.read(self._physical_of, reply)

    def _physical_of(self, reply: dict[str, Any]) -> dict[str, _Physical]:
        indexes: dict[str, _Physical] = {}
        for index, info in sorted(reply.items()):
            if not is_physical(index, self._name):
                continue
            try:
                meta = read_meta(info.get("mappings", {}), index)
                if meta is None:
                    continue
            except (IndexVersionError, IndexDamagedError):
                meta = None  # ours, of another release: it may be overwritten
            unfinished = building_alias(index) in info.get("aliases", {})
            created_ms = int(info["settings"]["index"]["creation_date"])
            whole = sentences_name(index) in reply
            indexes[index] = _Physical(index, meta, unfinished, whole, created_ms)
        return indexes

    def _delete(self, physical: str, budget_s: float | None = None) -> None:
        path = f"/{physical},{sentences_name(physical)},{lock_name(physical)}"
        self._client.call(
            "DELETE", path, params=_IF_EXISTS, budget_s=budget_s, attempt_timeout_s=60
        )

    # Builders

    def _check_builder(self, physical: _Physical) -> None:
        stored: Any = {} if physical.meta is None else physical.meta.build.get(BUILDER_KEY, {})
        builder = cast("dict[str, Any]", stored)
        if not builder or not is_running(builder):
            return
        raise IndexLockedError(
            f"Another build is running there (process {builder['process']}"
            f" on {builder['machine']}).",
            where=self._where,
            do="Wait for it, or stop it; or name another index.",
        )

    def check_no_builder(self) -> None:
        """Raise IndexLockedError if a build of the name is running."""
        for physical in self._physical().values():
            if physical.is_unfinished:
                self._check_builder(physical)

    def _restore_replicas(self, indexes: Sequence[str]) -> None:
        # One replica, if there is a node for it.
        pattern = ",".join(indexes)
        self._client.call(
            "PUT",
            f"/{pattern}/_settings",
            {"index": {"auto_expand_replicas": "0-1"}},
            attempt_timeout_s=60,
        )
        try:
            self._client.call(
                "GET",
                f"/_cluster/health/{pattern}",
                params={"wait_for_status": "green", "timeout": "30s"},
                budget_s=GREEN_S,
                attempt_timeout_s=40,
            )
        except UnavailableError as error:
            raise UnavailableError(
                f"The copies of the shards are not all assigned after {GREEN_S:g} s.",
                where=self._where,
                do="Check the nodes and their disks. Then run the same command again to resume.",
            ) from error

    def _overtaken(self) -> BuildError:
        return BuildError(
            "Another build was published under this name in the meantime.",
            where=self._where,
            do="Add `overwrite=True` to replace it with this one; the same command then resumes.",
        )


def this_builder() -> dict[str, Any]:
    """Describe this process, as a builder that is running now."""
    process = this_process()
    return {
        "machine": platform.node(),
        "process": process.pid,
        "started": process.started,
        "seen": time.time(),
    }


def is_running(builder: Mapping[str, Any]) -> bool:
    """Return whether the process that ``this_builder`` described is running, as far as known."""
    if builder["machine"] != platform.node():
        return time.time() - builder["seen"] < SEEN_S
    process = Process(int(builder["process"]), builder["started"])
    return process.pid != os.getpid() and process.runs


def _signature(meta: Meta | None) -> Mapping[str, Any]:
    signature: Any = {} if meta is None else meta.build.get(SIGNATURE_KEY, {})
    return cast("dict[str, Any]", signature)


def _add(index: str, alias: str) -> dict[str, Any]:
    return {"add": {"index": index, "alias": alias}}


def _remove(index: str, alias: str) -> dict[str, Any]:
    return {"remove": {"index": index, "alias": alias, "must_exist": True}}
