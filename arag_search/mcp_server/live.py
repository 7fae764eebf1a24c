"""The served indexes as they are now: each request is answered from one state of its index."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import mcp.types as types

from arag_search.errors import AragError, NotServedError
from arag_search.mcp_server.calls import served_call
from arag_search.mcp_server.catalogue import chosen_index, offered_tools
from arag_search.mcp_server.served import Run, ServedTools, index_to_come
from arag_search.query.problems import QueryError
from arag_search.search.following import Follower
from arag_search.search.index import Index
from arag_search.search.opening import IndexOpening
from arag_search.search.state import IndexState
from arag_search.tools.preset import Preset
from arag_search.tools.tool import ReadSet, ToolResult
from arag_search.tools.toolbox import offered_names

if TYPE_CHECKING:
    from arag_search.mcp_server.folders import Coming, ServedFolder


class Session(defaultdict[str, ReadSet]):
    """What one conversation was shown, by index. Two sessions share nothing. A conversation
    ``is_held`` here until the next call. Otherwise it ends with this call, and its further pages
    are the pages of any conversation.

    A call that was cancelled before its reply was made has shown nothing, and a reply that was lost
    in transit counts as shown.
    """

    def __init__(self, *, is_held: bool = True) -> None:
        super().__init__(lambda: ReadSet(is_kept=False, key=object() if is_held else None))


class Availability(NamedTuple):
    """Whether an index can be searched: the ``problem`` or nothing, when its state was ``created``,
    and how many newer states could not be opened."""

    problem: str
    created: str
    failures: int


class LiveIndexes:
    """The served indexes under their names; threads may share it.

    The indexes of ``folders`` follow their files. An index that is being built may have no state
    yet: until ``coming`` returns None, tools are ``offered`` and not called.
    """

    def __init__(
        self, names: Iterable[str], preset: Preset, about: Mapping[str, str] | None = None
    ) -> None:
        """Serve indexes with these names, once they are opened. ``about`` are the owners'
        descriptions."""
        self._preset = preset
        self._served: dict[str, ServedTools] = {}
        self._followers: dict[str, Follower[IndexState]] = {}
        self.names = tuple(names)
        texts = {name: text for name in self.names if (text := (about or {}).get(name))}
        named = [f"{name}: {text}" for name, text in texts.items()]
        self.about = "\n".join(named if len(self.names) > 1 else texts.values())
        self.folders: list[ServedFolder] = []

    def open(self, name: str, opening: IndexOpening) -> None:
        """Open an index and serve it under its name. Raises what opening raises."""

        def served_state(index: Index) -> IndexState:
            ServedTools(name, index, self._preset)  # a state that cannot serve them is not taken
            return index.state

        follower = self._followers[name] = opening.follow(served_state)
        self.serve(name, Index.over(follower, follower.close))

    def serve(self, name: str, index: Index) -> None:
        """Serve an open index under its name. Raises what ``Toolbox`` raises."""
        self._served[name] = ServedTools(name, index, self._preset)

    def coming(self) -> Coming | None:
        """Return how far the first index is that is not served yet; None if all are."""
        return next(filter(None, (folder.coming() for folder in self.folders)), None)

    def compare(self) -> None:
        """Compare folders with their indexes before an answer."""
        for folder in self.folders:
            folder.compare()

    def folder_of(self, error: AragError) -> ServedFolder | None:
        """Return the folder in whose index an error shows."""
        places = {str(folder.index.location): folder for folder in self.folders}
        return places.get(error.where)

    def indexes(self, filter: str | None = None) -> dict[str, Index]:
        """Return the indexes by name, or the parts of them that a filter admits. Raises
        UnavailableError while an index is coming."""
        return {name: tools.index for name, tools in self._within(filter).items()}

    def offered(self, filter: str | None = None) -> list[types.Tool]:
        """Return the tools that clients see. While an index is being built, they are described
        without titles and values. Raises UnavailableError if they need what it will not have."""
        coming = self.coming()
        if coming is not None and not coming.has_failed:
            with suppress(NotServedError):  # vectors
                plain = {
                    name: ServedTools(name, index_to_come(name), self._preset).tools
                    for name in self.names
                }
                return offered_tools(plain, self.about)
        tools = {name: served.tools for name, served in self._within(filter).items()}
        return offered_tools(tools, self.about)

    async def call(
        self,
        name: str,
        arguments: Mapping[str, object],
        session: Session,
        filter: str | None,
        run: Run,
    ) -> ToolResult:
        """Call a tool, as ``run`` runs it. Raises UnavailableError while an index is coming."""
        tools = offered_names(self._preset).values()
        chosen = chosen_index(name, arguments, tools, self.names)
        if isinstance(chosen, ToolResult):
            return chosen
        index, own = chosen
        served_call().index = index
        conversation = self._served[index].in_conversation(session[index])

        def part() -> ServedTools:
            self.compare()
            self._check_served()
            return conversation.within(filter)

        return await conversation.answer(run, name, own, part)

    def availability(self) -> dict[str, Availability]:
        """Ask whether each index can be searched now, by name."""
        by_name: dict[str, Availability] = {}
        for name in self.names:
            problem = created = ""
            try:
                self._check_served()
                state = self._served[name].index.state
                created = state.manifest.created
                state.engine.check_ready()
            except AragError as error:
                problem = str(error)
            follower = self._followers.get(name)
            by_name[name] = Availability(problem, created, follower.failures if follower else 0)
        return by_name

    def check(self, filter: str) -> None:
        """Raise QueryError for a filter that one of the indexes cannot use."""
        for name, served in self._served.items():
            try:
                served.within(filter)
            except QueryError as error:
                error.where = f"the filter, for the index {name}"
                raise

    def close(self) -> None:
        """Close the indexes."""
        for served in self._served.values():
            served.index.close()

    def _within(self, filter: str | None) -> dict[str, ServedTools]:
        self._check_served()
        return {name: self._served[name].within(filter) for name in self.names}

    def _check_served(self) -> None:
        if (coming := self.coming()) is not None:
            raise coming.error()
