"""The two physical indexes behind an address, and searches sent to them.

Names are resolved once, on opening; an index published later under the same name is not seen.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from arag_search.engines.base import Granularity
from arag_search.engines.deadline import Deadline
from arag_search.engines.opensearch import schema
from arag_search.engines.opensearch.address import Address
from arag_search.engines.opensearch.client import Body, Client, Params
from arag_search.engines.opensearch.compile import Dsl, shard_terms
from arag_search.engines.opensearch.connection import OPENING_BUDGET_S
from arag_search.engines.opensearch.copies import Copies
from arag_search.errors import IndexDamagedError, IndexNotFoundError, NotServedError, RefusedError
from arag_search.manifest import Manifest

REBUILD = "Build the index again with --overwrite."
_BUILD = "Build it with: arag-search index SOURCE --to ADDRESS"


@dataclass(frozen=True, slots=True)
class Place:
    """A physical index. ``statistics`` is what a scored query needs beside it, where it has several
    shards (see ``compile.with_statistics``)."""

    index: str
    shards: int
    statistics: tuple[Dsl, ...] | None


@dataclass(frozen=True, slots=True)
class Places:
    """The physical indexes of one build, and what they hold."""

    chunks: Place
    sentences: Place | None
    manifest: Manifest
    unfinished_update: str = ""
    """The command of an update that is under way or was stopped."""


def find_places(client: Client, address: Address) -> Places:
    """Resolve the name of an address.

    Raises IndexNotFoundError where there is no such index, or one that is not ours or not finished,
    IndexVersionError, IndexDamagedError where its parts do not belong together.
    """
    where, name = str(address), address.name
    names = f"{name},{schema.sentences_name(name)}"
    found: Any = client.call(
        "GET", f"/{names}", params={"ignore_unavailable": "true"}, budget_s=OPENING_BUDGET_S
    )
    indexes = cast("dict[str, Any]", found)
    mine = [each for each, info in indexes.items() if each == name or name in info["aliases"]]
    if not mine:
        raise IndexNotFoundError("There is no such index on the server.", where=where, do=_BUILD)
    if len(mine) > 1:
        raise IndexDamagedError(
            f"The name stands for {len(mine)} indexes: {', '.join(sorted(mine))}.",
            where=where,
            allowed="an alias of one index",
            do="Remove the alias from the others.",
        )
    chunks = mine[0]
    meta = schema.read_meta(indexes[chunks]["mappings"], where)
    if meta is None:
        raise IndexNotFoundError(
            "The index was not built by arag_search: its mapping says nothing of it in _meta.",
            where=where,
            do="Name another index. " + _BUILD,
        )
    if meta.manifest is None:
        raise IndexNotFoundError(
            "The build of the index is not finished.",
            where=where,
            do="Repeat the command that builds it.",
        )
    if meta.manifest.engine != schema.ENGINE:
        raise IndexDamagedError(
            f'The manifest is of an index of engine "{meta.manifest.engine}".',
            where=where,
            allowed=f"engine {schema.ENGINE}",
            do=REBUILD,
        )
    sentences: Place | None = None
    if meta.manifest.has_sentences:
        if meta.sentences not in indexes:
            raise IndexDamagedError(
                "The sentences of the index are missing.", where=where, do=REBUILD
            )
        sentences = _place(meta.sentences, indexes, meta.sentence_terms)
    place = _place(chunks, indexes, meta.chunk_terms)
    return Places(place, sentences, meta.manifest, meta.unfinished_update)


def _place(index: str, indexes: Mapping[str, Any], terms: schema.Terms) -> Place:
    shards = int(indexes[index]["settings"]["index"]["number_of_shards"])
    return Place(index, shards, shard_terms(terms) if shards > 1 else None)


class Searcher:
    """Sends searches over the places of one index, and gives whole answers only."""

    def __init__(self, client: Client, places: Places, where: str) -> None:
        self._client = client
        self._where = where
        self._places = places
        held = [places.chunks, *([places.sentences] if places.sentences else [])]
        self._copies = Copies(client, [place.index for place in held])

    def place(self, granularity: Granularity) -> Place:
        """Where chunks or sentences are. Raises NotServedError for what was left out."""
        if granularity == "chunk":
            return self._places.chunks
        if self._places.sentences is None:
            raise NotServedError(
                "The index holds no sentences.",
                allowed="granularity chunk",
                do="Build it again without leaving sentences out.",
            )
        return self._places.sentences

    def search(
        self, place: Place, body: Dsl, *, scored: bool = False, deadline: Deadline | None = None
    ) -> dict[str, Any]:
        """The answer to one search. ``scored`` where shards must agree on scores.

        Each attempt has the whole time of the deadline: the loss of a node takes none of it.
        """
        body = _timed(body, deadline)

        def composed(preference: str) -> tuple[Body, Params]:
            return body, {
                "allow_partial_search_results": "false",
                "preference": preference,
                "search_type": _search_type(place, scored),
            }

        return self._call(f"/{place.index}/_search", composed, deadline)

    def searches(
        self,
        bodies: Sequence[tuple[Place, Dsl]],
        *,
        scored: bool = False,
        deadline: Deadline | None = None,
    ) -> list[dict[str, Any]]:
        """The answers to several searches, sent at once."""
        if not bodies:
            return []

        def composed(preference: str) -> tuple[Body, Params]:
            lines: list[Dsl] = []
            for place, body in bodies:
                lines.append(
                    {
                        "index": place.index,
                        "allow_partial_search_results": False,
                        "preference": preference,
                        "search_type": _search_type(place, scored),
                    }
                )
                lines.append(_timed(body, deadline))
            return lines, None

        return self._call("/_msearch", composed, deadline)["responses"]

    def _call(
        self,
        path: str,
        composed: Callable[[str], tuple[Body, Params]],
        deadline: Deadline | None,
    ) -> dict[str, Any]:
        """The answer to what is composed with a preference, and again with another where a copy
        hangs. Raises QueryTimeoutError where none does, and the time was up."""
        preference = self._copies.preference
        begun = time.monotonic()

        def after_timeout(until: float) -> tuple[Body, Params]:
            nonlocal preference, begun
            is_late = deadline is not None and time.monotonic() - begun >= deadline.timeout_s
            asked = preference
            self._copies.leave_out_hung(preference, until)
            preference = self._copies.preference
            if deadline is not None and is_late and preference == asked:
                raise deadline.exceeded()
            begun = time.monotonic()
            return composed(preference)

        try:
            return self._client.call(
                "POST",
                path,
                *composed(preference),
                after_timeout=after_timeout,
                query_timeout_s=None if deadline is None else deadline.timeout_s,
            )
        except RefusedError as error:
            raise self._removed(error) from error

    def _removed(self, error: RefusedError) -> Exception:
        """The error for an index that was there on opening, or the error as it is."""
        if error.kind != "index_not_found_exception":
            return error
        return IndexNotFoundError(
            "The index was removed from the server since it was opened.",
            where=self._where,
            do="Open it again, if another build has replaced it.",
        )


def _timed(body: Dsl, deadline: Deadline | None) -> Dsl:
    """The body of a search that the server stops at the deadline."""
    if deadline is None:
        return body
    return {**body, "timeout": f"{max(1, int(1000 * deadline.timeout_s))}ms"}


def _search_type(place: Place, scored: bool) -> str:
    return "dfs_query_then_fetch" if scored and place.shards > 1 else "query_then_fetch"
