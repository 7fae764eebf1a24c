"""The site of an index on OpenSearch: its live and unfinished physical indexes.

``<name>`` and ``<name>.sentences`` are aliases, switched in one call when a build is finished. The
previously live physical index is kept, older ones of ours are deleted. An unfinished one is resumed
if its signature is the same. An index without our ``_meta`` is never touched.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from arag_search.engines.opensearch.client import Client
from arag_search.engines.opensearch.lease import Lease
from arag_search.engines.opensearch.physical import check_aliases
from arag_search.engines.opensearch.schema import (
    BUILDING_SUFFIX,
    Meta,
    is_physical,
    physical_name,
    read_meta,
    sentences_name,
)
from arag_search.engines.write import signature_difference
from arag_search.errors import (
    BuildError,
    IndexDamagedError,
    IndexExistsError,
    IndexVersionError,
    RefusedError,
    UnavailableError,
)

SIGNATURE_KEY = "signature"
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

    building: str
    """The alias of its build; empty if it is finished."""

    has_sentences: bool
    created_ms: int


class OpenSearchSite:
    """A name on a cluster, for the builder that holds its lease."""

    def __init__(
        self, client: Client, name: str, where: str, lease: Lease, *, keep: int = KEPT
    ) -> None:
        """``keep`` is how many finished indexes besides the new one are kept when it is published:
        the previously live one, then the newest."""
        self._client = client
        self._lease = lease
        self._keep = keep
        self._name = name
        self._where = where
        self._live_before: str | None = None

    def check_name(self, *, overwrite: bool) -> None:
        """Raise IndexExistsError if there is an index and ``overwrite`` is not set, or if the index
        is not ours."""
        self._live_before = self._live()
        if self._live_before is not None and not overwrite:
            raise IndexExistsError(
                "There is an index already.",
                where=self._where,
                do="Add `overwrite=True` to replace it, or name another index.",
            )

    def begin(self, signature: Mapping[str, Any]) -> tuple[str, bool, str]:
        """Return the physical name to build, whether its build is resumed, and why or why not."""
        why = ""
        for physical in self._physical().values():
            if not physical.building:
                continue
            self._lease.renew()
            meta = physical.meta
            before = _signature(meta)
            is_whole = physical.has_sentences or (meta is not None and meta.sentences is None)
            if is_whole and before == signature:
                names = [physical.name, sentences_name(physical.name)]
                self._lease.take_over(names[: 1 + physical.has_sentences])
                return physical.name, True, "nothing has changed since it was stopped"
            why = (
                signature_difference(before, signature)
                if is_whole
                else "the unfinished index is damaged"
            )
            self._delete(physical.name)
        return physical_name(self._name, datetime.now(UTC), secrets.token_hex(4)), False, why

    def discard(self, physical: str) -> None:
        """Delete an unfinished index, unless another builder has taken it over. Tries once: the
        next build deletes what remains."""
        unfinished = self._physical(budget_s=0).get(physical)
        if unfinished is not None and unfinished.building == self._lease.alias(physical):
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
            if not other.building and other.name != physical
        ]
        finished.sort(key=lambda other: (other.name == old, other.created_ms), reverse=True)
        for surplus in finished[self._keep :]:
            self._delete(surplus.name)

    def _switch(self, old: str | None, new: str, has_sentences: bool) -> None:
        """Move the names from one index to another in one call, which also ends its build. Raises
        BuildError if the new one is not live afterwards."""
        actions = [_remove(new, self._lease.alias(new))]
        if has_sentences:
            sentences = sentences_name(new)
            actions.append(_remove(sentences, self._lease.alias(sentences)))
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
                self._lease.renew()
                self._client.call("POST", "/_aliases", {"actions": actions}, attempt_timeout_s=60)
                return
            except RefusedError as error:
                self._lease.check()
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
        aliases = self._client.read(
            lambda reply: {index: info["aliases"].get(self._name) for index, info in reply.items()},
            self._client.call("GET", path, params=_IF_EXISTS),
        )
        named = {index: alias for index, alias in aliases.items() if alias is not None}
        check_aliases(named, self._where)
        chunks = [*named]
        ours = self._physical()
        expected = {*chunks, *map(sentences_name, chunks)}
        if set(aliases) - expected or not set(chunks) <= set(ours):
            foreign = sorted(set(aliases) - {*ours, *map(sentences_name, ours)})
            raise IndexExistsError(
                "There is an index of that name that arag-search index did not build"
                f" ({', '.join(foreign or sorted(aliases))}).",
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
            prefix = index + BUILDING_SUFFIX
            building = next(
                (name for name in info.get("aliases", {}) if name.startswith(prefix)), ""
            )
            created_ms = int(info["settings"]["index"]["creation_date"])
            whole = sentences_name(index) in reply
            indexes[index] = _Physical(index, meta, building, whole, created_ms)
        return indexes

    def _delete(self, physical: str, budget_s: float | None = None) -> None:
        path = f"/{physical},{sentences_name(physical)}"
        self._client.call(
            "DELETE", path, params=_IF_EXISTS, budget_s=budget_s, attempt_timeout_s=60
        )

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


def _signature(meta: Meta | None) -> Mapping[str, Any]:
    signature: Any = {} if meta is None else meta.build.get(SIGNATURE_KEY, {})
    return cast("dict[str, Any]", signature)


def _add(index: str, alias: str) -> dict[str, Any]:
    return {"add": {"index": index, "alias": alias}}


def _remove(index: str, alias: str) -> dict[str, Any]:
    return {"remove": {"index": index, "alias": alias, "must_exist": True}}
