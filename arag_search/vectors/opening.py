"""Vectors and their encoder, opened when they are first used."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from arag_search.errors import IndexClosedError
from arag_search.vectors.base import Encoder, Vectors


@dataclass(frozen=True, slots=True)
class OpenVectors:
    """The vectors of an index, and an encoder equal to the one that made them.

    ``note`` stands in every reply: what the vectors do not know of the index. None where they are
    up to date.
    """

    vectors: Vectors
    encoder: Encoder
    note: str | None = None

    def close(self) -> None:
        """Free both."""
        self.vectors.close()
        self.encoder.close()


class VectorSource:
    """Opens vectors once, whichever of several threads comes first."""

    def __init__(self, open_them: Callable[[], OpenVectors]) -> None:
        """``open_them`` is called when they are first asked for, again only after it raised."""
        self._open_them = open_them
        self._lock = threading.Lock()
        self._held: OpenVectors | None = None
        self._closed = False

    def get(self) -> OpenVectors:
        """Open them, or give those that are open. Raises what opening raises, and IndexClosedError
        after ``close``."""
        with self._lock:
            if self._closed:
                raise IndexClosedError(
                    "The vectors are closed.", do="Open the index again with open_index."
                )
            if self._held is None:
                self._held = self._open_them()
            return self._held

    def close(self) -> None:
        """Free what is open. May be called again."""
        with self._lock:
            self._closed = True
            held, self._held = self._held, None
        if held is not None:
            held.close()
