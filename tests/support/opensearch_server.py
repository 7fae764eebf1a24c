"""Indexes on a real server, filled without the writer, and deleted in the end."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from arag_search.corpus import Chunk
from arag_search.engines.deletions import check_compact
from arag_search.engines.opensearch import schema
from arag_search.engines.opensearch.address import Address, parse_address
from arag_search.engines.opensearch.client import Client
from arag_search.engines.opensearch.connection import ConnectionOptions
from arag_search.engines.opensearch.reader import OpenSearchEngine
from arag_search.engines.opensearch.shard_terms import find_shard_terms
from arag_search.manifest import Manifest

LONG = ConnectionOptions(attempt_timeout_s=60.0, opening_budget_s=60.0)


class Server:
    """What a test session makes on a server. Everything is named ``arag-test-<uuid>-*``."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.prefix = f"arag-test-{uuid.uuid4().hex[:12]}-"
        self.client = Client.connect(self.address("any"), LONG)
        self._made: list[str] = []

    def address(self, name: str) -> Address:
        """The address of an index named for this session."""
        return parse_address(f"{self.url}/{self.prefix}{name}")

    def create(self, index: str, body: Mapping[str, object]) -> str:
        """A physical index with this body; its name."""
        name = f"{self.prefix}{index}"
        self.client.call("PUT", f"/{name}", body)
        self._made.append(name)
        return name

    def publish(
        self, name: str, chunks: Sequence[Chunk], manifest: Manifest, shards: int = 1
    ) -> OpenSearchEngine:
        """The chunks and their sentences as an index of ours, opened."""
        manifest = replace(manifest, engine=schema.ENGINE)
        declared = manifest.metadata
        options: dict[str, Any] = {"k1": manifest.k1, "b": manifest.b, "shards": shards, "meta": {}}
        physical = schema.physical_name(name, datetime.now(UTC), uuid.uuid4().hex)
        exact = "exact" not in manifest.without
        main = self.create(physical, schema.chunk_index(declared, exact=exact, **options))
        self.fill(main, [schema.chunk_document(chunk, declared) for chunk in chunks])
        meta = schema.Meta(
            sentences=schema.sentences_name(main) if manifest.has_sentences else None,
            manifest=manifest,
            chunk_terms=find_shard_terms(self.client, main, shards),
        )
        if meta.sentences is not None:
            body = schema.sentence_index(declared, **options)
            self.create(schema.sentences_name(physical), body)
            sentences = (schema.sentence_documents(chunk, declared) for chunk in chunks)
            self.fill(meta.sentences, [each for some in sentences for each in some])
            terms = find_shard_terms(self.client, meta.sentences, shards)
            meta = replace(meta, sentence_terms=terms)
        self.describe(main, meta.to_json())
        self.alias(main, name)
        engine = OpenSearchEngine.open(self.address(name), LONG)
        check_compact(engine.deletions(), str(self.address(name)))
        return engine

    def fill(self, index: str, documents: Sequence[Mapping[str, object]]) -> None:
        """Write documents into a physical index, and make them visible."""
        for start in range(0, len(documents), 2000):
            lines: list[Mapping[str, object]] = []
            for each in documents[start : start + 2000]:
                at = {"_id": str(each[schema.ORDINAL]), "routing": each[schema.DOC_ID]}
                lines += [{"create": at}, each]
            done = self.client.call("POST", f"/{index}/_bulk", lines)
            assert not done["errors"]
        self.client.call("POST", f"/{index}/_refresh")

    def describe(self, index: str, meta: Mapping[str, object] | None) -> None:
        """Set what ``_meta`` of a physical index says of it, or make it that of somebody else."""
        said = {} if meta is None else {schema.META_KEY: meta}
        self.client.call("PUT", f"/{index}/_mapping", {"_meta": said})

    def alias(self, index: str, name: str) -> None:
        """Publish a physical index, and that of its sentences, under a name."""
        aliases = {index: f"{self.prefix}{name}"}
        sentences = schema.sentences_name(index)
        if sentences in self._made:
            aliases[sentences] = schema.sentences_name(aliases[index])
        actions = [{"add": {"index": each, "alias": alias}} for each, alias in aliases.items()]
        self.client.call("POST", "/_aliases", {"actions": actions})

    def delete(self, index: str) -> None:
        """Delete one physical index."""
        self._made.remove(index)
        self.client.call("DELETE", f"/{index}")

    def clean(self) -> None:
        """Delete what was made."""
        for index in list(self._made):
            self.delete(index)
        self.client.close()
