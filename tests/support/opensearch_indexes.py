"""Names on a real cluster that tests may use, and what lies behind them."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from arag_search.corpus import Chunk
from arag_search.engines.opensearch import schema
from arag_search.engines.opensearch.address import parse_address
from arag_search.engines.opensearch.client import Client
from arag_search.engines.opensearch.schema import Meta
from arag_search.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Site:
    """An address that nothing else uses, and a client that looks behind it."""

    address: str
    client: Client

    @property
    def name(self) -> str:
        return parse_address(self.address).name

    def live(self) -> list[str]:
        """The physical indexes behind the name and its sentences, sorted."""
        names = f"{self.name},{self.name}.sentences"
        found = self.client.call("GET", f"/{names}/_alias", params={"ignore_unavailable": "true"})
        return sorted(found)

    def indexes(self) -> list[str]:
        """All physical indexes of the name, sorted."""
        return sorted(self.client.call("GET", f"/{self.name}*/_alias"))

    def meta(self, physical: str) -> Meta:
        """What ``_meta`` of a chunk index says."""
        mapping = self.client.call("GET", f"/{physical}/_mapping")[physical]["mappings"]
        found = schema.read_meta(mapping, physical)
        assert found is not None
        return found

    def documents(self, index: str) -> list[dict[str, Any]]:
        """All documents of an index in order of ordinal, at most 10,000, with ``_id``."""
        body = {"size": 10_000, "sort": ["ordinal"]}
        hits = self.client.call("POST", f"/{index}/_search", body)["hits"]["hits"]
        return [{"_id": hit["_id"], **hit["_source"]} for hit in hits]

    def chunks(self) -> list[Chunk]:
        """All chunks of the live index."""
        return [schema.chunk_of(each) for each in self.documents(self.name)]

    def deleted(self, index: str) -> int:
        """How many deleted documents an index still holds."""
        stats = self.client.call("GET", f"/{index}/_stats/docs")
        return int(stats["_all"]["primaries"]["docs"]["deleted"])

    def remove(self) -> None:
        """Delete everything of this name."""
        for index in self.indexes():
            self.client.call("DELETE", f"/{index}")


def fresh_site(url: str) -> Site:
    """A name on a server that nothing else uses; whoever made it removes and closes it."""
    address = f"{url}/arag-test-{uuid.uuid4().hex}-x"
    return Site(address, Client.connect(parse_address(address)))


@pytest.fixture
def opensearch(opensearch_url: str) -> Iterator[Site]:
    """A name of one test; what it leaves is deleted."""
    site = fresh_site(opensearch_url)
    try:
        yield site
    finally:
        site.remove()
        site.client.close()


def live_manifest(site: Site) -> Manifest:
    """The manifest of what is searched."""
    found = site.meta(site.live()[0]).manifest
    assert found is not None
    return found


def comparable(manifest: Manifest) -> Manifest:
    """The manifest without what differs from build to build and engine to engine."""
    return replace(manifest, created="", engine="", engine_version="", sources=())


MANIFEST = Manifest(
    engine=schema.ENGINE,
    engine_version="3.8.0",
    created="now",
    documents=1,
    chunks=1,
    sentences=2,
    tokens=8,
    chunk_tokens=100,
    fingerprint="0" * 64,
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
