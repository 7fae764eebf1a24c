"""OpenSearchWriter: chunks into the two physical indexes of a build, resumable at checkpoints.

A checkpoint is an entry in ``_meta`` of the chunk index, made when the cluster has acknowledged all
documents up to it. What was written after it is written again by a build that goes on, and found to
be there: documents have their ordinal as id.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

from arag_search.corpus import Chunk
from arag_search.engines.opensearch import schema
from arag_search.engines.opensearch.bulk import MAX_BULK_BYTES, NODE_WAIT_S, Bulks
from arag_search.engines.opensearch.client import Client
from arag_search.engines.opensearch.packing import BulkPacker, PackedChunks
from arag_search.engines.opensearch.schema import Meta, building_alias, sentences_name
from arag_search.engines.opensearch.shard_terms import find_shard_terms
from arag_search.engines.opensearch.shards import lost_shards
from arag_search.engines.opensearch.site import BUILDER_KEY, SIGNATURE_KEY, this_builder
from arag_search.engines.write import BulkCounts
from arag_search.errors import IndexDamagedError, RefusedError, UnavailableError
from arag_search.manifest import Manifest
from arag_search.query.fields import DOC_ID, MetadataType

_STATE_KEY = "state"
_LAST_KEY = "last_ordinal"
_PAGE = 10_000
_SLOW_S = 300.0
"""How long a refresh or a flush of a large index may take."""


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """What physical indexes are made with. ``exact`` serves keyword_search, ``sentences``
    sentence granularity."""

    metadata: Mapping[str, MetadataType]
    k1: float = 1.2
    b: float = 0.75
    shards: int = 1
    exact: bool = True
    sentences: bool = True


class OpenSearchWriter:
    """Writes one physical index and its sentences. Not for several threads."""

    checkpoint: Mapping[str, str]
    """What the newest checkpoint was given; empty for a new index."""

    packer: BulkPacker
    """Makes what ``add_packed`` takes."""

    def __init__(
        self,
        client: Client,
        physical: str,
        definition: IndexDefinition,
        signature: Mapping[str, Any],
        *,
        resume: bool,
        max_bulk_bytes: int = MAX_BULK_BYTES,
        node_wait_s: float = NODE_WAIT_S,
        note: Callable[[str], None] | None = None,
    ) -> None:
        """Write ``physical``: on from its newest checkpoint (``resume``), or from nothing.

        For ``node_wait_s`` a node that is lost is waited for, and ``note`` told. Raises
        IndexDamagedError where there is nothing to go on from, EngineError where the indexes
        cannot be made.
        """
        self._client = client
        self._physical = physical
        self._definition = definition
        self._node_wait_s = node_wait_s
        self._indexes = [physical]
        if definition.sentences:
            self._indexes.append(sentences_name(physical))
        self._aliases = [building_alias(each) for each in self._indexes]
        sentences_alias = self._aliases[1] if definition.sentences else None
        self.packer = BulkPacker(self._aliases[0], sentences_alias, dict(definition.metadata))
        self._meta = self._resumed() if resume else self._created(signature)
        build = self._meta.build
        self.checkpoint = cast("dict[str, str]", build.get(_STATE_KEY, {}))
        self._last = int(build.get(_LAST_KEY, -1))
        self._refreshed = False
        self._put_meta({**build, BUILDER_KEY: this_builder()})
        self._bulks = Bulks(
            client, physical, max_bytes=max_bulk_bytes, node_wait_s=node_wait_s, note=note
        )

    @property
    def bulk_counts(self) -> BulkCounts:
        """What was sent and answered."""
        return self._bulks.counts

    def add(self, chunks: Sequence[Chunk]) -> None:
        """Add the chunks of one or several documents, in corpus order.

        They may be sent later, up to ``commit``. Raises BuildError for an id or keyword that is too
        long, for text that is not Unicode, and for what the cluster does not take.
        """
        self.add_packed(self.packer(chunks))

    def add_packed(self, packed: PackedChunks) -> None:
        """Add what ``packer`` made of chunks, of which none comes before those added earlier.

        Raises BuildError for what the cluster does not take, UnavailableError where it takes
        nothing.
        """
        if packed.last_ordinal is None:
            return
        self._refreshed = False
        with self._naming_lost_shards():
            self._bulks.add_lines(packed.lines)
        self._last = packed.last_ordinal

    def has_document(self, doc_id: str) -> bool:
        """Whether a document of this id was added, by this writer or before its checkpoint. Slow.

        Documents that an earlier run wrote after its checkpoint do not count: they come again.
        """
        self._refresh()
        clauses = [{"term": {DOC_ID: doc_id}}, self._up_to_last()]
        body = {"query": {"bool": {"filter": clauses}}}
        reply = self._call("POST", f"/{self._physical}/_count", body)
        return int(reply["count"]) > 0

    def document_ids(self) -> Iterator[str]:
        """The ids of all documents up to the checkpoint, in corpus order."""
        self._refresh()
        before = ""
        after: list[Any] | None = None
        while True:
            body: dict[str, Any] = {
                "size": _PAGE,
                "query": self._up_to_last(),
                "sort": [{schema.ORDINAL: "asc"}],
                "_source": False,
                "docvalue_fields": [DOC_ID],
                "track_total_hits": False,
            }
            if after is not None:
                body["search_after"] = after
            reply = self._call("POST", f"/{self._physical}/_search", body)
            hits = cast("list[dict[str, Any]]", reply["hits"]["hits"])
            for hit in hits:
                doc_id = str(hit["fields"][DOC_ID][0])
                if doc_id != before:
                    yield doc_id
                before = doc_id
            if len(hits) < _PAGE:
                return
            after = hits[-1]["sort"]

    def commit(self, data: Mapping[str, str]) -> None:
        """Make a checkpoint of everything added so far, with ``data`` beside it."""
        with self._naming_lost_shards():
            self._bulks.drain()
        build = {
            **self._meta.build,
            BUILDER_KEY: this_builder(),
            _STATE_KEY: dict(data),
            _LAST_KEY: self._last,
        }
        self._put_meta(build)

    def finish(self, manifest: Manifest, data: Mapping[str, str]) -> None:
        """Make a checkpoint, and complete ``_meta`` with the manifest and the shard terms."""
        self._refresh()
        shards = self._definition.shards
        chunk_terms = find_shard_terms(self._client, self._physical, shards)
        sentence_terms: schema.Terms = {}
        if self._definition.sentences:
            sentence_terms = find_shard_terms(self._client, self._indexes[1], shards)
        self._meta = replace(
            self._meta, manifest=manifest, chunk_terms=chunk_terms, sentence_terms=sentence_terms
        )
        self._call("POST", f"/{self._both()}/_flush", timeout_s=_SLOW_S)
        self.commit(data)

    def counts(self) -> tuple[int, int | None]:
        """How many chunks and sentences the cluster holds; None where those are left out."""
        self._refresh()
        counted = [int(self._call("GET", f"/{each}/_count")["count"]) for each in self._indexes]
        return counted[0], counted[1] if len(counted) > 1 else None

    def close(self) -> None:
        """End the threads that send; nothing may be left to send."""
        self._bulks.abort()

    def abort(self) -> None:
        """Send nothing more; the newest checkpoint stays. Never raises."""
        self._bulks.abort()

    def _up_to_last(self) -> dict[str, Any]:
        return {"range": {schema.ORDINAL: {"lte": self._last}}}

    # Indexes

    def _created(self, signature: Mapping[str, Any]) -> Meta:
        definition = self._definition
        sentences = self._indexes[1] if definition.sentences else None
        meta = Meta(sentences, build={SIGNATURE_KEY: signature, BUILDER_KEY: this_builder()})
        chunks = schema.chunk_index(
            definition.metadata,
            k1=definition.k1,
            b=definition.b,
            shards=definition.shards,
            exact=definition.exact,
            meta=meta.to_json(),
        )
        sentence_index = schema.sentence_index(
            definition.metadata,
            k1=definition.k1,
            b=definition.b,
            shards=definition.shards,
            meta={"version": schema.META_VERSION, "chunks": self._physical},
        )
        bodies = (chunks, sentence_index)[: len(self._indexes)]
        for index, alias, body in zip(self._indexes, self._aliases, bodies, strict=True):
            self._create(index, {**body, "aliases": {alias: {}}})
        return meta

    def _create(self, index: str, body: Mapping[str, Any]) -> None:
        try:
            self._client.call("PUT", f"/{index}", body, attempt_timeout_s=60)
        except RefusedError as error:
            # Asked for again after an answer that was lost: the name is ours alone.
            if error.kind != "resource_already_exists_exception":
                raise

    def _resumed(self) -> Meta:
        reply = self._client.call("GET", f"/{self._physical}/_mapping")
        meta = schema.read_meta(reply[self._physical]["mappings"], self._physical)
        if meta is None:
            raise IndexDamagedError("The index has no _meta of ours.", where=self._physical)
        return meta

    def _put_meta(self, build: Mapping[str, Any]) -> None:
        self._meta = replace(self._meta, build=build)
        body = {"_meta": {schema.META_KEY: self._meta.to_json()}}
        path = f"/{building_alias(self._physical)}/_mapping"
        self._call("PUT", path, body)

    def _refresh(self) -> None:
        """Make everything added visible to searches."""
        if not self._refreshed:
            with self._naming_lost_shards():
                self._bulks.drain()
            self._call("POST", f"/{self._both()}/_refresh", timeout_s=_SLOW_S)
            self._refreshed = True

    def _both(self) -> str:
        return ",".join(self._indexes)

    def _call(self, method: str, path: str, body: Any = None, *, timeout_s: float = 60.0) -> Any:
        """Call while a node that was lost is waited for."""
        with self._naming_lost_shards():
            return self._client.call(
                method, path, body, budget_s=self._node_wait_s, attempt_timeout_s=timeout_s
            )

    @contextmanager
    def _naming_lost_shards(self) -> Generator[None]:
        """Tell of a cluster that takes nothing which shards it has lost."""
        try:
            yield
        except UnavailableError as error:
            lost = lost_shards(self._client, self._indexes, self._definition.shards)
            error.where = lost or error.where
            error.do = error.do or "See to the cluster. The same command then goes on."
            raise
