"""An index on a real server: opened, searched, read and closed, and the errors if it cannot be.

test_parity.py tests that its pages equal those of MemoryEngine.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from arag_search.engines.base import KeywordRequest, SearchRequest
from arag_search.engines.opensearch import schema
from arag_search.engines.opensearch.reader import OpenSearchEngine
from arag_search.errors import (
    AragError,
    IndexClosedError,
    IndexDamagedError,
    IndexNotFoundError,
    IndexProblemError,
    IndexVersionError,
    NotServedError,
    UnknownChunkError,
)
from arag_search.query.limits import MAX_DEPTH
from arag_search.query.reading import parse
from arag_search.query.tree import Node, Phrase, Range, Term, all_of, any_of
from arag_search.search.opening import open_index
from tests.support.lucene_indexes import METADATA, chunk
from tests.support.opensearch_server import LONG, Server
from tests.support.oracle.engine import MemoryEngine
from tests.support.plans import planned, scoped, written

CHUNKS = [
    chunk(0, "Vivaldi wrote operas.\nHe was born in Venice.\n", title="Vivaldi",
          metadata={"lang": "en", "year": 1678}),
    chunk(1, "Griselda is an opera.\nZeno wrote the libretto.\n", title="Griselda",
          metadata={"lang": "en", "year": (1701, 1735.5), "published": "1735-05"}),
    chunk(2, "Venedig.\n", title="", doc_id="v", part=1, parts=2, metadata={"lang": "de"}),
    chunk(2, "Eine Oper.\nNoch eine Oper.\n", title="", doc_id="v", part=2, parts=2),
    chunk(3, "", title="Nothing"),
]  # fmt: skip
MEMORY = MemoryEngine(CHUNKS, metadata=METADATA)


@pytest.fixture(name="server", scope="module")
def server_with_indexes(opensearch_url: str) -> Iterator[Server]:
    server = Server(opensearch_url)
    yield server
    server.clean()


@pytest.fixture(name="engine", scope="module")
def published_engine(server: Server) -> Iterator[OpenSearchEngine]:
    engine = server.publish("music", CHUNKS, MEMORY.manifest)
    yield engine
    engine.close()


def tree(query: str) -> Node:
    return parse(query, MEMORY.manifest.query_schema).tree


# Opening


def test_an_address_opens_as_a_folder_does(server: Server, engine: OpenSearchEngine) -> None:
    with open_index(str(server.address("music")), filter="lang:en") as index:
        assert index.manifest == engine.manifest
        assert index.location == str(server.address("music"))
        result = index.logical_search("opera* AND wrote", explain=True)
        assert [(hit.id, hit.snippet) for hit in result.hits] == [
            ("d0.1", "Vivaldi wrote operas. ..."),
            ("d1.1", "Griselda is an opera. Zeno wrote the libretto."),
        ]
        assert index.logical_search("venedig").total == 0
        assert [record.chunk.id for record in index.chunk_read(["d0.1"])] == ["d0.1"]


def test_an_index_that_does_not_exist_is_reported(server: Server) -> None:
    with pytest.raises(IndexNotFoundError) as caught:
        open_index(str(server.address("nowhere")))
    assert str(caught.value) == (
        "There is no such index on the server.\n"
        f"Where: {server.address('nowhere')}\n"
        f"Do: Build it with: arag-search index SOURCE --to {server.address('nowhere')}"
    )


def test_a_foreign_index_is_reported(server: Server) -> None:
    server.create("theirs", {"mappings": {"properties": {"title": {"type": "text"}}}})
    with pytest.raises(IndexNotFoundError) as caught:
        open_index(str(server.address("theirs")))
    assert str(caught.value) == (
        "The index was not built by arag_search: its mapping has no _meta of ours.\n"
        f"Where: {server.address('theirs')}\n"
        "Do: Name another index. Build it with: arag-search index SOURCE --to ADDRESS"
    )


UNFINISHED = schema.Meta(sentences=None).to_json()


@pytest.mark.parametrize(
    ("meta", "kind", "what"),
    [
        (UNFINISHED, IndexNotFoundError, "The build of the index is not finished."),
        ({**UNFINISHED, "version": 99}, IndexVersionError, "The index has format version 99."),
        (schema.Meta(sentences=None, manifest=MEMORY.manifest).to_json(), IndexDamagedError,
         'The manifest is of an index of engine "memory".'),
        (schema.Meta("gone", manifest=replace(MEMORY.manifest, engine="opensearch")).to_json(),
         IndexProblemError, "The sentences of the index are missing."),
    ],
    ids=["unfinished", "newer", "foreign", "bare"],
)  # fmt: skip
def test_an_index_that_cannot_be_opened_is_reported(
    server: Server,
    request: pytest.FixtureRequest,
    meta: dict[str, object],
    kind: type[AragError],
    what: str,
) -> None:
    name = request.node.callspec.id
    server.describe(server.create(name, {}), meta)
    with pytest.raises(kind) as caught:
        open_index(str(server.address(name)))
    assert caught.value.what == what
    if name == "unfinished":
        resume = "Run the same arag-search index command again to resume it."
        assert caught.value.do == resume


# Searching


def test_a_search_is_one_request(engine: OpenSearchEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    paths: list[str] = []
    call = engine._client.call

    def counted(method: str, path: str, *arguments: object, **options: object) -> object:
        paths.append(path.rpartition("/")[2])
        return call(method, path, *arguments, **options)  # pyright: ignore

    monkeypatch.setattr(engine._client, "call", counted)
    query = tree("opera OR venice")
    engine.search(SearchRequest(written(query)))
    engine.search(SearchRequest(written(query), granularity="sentence", with_text=False))
    engine.search(SearchRequest(written(query), granularity="sentence", whole_text=False))
    engine.keyword_search(KeywordRequest(("opera",)))
    engine.counts([(written(query), "chunk"), (written(query), "sentence")], None)
    assert paths == ["_search", "_search", "_search", "_search", "_msearch"]


def test_words_of_one_shard_score_as_if_there_were_a_single_shard(server: Server) -> None:
    """Check the scores although some shards hold no word of most of these queries."""
    chunks = [
        chunk(n, f"rare{n} word{n} " + "long " * n + "\n", title=f"rare{n} title{n}")
        for n in range(30)
    ]
    memory = MemoryEngine(chunks)
    engine = server.publish("shards", chunks, memory.manifest, shards=3)
    for n in range(30):
        query = any_of(Phrase(f"rare{n} word{n}"), Phrase(f"rare{n} title{n}"))
        for granularity in ("chunk", "sentence"):
            request = SearchRequest(written(query), granularity=granularity)
            scores = [hit.score for hit in engine.search(request).hits]
            assert scores == [pytest.approx(memory.search(request).hits[0].score, rel=1e-6)]
    engine.close()


def test_a_range_that_no_document_of_some_shards_is_in_changes_no_score(server: Server) -> None:
    """Check that a shard without matches still reports how many documents hold the words."""
    words = ("even", "odd")
    chunks = [
        chunk(n, f"opera {words[n % 2]}\n" * (n % 4 + 1), metadata={"year": n}) for n in range(30)
    ]
    memory = MemoryEngine(chunks, metadata=METADATA)
    engine = server.publish("ranges", chunks, memory.manifest, shards=3)
    for n in range(30):
        word = words[n % 2]
        request = SearchRequest(
            planned(parse(f"{word} AND year:{n}", memory.manifest.query_schema).tree)
        )
        (hit,), (expected,) = engine.search(request).hits, memory.search(request).hits
        assert hit.score == pytest.approx(expected.score, rel=1e-6)
        request = SearchRequest(
            written(Term(word)), scope=scoped((Range("year", "number", str(n), str(n)),))
        )
        (hit,) = engine.search(request).hits
        assert hit.score == pytest.approx(expected.score, rel=1e-6)
        (scores,) = engine.explain(request, [hit.id])[0]
        assert scores.scores["content"] == pytest.approx(expected.score, rel=1e-6)
    engine.close()


@pytest.mark.parametrize("granularity", ["chunk", "sentence"])
def test_the_deepest_allowed_query_is_run(engine: OpenSearchEngine, granularity: str) -> None:
    node: Node = any_of(Term("it's"), all_of(tree("libr*"), tree("lang:en")))
    for level in range(MAX_DEPTH):
        group = all_of if level % 2 else any_of
        node = replace(group(Term("wrote"), node), weight=1.5)
    assert engine.search(SearchRequest(written(node), granularity=granularity)).hits  # pyright: ignore


def test_an_index_without_sentences_and_exact_fields_rejects_their_searches(server: Server) -> None:
    memory = MemoryEngine(CHUNKS, metadata=METADATA, sentences=False)
    engine = server.publish("without", CHUNKS, replace(memory.manifest, without=("sentences",
                            "exact")))  # fmt: skip
    with pytest.raises(NotServedError) as caught:
        engine.search(SearchRequest(written(Term("opera")), granularity="sentence"))
    assert caught.value.what == "The index has no sentences."
    with pytest.raises(NotServedError) as caught:
        engine.keyword_search(KeywordRequest(("opera",)))
    assert str(caught.value).startswith(
        f"The index does not count keywords.\nWhere: {server.address('without')}\n"
    )
    substring = KeywordRequest(("opera",), matching="substring")
    assert engine.keyword_search(substring) == memory.keyword_search(substring)
    assert engine.statistics().sentences is None
    engine.close()


def test_explaining_an_unknown_chunk_is_refused(engine: OpenSearchEngine) -> None:
    with pytest.raises(UnknownChunkError) as caught:
        engine.explain(SearchRequest(written(Term("opera"))), ["d0.1", "nowhere"])
    assert str(caught.value) == 'No passage "nowhere".'


# Statistics, damage and closing


def test_the_statistics_count_documents_shards_and_bytes(engine: OpenSearchEngine) -> None:
    statistics = engine.statistics()
    assert statistics.sentences is not None
    assert (statistics.chunks.documents, statistics.sentences.documents) == (5, 7)
    assert (statistics.chunks.shards, statistics.chunks.deleted) == (1, 0)
    assert statistics.chunks.segments >= 1
    assert statistics.chunks.bytes > 1000
    engine.check_ready()


def test_an_index_removed_while_open_is_reported(server: Server) -> None:
    engine = server.publish("removed", CHUNKS, MEMORY.manifest)
    for index in (
        engine._indexes.chunks.index,
        schema.sentences_name(engine._indexes.chunks.index),
    ):
        server.delete(index)
    for request in (
        lambda: engine.search(SearchRequest(written(Term("opera")))),
        lambda: engine.counts([(written(Term("opera")), "chunk")], None),
    ):
        with pytest.raises(IndexNotFoundError) as caught:
            request()
        assert str(caught.value) == (
            "The index was removed from the server since it was opened.\n"
            f"Where: {server.address('removed')}\n"
            "Do: Open it again, if another build has replaced it."
        )
    engine.close()


def test_a_reader_keeps_the_index_that_it_opened(server: Server) -> None:
    old = server.publish("kept", CHUNKS, MEMORY.manifest)
    client, physical = server.client, old._indexes.chunks.index
    actions = [{"remove": {"index": physical, "alias": server.address("kept").name}}]
    client.call("POST", "/_aliases", {"actions": actions})
    assert len(list(old.scan(None))) == 5
    old.close()


def test_every_call_on_a_closed_index_is_an_error(server: Server, engine: OpenSearchEngine) -> None:
    closed = OpenSearchEngine.open(server.address("music"), LONG)
    scan = closed.scan(None)
    closed.close()
    closed.close()
    for request in (
        lambda: closed.search(SearchRequest(written(Term("opera")))),
        lambda: closed.keyword_search(KeywordRequest(("opera",), matching="substring")),
        lambda: next(scan),
        lambda: closed.read(["d0.1"], None),
    ):
        with pytest.raises(IndexClosedError) as caught:
            request()
        assert str(caught.value).startswith(f"The index {server.address('music')} is closed.\n")
    assert engine.search(SearchRequest(written(Term("opera")))).total.number == 1
