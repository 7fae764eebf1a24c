"""An index on OpenSearch as builds see it: what is live, what is unfinished, who builds.

``<name>`` and ``<name>.sentences`` are aliases, switched in one call when a build is finished or
rolled back. The physical index that was live before is kept, older ones of ours are deleted. An
unfinished one goes on where its signature is the same. An index without our ``_meta`` is never
touched.
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
from arag_search.errors import (
    BuildError,
    IndexDamagedError,
    IndexExistsError,
    IndexLockedError,
    IndexNotFoundError,
    IndexVersionError,
    RefusedError,
    UnavailableError,
)
from arag_search.manifest import Manifest
from arag_search.system.processes import Process, this_process

SIGNATURE_KEY = "signature"
BUILDER_KEY = "builder"
SEEN_S = 900.0
"""For so long after its last sign a builder on another machine is taken to be at work: longer than
it waits for a lost node."""

GREEN_S = 600.0
"""How long the copies of the shards are waited for before an index is published."""

KEPT = 1
"""How many finished indexes beside the live one a build leaves, for a roll-back."""

_IF_THERE = {"ignore_unavailable": "true"}


@dataclass(frozen=True, slots=True)
class _Physical:
    """A chunk index that has our ``_meta``."""

    name: str
    meta: Meta | None
    """None where it is of another version, or damaged."""

    is_unfinished: bool
    has_sentences: bool
    created_ms: int


@dataclass(frozen=True, slots=True)
class RolledBack:
    """The physical indexes that a name led to before and leads to now, and the manifest of this."""

    before: str
    now: str
    manifest: Manifest


class OpenSearchSite:
    """A name on a cluster held for one builder; a context manager.

    Entering raises IndexExistsError where there is an index and ``overwrite`` is not set, or one
    that is not ours.
    """

    def __init__(
        self, client: Client, name: str, where: str, *, overwrite: bool, keep: int = KEPT
    ) -> None:
        """``keep`` is how many finished indexes beside the new one are left when it is published:
        the one that was live before, then the newest."""
        self._client = client
        self._keep = keep
        self._name = name
        self._where = where
        self._overwrite = overwrite
        self._live_before: str | None = None

    def __enter__(self) -> OpenSearchSite:
        self._live_before = self._live()
        if self._live_before is not None and not self._overwrite:
            raise IndexExistsError(
                "There is an index already.",
                where=self._where,
                do="Say --overwrite to replace it, or name another index.",
            )
        return self

    def __exit__(self, *exception: object) -> None:
        pass  # nothing is held: a builder is known by what it writes into ``_meta``

    def begin(self, signature: Mapping[str, Any]) -> tuple[str, bool, str]:
        """The physical name to build, whether one goes on, and why or why not.

        Raises IndexLockedError where another builder is at work.
        """
        unfinished = [each for each in self._physical().values() if each.is_unfinished]
        for each in unfinished:
            self._check_builder(each)
        why = ""
        for each in unfinished:
            before = _signature(each.meta)
            whole = each.has_sentences or (each.meta is not None and each.meta.sentences is None)
            if whole and before == signature:
                return each.name, True, "nothing has changed since it was stopped"
            why = _difference(before, signature) if whole else "what there was of it is damaged"
            self._delete(each.name)
        return physical_name(self._name, datetime.now(UTC), secrets.token_hex(4)), False, why

    def check_alone(self, physical: str) -> None:
        """Raise IndexLockedError where another builder has begun at the same time, and first."""
        for each in self._physical().values():
            if each.is_unfinished and each.name < physical:
                self._check_builder(each)

    def discard(self, physical: str) -> None:
        """Delete an unfinished index. Tries once: the next build deletes what is left."""
        found = self._physical(budget_s=0).get(physical)
        if found is not None and found.is_unfinished:
            self._delete(physical, budget_s=0)

    def publish(self, physical: str, has_sentences: bool) -> None:
        """Restore the replicas, wait for them, switch the aliases, delete what is older.

        Raises BuildError where another build was published meanwhile.
        """
        self._restore_replicas([physical, *([sentences_name(physical)] if has_sentences else [])])
        if self._live() != self._live_before:
            raise self._overtaken()
        old = self._live_before
        actions = [_remove(physical, building_alias(physical))]
        if has_sentences:
            sentences = sentences_name(physical)
            actions.append(_remove(sentences, building_alias(sentences)))
        refused = self._switch(old, physical, has_sentences, actions)
        if refused is not None:
            raise self._overtaken() from refused
        finished = [
            each
            for each in self._physical().values()
            if not each.is_unfinished and each.name != physical
        ]
        finished.sort(key=lambda each: (each.name == old, each.created_ms), reverse=True)
        for each in finished[self._keep :]:
            self._delete(each.name)

    def roll_back(self) -> RolledBack:
        """Make the newest finished index that is older than the live one the one that is searched.

        Raises IndexNotFoundError where nothing is live or none is older, IndexDamagedError for one
        that is not whole, BuildError where somebody else switched meanwhile. Not to be called
        between entering and leaving.
        """
        live = self._live()
        if live is None:
            raise IndexNotFoundError(
                "There is no index to roll back.",
                where=self._where,
                do="Build one: arag-search index SOURCE --to ADDRESS",
            )
        finished = [each for each in self._physical().values() if not each.is_unfinished]
        finished.sort(key=lambda each: each.created_ms)
        place = [each.name for each in finished].index(live)
        older = finished[:place]
        if not older:
            newer = ", ".join(each.name for each in finished[place + 1 :])
            raise IndexNotFoundError(
                f"No index before the one that is live ({live}) is kept.",
                where=self._where,
                allowed=f"newer ones are there: {newer}" if newer else "",
                do="Build it again with --overwrite; --keep N keeps more of those before.",
            )
        to = older[-1]
        if to.meta is None or to.meta.manifest is None:
            raise self._not_whole(to.name)
        if to.meta.sentences is not None and not to.has_sentences:
            raise self._not_whole(to.name)
        refused = self._switch(live, to.name, to.has_sentences, [])
        if refused is not None:
            raise BuildError(
                "Somebody else switched this name meanwhile.",
                where=self._where,
                do="See which index is live with arag-search info, and decide again.",
            ) from refused
        return RolledBack(live, to.name, to.meta.manifest)

    def _switch(
        self, old: str | None, new: str, has_sentences: bool, actions: list[dict[str, Any]]
    ) -> RefusedError | None:
        """Move the names from one index to another in one call, ``actions`` with it; why the new
        one is not live then."""
        if old is not None:
            actions.append(_remove(old, self._name))
            if self._physical()[old].has_sentences:
                actions.append(_remove(sentences_name(old), sentences_name(self._name)))
        actions.append(_add(new, self._name))
        if has_sentences:
            actions.append(_add(sentences_name(new), sentences_name(self._name)))
        try:
            self._client.call("POST", "/_aliases", {"actions": actions}, attempt_timeout_s=60)
        except RefusedError as error:
            # Where an answer was lost and the switch asked for again, nothing is left to remove.
            return None if self._live() == new else error
        return None

    # What there is

    def _live(self) -> str | None:
        """The physical index behind the name; None where there is nothing of that name."""
        path = f"/{self._name},{sentences_name(self._name)}/_alias"
        found = cast(
            "dict[str, dict[str, Any]]",
            self._client.call("GET", path, params=_IF_THERE),
        )
        chunks = [each for each, is_of in found.items() if self._name in is_of["aliases"]]
        ours = self._physical()
        expected = {*chunks, *map(sentences_name, chunks)}
        if len(chunks) > 1 or set(found) - expected or not set(chunks) <= set(ours):
            foreign = sorted(set(found) - {*ours, *map(sentences_name, ours)})
            raise IndexExistsError(
                "There is an index of that name that arag-search index has not built"
                f" ({', '.join(foreign or sorted(found))}).",
                where=self._where,
                allowed="a name that is free, or that of an index of ours with --overwrite",
                do="Name another index.",
            )
        return chunks[0] if chunks else None

    def _physical(self, budget_s: float | None = None) -> dict[str, _Physical]:
        """All chunk indexes of ours for this name, in order."""
        reply = self._client.call(
            "GET",
            f"/{self._name}-*",
            params={"filter_path": "*.aliases,*.mappings._meta,*.settings.index.creation_date"},
            budget_s=budget_s,
            attempt_timeout_s=60,
        )
        found: dict[str, _Physical] = {}
        for index, is_of in sorted(cast("dict[str, dict[str, Any]]", reply).items()):
            if not is_physical(index, self._name):
                continue
            try:
                meta = read_meta(is_of.get("mappings", {}), index)
                if meta is None:
                    continue
            except (IndexVersionError, IndexDamagedError):
                meta = None  # ours, of another release: it may be overwritten
            unfinished = building_alias(index) in is_of.get("aliases", {})
            created_ms = int(is_of["settings"]["index"]["creation_date"])
            whole = sentences_name(index) in reply
            found[index] = _Physical(index, meta, unfinished, whole, created_ms)
        return found

    def _delete(self, physical: str, budget_s: float | None = None) -> None:
        path = f"/{physical},{sentences_name(physical)},{lock_name(physical)}"
        self._client.call("DELETE", path, params=_IF_THERE, budget_s=budget_s, attempt_timeout_s=60)

    # Builders

    def _check_builder(self, physical: _Physical) -> None:
        """Raise IndexLockedError where the one who builds it is at work."""
        found: Any = {} if physical.meta is None else physical.meta.build.get(BUILDER_KEY, {})
        builder = cast("dict[str, Any]", found)
        if not builder or not is_at_work(builder):
            return
        raise IndexLockedError(
            f"Another build is at work there (process {builder['process']}"
            f" on {builder['machine']}).",
            where=self._where,
            do="Wait for it, or stop it; or name another index.",
        )

    def check_no_builder(self) -> None:
        """Raise IndexLockedError where a build of the name is at work."""
        for each in self._physical().values():
            if each.is_unfinished:
                self._check_builder(each)

    def _restore_replicas(self, indexes: Sequence[str]) -> None:
        """One replica where there is a node for it, and wait until all are there."""
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
                f"The copies of the shards are not all there after {GREEN_S:g} s.",
                where=self._where,
                do="See to the nodes and their disks. The same command then goes on.",
            ) from error

    def _not_whole(self, physical: str) -> IndexDamagedError:
        return IndexDamagedError(
            f"The index before ({physical}) is not whole.",
            where=self._where,
            do="Build it again with --overwrite.",
        )

    def _overtaken(self) -> BuildError:
        return BuildError(
            "Another build was published under this name meanwhile.",
            where=self._where,
            do="Say --overwrite to replace it with this one; the same command then goes on.",
        )


def this_builder() -> dict[str, Any]:
    """How this process shows that it is at work, and when it last was."""
    process = this_process()
    return {
        "machine": platform.node(),
        "process": process.pid,
        "started": process.started,
        "seen": time.time(),
    }


def is_at_work(builder: Mapping[str, Any]) -> bool:
    """Whether the process that ``this_builder`` has described runs, as far as is known here."""
    if builder["machine"] != platform.node():
        return time.time() - builder["seen"] < SEEN_S
    process = Process(int(builder["process"]), builder["started"])
    return process.pid != os.getpid() and process.runs


def _signature(meta: Meta | None) -> Mapping[str, Any]:
    found: Any = {} if meta is None else meta.build.get(SIGNATURE_KEY, {})
    return cast("dict[str, Any]", found)


def _difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    if not before:
        return "its record is damaged"
    changed = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return f"changed since it was stopped: {', '.join(sorted(changed))}"


def _add(index: str, alias: str) -> dict[str, Any]:
    return {"add": {"index": index, "alias": alias}}


def _remove(index: str, alias: str) -> dict[str, Any]:
    return {"remove": {"index": index, "alias": alias, "must_exist": True}}
