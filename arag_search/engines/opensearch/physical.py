"""The two physical indexes behind an address, and searches in them.

Names are resolved once, on opening; an index published later under the same name is not seen.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from arag_search.engines.base import REBUILD, Deadline, Granularity, no_sentences
from arag_search.engines.opensearch import schema
from arag_search.engines.opensearch.address import OPENING_BUDGET_S, Address
from arag_search.engines.opensearch.client import Body, Client, Params
from arag_search.engines.opensearch.compile import Dsl, shard_terms
from arag_search.errors import (
    IndexDamagedError,
    IndexNotFoundError,
    IndexProblemError,
    RefusedError,
)
from arag_search.manifest import Manifest

_Read = TypeVar("_Read")

_IF_THERE = {"ignore_unavailable": "true"}
_READ = "*.aliases,*.mappings._meta,*.settings.index.number_of_shards"
_BUILD = "Build it with: arag-search index SOURCE --to "


@dataclass(frozen=True, slots=True)
class PhysicalIndex:
    """A physical index. ``statistics`` are the clauses that scored queries need in addition if it
    has several shards (see ``compile.with_statistics``)."""

    index: str
    shards: int
    statistics: tuple[Dsl, ...] | None


@dataclass(frozen=True, slots=True)
class PhysicalIndexes:
    """The physical indexes of one build, with their manifest."""

    chunks: PhysicalIndex
    sentences: PhysicalIndex | None
    manifest: Manifest
    unfinished_update: str = ""
    """The command of an update that is running or was interrupted."""


def find_physical(client: Client, address: Address) -> PhysicalIndexes:
    """Resolve the name of an address.

    Raises IndexNotFoundError if there is no such index, or it is not ours or not finished,
    IndexVersionError, IndexDamagedError if its parts do not belong together.
    """
    names = f"{address.name},{schema.sentences_name(address.name)}"
    params = {**_IF_THERE, "filter_path": _READ}
    reply = client.call("GET", f"/{names}", None, params, budget_s=OPENING_BUDGET_S, waits=False)
    return client.read(lambda indexes: _found(indexes, address.name, str(address)), reply)


def _found(indexes: dict[str, Any], name: str, where: str) -> PhysicalIndexes:
    """Return the physical indexes of a name; ``indexes`` are all on the server, by their name."""
    aliases = {index: info.get("aliases", {}) for index, info in indexes.items()}
    named = [index for index in indexes if index == name or name in aliases[index]]
    if not named:
        raise IndexNotFoundError(
            "There is no such index on the server.", where=where, do=_BUILD + where
        )
    chunks = named[0]
    check_aliases({index: aliases[index].get(name, {}) for index in named}, where)
    meta = schema.read_meta(indexes[chunks].get("mappings", {}), where)
    if meta is None:
        raise IndexNotFoundError(
            "The index was not built by arag_search: its mapping has no _meta of ours.",
            where=where,
            do=f"Name another index. {_BUILD}ADDRESS",
        )
    if meta.manifest is None:
        raise IndexNotFoundError(
            "The build of the index is not finished.",
            where=where,
            do="Run the same arag-search index command again to resume it.",
        )
    if meta.manifest.engine != schema.OPENSEARCH:
        raise IndexDamagedError(
            f'The manifest is of an index of engine "{meta.manifest.engine}".',
            where=where,
            allowed=f"engine {schema.OPENSEARCH}",
            do=REBUILD,
        )
    sentences: PhysicalIndex | None = None
    if meta.manifest.has_sentences:
        if meta.sentences is None or meta.sentences not in indexes:
            raise IndexProblemError(
                "The sentences of the index are missing.",
                where=where,
                do=f"Add the alias {schema.sentences_name(name)} to {meta.sentences}, which a "
                f"restore may have forgotten. If that index is gone: {REBUILD}",
            )
        sentences = _physical(meta.sentences, indexes, meta.sentence_terms)
    physical = _physical(chunks, indexes, meta.chunk_terms)
    return PhysicalIndexes(physical, sentences, meta.manifest, meta.unfinished_update)


def check_aliases(aliases: Mapping[str, Mapping[str, Any]], where: str) -> None:
    """Raise IndexProblemError unless a name stands for one whole index. ``aliases`` has what the
    server keeps of the name, by index. Requests go to the index itself, so that they would ignore a
    filter or a routing."""
    if len(aliases) > 1:
        raise IndexProblemError(
            f"The name stands for {len(aliases)} indexes: {', '.join(sorted(aliases))}.",
            where=where,
            allowed="an alias of one index",
            do="Remove the alias from the others.",
        )
    for index, alias in aliases.items():
        if narrowing := sorted({key.rpartition("_")[2] for key in alias} & {"filter", "routing"}):
            raise IndexProblemError(
                f"The name is an alias with a {' and a '.join(narrowing)}.",
                where=where,
                allowed="an alias of a whole index",
                do=f"Name the index {index} instead, and narrow searches by --filter CONDITIONS.",
            )


def _physical(index: str, indexes: Mapping[str, Any], terms: schema.Terms) -> PhysicalIndex:
    shards = int(indexes[index]["settings"]["index"]["number_of_shards"])
    return PhysicalIndex(index, shards, shard_terms(terms) if shards > 1 else None)


class Searcher:
    """A sender of searches to the physical indexes of one index; partial answers are errors."""

    def __init__(self, client: Client, indexes: PhysicalIndexes, where: str) -> None:
        self._client = client
        self._where = where
        self._indexes = indexes
        # The same for all searches: copies may differ in deleted documents, and so in scores.
        self._preference = f"arag-{uuid.uuid4().hex[:12]}"

    def physical(self, granularity: Granularity) -> PhysicalIndex:
        """Return the index of chunks or sentences. Raises NotServedError for sentences left out."""
        if granularity == "chunk":
            return self._indexes.chunks
        if self._indexes.sentences is None:
            raise no_sentences()
        return self._indexes.sentences

    def search(
        self,
        granularity: Granularity,
        body: Dsl,
        reading: Callable[[dict[str, Any]], _Read],
        *,
        scored: bool = False,
        deadline: Deadline | None = None,
        waits: bool = False,
    ) -> _Read:
        """Return what ``reading`` makes of the answer to a search (see ``Client.read``).
        ``scored`` means that shards must agree on scores; a search that is part of a job ``waits``
        for a server that is down (see ``Client.call``)."""
        physical = self.physical(granularity)
        params = {
            "allow_partial_search_results": "false",
            "preference": self._preference,
            "search_type": _search_type(physical, scored),
        }
        path = f"/{physical.index}/_search"
        answer = self._call(path, _timed(body, deadline), params, deadline, waits)
        return self._client.read(reading, answer)

    def searches(
        self,
        bodies: Sequence[tuple[Granularity, Dsl]],
        reading: Callable[[list[dict[str, Any]]], _Read],
        *,
        scored: bool = False,
        deadline: Deadline | None = None,
    ) -> _Read:
        """Return what ``reading`` makes of the answers to several searches, sent in one request."""
        if not bodies:
            return reading([])
        lines: list[Dsl] = []
        for granularity, body in bodies:
            physical = self.physical(granularity)
            header = {
                "index": physical.index,
                "allow_partial_search_results": False,
                "preference": self._preference,
                "search_type": _search_type(physical, scored),
            }
            lines += [header, _timed(body, deadline)]
        answer = self._call("/_msearch", lines, None, deadline)
        return self._client.read(lambda replied: reading(replied["responses"]), answer)

    def _call(
        self, path: str, body: Body, params: Params, deadline: Deadline | None, waits: bool = False
    ) -> dict[str, Any]:
        try:
            return self._client.call("POST", path, body, params, deadline=deadline, waits=waits)
        except RefusedError as error:
            raise self._removed(error) from error

    def _removed(self, error: RefusedError) -> Exception:
        if error.kind != "index_not_found_exception":
            return error
        return IndexNotFoundError(
            "The index was removed from the server since it was opened.",
            where=self._where,
            do="Open it again, if another build has replaced it.",
        )


def _timed(body: Dsl, deadline: Deadline | None) -> Dsl:
    body = {**body, "search_pipeline": "_none"}  # a template may set one for all indexes
    if deadline is not None:
        body["timeout"] = f"{max(1, int(1000 * deadline.timeout_s))}ms"
    return body


def _search_type(physical: PhysicalIndex, scored: bool) -> str:
    return "dfs_query_then_fetch" if scored and physical.shards > 1 else "query_then_fetch"
