"""The real corpora are indexed, answer queries, and have the properties that guides promise."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from mcp import ClientSession
from pydantic import AnyUrl

import arag_search
from arag_search.corpus import nfc
from arag_search.search.index import Index
from arag_search.tokens import count_tokens
from bench.quality.matching import compare, draw_keywords, engine_scores, reference_scores, scanned
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from tests.support.examples import examples
from tests.support.mcp_servers import LocalServer, text_of
from tests.support.shared_data import DATA

pytestmark = pytest.mark.shared_data

CORPORA = {
    "2wikimultihopqa/corpus.jsonl": ("documents", 6_119, '"lothair ii" AND bertha'),
    "2wikimultihopqa/arag_chunks.json": ("arag-chunks", 658, '"lothair ii" AND bertha'),
    "musique/corpus.jsonl": ("documents", 1_890, '"journal of mathematical physics"'),
    "hotpotqa/corpus.jsonl": ("passages", 994, 'title:"demon dice" AND smith'),
    "medical/corpus.json": ("graphrag-bench", 1, '"basal cell" AND treat*'),
}


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Index]]:
    folder = tmp_path_factory.mktemp("corpora")
    opened: dict[str, Index] = {}
    for number, name in enumerate(CORPORA):
        build_index([str(DATA / name)], folder / str(number), BuildOptions())
        opened[name] = arag_search.open_index(folder / str(number))
    yield opened
    for index in opened.values():
        index.close()


@pytest.mark.parametrize("name", CORPORA)
def test_a_real_corpus_is_indexed_and_answers(indexes: dict[str, Index], name: str) -> None:
    kind, documents, query = CORPORA[name]
    index = indexes[name]
    manifest = index.manifest
    assert manifest.source_format == kind
    assert manifest.documents == documents
    result = index.logical_search(query)
    assert result.hits
    assert result.hits[0].snippet
    if kind != "arag-chunks":
        assert manifest.has_titles
    sentences = index.logical_search(query.replace('title:"demon dice" AND ', ""))
    assert sentences.hits
    chunks = list(index.scan())
    assert len(chunks) == manifest.chunks
    assert sum(len(chunk.sentence_ends) for chunk in chunks) == manifest.sentences
    assert sum(count_tokens(chunk.content) for chunk in chunks) == manifest.tokens
    assert [chunk.ordinal for chunk in chunks] == sorted(chunk.ordinal for chunk in chunks)
    passage = index.chunk_read([chunks[-1].id])[0]
    assert passage.chunk == chunks[-1]


def test_a_model_searches_a_real_corpus_over_mcp_and_reads_a_chunk(
    indexes: dict[str, Index],
) -> None:
    async def talk(client: ClientSession) -> None:
        reply = await client.call_tool("logical_search", {"query": '"lothair ii" AND bertha'})
        first = reply.meta["arag_search"]["ids"][0]
        assert text_of(reply).splitlines()[1].startswith(f"[{first}] ")
        passage = text_of(await client.call_tool("chunk_read", {"chunk_ids": [first]}))
        address = AnyUrl(f"arag://wiki/chunk/{first}")
        assert (await client.read_resource(address)).contents[0].text == passage.replace(
            ", shown before", ""
        )
        assert "Bertha" in passage

    LocalServer(indexes={"wiki": indexes["2wikimultihopqa/corpus.jsonl"]}).serve(talk)


def test_the_chunks_of_a_document_are_its_text(indexes: dict[str, Index]) -> None:
    text = json.loads((DATA / "medical" / "corpus.json").read_text())[0]["context"]
    joined = "".join(chunk.content for chunk in indexes["medical/corpus.json"].scan())
    assert joined == nfc(text)


def test_a_file_of_chunks_keeps_its_ids_order_and_neighbours(
    indexes: dict[str, Index],
) -> None:
    index = indexes["2wikimultihopqa/arag_chunks.json"]
    source = json.loads((DATA / "2wikimultihopqa" / "arag_chunks.json").read_text())
    assert [f"{chunk.id}:{chunk.content}" for chunk in index.scan()] == [
        nfc(text) for text in source
    ]
    second = index.chunk_read(["1"])[0]
    assert (second.previous_id, second.next_id) == ("0", "2")
    assert (second.chunk.doc_id, second.chunk.part, second.chunk.parts) == ("1", 1, 1)
    titled = index.logical_search("title:lothair")
    assert titled.notes == ("no passage of this index has a title: title: finds nothing.",)


def test_tokens_and_substrings_count_the_same_where_all_matches_are_on_token_boundaries(
    indexes: dict[str, Index],
) -> None:
    index = indexes["2wikimultihopqa/arag_chunks.json"]
    chunks = scanned(index.scan())
    keywords = draw_keywords(chunks, examples(700))
    rows = [compare(index, chunks, keyword) for keyword in keywords]
    eligible = [row for row in rows if row.on_boundaries]
    assert sum(row.agree for row in eligible) >= len(keywords) // 4
    assert {row.reason for row in eligible if not row.agree} <= {
        "punctuation in the keyword",
        "punctuation between its words in the text",
        "no token in the keyword",
    }
    for keyword in keywords[:20]:
        assert engine_scores(index, keyword, "substring") == reference_scores(chunks, keyword)
