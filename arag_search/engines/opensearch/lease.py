"""The lease of an index on OpenSearch: one process at a time builds or updates it.

``<name>.lock`` holds one document, which names the process. The holder renews it every 10 seconds,
if it is still the version that it wrote. Another process takes the lease over if it has itself read
one version for 60 seconds in which the server answered. So no clocks are compared. It does so at
once if it sees that the holder has ended. A holder that was suspended meanwhile stops at its next
change: its renewal is refused. Aliases with its token keep out all that it had sent before.
"""

from __future__ import annotations

import dataclasses
import math
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from platform import node
from typing import Any

from arag_search.engines.opensearch.client import Client
from arag_search.engines.opensearch.schema import BUILDING_SUFFIX, UPDATING_SUFFIX, lock_name
from arag_search.errors import AragError, IndexLockedError, RefusedError
from arag_search.system.processes import Process, process_space, this_process

RENEW_S = 10.0
DEAD_S = 60.0
_POLL_S = 0.5
_AGAIN_S = 1.0
"""The pause after a renewal that failed."""
_RELEASE_S = 5.0
_GONE, _CHANGED = 404, 409
_SETTINGS = {
    "settings": {
        "number_of_shards": 1,
        "auto_expand_replicas": "0-1",
        "hidden": True,
        "default_pipeline": "_none",
        "final_pipeline": "_none",
    },
    "mappings": {"dynamic": False},
}
_SUFFIXES = {"build": BUILDING_SUFFIX, "update": UPDATING_SUFFIX}
_own: set[str] = set()
"""The tokens of the leases that this process holds."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that builds or updates an index (``work``), or did so until it was killed.
    ``about`` is what a later process must know of it.

    Example: process 7 on loader-2, since 2026-11-29 14:03 UTC, 1,200 passages and sentences written
    """

    token: str
    work: str
    machine: str
    pid: int
    started: str
    space: str
    since: str
    written: int
    about: Mapping[str, Any]

    def __str__(self) -> str:
        written = f", {self.written:,} passages and sentences written" if self.written else ""
        return f"process {self.pid} on {self.machine}, since {self.since}{written}"

    @property
    def has_ended(self) -> bool:
        """Whether it has certainly ended, which only a process in the same space can see."""
        if not self.space or self.space != process_space():
            return False
        process = Process(self.pid, self.started)
        return process.has_ended or (process == this_process() and self.token not in _own)


Version = Mapping[str, str]
"""The parameters of a write that is refused unless it replaces this version of a document."""


def read_holder(
    client: Client, index: str, budget_s: float | None = None
) -> tuple[Holder | None, Version]:
    """Return who builds or updates an index, and the version of its lease. ``index`` may be the
    name of a physical index. Whether a holder still runs shows only in the next version."""
    try:
        reply: Any = client.call("GET", f"/{lock_name(index)}/_doc/holder", budget_s=budget_s)
    except RefusedError as error:
        if error.status != _GONE:
            raise
        return None, {"op_type": "create"}
    return client.read(lambda reply: (_holder(reply["_source"]), _version(reply)), reply)


def _holder(loaded: Any) -> Holder | None:
    kinds: Mapping[str, Any] = {"pid": int, "written": int, "about": dict}
    names = [field.name for field in dataclasses.fields(Holder)] if loaded else []
    return Holder(**{name: kinds.get(name, str)(loaded[name]) for name in names}) if names else None


def _version(reply: Any) -> Version:
    return {"if_seq_no": str(reply["_seq_no"]), "if_primary_term": str(reply["_primary_term"])}


