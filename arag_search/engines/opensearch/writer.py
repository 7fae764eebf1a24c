"""OpenSearchWriter: chunks into the two physical indexes of a build, resumable at checkpoints.

A checkpoint is an entry in ``_meta`` of the chunk index, written when the cluster has acknowledged
all documents up to it. A resumed build sends later documents again, and the cluster reports that
they exist: documents have their ordinal as id.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

from arag_search.engines.opensearch import schema
from arag_search.engines.opensearch.address import Address, ConnectionOptions
from arag_search.engines.opensearch.answers import doc_id_of, documents_counted, hits_and_last
from arag_search.engines.opensearch.bulk import MAX_BULK_BYTES, NODE_WAIT_S, Bulks
from arag_search.engines.opensearch.client import Client
from arag_search.engines.opensearch.lease import Lease
from arag_search.engines.opensearch.packing import BulkLines, BulkPacker
from arag_search.engines.opensearch.schema import Meta, sentences_name
from arag_search.engines.opensearch.shards import find_shard_terms, lost_shards
from arag_search.engines.opensearch.site import SIGNATURE_KEY
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
    """The definition of physical indexes. ``exact`` enables keyword_search, ``sentences`` sentence
    granularity."""

    metadata: Mapping[str, MetadataType]
    k1: float = 1.2
    b: float = 0.75
    shards: int = 1
    exact: bool = True
    sentences: bool = True
    language: str = ""


@dataclass(frozen=True, slots=True)
class WrittenBlock:
    """A block that was sent: the ordinal of its last chunk, None without chunks, and counts."""

    last_ordinal: int | None
    counts: BulkCounts


@dataclass(frozen=True, slots=True)
class BulkWriting:
    """A BlockWriting that sends documents from the process in which it is called."""

    address: Address
    options: ConnectionOptions
    physical: str
    node_wait_s: float

    @property
    def needs(self) -> Mapping[str, bytes | None]:
        options = self.options
        return dict.fromkeys(
            filter(None, (options.ca_certs, options.client_cert, options.client_key))
        )

    def __call__(self, packed: Iterable[BulkLines]) -> WrittenBlock:
        """Send documents, and wait until all are safe on disk. Raises what ``Bulks`` raises."""
        last: int | None = None
        client = Client.connect(self.address, self.options)
        bulks = Bulks(client, self.physical, node_wait_s=self.node_wait_s)
        try:
            for chunks in packed:
                bulks.add_lines(chunks.lines)
                last = last if chunks.last_ordinal is None else chunks.last_ordinal
            bulks.drain()
        finally:
            bulks.abort()
            client.close()
        return WrittenBlock(last, bulks.counts)


class OpenSearchWriter:
    """A writer of one physical index and its sentences. Not safe to use from several threads."""

    checkpoint: Mapping[str, str]
    """The data of the newest checkpoint; empty for a new index."""

    packer: BulkPacker
    """Converts chunks for ``add_packed``."""

    def __init__(
        self,
        client: Client,
        physical: str,
        definition: IndexDefinition,
        signature: Mapping[str, Any],
        lease: Lease,
        *,
        resume: bool,
        max_bulk_bytes: int = MAX_BULK_BYTES,
        node_wait_s: float = NODE_WAIT_S,
        note: Callable[[str], None] | None = None,
    ) -> None:
        """Resume ``physical`` at its newest checkpoint (``resume``), or create it, as the holder of
        the lease.

        Waits up to ``node_wait_s`` for a lost node, and reports that to ``note``. Raises
        IndexDamagedError if there is nothing to resume, EngineError if the indexes cannot be
        created.
        """
        self._client = client
        self._physical = physical
        self._definition = definition
        self._node_wait_s = node_wait_s
        self._indexes = [physical]
        if definition.sentences:
            self._indexes.append(sentences_name(physical))
        self._lease = lease
        self._aliases = [lease.alias(index) for index in self._indexes]
        sentences_alias = self._aliases[1] if definition.sentences else None
        self.packer = BulkPacker(
            self._aliases[0], sentences_alias, dict(definition.metadata), definition.language
        )
        self._meta = self._resumed() if resume else self._created(signature)
        build = self._meta.build
        self.checkpoint = cast("dict[str, str]", build.get(_STATE_KEY, {}))
        self._last = int(build.get(_LAST_KEY, -1))
        self._refreshed = False
        self._bulks = Bulks(
            client,
            physical,
            max_bytes=max_bulk_bytes,
            node_wait_s=node_wait_s,
            note=note,
            check=lease.check,
        )
        lease.written = lambda: self.sent.created + self.sent.existing

    @property
    def sent(self) -> BulkCounts:
        """The counts of documents sent and answered."""
        return self._bulks.counts

    def add_packed(self, packed: BulkLines) -> None:
        """Add the chunks of one or several documents, converted by ``packer``, which come after
        those added earlier. They may be sent later, at the latest by ``commit``.

        Raises BuildError for documents that the cluster rejects, UnavailableError if it accepts
        none at all.
        """
        if packed.last_ordinal is None:
            return
        self._refreshed = False
        with self._naming_lost_shards():
            self._bulks.add_lines(packed.lines)
        self._last = packed.last_ordinal

    def add_block(self, written: WrittenBlock) -> None:
        """Take note of chunks that another process has sent with BulkWriting, all of which come
        after those added earlier."""
        self._refreshed = False
        self._bulks.counts.include(written.counts)
        if written.last_ordinal is not None:
            self._last = written.last_ordinal

    def block_writing(self) -> BulkWriting:
        """Return the function that sends the chunks of a block from another process."""
        client = self._client
        return BulkWriting(client.address, client.options, self._physical, self._node_wait_s)

    def has_document(self, doc_id: str) -> bool:
        """Return whether a document with this id was added, by this writer or before its
        checkpoint. Slow.

        Documents that an earlier run wrote after its checkpoint do not count: they are sent again.
        """
        self._refresh()
        clauses = [{"term": {DOC_ID: doc_id}}, self._up_to_last()]
        body = {"query": {"bool": {"filter": clauses}}}
        return (
            self._client.read(
                documents_counted, self._call("POST", f"/{self._physical}/_count", body)
            )
            > 0
        )

    def document_ids(self) -> Iterator[str]:
        """Yield the ids of all documents up to the checkpoint, in corpus order."""
        self._refresh()
        before = ""
        after: Any = None
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
            doc_ids, after = self._client.read(
                lambda reply: hits_and_last(reply, doc_id_of),
                self._call("POST", f"/{self._physical}/_search", body),
            )
            for doc_id in doc_ids:
                if doc_id != before:
                    yield doc_id
                before = doc_id
            if len(doc_ids) < _PAGE:
                return

    def commit(self, data: Mapping[str, str]) -> None:
        """Write a checkpoint of everything added so far, together with ``data``."""
        with self._naming_lost_shards():
            self._bulks.drain()
        build = {
            **self._meta.build,
            _STATE_KEY: dict(data),
            _LAST_KEY: self._last,
        }
        self._put_meta(build)

    def finish(self, manifest: Manifest, data: Mapping[str, str]) -> None:
        """Write a checkpoint, and complete ``_meta`` with the manifest and the shard terms.
        Then end the threads."""
        self._refresh()
        shards, language = self._definition.shards, self._definition.language
        terms = [find_shard_terms(self._client, index, shards, language) for index in self._indexes]
        self._meta = self._meta.completed(manifest, *terms)
        self._call("POST", f"/{self._both()}/_flush", timeout_s=_SLOW_S)
        self.commit(data)
        self.abort()

    def counts(self) -> tuple[int, int | None]:
        """Count the chunks and sentences on the cluster; None for sentences that are left out."""
        self._refresh()
        counted = [
            self._client.read(documents_counted, self._call("GET", f"/{index}/_count"))
            for index in self._indexes
        ]
        return counted[0], counted[1] if len(counted) > 1 else None

    def abort(self) -> None:
        """Stop sending, and end the threads; the newest checkpoint remains. Never raises."""
        self._bulks.abort()

    def _up_to_last(self) -> dict[str, Any]:
        return {"range": {schema.ORDINAL: {"lte": self._last}}}

    # Indexes

    def _created(self, signature: Mapping[str, Any]) -> Meta:
        definition = self._definition
        sentences = self._indexes[1] if definition.sentences else None
        meta = Meta(sentences, build={SIGNATURE_KEY: signature})
        described = {
            "chunks": meta.to_json(),
            "sentences": {"version": schema.META_VERSION, "chunks": self._physical},
        }
        for index, alias, kind in zip(
            self._indexes, self._aliases, ("chunks", "sentences"), strict=False
        ):
            body = schema.index_body(
                kind,
                definition.metadata,
                k1=definition.k1,
                b=definition.b,
                shards=definition.shards,
                exact=definition.exact,
                forms=bool(definition.language),
                meta=described[kind],
            )
            self._create(index, {**body, "aliases": {alias: {}}})
        return meta

    def _create(self, index: str, body: Mapping[str, Any]) -> None:
        try:
            self._client.call("PUT", f"/{index}", body, attempt_timeout_s=60)
        except RefusedError as error:
            # The request was repeated after its answer was lost: nobody else uses the name.
            if error.kind != "resource_already_exists_exception":
                raise

    def _resumed(self) -> Meta:
        meta = self._client.read(
            lambda reply: schema.read_meta(reply[self._physical]["mappings"], self._physical),
            self._client.call("GET", f"/{self._physical}/_mapping"),
        )
        if meta is None:
            raise IndexDamagedError("The index has no _meta of ours.", where=self._physical)
        return meta

    def _put_meta(self, build: Mapping[str, Any]) -> None:
        self._meta = replace(self._meta, build=build)
        body = {"_meta": {schema.META_KEY: self._meta.to_json()}}
        with self._naming_lost_shards():
            self._lease.renew(self._node_wait_s)
        try:
            self._call("PUT", f"/{self._aliases[0]}/_mapping", body)
        except RefusedError:
            self._lease.check()
            raise

    def _refresh(self) -> None:
        if not self._refreshed:
            with self._naming_lost_shards():
                self._bulks.drain()
            self._call("POST", f"/{self._both()}/_refresh", timeout_s=_SLOW_S)
            self._refreshed = True

    def _both(self) -> str:
        return ",".join(self._indexes)

    def _call(self, method: str, path: str, body: Any = None, *, timeout_s: float = 60.0) -> Any:
        with self._naming_lost_shards():
            return self._client.call(
                method, path, body, budget_s=self._node_wait_s, attempt_timeout_s=timeout_s
            )

    @contextmanager
    def _naming_lost_shards(self) -> Generator[None]:
        try:
            yield
        except UnavailableError as error:
            lost = lost_shards(self._client, self._indexes, self._definition.shards)
            error.where = lost or error.where
            error.do = error.do or "Check the cluster. Then run the same command again to resume."
            raise
