"""The real corpora are indexed, answer queries, and have the properties that guides promise."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from random import Random

import pytest
from mcp import ClientSession

import arag_search
from arag_search.corpus import nfc
from arag_search.engines.base import Matching
from arag_search.query import analysis
from arag_search.search.index import Index
from arag_search.tokens import count_tokens
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
        headers = [line for line in text_of(reply).splitlines() if line.startswith("[")]
        assert headers[0].startswith(f"[{first}] ")
        passage = text_of(await client.call_tool("chunk_read", {"chunk_ids": [first]}))
        address = f"arag://wiki/chunk/{first}"
        unmarked = re.sub(", (partly )?shown before", "", passage)
        assert (await client.read_resource(address)).contents[0].text == unmarked
        assert "Bertha" in passage

    LocalServer(indexes={"wiki": indexes["2wikimultihopqa/corpus.jsonl"]}).serve(talk)


def test_the_chunks_of_a_document_are_its_text(indexes: dict[str, Index]) -> None:
    text = json.loads((DATA / "medical" / "corpus.json").read_text())[0]["context"]
    joined = "".join(chunk.content for chunk in indexes["medical/corpus.json"].scan())
    assert joined == nfc(text)


def test_a_file_of_chunks_keeps_its_ids_order_and_neighbours(indexes: dict[str, Index]) -> None:
    index = indexes["2wikimultihopqa/arag_chunks.json"]
    source = json.loads((DATA / "2wikimultihopqa" / "arag_chunks.json").read_text())
    assert [f"{chunk.id}:{chunk.content}" for chunk in index.scan()] == [
        nfc(text) for text in source
    ]
    second = index.chunk_read(["1"])[0]
    assert (second.previous_id, second.next_id) == ("0", "2")
    assert (second.chunk.doc_id, second.chunk.part, second.chunk.parts) == ("1", 1, 1)
    titled = index.logical_search("title:lothair")
    assert titled.notes[0] == "no passage of this index has a title: title: finds nothing."


def test_keywords_are_counted_as_substrings_and_as_tokens_where_these_agree(
    indexes: dict[str, Index],
) -> None:
    """Compare keyword_search with A-RAG's Eq. 1, substring count x length, in plain Python."""
    index = indexes["2wikimultihopqa/arag_chunks.json"]
    chunks = {chunk.id: chunk.content.lower() for chunk in index.scan()}
    tokens = {id: analysis.tokens(text) for id, text in chunks.items()}
    starts = {id: {token.start for token in tokens[id]} for id in chunks}
    ends = {id: {token.end for token in tokens[id]} for id in chunks}
    keywords = drawn_keywords(list(chunks.values()), examples(700))
    agreeing = 0
    for number, keyword in enumerate(keywords):
        places = {id: places_of(keyword, text) for id, text in chunks.items()}
        reference = {id: float(len(at) * len(keyword)) for id, at in places.items() if at}
        if number < 20:
            assert scores(index, keyword, "substring") == reference
        is_plain = " ".join(analysis.terms(keyword)) == keyword
        if is_plain and all(
            at in starts[id] and at + len(keyword) in ends[id] for id in places for at in places[id]
        ):
            by_token = scores(index, keyword, "token")
            # Tokens match across punctuation as well.
            assert all(by_token[id] >= score for id, score in reference.items())
            agreeing += by_token == reference
    assert agreeing >= len(keywords) // 4


def scores(index: Index, keyword: str, matching: Matching) -> dict[str, float]:
    result = index.keyword_search([keyword], top_k=1_000, matching=matching, snippets=False)
    return {hit.id: hit.score for hit in result.hits}


def drawn_keywords(texts: list[str], count: int) -> list[str]:
    """Draw different words, and runs of two or three words."""
    random = Random(1)
    keywords: dict[str, None] = {}
    while len(keywords) < count:
        words = random.choice(texts).split()
        at, length = random.randrange(len(words)), random.choice((1, 1, 2, 3))
        keyword = " ".join(words[at : at + length])
        if 1 < len(keyword) <= 200:
            keywords[keyword] = None
    return list(keywords)


def places_of(keyword: str, text: str) -> list[int]:
    return [match.start() for match in re.finditer(re.escape(keyword), text)]
