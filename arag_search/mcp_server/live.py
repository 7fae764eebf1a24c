"""The served indexes as they are now: each request is answered from one state of each index."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import mcp.types as types

from arag_search.errors import AragError, NotServedError, UnavailableError
from arag_search.mcp_server.catalogue import Call, Catalogue, merged_about
from arag_search.mcp_server.served import ServedIndex, index_to_come
from arag_search.search.following import Follower
from arag_search.search.index import Index
from arag_search.search.opening import IndexOpening
from arag_search.tools.preset import Preset
from arag_search.tools.tool import ReadSet, Tool, ToolResult
from arag_search.tools.toolbox import PAGE_ARGUMENTS, page_of

if TYPE_CHECKING:
    from arag_search.mcp_server.folders import Coming, ServedFolder


@dataclass(eq=False)
class Session:
    """What one conversation was shown, by index. Two sessions share nothing. A conversation
    ``is_held`` here until the next call, or ends with this one.

    A call works on copies, of which one is added when its reply is made. So a call that was
    cancelled before has shown nothing, and a reply that was lost in transit counts as shown.
    """

    is_held: bool = True
    shown: defaultdict[str, ReadSet] = field(
        default_factory=lambda: defaultdict(partial(ReadSet, is_kept=False))
    )

    def copies(self, indexes: Sequence[str]) -> dict[str, ReadSet]:
        """Return copies of what was shown from indexes, for a call to work on."""
        return {index: self.shown[index].copy() for index in indexes}


class Ran(NamedTuple):
    """The result of a call, and how its reply is noted as shown in the conversation."""

    result: ToolResult
    note_shown: Callable[[], None] = lambda: None


class LiveIndexes:
    """The served indexes under their names, by their followers; threads may share it.

    Those of ``folders`` follow their files. One that is being built may have no state yet: until
    ``coming`` returns None, tools are ``offered`` and not called.
    """

    def __init__(
        self,
        followers: Mapping[str, Follower[ServedIndex]],
        preset: Preset,
        about: Mapping[str, str] | None = None,
        names: Sequence[str] = (),
    ) -> None:
        """Serve indexes. ``about`` are the owners' descriptions; ``names`` are those of all
        indexes, in their order, of which some are opened later."""
        self._followers = dict(followers)
        self._preset = preset
        self._about = about or {}
        self.names = tuple(names or followers)
        self.about = merged_about({name: self._about.get(name, "") for name in self.names})
        self._known: tuple[tuple[ServedIndex, ...], Catalogue] | None = None
        self.folders: list[ServedFolder] = []

    def open(self, name: str, opening: IndexOpening) -> None:
        """Open an index and serve it under its name. Raises what opening raises."""
        self._followers[name] = opening.follow(partial(self._served, name))

    def _served(self, name: str, index: Index) -> ServedIndex:
        return ServedIndex.of(name, index, self._preset, self._about.get(name, ""))

    def coming(self) -> Coming | None:
        """Return how far the first index is that is not served yet; None if all are."""
        return next(filter(None, (folder.coming() for folder in self.folders)), None)

    def compare(self) -> None:
        """Compare folders with their indexes before an answer."""
        for folder in self.folders:
            folder.compare()

    def withdraw(self, error: AragError) -> bool:
        """Return whether the index in which an error shows is being built again."""
        return any(
            folder.withdraw(error, folder.index.state)
            for folder in self.folders
            if error.where == str(folder.index.location)
        )

    @contextmanager
    def catalogue(self, filter: str | None = None) -> Generator[Catalogue]:
        """Use the tools over one state of each index, within the part that a filter admits. Raises
        UnavailableError while an index is coming."""
        with ExitStack() as stack:
            if (coming := self.coming()) is not None:
                raise UnavailableError(coming.text, do="Ask again in a moment.")
            whole = self._whole(stack)
            yield whole if filter is None else whole.part(filter)

    def offered(self, filter: str | None = None) -> list[types.Tool]:
        """Return the tools that clients see. While an index is being built, they are described
        without titles and values. Raises UnavailableError if they need what it will not have."""
        coming = self.coming()
        if coming is not None and not coming.has_failed:
            with suppress(NotServedError):  # vectors
                plain = [self._served(name, index_to_come(name)) for name in self.names]
                return Catalogue(plain, self._preset).offered
        with self.catalogue(filter) as catalogue:
            return catalogue.offered

    def call(
        self,
        name: str,
        arguments: Mapping[str, object],
        session: Session,
        seen: Mapping[str, ReadSet],
        filter: str | None = None,
    ) -> Ran:
        """Call a tool. A further page of a result is read from the state of its first page.
        ``seen`` is what the session had been shown, by index, when the call arrived."""
        self.compare()
        with self.catalogue(filter) as catalogue, ExitStack() as stack:
            call = catalogue.call(name, arguments)
            if not isinstance(call, Call):
                return Ran(call)
            served, tool = call.served, call.served.tools[call.name]
            if _is_paged(tool):
                result, continues = _result_of(call, session, filter)
                use = self._followers[served.name].use(result, continues=continues)
                state = stack.enter_context(use)
                tool = self._within(state, filter).tools[call.name]
            shown = seen[served.name]
            reply = tool.run(call.arguments, shown, skips_unknown=True)
            return Ran(reply, lambda: session.shown[served.name].add(shown))

    def check(self, filter: str) -> None:
        """Raise QueryError for a filter that one of the indexes cannot use."""
        with ExitStack() as stack:
            self._whole(stack).check(filter)

    def close(self) -> None:
        """Close the followers."""
        for follower in self._followers.values():
            follower.close()

    def _whole(self, stack: ExitStack) -> Catalogue:
        """Return the tools over the current states, which ``stack`` holds. They are made again only
        if a state is new."""
        states = tuple(stack.enter_context(self._followers[name].use()) for name in self.names)
        known = self._known
        if known is None or known[0] != states:
            known = self._known = states, Catalogue(states, self._preset)
        return known[1]

    def _within(self, state: ServedIndex, filter: str | None) -> ServedIndex:
        if filter is None:
            return state
        known = self._known
        if known is not None and state in known[0]:
            return known[1].part(filter).served[state.name]
        return state.within(filter, self._preset)


def _is_paged(tool: Tool) -> bool:
    return any(argument in tool.parameters["properties"] for argument in PAGE_ARGUMENTS)


def _result_of(call: Call, session: Session, filter: str | None) -> tuple[Hashable, bool]:
    # What identifies the result of which a call asks for a page, and whether it is a further page.
    same, continues = page_of(call.name, call.arguments)
    return (session if session.is_held else None, filter, same), continues
