"""Building an index on OpenSearch."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from arag_search.engines.opensearch import schema
from arag_search.engines.opensearch.address import Address
from arag_search.engines.opensearch.bulk import NODE_WAIT_S
from arag_search.engines.opensearch.client import Client
from arag_search.engines.opensearch.lease import Lease
from arag_search.engines.opensearch.site import KEPT, OpenSearchSite
from arag_search.engines.opensearch.writer import IndexDefinition, OpenSearchWriter
from arag_search.engines.write import TargetOptions
from arag_search.query.fields import MetadataType

_SOURCES = "the sources"


class OpenSearchBuild:
    """A name on a cluster as a Build."""

    engine = schema.OPENSEARCH

    def __init__(
        self, address: Address, options: TargetOptions, note: Callable[[str], None] | None = None
    ) -> None:
        self._note = note
        self._address = address
        self._options = options
        wait_s = options.node_wait_s
        self._node_wait_s = NODE_WAIT_S if wait_s is None else wait_s
        self._signature: dict[str, Any] = {}

    def __enter__(self) -> OpenSearchBuild:
        self._client = Client.connect(self._address)
        name, where = self._address.name, str(self._address)
        self._lease = Lease(self._client, name, where, "build", self._note, self._node_wait_s)
        try:
            self.engine_version = self._client.version()
            keep = KEPT if self._options.keep is None else self._options.keep
            self._site = OpenSearchSite(self._client, name, where, self._lease, keep=keep)
            self._site.check_name(overwrite=self._options.overwrite)
            self._lease.take()
            self._site.check_name(overwrite=self._options.overwrite)  # it may have waited
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._lease.release()
        self._client.close()

    def begin(self, signature: Mapping[str, Any]) -> tuple[str, bool, str]:
        """See Build. Stores only a digest of the sources, to keep the signature small."""
        plain: dict[str, Any] = orjson.loads(orjson.dumps(signature))
        sources = orjson.dumps(plain[_SOURCES], option=orjson.OPT_SORT_KEYS)
        self._signature = {**plain, _SOURCES: hashlib.sha256(sources).hexdigest()}
        return self._site.begin(self._signature)

    def open_writer(
        self, generation: str, *, metadata: Mapping[str, MetadataType], language: str, resume: bool
    ) -> OpenSearchWriter:
        options = self._options
        definition = IndexDefinition(
            metadata=dict(metadata),
            language=language,
            k1=options.bm25.k1,
            b=options.bm25.b,
            shards=options.shards or 1,
            exact="exact" not in options.without,
            sentences="sentences" not in options.without,
        )
        return OpenSearchWriter(
            self._client,
            generation,
            definition,
            self._signature,
            self._lease,
            resume=resume,
            node_wait_s=self._node_wait_s,
            note=self._note,
        )

    def discard(self, generation: str) -> None:
        self._site.discard(generation)

    def publish(self, generation: str) -> None:
        self._site.publish(generation, "sentences" not in self._options.without)
