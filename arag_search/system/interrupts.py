"""Ctrl-C, deferred to a safe moment."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType


class Interrupts:
    """A context manager that defers the first Ctrl-C until ``check``.

    ``on_first`` is called at the first Ctrl-C, in the signal handler, so it must not block. The
    second Ctrl-C interrupts at once. Nothing is deferred outside of the main thread, or if the
    program has already installed its own signal handler.
    """

    def __init__(self, on_first: Callable[[], None] | None = None) -> None:
        self._on_first = on_first
        self.between_batches = False
        """Whether the KeyboardInterrupt was raised by ``check``."""

        self._is_pending = False
        self._installed = False

    def __enter__(self) -> Interrupts:
        if (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        ):
            signal.signal(signal.SIGINT, self._note)
            self._installed = True
        return self

    def __exit__(self, *exception: object) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._installed = False

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._is_pending:
            signal.default_int_handler(number, frame)
        self._is_pending = True
        if self._on_first is not None:
            self._on_first()

    def check(self) -> None:
        """Raise the deferred KeyboardInterrupt, if there is one."""
        if self._is_pending:
            self.between_batches = True
            raise KeyboardInterrupt
