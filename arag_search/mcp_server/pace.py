"""Bounds on the time and number of connections that begin a request without finishing it."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol


def paced(read_timeout_s: float, max_connections: int) -> type[H11Protocol]:
    """Return a protocol for uvicorn that closes a connection after it has waited for the head of a
    request for ``read_timeout_s`` seconds.

    The time begins with the connection and, after an answered request, with the first byte of the
    next one; further bytes do not renew it. Uvicorn's own timer handles a connection that is idle
    between requests, and the reader of a body handles slow bodies.

    Beyond ``max_connections``, the connection that has waited the longest for the rest of a
    request, or for the next one, is closed.
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
            """Note whether a request is complete but not answered."""
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
