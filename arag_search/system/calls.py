"""The call of a tool that is being answered, known to all that it asks."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class Call:
    """A call. Its requests to servers carry its ``id`` (ASCII), and ``round_trips`` counts them."""

    id: str
    round_trips: int = 0


current_call: ContextVar[Call | None] = ContextVar("current_call", default=None)
"""Threads that a call starts know it if they run in a copy of its context."""
