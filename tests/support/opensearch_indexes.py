"""Names on a real cluster for tests, and the physical indexes behind them."""

import json
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from arag_search.corpus import Chunk
from arag_search.engines.opensearch import schema
from arag_search.engines.opensearch.address import parse_address
from arag_search.engines.opensearch.client import Client
from arag_search.engines.opensearch.schema import Meta, lock_name
from arag_search.manifest import Manifest
from tests.support.guides import blocks_of


@dataclass(frozen=True, slots=True)
class Site:
    """An address that nothing else uses, and a client that inspects the indexes behind it."""

    address: str
    client: Client

    @property
    def name(self) -> str:
        return parse_address(self.address).name

    def live(self) -> list[str]:
        """Return the physical indexes behind the name and its sentences, sorted."""
        names = f"{self.name},{self.name}.sentences"
        aliases = self.client.call("GET", f"/{names}/_alias", params={"ignore_unavailable": "true"})
        return sorted(aliases)

    def indexes(self) -> list[str]:
        """Return all physical indexes of the name, sorted; not the one with its lease."""
        named = self.client.call("GET", f"/{self.name}*/_alias")
        return sorted(name for name in named if name != lock_name(self.name))

    def meta(self, physical: str) -> Meta:
        """Return the ``_meta`` of a chunk index."""
        mapping = self.client.call("GET", f"/{physical}/_mapping")[physical]["mappings"]
        meta = schema.read_meta(mapping, physical)
        assert meta is not None
        return meta

    def documents(self, index: str) -> list[dict[str, Any]]:
        """Return the documents of an index by ordinal, at most 10,000, with their ``_id``."""
        body = {"size": 10_000, "sort": ["ordinal"]}
        hits = self.client.call("POST", f"/{index}/_search", body)["hits"]["hits"]
        return [{"_id": hit["_id"], **hit["_source"]} for hit in hits]

    def chunks(self) -> list[Chunk]:
        """Return all chunks of the live index."""
        return [schema.chunk_of(document) for document in self.documents(self.name)]

    def deleted(self, index: str) -> int:
        """Return how many deleted documents an index still holds."""
        stats = self.client.call("GET", f"/{index}/_stats/docs")
        return int(stats["_all"]["primaries"]["docs"]["deleted"])

    def roll_back(self, live: str, to: str) -> None:
        """Switch the name from the live index to another by the request that the guide prints."""
        (body,) = (
            block.text.partition("\n")[2]
            for block in blocks_of("opensearch/README.md")
            if block.text.startswith("POST /_aliases\n")
        )
        printed = dict.fromkeys(re.findall(r"arag-wiki-\d+-\d+", body))
        for old, new in zip((*printed, "arag-wiki"), (live, to, self.name), strict=True):
            body = body.replace(old, new)
        self.client.call("POST", "/_aliases", json.loads(body))

    def remove(self) -> None:
        """Delete everything of this name."""
        for index in self.indexes():
            self.client.call("DELETE", f"/{index}")
        params = {"ignore_unavailable": "true"}
        self.client.call("DELETE", f"/{lock_name(self.name)}", params=params)


def fresh_site(url: str) -> Site:
    """Create a name on a server that nothing else uses; the caller removes and closes it."""
    address = f"{url}/arag-test-{uuid.uuid4().hex}-x"
    return Site(address, Client.connect(parse_address(address)))


@pytest.fixture
def opensearch(opensearch_url: str) -> Iterator[Site]:
    """Provide a name for one test, and delete its indexes afterwards."""
    site = fresh_site(opensearch_url)
    try:
        yield site
    finally:
        site.remove()
        site.client.close()


def live_manifest(site: Site) -> Manifest:
    """Return the manifest of the live index."""
    manifest = site.meta(site.live()[0]).manifest
    assert manifest is not None
    return manifest


def comparable(manifest: Manifest) -> Manifest:
    """Return a manifest without what differs from build to build and engine to engine."""
    return replace(manifest, created="", engine="", engine_version="", sources=())


MANIFEST = Manifest(
    engine=schema.OPENSEARCH,
    engine_version="3.9.0",
    created="now",
    documents=1,
    chunks=1,
    sentences=2,
    tokens=8,
    chunk_tokens=100,
    fingerprint="0" * 64,
    placement="0" * 64,
)


METADATA: dict[str, schema.MetadataType] = {"year": "number", "lang": "keyword", "on": "date"}


CHUNK = Chunk(
    id="a.2",
    doc_id="a",
    title="The Sea",
    content="It is wide. It is deep.",
    part=2,
    parts=3,
    ordinal=1 << 40,
    sentence_ends=(12, 23),
    metadata={"year": -0.0, "lang": ("en", "it"), "on": "1970-01-02", "other": 7},
)
