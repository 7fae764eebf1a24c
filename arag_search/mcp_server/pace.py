"""Connections that begin a request and do not get on with it: for how long, and how many."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol


def paced(read_timeout_s: float, max_connections: int) -> type[H11Protocol]:
    """The protocol of uvicorn's connections, which ends one that has been waiting for the head of
    a request for so many seconds.

    They begin with the connection, and after a request was answered with the first byte of the
    next; further bytes do not renew them. A connection that is idle between requests is left to
    uvicorn's own timer, and the body of a request to whoever reads it.

    Where there are more than ``max_connections``, the one that has waited the longest for the rest
    of a request, or for the next one, makes room.
    """
    waiting: dict[Paced, None] = {}  # the one that began to wait last is the last

    class Paced(H11Protocol):
        _head_due: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self._await_head()
            self._note_state()
            while len(self.connections) > max_connections:
                oldest = next(iter(waiting))
                if oldest is self:
                    break  # all others are being answered; uvicorn refuses this one
                oldest._make_room()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle and not self.cycle.response_complete:
                self._forget_head()
            else:
                self._await_head()
            self._note_state()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._note_state()

        def connection_lost(self, exc: Exception | None) -> None:
            self._forget_head()
            waiting.pop(self, None)
            super().connection_lost(exc)

        def _note_state(self) -> None:
            """Note whether a whole request is there and its answer is not."""
            if self.cycle and not (self.cycle.response_complete or self.cycle.more_body):
                waiting.pop(self, None)
            else:
                waiting.setdefault(self)

        def _make_room(self) -> None:
            waiting.pop(self, None)
            self.connections.discard(self)
            self.transport.abort()

        def _await_head(self) -> None:
            if self._head_due is None and not self.transport.is_closing():
                self._head_due = self.loop.call_later(read_timeout_s, self.transport.abort)

        def _forget_head(self) -> None:
            if self._head_due is not None:
                self._head_due.cancel()
                self._head_due = None

    return Paced
