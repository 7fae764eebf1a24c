"""Ctrl-C at a moment of our choosing."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType


class Interrupts:
    """Holds back the first Ctrl-C until ``check``; a context manager.

    ``on_first`` is called at the first one, within the signal handler: it must not wait for
    anything. The second one interrupts at once. Outside of the main thread, or where the program
    has a handler of its own, nothing is held back.
    """

    def __init__(self, on_first: Callable[[], None] | None = None) -> None:
        self._on_first = on_first
        self.between_batches = False
        """Whether the KeyboardInterrupt was raised by ``check``."""

        self._asked = False
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
        if self._asked:
            signal.default_int_handler(number, frame)
        self._asked = True
        if self._on_first is not None:
            self._on_first()

    def check(self) -> None:
        """Raise the KeyboardInterrupt that was held back, if there is one."""
        if self._asked:
            self.between_batches = True
            raise KeyboardInterrupt
