"""The lease of an index on a server, against a server in memory and a clock of the test."""

import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import Any

import pytest

from arag_search.engines.opensearch import lease
from arag_search.engines.opensearch.address import ConnectionOptions, parse_address
from arag_search.engines.opensearch.client import Client
from arag_search.engines.opensearch.lease import DEAD_S, RENEW_S, Holder, Lease, read_holder
from arag_search.errors import IndexLockedError, RefusedError, UnavailableError
from arag_search.system.processes import process_space, start_of

ELSEWHERE = Holder(
    "other", "build", "loader-2", 7, "boot 1", "boot pid:[1]", "2026-11-29 14:03 UTC", 1200, {}
)


class Clock:
    """The time of a test. ``then`` is called after each sleep."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.then: Callable[[], None] = lambda: None

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.then()


class Server(Client):
    """A server in memory with one document; the next calls meet ``faults`` first: 429, "lost" (the
    answer), or a function."""

    def __init__(self) -> None:
        super().__init__(parse_address("http://h:9200/n"), ConnectionOptions())
        self.document: dict[str, Any] | None = None
        self.number = 0
        self.calls: list[str] = []
        self.faults: list[Any] = []

    def call(self, method: str, path: str, body: Any = None, params: Any = None, **_: Any) -> Any:
        assert path.partition("/_doc")[0] == "/n.lock"
        self.calls.append(method)
        fault = self.faults.pop(0) if self.faults else None
        if callable(fault):
            fault()
        if fault == 429:
            raise UnavailableError("The server is busy.")
        answer = self._answer(method, path, body, params)
        if fault == "lost":
            raise UnavailableError("No answer.")
        return answer

    def put(self, holder: Holder | None) -> None:
        """Write the document as another process does."""
        self.document = None if holder is None else asdict(holder)
        self.number += 1

    def _answer(self, method: str, path: str, body: Any, params: Any) -> Any:
        version = {"if_seq_no": str(self.number), "if_primary_term": "1"}
        if not path.endswith("/_doc/holder"):
            return {}
        if method == "GET" and self.document is None:
            raise RefusedError("There is none.", status=404, kind="", where="")
        if method == "PUT":
            if params != ({"op_type": "create"} if self.document is None else version):
                raise RefusedError("It was changed.", status=409, kind="", where="")
            self.document = body
            self.number += 1
        return {"_seq_no": self.number, "_primary_term": 1, "_source": self.document}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(lease, "time", clock)
    monkeypatch.setattr(Lease, "_keep", lambda self: None)  # tests renew themselves
    return clock


@pytest.fixture
def server(clock: Clock) -> Iterator[Server]:
    yield Server()
    lease._own.clear()


def lease_of(server: Server, notes: list[str] | None = None) -> Lease:
    return Lease(server, "n", "http://h:9200/n", "update", None if notes is None else notes.append)


def taken(server: Server) -> Lease:
    own = lease_of(server)
    assert own.take() == {}
    return own


def holder_of(server: Server) -> Holder | None:
    return read_holder(server, "n-20261129120000000-0123abcd")[0]


# Taking


def test_a_lease_names_its_process_until_it_is_released(server: Server) -> None:
    own = taken(server)
    holder = holder_of(server)
    assert holder is not None
    assert (holder.work, holder.pid, holder.written) == ("update", os.getpid(), 0)
    own.written = lambda: 1200
    own.renew()
    assert str(holder_of(server)).endswith(" UTC, 1,200 passages and sentences written")
    own.release()
    assert holder_of(server) is None
    taken(server)


def test_a_second_process_is_told_who_builds_and_until_when_the_lease_lasts(
    server: Server, clock: Clock
) -> None:
    server.put(ELSEWHERE)
    clock.then = lambda: server.put(ELSEWHERE) if clock.now == 1009 else None
    with pytest.raises(IndexLockedError) as caught:
        lease_of(server).take()
    do, _, ends = str(caught.value).rpartition(" ")
    assert do == (
        "Another build is running there: process 7 on loader-2, since 2026-11-29 14:03 UTC, 1,200"
        " passages and sentences written.\nWhere: http://h:9200/n\n"
        "Do: Wait for it, or stop it. If it was killed, its lease ends at"
    )
    assert len(ends) == len("14:05:00.")
    assert clock.now == 1009, "it ends as soon as it sees the renewal"


HERE = replace(ELSEWHERE, space=process_space(), pid=os.getpid(), started="of another process")
PARENT = replace(HERE, pid=os.getppid(), started=start_of(os.getppid()) or "")


@pytest.mark.parametrize(
    ("holder", "waits_s"),
    [
        (ELSEWHERE, DEAD_S),
        (HERE, 0),  # the process id is that of another one now
        (PARENT, DEAD_S),  # it runs, but may be suspended
        (replace(HERE, space=""), DEAD_S),
        (replace(HERE, space=f"{HERE.space} of a container"), DEAD_S),
        (replace(HERE, started=""), DEAD_S),
    ],
)
def test_a_lease_without_renewals_ends_after_a_minute_or_with_its_process_if_that_is_seen(
    server: Server, clock: Clock, holder: Holder, waits_s: float
) -> None:
    server.put(replace(holder, about={"command": "add"}))
    notes: list[str] = []
    own = lease_of(server, notes)
    assert own.take() == {"command": "add"}
    assert clock.now - 1000 == waits_s
    assert len(notes) == bool(waits_s)
    assert all(note.startswith("Waiting for the lease of process ") for note in notes)


@pytest.mark.parametrize("fault", ["no answer", "slow answers"])
def test_time_in_which_the_server_did_not_answer_ends_no_lease(
    server: Server, clock: Clock, fault: str
) -> None:
    server.put(ELSEWHERE)
    if fault == "no answer":  # as if the call was repeated for so long, or the waiter was suspended
        server.faults = [None] * 50 + [lambda: clock.sleep(90)]
        lease_of(server).take()
        assert clock.now == 1000 + 49 * 0.5 + 0.5 + 90 + DEAD_S
    else:
        server.faults = [lambda: clock.sleep(RENEW_S + 1)] * 20 + [lambda: server.put(ELSEWHERE)]
        with pytest.raises(IndexLockedError):
            lease_of(server).take()


def test_of_two_that_wait_one_gets_the_lease(server: Server, clock: Clock) -> None:
    server.put(ELSEWHERE)
    at_last = [None] * 121 + [lambda: server.put(replace(ELSEWHERE, token="third", pid=8))]
    server.faults = at_last  # between the last look and the write
    with pytest.raises(IndexLockedError, match="process 8 on loader-2"):
        lease_of(server).take()


def test_a_lease_that_is_released_meanwhile_is_taken_without_its_work(
    server: Server, clock: Clock
) -> None:
    server.put(replace(ELSEWHERE, about={"command": "add"}))
    clock.then = lambda: server.put(None)
    assert lease_of(server).take() == {}
    assert clock.now == 1000.5


def test_within_a_process_a_lease_lasts_until_it_is_released(server: Server, clock: Clock) -> None:
    own = taken(server)
    with pytest.raises(IndexLockedError):
        lease_of(server).take()
    server.faults = [429]
    own.release()
    assert holder_of(server), "the server did not answer"
    taken(server)
    assert clock.now == 1000


def test_a_lost_answer_to_taking_does_not_lock_out_the_process_itself(server: Server) -> None:
    def repeat() -> None:  # what the client does
        with pytest.raises(UnavailableError):
            server.call("PUT", "/n.lock/_doc/holder", asdict(mine), {"op_type": "create"})

    own = lease_of(server)
    mine = replace(ELSEWHERE, token=own.token)
    server.faults = [None, None, repeat, "lost"]
    assert own.take() == {}
    own.renew()


# Holding


@pytest.mark.parametrize("fault", [429, "lost"])
def test_a_renewal_without_an_answer_loses_nothing(server: Server, fault: object) -> None:
    own = taken(server)
    server.faults = [fault]
    with pytest.raises(UnavailableError):
        own.renew()
    own.renew()
    own.release()
    assert holder_of(server) is None


@pytest.mark.parametrize(
    ("after", "what"),
    [
        (ELSEWHERE, f"This update lost its lease to {ELSEWHERE}."),
        (None, "This update lost its lease."),
    ],
)
def test_a_lease_that_was_taken_over_or_removed_is_lost_for_good(
    server: Server, clock: Clock, after: Holder | None, what: str
) -> None:
    own = taken(server)
    server.put(after)
    clock.now += DEAD_S / 2 + 1
    for attempt in (own.check, own.renew, own.check):
        with pytest.raises(IndexLockedError) as caught:
            attempt()
        assert caught.value.what == what
    number = server.number
    own.release()
    assert (server.number, holder_of(server)) == (number, after), "it is not ours to release"


def test_a_check_asks_the_server_only_if_a_renewal_is_overdue(server: Server, clock: Clock) -> None:
    own = taken(server)
    before = len(server.calls)
    clock.now += DEAD_S / 2
    own.check()
    assert len(server.calls) == before
    clock.now += 1
    own.check()
    own.check()
    assert len(server.calls) == before + 1