class Lease:
    """The lease of this process: ``take`` it, ``check`` it before each change, ``release`` it. A
    thread renews it meanwhile."""

    def __init__(
        self,
        client: Client,
        index: str,
        where: str,
        work: str,
        note: Callable[[str], None] | None = None,
        wait_s: float | None = None,
    ) -> None:
        """``index`` is the name of the index, or a physical index of it. ``take`` reports waiting
        to ``note``, and waits ``wait_s`` seconds for a server that does not answer."""
        self.token = secrets.token_hex(8)
        self.about: Mapping[str, Any] = {}
        self.written: Callable[[], int] = lambda: 0
        """Returns how many passages and sentences are written."""

        self._client = client
        self._index = index
        self._where = where
        self._work = work
        self._note = note
        self._wait_s = wait_s
        self._since = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._version: Version = {}
        self._renewed = -math.inf
        self._lost: str | None = None

    def take(self) -> Mapping[str, Any]:
        """Take the lease, and return ``about`` of a dead process that held it, or else nothing.

        Waits up to 60 seconds for a lease that is not renewed. Raises IndexLockedError if it is.
        """
        about: Mapping[str, Any] = {}
        seen: Version | None = None
        since = last = -math.inf
        is_told = False
        while True:
            holder, version = read_holder(self._client, self._index, self._wait_s)
            if holder is None:
                about = {}
            elif holder.token != self.token:
                about = holder.about
                if version != (seen or version) or holder.token in _own:
                    raise self._locked(holder)
                now = time.monotonic()
                if now - last > RENEW_S:  # the server did not answer, or this process slept
                    since, is_told = now, False
                seen, last = version, now
                if now - since < DEAD_S and not holder.has_ended:
                    is_told = is_told or self._tells(holder, now - since)
                    time.sleep(_POLL_S)
                    continue
            if "op_type" in version:
                self._make_index()
            _own.add(self.token)
            try:
                self._write(version, self._wait_s)
            except RefusedError as error:
                if error.status not in (_GONE, _CHANGED):
                    raise
                continue  # another process was faster, or an answer was lost
            threading.Thread(target=self._keep, name="arag-lease", daemon=True).start()
            return about

    def alias(self, index: str) -> str:
        """Return the alias that the holder writes an index through."""
        return f"{index}{_SUFFIXES[self._work]}.{self.token}"

    def take_over(self, indexes: Sequence[str]) -> None:
        """Write indexes through own aliases from now on, and keep out writers through others."""
        aliases = self._client.read(
            lambda reply: {(index, name) for index in indexes for name in reply[index]["aliases"]},
            self._client.call("GET", f"/{','.join(indexes)}/_alias"),
        )
        actions = [
            {"remove": {"index": index, "alias": name}}
            for index, name in aliases
            if name.startswith(index + _SUFFIXES[self._work])
        ]
        actions += [{"add": {"index": index, "alias": self.alias(index)}} for index in indexes]
        self._client.call("POST", "/_aliases", {"actions": actions}, attempt_timeout_s=60)

    def check(self) -> None:
        """Raise IndexLockedError if the lease is lost, after one renewal if that is overdue: this
        process may have been suspended."""
        if self._lost is not None or time.monotonic() - self._renewed > DEAD_S / 2:
            self.renew(0.0)

    def renew(self, budget_s: float | None = None) -> None:
        """Renew the lease now. Raises IndexLockedError if another process has taken it over or
        removed it, UnavailableError if the server does not answer for ``budget_s`` seconds."""
        with self._lock:
            version = self._version
            while self._lost is None:
                try:
                    return self._write(version, budget_s)
                except RefusedError as error:
                    if error.status not in (_GONE, _CHANGED):
                        raise
                # It is still ours if only the answer to a renewal was lost.
                holder, version = read_holder(self._client, self._index, budget_s)
                if holder is None or holder.token != self.token:
                    self._lost = f" to {holder}" if holder else ""
        raise IndexLockedError(
            f"This {self._work} lost its lease{self._lost}.",
            where=self._where,
            do="Run the same command again when no other build or update is running.",
        )

    def release(self) -> None:
        """Release the lease, if it was taken. Never raises: a lease that is left is like the lease
        of a dead process."""
        self._is_over.set()
        _own.discard(self.token)
        with self._lock, suppress(AragError):
            if self._version and self._lost is None:
                self._put({}, self._version, _RELEASE_S)

    def _keep(self) -> None:
        pause_s = RENEW_S
        while not self._is_over.wait(pause_s):
            pause_s = RENEW_S
            try:
                self.renew(0.0)
            except IndexLockedError:
                return
            except AragError:
                pause_s = min(_AGAIN_S, RENEW_S)

    def _make_index(self) -> None:
        try:
            self._client.call("PUT", f"/{lock_name(self._index)}", _SETTINGS, attempt_timeout_s=60)
        except RefusedError as error:
            if error.kind != "resource_already_exists_exception":
                raise

    def _write(self, version: Version, budget_s: float | None) -> None:
        began = time.monotonic()
        process = this_process()
        holder = Holder(
            self.token, self._work, node(), process.pid, process.started, process_space(),
            self._since, self.written(), self.about,
        )  # fmt: skip
        reply = self._put(dataclasses.asdict(holder), version, budget_s)
        self._version, self._renewed = self._client.read(_version, reply), began

    def _put(self, document: Mapping[str, Any], version: Version, budget_s: float | None) -> Any:
        path = f"/{lock_name(self._index)}/_doc/holder"
        return self._client.call("PUT", path, document, version, budget_s=budget_s)

    def _tells(self, holder: Holder, waited_s: float) -> bool:
        """Say for whom this process waits, if the renewal is overdue. Return whether it did."""
        is_overdue = waited_s > 2 * RENEW_S
        if is_overdue and self._note is not None:
            self._note(f"Waiting for the lease of {holder}, until {_clock(DEAD_S - waited_s)}.")
        return is_overdue

    def _locked(self, holder: Holder) -> IndexLockedError:
        return IndexLockedError(
            f"Another {holder.work} is running there: {holder}.",
            where=self._where,
            do=f"Wait for it, or stop it. If it was killed, its lease ends at {_clock(DEAD_S)}.",
        )


def _clock(in_s: float) -> str:
    return f"{datetime.now() + timedelta(seconds=in_s):%H:%M:%S}"
