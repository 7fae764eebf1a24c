"""The served indexes, each under a name that clients use."""

from __future__ import annotations

import copy
import re
import unicodedata
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Self, cast
from unicodedata import combining

from arag_search.engines.base import SearchEngine
from arag_search.engines.opensearch.address import is_address, parse_address
from arag_search.errors import ArgumentError
from arag_search.field_counts import FieldCounts
from arag_search.manifest import Manifest
from arag_search.search.index import Index
from arag_search.search.state import IndexState
from arag_search.tools.preset import Preset
from arag_search.tools.registry import CONNECTOR_TOOLS
from arag_search.tools.tool import ReadSet, Tool, ToolResult
from arag_search.tools.toolbox import Ran, Toolbox, served_tools
from index_jobs.sources.metadata import FILE_FIELDS

Run = Callable[[Callable[[], Ran]], Awaitable[Ran]]
"""A function that runs a call of one client in the thread of a worker."""
_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_NAMED = re.compile(rf"({_NAME})=(.*)", re.DOTALL)
_NOT_OF_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
_UNNAMED = "folder"
_SHOWN_CHARACTERS = 80
MAX_DESCRIPTION = 1_000
"""The maximum number of characters in the description of an index."""


class ServedTools(Toolbox):
    """The tools of a preset over an index that clients know by a name."""

    def __init__(self, name: str, index: Index, preset: Preset) -> None:
        self.name = name
        super().__init__(index, preset)

    def within(self, filter: str | None) -> Self:
        """Return the tools over the part that a filter admits. Raises QueryError."""
        part = copy.copy(self)
        part.index = self.index if filter is None else self.index.within(filter)
        return part

    async def answer(
        self,
        run: Run,
        name: str,
        arguments: Mapping[str, object],
        part: Callable[[], ServedTools],
    ) -> ToolResult:
        """Do what ``acall`` does, by the tools that ``part`` returns in the thread of a worker."""
        shown = self._begin()
        return self._end(*await run(lambda: part()._run(name, arguments, shown)))

    def _over(self, index: Index) -> Mapping[str, Tool]:
        return index.state.once(_named, self.preset, self.name)

    def _result(self, tool: Tool, given: object, shown: ReadSet) -> ToolResult:
        return tool.run(given, shown, skips_unknown=True)


def _named(state: IndexState, preset: Preset, name: str) -> dict[str, Tool]:
    tools = served_tools(preset, Index.of_state(state))
    return {offered: tool.served_as(name) for offered, tool in tools.items()}


class _EngineToCome:
    """The engine of an index of files that is not there yet: what descriptions of tools ask."""

    manifest = Manifest(
        engine="", engine_version="", created="", documents=1, chunks=2, sentences=2, tokens=2,
        title_characters=1, chunk_tokens=1, fingerprint="", placement="", language="en",
        metadata=dict(FILE_FIELDS), field_counts=dict.fromkeys(FILE_FIELDS, FieldCounts(0)),
    )  # fmt: skip

    def chunks_at(self, ordinals: Sequence[int], scope: object) -> list[None]:
        return [None] * len(ordinals)


def index_to_come(name: str) -> Index:
    """Return an index of files that is not there yet, for the descriptions of its tools. It has the
    fields of files, and neither titles nor values."""
    return Index(cast("SearchEngine", _EngineToCome()), name)


def named_locations(texts: Sequence[str]) -> dict[str, str]:
    """Return locations by name, from ``NAME=LOCATION`` or a bare location, which is named after its
    last part. A folder with an equals sign in its name is written with ``./`` before it.

    Raises ArgumentError for an empty location, and for two names that are equal apart from case,
    since names are parts of addresses.
    """
    locations: dict[str, str] = {}
    for text in texts:
        match = _NAMED.fullmatch(text)
        name, location = (match[1], match[2]) if match else (_name_of(text, locations), text)
        if not location:
            raise ArgumentError(
                f'The index "{name}" has no location.', where=text, allowed="INDEX or NAME=INDEX"
            )
        if name.lower() in map(str.lower, locations):
            raise ArgumentError(
                f'Two indexes are named "{name}".',
                where=text,
                allowed="names that differ by more than case",
                do="Name them: arag-search mcp one=INDEX two=INDEX",
            )
        locations[name] = location
    return locations


def check_count(preset: Preset, locations: Mapping[str, str]) -> None:
    """Raise ArgumentError for several indexes with the tools of connectors, which have no argument
    for the name of an index."""
    tools = [name for name in preset.tools if name in CONNECTOR_TOOLS]
    if tools and len(locations) > 1:
        raise ArgumentError(
            f"The tools of connectors ({', '.join(tools)}) search one index, and there are "
            f"{len(locations)}.",
            where=f"preset {preset.name}",
            allowed="one index, or another preset",
            do="Start a server for each index, each with a port of its own.",
        )


def descriptions(texts: Sequence[str], names: Collection[str]) -> dict[str, str]:
    """Return the descriptions from ``--describe`` by name of the index: TEXT for a single index,
    else NAME=TEXT. Line breaks become spaces. Raises ArgumentError for a text that is empty or too
    long, and for a name that no index has or that two texts have. With several indexes, a text
    without a name raises it too."""
    described: dict[str, str] = {}
    for given in texts:
        match = _NAMED.fullmatch(given)
        if match and match[1] in names:
            name, text = match[1], match[2]
        elif len(names) == 1:
            (name,), text = names, given
        else:
            raise ArgumentError(
                "The description names none of the indexes.",
                where=f"--describe {given[:_SHOWN_CHARACTERS]}",
                allowed=f"NAME=TEXT with a name of {', '.join(names)}",
            )
        text = " ".join(text.split())
        if not text or len(text) > MAX_DESCRIPTION:
            raise ArgumentError(
                f"The description has {len(text):,} characters.",
                where=f"--describe, index {name}",
                allowed=f"1 to {MAX_DESCRIPTION:,}",
            )
        if name in described:
            raise ArgumentError(
                f'The index "{name}" is described twice.',
                where="--describe",
                allowed="one description for each index",
            )
        described[name] = text
    return described


def _name_of(location: str, taken: Collection[str]) -> str:
    """Return the name of a location: its last part, without accents. If no Latin letter or digit is
    in it, return the first free name of folder-1, folder-2 and so on."""
    last = parse_address(location).name if is_address(location) else Path(location).resolve().name
    letters = (sign for sign in unicodedata.normalize("NFKD", last) if not combining(sign))
    name = _NOT_OF_NAMES.sub("-", "".join(letters)).strip("-._")[:64]
    return name or next(free for n in count(1) if (free := f"{_UNNAMED}-{n}") not in taken)
