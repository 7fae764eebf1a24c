"""Documents and metadata written to OpenSearch, and read back from it."""

from datetime import UTC, datetime

import orjson
import pytest

from arag_search.engines.opensearch import schema
from arag_search.engines.opensearch.schema import Meta
from arag_search.errors import IndexDamagedError, IndexVersionError
from tests.support.opensearch_indexes import CHUNK, MANIFEST, METADATA


def test_physical_names_have_the_index_the_time_and_the_build() -> None:
    physical = schema.physical_name("wiki-2", datetime(2026, 11, 22, 4, 5, 6, 7999, UTC), "ab" * 4)
    assert physical == "wiki-2-20261122040506007-abababab"
    assert schema.sentences_name(physical) == "wiki-2-20261122040506007-abababab.sentences"
    assert schema.is_physical(physical, "wiki-2")
    assert schema.is_physical("wiki-2-20261122040506-abababab", "wiki-2"), (
        "to the second, as older ones are"
    )
    assert not schema.is_physical(physical, "wiki")
    assert not schema.is_physical(schema.sentences_name(physical), "wiki-2")


def test_a_chunk_is_read_back_from_its_document_unchanged() -> None:
    document = orjson.loads(orjson.dumps(schema.chunk_document(CHUNK, METADATA)))
    assert schema.chunk_of(document) == CHUNK
    assert document["metadata"] == {
        "year": 0.0,
        "lang": ["en", "it"],
        "on": 86_400_000,
        "on@": 86_400_000,
    }
    assert str(document["metadata"]["year"]) == "0.0", "-0 is found as 0"


def test_a_sentence_document_has_all_fields_of_its_chunk_except_the_other_sentences() -> None:
    first, second = schema.sentence_documents(CHUNK, METADATA)
    assert (first["content"], second["content"]) == ("It is wide. ", "It is deep.")
    assert (first["ordinal"], second["ordinal"]) == (1 << 40, (1 << 40) + 1)
    for sentence in (first, second):
        assert (sentence["chunk_id"], sentence["doc_id"], sentence["title"]) == (
            "a.2",
            "a",
            "The Sea",
        )
        assert (sentence["part"], sentence["parts"], sentence["record"]["sentences"]) == (2, 3, 2)
        assert schema.metadata_of(orjson.loads(orjson.dumps(sentence))) == CHUNK.metadata


def test_meta_is_read_back_unchanged() -> None:
    meta = Meta("s", MANIFEST, {"title": ("a",)}, {"content": ("b", "c")}, {"state": {"x": "1"}})
    mapping = orjson.loads(orjson.dumps({"_meta": {schema.META_KEY: meta.to_json()}}))
    assert schema.read_meta(mapping, "here") == meta


@pytest.mark.parametrize("mapping", [{}, {"_meta": {}}, {"_meta": {"arag_search": 1}}])
def test_a_mapping_without_meta_is_no_index_of_arag_search(mapping: dict[str, object]) -> None:
    assert schema.read_meta(mapping, "here") is None


def test_another_version_and_a_damaged_meta_are_different_errors() -> None:
    with pytest.raises(IndexVersionError) as version:
        schema.read_meta({"_meta": {"arag_search": {"version": 9}}}, "here")
    assert str(version.value) == (
        "The index has format version 9.\nWhere: here\nAllowed: version 2\n"
        "Do: Build the index again: arag-search index SOURCE --to here --overwrite"
    )
    with pytest.raises(IndexDamagedError) as damaged:
        schema.read_meta({"_meta": {"arag_search": {"version": 2}}}, "here")
    assert damaged.value.where == "here"
    assert "shard_terms" in damaged.value.what


def test_an_index_without_exact_has_neither_subfields_nor_their_similarity() -> None:
    body = schema.index_body("chunks", {}, k1=0.9, b=0.4, shards=3, exact=False, meta={})
    assert body["settings"]["index"]["similarity"] == {
        "default": {"type": "BM25", "k1": 0.9, "b": 0.4}
    }
    assert body["settings"]["index"]["number_of_shards"] == 3
    assert "exact" not in orjson.dumps(body["mappings"]["properties"]).decode()
