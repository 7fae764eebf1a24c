"""The indexes of a server as they are opened, those of folders once they are built."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from arag_search.errors import AragError, IndexProblemError, VectorsError
from arag_search.mcp_server.live import Coming, LiveIndexes
from arag_search.mcp_server.served import ServedIndex
from arag_search.search.index import Index
from arag_search.search.opening import IndexOpening
from arag_search.tools.preset import Preset

if TYPE_CHECKING:
    from arag_search.mcp_server.folders import ServedFolder

_logger = logging.getLogger(__name__)

_AGAIN_S = 2.0


class OpenedIndexes:
    """Opens the indexes of a server by ``opening``, which says how the index at a location is
    opened, with the tools of a preset and the owners' descriptions (``about``)."""

    def __init__(
        self,
        live: LiveIndexes,
        opening: Callable[[str], IndexOpening],
        preset: Preset,
        about: Mapping[str, str],
    ) -> None:
        self._live = live
        self._opening = opening
        self._preset = preset
        self._about = about
        self._failure = ""

    def add(self, name: str, location: str) -> None:
        """Open an index and serve it. Raises what opening raises."""
        self._live.add(name, self._opening(location).follow(partial(self._served, name)))

    def add_sample(self, name: str, location: str) -> None:
        """Serve the tools of an index of some files until the index of all is there."""
        self._live.sample = self._served(name, self._opening(location).open())

    def add_folders(self, folders: Mapping[str, ServedFolder], *, waits: bool) -> None:
        """Open the indexes of folders once they are there, at once where they are. Otherwise, and
        where they are built again, they are waited for here if the server ``waits``, and in a
        thread while it serves."""
        for name, folder in folders.items():
            if waits:
                self._open(name, folder)
            elif folder.coming() is None:
                with suppress(IndexProblemError):
                    self.add(name, str(folder.index.location))
        self._live.coming = lambda: self._coming(folders)
        self._live.compare = lambda: [folder.compare() for folder in folders.values()]
        self._live.withdraw = lambda error: any(
            folder.withdraw(error, folder.index.state)
            for folder in folders.values()
            if error.where == str(folder.index.location)
        )
        if not all(map(self._live.has, folders)):
            threading.Thread(target=self._await, args=(folders,), daemon=True).start()

    def _served(self, name: str, index: Index) -> ServedIndex:
        return ServedIndex.of(name, index, self._preset, self._about.get(name, ""))

    def _coming(self, folders: Mapping[str, ServedFolder]) -> Coming | None:
        if self._failure:
            return Coming(self._failure, has_failed=True)
        for name, folder in folders.items():
            if (coming := folder.coming()) is not None:
                return coming
            if not self._live.has(name):
                return Coming("The index is being opened.")
        return None

    def _open(self, name: str, folder: ServedFolder) -> None:
        while not self._live.has(name) and folder.wait():
            state = folder.index.state
            try:
                self.add(name, str(folder.index.location))
            except IndexProblemError as error:
                if not folder.withdraw(error, state):
                    raise

    def _await(self, folders: Mapping[str, ServedFolder]) -> None:
        for name, folder in folders.items():
            while True:
                try:
                    self._open(name, folder)
                except AragError as error:
                    if str(error) != self._failure:
                        _logger.error("%s", error)
                    self._failure = str(error)
                    if not isinstance(error, VectorsError):
                        return
                    time.sleep(_AGAIN_S)  # the vectors that its tools need may be made meanwhile
                else:
                    self._failure = ""
                    break
