"""OpenSearchUpdate: additions to and deletions from the published index on a cluster.

Changes become visible when a shard is refreshed, which is done once, at the end: all versions of a
document are in one shard. Additions are written first. Then ``_meta`` records what to delete and
the new manifest; from then on any command can finish the update. Before that it can be undone,
since no earlier document has been changed.

If an update is interrupted, the index shows its previous state, with two exceptions. A shard that
is recovered (its node was lost, or a copy is created) shows what was written already. Both versions
of a document are then found until the update is finished or undone. Between the two refreshes,
sentences and chunks are in different states, which readers detect.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Any, TypeVar

import orjson

from arag_search.corpus import Chunk, next_document, ordinal_of
from arag_search.engines.base import REBUILD, Deletions, deletions_of
from arag_search.engines.opensearch import schema
from arag_search.engines.opensearch.address import Address
from arag_search.engines.opensearch.answers import (
    doc_id_of,
    documents_counted,
    hits_and_last,
    shard_statistics,
    stored_ordinal,
)
from arag_search.engines.opensearch.bulk import Bulks
from arag_search.engines.opensearch.client import Client
from arag_search.engines.opensearch.compile import any_value, filtered
from arag_search.engines.opensearch.lease import Lease
from arag_search.engines.opensearch.packing import BulkPacker, deletion_line
from arag_search.engines.opensearch.physical import find_physical
from arag_search.engines.opensearch.schema import Meta, opensearch_field
from arag_search.engines.opensearch.shards import find_shard_terms
from arag_search.engines.write import Recovery, UpdateRecord
from arag_search.errors import (
    AragError,
    BuildError,
    IndexDamagedError,
    RefusedError,
    UnfinishedUpdateError,
)
from arag_search.manifest import Manifest
from arag_search.query.fields import DOC_ID, MetadataType

_Read = TypeVar("_Read")

_LAST_UPDATE_KEY = "last_update"
MAX_REMOVED = 100_000
"""The most documents that one update deletes or replaces: their ids are kept in ``_meta``."""

_LOADING, _COMMITTING = "loading", "committing"
_PAGE = 1_000
_SLOW_S = 300.0

LEFT_WAIT_S = 180.0
"""How long to wait for deleted documents that shards keep for their copies."""
_MERGE_S = 24 * 3600.0
_SHOW_EVERY_S = 10.0
_PAUSE_S = 2.0


class OpenSearchUpdate:
    """An update of an index on OpenSearch, see IndexUpdate: a context manager that takes its lease.

    Entering raises the errors of opening, and IndexLockedError if a build or another update is
    running.
    """

    def __init__(self, address: Address, note: Callable[[str], None] | None = None) -> None:
        self._address = address
        self._note = note
        self.where = str(address)
        self._first: int | None = None
        self._is_continued = False
        self._removed: dict[str, None] = {}
        self._written: list[tuple[str, int, int]] = []
        self._bulks: Bulks | None = None

    def __enter__(self) -> OpenSearchUpdate:
        with ExitStack() as entered:
            self._client = entered.enter_context(closing(Client.connect(self._address)))
            named = find_physical(self._client, self._address).chunks.index
            self._lease = Lease(self._client, named, self.where, "update", self._note)
            entered.callback(self._lease.release)
            self._interrupted = self._lease.take()
            physical = find_physical(self._client, self._address)  # it may have waited
            self._chunks = physical.chunks.index
            self._shards = physical.chunks.shards
            sentences = None if physical.sentences is None else physical.sentences.index
            self._indexes = [index for index in (self._chunks, sentences) if index]
            self._meta = self._read_meta()
            self._metadata: Mapping[str, MetadataType] = self.manifest.metadata
            self._entered = entered.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bulks is not None:
            self._bulks.abort()
        self._entered.close()

    @property
    def manifest(self) -> Manifest:
        if self._meta.manifest is None:
            raise IndexDamagedError("The index has no manifest.", where=self.where)
        return self._meta.manifest

    @property
    def deletions(self) -> Deletions:
        """See IndexUpdate. A server also counts a marker for each deletion in its primary shards,
        so the result is up to twice the number of documents."""
        reply = self._client.call("GET", f"/{','.join(self._indexes)}/_stats/docs,store,segments")
        statistics = self._client.read(
            lambda reply: [shard_statistics(reply["indices"][index], 0) for index in self._indexes],
            reply,
        )
        return deletions_of(*statistics)

    @property
    def last_update(self) -> UpdateRecord | None:
        return UpdateRecord.from_json(self._meta.build.get(_LAST_UPDATE_KEY))

    def recover(self, record: UpdateRecord | None) -> Recovery:
        stopped = self._stopped()
        digest = None if record is None else record.digest
        if stopped is None:
            about = UpdateRecord.from_json(self._interrupted)
            done = self.last_update
            if about is not None and about.digest == digest and about.same(done):
                return Recovery(done=done)
            return Recovery()
        stage, first, known = stopped
        self._lease.take_over(self._indexes)
        if stage == _COMMITTING:
            self._complete()
            if known.digest == digest:
                return Recovery(done=self.last_update)
            return Recovery(f"An interrupted update has been completed: {known.command}")
        if known.digest == digest:
            self._first, self._is_continued = first, True
            return Recovery(f"Resuming an interrupted update: {known.command}")
        if record is None:
            self._undo_unknown(first)
            return Recovery(f"An interrupted update has been undone: {known.command}")
        undo = f"arag-search compact {self.where}"
        if known.command == record.command:
            raise UnfinishedUpdateError(
                "This update was interrupted, and what it reads, its options or this program have"
                f" changed since: {known.command}",
                where=self.where,
                do=f"Undo what it has written: {undo}. Then run this command again.",
            )
        raise UnfinishedUpdateError(
            f"An update of the index was interrupted: {known.command}",
            where=self.where,
            do=f"Run that command again; or undo it: {undo}",
        )

    def first_ordinal(self) -> int:
        if self._first is not None:
            return self._first
        body = {"size": 1, "sort": [{schema.ORDINAL: "desc"}], "_source": [schema.ORDINAL]}
        last, _ = self._search(body, lambda hit: stored_ordinal(hit["_source"][schema.ORDINAL]))
        following = next_document(last[0]) if last else 0
        return max(following, ordinal_of(len(self.manifest.sources), 0, 0))

    def existing(self, values: Sequence[str] | None, field: str = DOC_ID) -> Iterator[Chunk]:
        before = None
        if self._first is not None:
            before = {"range": {schema.ORDINAL: {"lt": self._first}}}
        wanted = None if values is None else any_value(opensearch_field(field), values)
        query = filtered(None, wanted, before)
        sort = [{schema.ORDINAL: "asc"}]
        body: dict[str, Any] = {"size": _PAGE, "query": query, "sort": sort, "_source": True}
        while values is None or values:
            chunks, body["search_after"] = self._search(
                body, lambda hit: schema.chunk_of(hit["_source"])
            )
            yield from chunks
            if len(chunks) < _PAGE:
                return

    def begin(
        self,
        record: UpdateRecord,
        metadata: Mapping[str, MetadataType],
        doc_ids: Sequence[str] = (),
    ) -> None:
        self._check_removed(len(doc_ids))
        self._check_writable()
        self._lease.about = record.to_json()
        self._lease.renew()
        self._lease.take_over(self._indexes)
        if doc_ids:
            return
        if metadata != self._metadata:
            self._add_fields(metadata)
        if self._first is None:
            self._first = self.first_ordinal()
        update = {"stage": _LOADING, "record": record.to_json(), "first": self._first}
        self._put_meta(
            replace(self._meta, build={**self._meta.build, schema.UNFINISHED_KEY: update})
        )
        chunks, sentences = [*map(self._lease.alias, self._indexes), None][:2]
        self._packer = BulkPacker(str(chunks), sentences, self._metadata, self.manifest.language)
        self._bulks = Bulks(self._client, self.where, check=self._lease.check)
        counts = self._bulks.counts
        self._lease.written = lambda: counts.created + counts.existing

    def remove(self, doc_ids: Sequence[str]) -> None:
        """See IndexUpdate. Documents are removed when the update is published."""
        self._removed.update(dict.fromkeys(doc_ids))
        self._check_removed(len(self._removed))

    def add(self, chunks: Sequence[Chunk]) -> None:
        """See IndexUpdate. Chunks may be sent later."""
        if self._bulks is None:
            raise RuntimeError("the update has not begun")
        for chunk in chunks:
            self._written.append((chunk.doc_id, chunk.ordinal, len(chunk.sentence_ends)))
        self._bulks.add_lines(self._packer(chunks).lines)

    def publish(self, manifest: Manifest, record: UpdateRecord) -> None:
        if self._bulks is not None:
            self._bulks.drain()
        update = {
            "stage": _COMMITTING,
            "record": record.to_json(),
            "first": self._first,
            "remove": list(self._removed),
            "manifest": orjson.loads(manifest.to_json()),
        }
        self._put_meta(
            replace(self._meta, build={**self._meta.build, schema.UNFINISHED_KEY: update})
        )
        self._complete()

    def give_up(self) -> None:
        """See IndexUpdate. All that the cluster does not allow to undo, or that an earlier process
        has written, is left to the next command."""
        stopped = self._stopped()
        if stopped is None or stopped[0] != _LOADING or self._bulks is None:
            return
        self._bulks.abort()
        self._bulks = None
        if self._is_continued:
            return
        try:
            for index in self._indexes:
                written = (
                    (ordinal + number, doc_id)
                    for doc_id, ordinal, sentences in self._written
                    for number in range(1 if index == self._chunks else sentences)
                )
                self._delete(index, written)
            self._forget_update()
        except AragError:
            return

    def compact(self, note: Callable[[str], None]) -> Deletions:
        """See IndexUpdate. A shard keeps recent deletions for copies that rejoin, and drops them
        when all copies have them. It checks that every 30 seconds, so merges are repeated until
        then. If a copy of a shard is missing, deletions remain there."""
        until = time.monotonic() + LEFT_WAIT_S
        is_waiting = False
        while True:
            for index in self._indexes:
                if not is_waiting:
                    note(f"Merging {index}.")
                self._merge(index, note)
            left = self.deletions
            if not left.documents or time.monotonic() > until:
                return left
            if not is_waiting:
                note("Waiting for the shards to drop deleted documents: up to a minute.")
                is_waiting = True
            time.sleep(_PAUSE_S)

    def _merge(self, index: str, note: Callable[[str], None]) -> None:
        began = time.monotonic()
        self._call("POST", f"/{index}/_flush", params={"force": "true"})
        with ThreadPoolExecutor(1) as beside:
            merging = beside.submit(
                self._client.call,
                "POST",
                f"/{index}/_forcemerge",
                params={"max_num_segments": "1"},
                attempt_timeout_s=_MERGE_S,
            )
            while True:
                try:
                    merging.result(timeout=_SHOW_EVERY_S)
                    break
                except NotYet:
                    note(f"... merging for {time.monotonic() - began:,.0f} s")
        self._refresh(index)

    # Finishing and undoing

    def _complete(self) -> None:
        """Finish the update that ``_meta`` describes. May be repeated."""
        update: Any = self._meta.build[schema.UNFINISHED_KEY]
        manifest = Manifest.from_json(orjson.dumps(update["manifest"]).decode(), self.where)
        first: int | None = update["first"]
        for index in self._indexes:
            self._remove_from(index, update["remove"], first)
        # Additions show sentences first, so that no chunk is found without its sentences; deletions
        # show them last.
        for index in self._indexes if first is None else reversed(self._indexes):
            self._refresh(index)
        self._check_counts(manifest)
        self._check_live()
        language = self.manifest.language
        terms = [
            find_shard_terms(self._client, index, self._shards, language) for index in self._indexes
        ]
        build = {**self._meta.build, _LAST_UPDATE_KEY: update["record"]}
        del build[schema.UNFINISHED_KEY]
        self._put_meta(replace(self._meta, build=build).completed(manifest, *terms))
        self._remove_aliases()

    def _undo_unknown(self, first: int) -> None:
        """Delete what a dead process added. It becomes visible for a moment, because documents must
        be found to be deleted."""
        for index in self._indexes:
            self._refresh(index)
            query = {"range": {schema.ORDINAL: {"gte": first}}}
            self._delete(index, self._documents_matching(index, query))
            self._refresh(index)
        self._forget_update()

    def _forget_update(self) -> None:
        build = dict(self._meta.build)
        del build[schema.UNFINISHED_KEY]
        self._put_meta(replace(self._meta, build=build))
        self._remove_aliases()

    def _remove_from(self, index: str, doc_ids: Sequence[str], first: int | None) -> None:
        before = None if first is None else {"range": {schema.ORDINAL: {"lt": first}}}
        for at in range(0, len(doc_ids), _PAGE):
            query = filtered(None, any_value(DOC_ID, doc_ids[at : at + _PAGE]), before)
            self._delete(index, self._documents_matching(index, query))

    def _delete(self, index: str, documents: Iterable[tuple[int, str]]) -> None:
        """Delete documents, each an ordinal and a routing. Missing ones are ignored."""
        alias = self._lease.alias(index)
        bulks = Bulks(self._client, self.where, check=self._lease.check)
        try:
            bulks.add_lines(deletion_line(alias, *document) for document in documents)
            bulks.drain()
        finally:
            bulks.abort()

    def _documents_matching(
        self, index: str, query: Mapping[str, Any]
    ) -> Iterator[tuple[int, str]]:
        """Yield ordinal and routing of the documents that match."""
        body: dict[str, Any] = {
            "size": 10 * _PAGE,
            "query": query,
            "sort": [{schema.ORDINAL: "asc"}],
            "_source": False,
            "docvalue_fields": [DOC_ID],
        }
        while True:
            documents, body["search_after"] = self._search(
                body, lambda hit: (int(hit["_id"]), doc_id_of(hit)), index
            )
            yield from documents
            if len(documents) < 10 * _PAGE:
                return

    def _check_counts(self, manifest: Manifest) -> None:
        expected = (manifest.chunks, manifest.sentences)
        for index, count in zip(self._indexes, expected, strict=False):
            reply = self._call("GET", f"/{index}/_count")
            counted = self._client.read(documents_counted, reply)
            if counted != count:
                raise IndexDamagedError(
                    f"After the update {index} holds {counted:,} documents instead of {count:,}.",
                    where=self.where,
                    do=REBUILD,
                )

    def _check_live(self) -> None:
        if find_physical(self._client, self._address).chunks.index != self._chunks:
            raise BuildError(
                "Another build was published under this name in the meantime, without this update.",
                where=self.where,
                do="Run the same command again: it updates that build.",
            )

    def _check_writable(self) -> None:
        """Raise EngineError or AccessError if the server would write nothing, before anything is
        recorded. It tries to change a document that does not exist, which meets all that a write
        does."""
        name = self._address.name
        for alias in (name, schema.sentences_name(name))[: len(self._indexes)]:
            path, params = f"/{alias}/_update/none", {"routing": "none", "require_alias": "true"}
            try:
                self._call("POST", path, {"doc": {}}, params)
            except RefusedError as error:
                if error.kind != "document_missing_exception":
                    raise

    def _check_removed(self, count: int) -> None:
        if count > MAX_REMOVED:
            raise BuildError(
                f"More than {MAX_REMOVED:,} documents would be deleted or replaced.",
                where=self.where,
                allowed=f"{MAX_REMOVED:,} in one update",
                do="Update in several steps, or build the index again with `overwrite=True`.",
            )

    # Calls to the cluster

    def _search(
        self, body: Mapping[str, Any], reading: Callable[[dict[str, Any]], _Read], index: str = ""
    ) -> tuple[list[_Read], Any]:
        """Return what ``reading`` makes of each hit, and what the next page comes after."""
        path = f"/{index or self._chunks}/_search"
        params = {"allow_partial_search_results": "false"}
        reply = self._call("POST", path, {**body, "track_total_hits": False}, params)
        return self._client.read(lambda reply: hits_and_last(reply, reading), reply)

    def _refresh(self, index: str) -> None:
        self._call("POST", f"/{index}/_refresh")

    def _call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        params: Mapping[str, str] | None = None,
    ) -> Any:
        """Call as Client.call does. Raises BuildError if the index is gone."""
        try:
            return self._client.call(method, path, body, params, attempt_timeout_s=_SLOW_S)
        except RefusedError as error:
            if error.kind != "index_not_found_exception":
                raise
            self._lease.check()
            raise BuildError(
                "The index was deleted during the update.",
                where=self.where,
                do="Build it again.",
            ) from error

    def _stopped(self) -> tuple[str, int, UpdateRecord] | None:
        """Return stage, first ordinal and record of the update in ``_meta``; None if it is
        finished."""
        update: Any = self._meta.build.get(schema.UNFINISHED_KEY)
        if update is None:
            return None
        record = UpdateRecord.from_json(update["record"])
        if record is None:
            raise IndexDamagedError(
                "The _meta of the index cannot be read (update).",
                where=self.where,
                do=REBUILD,
            )
        return str(update["stage"]), int(update["first"] or 0), record

    def _read_meta(self) -> Meta:
        meta = self._client.read(
            lambda reply: schema.read_meta(reply[self._chunks]["mappings"], self.where),
            self._call("GET", f"/{self._chunks}/_mapping"),
        )
        if meta is None:
            raise IndexDamagedError("The index has no _meta of ours.", where=self.where)
        return meta

    def _put_meta(self, meta: Meta) -> None:
        body = {"_meta": {schema.META_KEY: meta.to_json()}}
        self._lease.renew()
        self._call("PUT", f"/{self._lease.alias(self._chunks)}/_mapping", body)
        self._meta = meta

    def _add_fields(self, metadata: Mapping[str, MetadataType]) -> None:
        """Map the fields that the index has not had. A mapping stays if the update is undone."""
        properties = schema.metadata_properties(metadata)
        body = {"properties": {schema.METADATA: {"properties": properties}}}
        for index in self._indexes:
            try:
                self._call("PUT", f"/{index}/_mapping", body)
            except RefusedError as error:
                if error.kind != "illegal_argument_exception":
                    raise
                raise BuildError(
                    f"The server does not take the new fields ({error.what}).",
                    where=self.where,
                    allowed="new fields, with the types of an update that was undone",
                    do=REBUILD,
                ) from error
        self._metadata = metadata

    def _remove_aliases(self) -> None:
        actions = [
            {"remove": {"index": index, "alias": self._lease.alias(index), "must_exist": False}}
            for index in self._indexes
        ]
        self._call("POST", "/_aliases", {"actions": actions})
