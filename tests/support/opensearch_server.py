"""Indexes on a real server that tests fill without the writer, and delete at the end."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from arag_search.corpus import Chunk
from arag_search.engines.base import check_compact
from arag_search.engines.opensearch import schema
from arag_search.engines.opensearch.address import Address, ConnectionOptions, parse_address
from arag_search.engines.opensearch.client import Client
from arag_search.engines.opensearch.reader import OpenSearchEngine
from arag_search.engines.opensearch.shards import find_shard_terms
from arag_search.manifest import Manifest
from arag_search.query.forms import forms_of_chunk
from tests.support.patience import PATIENCE_S

LONG = ConnectionOptions(attempt_timeout_s=PATIENCE_S, opening_budget_s=PATIENCE_S)


class Server:
    """The indexes that a test session creates on a server, all named ``arag-test-<uuid>-*``."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.prefix = f"arag-test-{uuid.uuid4().hex[:12]}-"
        self.client = Client.connect(self.address("any"), LONG)
        self._indexes: list[str] = []

    def address(self, name: str) -> Address:
        """Return the address of an index of this session."""
        return parse_address(f"{self.url}/{self.prefix}{name}")

    def create(self, index: str, body: Mapping[str, object]) -> str:
        """Create a physical index with this body, and return its name."""
        name = f"{self.prefix}{index}"
        self.client.call("PUT", f"/{name}", body)
        self._indexes.append(name)
        return name

    def publish(
        self, name: str, chunks: Sequence[Chunk], manifest: Manifest, shards: int = 1
    ) -> OpenSearchEngine:
        """Publish the chunks and their sentences as an index of the project, and open it."""
        manifest = replace(manifest, engine=schema.OPENSEARCH)
        declared = manifest.metadata
        options: dict[str, Any] = {"k1": manifest.k1, "b": manifest.b, "shards": shards, "meta": {}}
        language = manifest.language
        options["forms"] = bool(language)
        forms = {
            chunk.id: forms_of_chunk(chunk, language) if language else None for chunk in chunks
        }
        physical = schema.physical_name(name, datetime.now(UTC), uuid.uuid4().hex)
        exact = "exact" not in manifest.without
        main = self.create(physical, schema.index_body("chunks", declared, exact=exact, **options))
        self.fill(
            main, [schema.chunk_document(chunk, declared, forms[chunk.id]) for chunk in chunks]
        )
        meta = schema.Meta(
            sentences=schema.sentences_name(main) if manifest.has_sentences else None,
            manifest=manifest,
            chunk_terms=find_shard_terms(self.client, main, shards, language),
        )
        if meta.sentences is not None:
            body = schema.index_body("sentences", declared, **options)
            self.create(schema.sentences_name(physical), body)
            sentences = [
                sentence
                for chunk in chunks
                for sentence in schema.sentence_documents(chunk, declared, forms[chunk.id])
            ]
            self.fill(meta.sentences, sentences)
            terms = find_shard_terms(self.client, meta.sentences, shards, language)
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
            for document in documents[start : start + 2000]:
                at = {"_id": str(document[schema.ORDINAL]), "routing": document[schema.DOC_ID]}
                lines += [{"create": at}, document]
            reply = self.client.call("POST", f"/{index}/_bulk", lines)
            assert not reply["errors"]
        self.client.call("POST", f"/{index}/_refresh")

    def describe(self, index: str, meta: Mapping[str, object] | None) -> None:
        """Set the ``_meta`` of a physical index; None makes it an index of another program."""
        content = {} if meta is None else {schema.META_KEY: meta}
        self.client.call("PUT", f"/{index}/_mapping", {"_meta": content})

    def alias(self, index: str, name: str) -> None:
        """Publish a physical index and its sentence index under a name."""
        aliases = {index: f"{self.prefix}{name}"}
        sentences = schema.sentences_name(index)
        if sentences in self._indexes:
            aliases[sentences] = schema.sentences_name(aliases[index])
        actions = [{"add": {"index": name, "alias": alias}} for name, alias in aliases.items()]
        self.client.call("POST", "/_aliases", {"actions": actions})

    def delete(self, index: str) -> None:
        """Delete one physical index."""
        self._indexes.remove(index)
        self.client.call("DELETE", f"/{index}")

    def clean(self) -> None:
        """Delete the indexes of this session, and close the client."""
        for index in list(self._indexes):
            self.delete(index)
        self.client.close()
