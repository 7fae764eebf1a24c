"""The order in which calls start, so that each client has a share of the workers."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

_Call = TypeVar("_Call")


class Turns(Generic[_Call]):
    """The calls of clients that wait and run, in ``places`` places.

    Clients are served in turn, and the calls of one in their order. No client starts a call while
    another client that waits has fewer running. The last ``kept`` free places are for clients with
    no call running, so that another client's first call never waits for long ones. Nothing here
    blocks or knows the time, and threads may not share it.
    """

    def __init__(self, places: int, *, kept: int) -> None:
        self.places, self.kept = places, kept
        self.waiting: OrderedDict[Hashable, list[_Call]] = OrderedDict()
        """The calls that wait by client, in the order of turns."""
        self.running: Counter[Hashable] = Counter()

    def add(self, client: Hashable, call: _Call) -> None:
        """Let a call wait."""
        self.waiting.setdefault(client, []).append(call)

    def start(self) -> tuple[Hashable, _Call] | None:
        """Return the call that starts now, with its client; None if all have to wait."""
        if not self.waiting:
            return None
        client = min(self.waiting, key=self.running.__getitem__)  # of equals, the first in turn
        if self.places - self.running.total() <= (self.kept if self.running[client] else 0):
            return None
        call = self.waiting[client][0]
        self.leave(client, call)
        if client in self.waiting:
            self.waiting.move_to_end(client)
        self.running[client] += 1
        return client, call

    def leave(self, client: Hashable, call: _Call) -> None:
        """Drop a call that waits."""
        self.waiting[client].remove(call)
        if not self.waiting[client]:
            del self.waiting[client]

    def end(self, client: Hashable) -> None:
        """Note that a running call of a client has ended."""
        self.running -= Counter([client])
