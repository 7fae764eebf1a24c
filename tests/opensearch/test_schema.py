"""Our mappings and documents, sent to a real server."""

import pytest

from arag_search.engines.opensearch import schema
from arag_search.engines.opensearch.address import parse_address
from arag_search.engines.opensearch.client import Client
from arag_search.engines.opensearch.schema import Meta
from tests.support.opensearch_indexes import CHUNK, METADATA, Site


def test_a_node_accepts_the_mappings_and_is_strict(opensearch: Site) -> None:
    client = Client.connect(parse_address(opensearch.address))
    name = opensearch.name
    common = {"k1": 1.2, "b": 0.75, "shards": 2}
    meta = Meta(schema.sentences_name(name)).to_json()
    client.call("PUT", f"/{name}", schema.index_body("chunks", METADATA, **common, meta=meta))
    client.call(
        "PUT",
        f"/{schema.sentences_name(name)}",
        schema.index_body("sentences", METADATA, **common, meta=meta),
    )
    document = schema.chunk_document(CHUNK, METADATA)
    params = {"routing": "a", "refresh": "true"}
    client.call("PUT", f"/{name}/_create/1", document, params)
    for sentence in schema.sentence_documents(CHUNK, METADATA):
        path = f"/{schema.sentences_name(name)}/_create/{sentence['ordinal']}"
        client.call("PUT", path, sentence, params)
    mapping = client.call("GET", f"/{name}/_mapping")[name]["mappings"]
    assert schema.read_meta(mapping, name) == Meta(schema.sentences_name(name))
    with pytest.raises(Exception, match="mapping set to strict"):
        client.call("PUT", f"/{name}/_create/2", {**document, "surprise": 1}, params)
    with pytest.raises(Exception, match="routing is required"):
        client.call("PUT", f"/{name}/_create/3", document)
    client.close()
