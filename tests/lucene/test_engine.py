"""Promises of opening, searching and closing a Lucene index, beyond what MemoryEngine checks."""

import os
import resource
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from arag_search.corpus import Chunk
from arag_search.engines.base import Count, KeywordRequest, Page, SearchRequest
from arag_search.engines.lucene import snapshot
from arag_search.engines.lucene.reader import LuceneEngine
from arag_search.engines.lucene.writer import LuceneWriter
from arag_search.errors import (
    EngineError,
    IndexClosedError,
    IndexDamagedError,
    IndexVersionError,
    NotServedError,
    UnknownChunkError,
)
from arag_search.manifest import FORMAT_VERSION
from arag_search.query.operators import NOT
from arag_search.query.tree import (
    And,
    KeywordEquals,
    Modifier,
    Node,
    Or,
    Phrase,
    Prefix,
    Range,
    Term,
    any_of,
)
from tests.support.examples import examples
from tests.support.lucene_indexes import METADATA, build, chunk, manifest_of
from tests.support.oracle.engine import LANGUAGE
from tests.support.patience import PATIENCE_S
from tests.support.plans import scoped, written

WORDS = ("opera", "vivaldi", "venice", "born", "libretto", "in", "the", "season", "1678", "winter")


def random_chunks(random: Random, count: int) -> list[Chunk]:
    return [
        chunk(
            number,
            "".join(
                " ".join(random.choices(WORDS, k=random.randint(0, 9))) + ".\n"
                for _ in range(random.randint(0, 5))
            ),
            title=" ".join(random.choices(WORDS, k=random.randint(0, 2))),
            metadata={"lang": random.choice(("en", "de")), "year": 1670 + number % 12},
        )
        for number in range(count)
    ]


CHUNKS = random_chunks(Random(1), 120)
QUERIES: list[Node] = [
    And(
        (
            Term("opera"),
            Or((Phrase("born in"), Prefix("libr", weight=2.0))),
            Modifier(NOT, Term("winter")),
        )
    ),
    Or((Term("vivaldi", "title", 3.0), Phrase("the season", 2), KeywordEquals("lang", "de"))),
    And((Term("venice"), Range("year", "number", "1672", "1675"))),
    Or((KeywordEquals("lang", "en"), Range("year", "number", None, "1671"))),
    Term("nothing"),
]
GERMAN_EXCLUDED = scoped((Modifier(NOT, KeywordEquals("lang", "de")),))


@pytest.fixture(name="engine", scope="module")
def engine_over_chunks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LuceneEngine]:
    engine = build(tmp_path_factory.mktemp("index"), CHUNKS, segments=3)
    yield engine
    engine.close()


def answer_to_request(engine: LuceneEngine, number: int) -> object:
    """Return the answer to one of 50 requests."""
    query = QUERIES[number % 5]
    scope = GERMAN_EXCLUDED if number % 2 else None
    match number % 25:
        case 0:
            return engine.search(SearchRequest(written(query), granularity="sentence", scope=scope))
        case 6:
            return engine.search(SearchRequest(written(query), offset=2, scope=scope))
        case 12:
            return engine.keyword_search(KeywordRequest(("born in", "opera"), scope=scope))
        case 18:
            return engine.counts([(written(query), "chunk"), (written(query), "sentence")], scope)
        case 24:
            return engine.read(["d1.1", "d50.1", "d999.1"], scope)
        case _:
            return engine.search(SearchRequest(written(query), 3, scope=scope, with_text=False))


def test_chunks_come_back_as_they_were_added(tmp_path: Path) -> None:
    random = Random(2)
    ids = {
        "".join(
            chr(random.choice((0, 9, 65, 0x2019, 0x5D0, 0x6771, 0xFFFF, 0x1F600, 0x10FFFF)))
            for _ in range(random.randint(1, 6))
        )
        for _ in range(30)
    }
    chunks = [chunk(n, "", title="", doc_id=name) for n, name in enumerate(sorted(ids))]
    chunks.append(chunk(40, "Vor\x00her 😀.\nEnd", title="T" * 100_000, doc_id="long"))
    chunks.append(chunk(41, "x" * 70_000 + "\n" * 2000, metadata={"lang": ("en", "en"), "n": 1.5}))
    engine = build(tmp_path, chunks, segments=4)
    assert list(engine.scan(None)) == chunks
    shuffled = random.sample(chunks, len(chunks))
    assert engine.read([passage.id for passage in shuffled], None) == shuffled
    assert engine.read(["", "\ud800", "long.1", "long.1"], None)[:3] == [None, None, chunks[-2]]
    assert engine.read([], None) == []
    engine.close()


def test_an_empty_index_answers_everything_with_nothing(tmp_path: Path) -> None:
    engine = build(tmp_path, [])
    for number in range(50):
        assert answer_to_request(engine, number) in (
            Page((), Count(0), 0),
            Page((), Count(0, is_common=True), 0),
            [0, 0],
            [None, None, None],
        )
    assert list(engine.scan(None)) == []
    engine.close()


def test_a_hit_lists_all_its_matched_sentences_however_many_match(tmp_path: Path) -> None:
    chunks = [chunk(n, "opera.\nno.\n" * (50 + n)) for n in range(12)]
    engine = build(tmp_path, chunks, segments=2)
    page = engine.search(SearchRequest(written(Term("opera")), 3, 2, "sentence"))
    assert [hit.id for hit in page.hits] == ["d2.1", "d3.1", "d4.1"]
    assert page.hits[1].matched_sentences == tuple(range(0, 2 * 53, 2))
    assert (page.total, page.passages) == (Count(666, is_common=True), None)
    beyond = engine.search(SearchRequest(written(Term("opera")), 5, 12, "sentence"))
    assert (beyond.hits, beyond.passages) == ((), 12)
    engine.close()


def test_counts_stop_beyond_a_thousand(tmp_path: Path) -> None:
    chunks = [chunk(n, "opera.\n" * (500 + n)) for n in range(3)]
    engine = build(tmp_path, chunks)
    assert engine.counts(
        [(written(Term("opera")), "sentence"), (written(Term("opera")), "chunk")], None
    ) == [1001, 3]
    either = any_of(Term("opera"), Term("x"))
    page = engine.search(SearchRequest(written(either), granularity="sentence"))
    assert page.total.told == (1000, False)
    assert len(page.hits) == page.passages == 3
    for leaf in (Term("opera"), Term("opera", "content", 2.0), Prefix("ope")):
        page = engine.search(SearchRequest(written(leaf), granularity="sentence"))
        assert page.total == Count(1503, is_common=True)
    assert len(page.hits) == page.passages == 3
    scope = scoped((KeywordEquals("doc_id", "d0"),))
    assert engine.counts([(written(Term("opera")), "sentence")], scope) == [500]
    engine.close()


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 1, 0, 2), (0, 3, 1, 2)])
def test_equal_scores_are_in_corpus_order_however_the_chunks_were_added(
    tmp_path: Path, order: tuple[int, ...]
) -> None:
    chunks = [chunk(number, "plain words") for number in order]
    with closing(build(tmp_path, chunks, segments=2)) as engine:
        page = engine.search(SearchRequest(written(Term("plain")), top_k=3))
        assert [hit.doc_id for hit in page.hits] == ["d0", "d1", "d2"]
        assert page.total.number == 4


def test_order_is_remembered_over_a_resumed_build(tmp_path: Path) -> None:
    for numbers, resume in (((2, 3), False), ((0, 1), True)):
        writer = LuceneWriter(
            tmp_path, metadata=METADATA, language=LANGUAGE, sentences=True, resume=resume
        )
        chunks = [chunk(number, "plain words") for number in numbers]
        writer.add(chunks)
        if resume:
            writer.finish(manifest_of(chunks), {})
        else:
            writer.commit({})
            writer.abort()
    with closing(LuceneEngine.open(tmp_path, "the test index")) as engine:
        page = engine.search(SearchRequest(written(Term("plain")), top_k=4))
        assert [hit.doc_id for hit in page.hits] == ["d0", "d1", "d2", "d3"]


def test_a_scope_of_thousands_of_clauses_is_obeyed(engine: LuceneEngine) -> None:
    names = [f"d{number}" for number in range(0, 10_000, 3)]
    expected_ids = [passage.id for passage in CHUNKS if passage.doc_id in set(names)]
    one_field = scoped((Or(tuple(KeywordEquals("doc_id", name) for name in names)),))
    assert [passage.id for passage in engine.scan(one_field)] == expected_ids
    excluded = scoped(Modifier(NOT, KeywordEquals("doc_id", name)) for name in names)
    assert [passage.id for passage in engine.scan(excluded)] == [
        passage.id for passage in CHUNKS if passage.id not in expected_ids
    ]
    ranges = (
        Range("year", "number", str(number), str(number + 0.5)) for number in range(1670, 4000)
    )
    mixed = scoped((Or((KeywordEquals("doc_id", "d1"), *ranges)),))
    assert len(list(engine.scan(mixed))) == len(CHUNKS)


def test_explaining_an_unknown_chunk_is_refused(engine: LuceneEngine) -> None:
    with pytest.raises(UnknownChunkError, match=r'^No passage "d999\.1"\.$'):
        engine.explain(SearchRequest(written(Term("opera"))), ["d1.1", "d999.1"])


def test_threads_get_what_one_thread_gets_and_a_clear_error_after_closing(tmp_path: Path) -> None:
    engine = build(tmp_path, CHUNKS, segments=3)
    expected = [answer_to_request(engine, number) for number in range(50)]
    requests = examples(500)
    closing = requests * 4 // 5
    halfway = threading.Barrier(8)

    def work(first: int) -> tuple[int, int]:
        correct = refused = 0
        for number in range(first, first + requests):
            if number == first + closing and halfway.wait(PATIENCE_S) == 0:
                engine.close()
            try:
                correct += answer_to_request(engine, number % 50) == expected[number % 50]
            except IndexClosedError as error:
                assert str(error) == (
                    "The index the test index is closed.\nDo: Open it again with open_index."
                )
                refused += 1
        return correct, refused

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(8)))
    assert all(correct >= closing for correct, _ in results)
    assert all(correct + refused == requests for correct, refused in results)
    assert sum(refused for _, refused in results) > 0


def test_two_engines_on_one_index_do_not_disturb_each_other(tmp_path: Path) -> None:
    first = build(tmp_path, CHUNKS)
    second = LuceneEngine.open(tmp_path, "the test index")
    assert answer_to_request(first, 3) == answer_to_request(second, 3)
    first.close()
    first.close()
    assert answer_to_request(second, 3)
    second.close()


def test_a_scan_that_paused_does_not_keep_an_index_from_closing(tmp_path: Path) -> None:
    engine = build(tmp_path, [chunk(number, "opera") for number in range(600)])
    scan = engine.scan(None)
    assert next(scan).id == "d0.1"
    engine.close()
    with pytest.raises(IndexClosedError):
        list(scan)


def test_sentence_granularity_of_an_index_without_sentences_is_refused(tmp_path: Path) -> None:
    engine = build(tmp_path, CHUNKS[:3], sentences=False)
    message = (
        "The index has no sentences.\nAllowed: granularity chunk\n"
        "Do: Build it again with sentences."
    )
    for call in (
        lambda: engine.search(SearchRequest(written(Term("a")), granularity="sentence")),
        lambda: engine.counts([(written(Term("a")), "sentence")], None),
        lambda: engine.explain(SearchRequest(written(Term("a")), granularity="sentence"), ["d0.1"]),
    ):
        with pytest.raises(NotServedError) as caught:
            call()
        assert str(caught.value) == message
    engine.close()


def test_statistics_describe_the_files_on_disk(tmp_path: Path, engine: LuceneEngine) -> None:
    statistics = engine.statistics()
    assert statistics.sentences is not None
    assert (statistics.chunks.documents, statistics.chunks.segments) == (120, 3)
    assert statistics.sentences.documents == sum(len(passage.sentence_ends) for passage in CHUNKS)
    assert (statistics.chunks.deleted, statistics.sentences.deleted) == (0, 0)
    engine.verify()
    small = build(tmp_path, CHUNKS[:2], sentences=False)
    on_disk = [path for path in (tmp_path / "chunks").iterdir() if path.name != "write.lock"]
    small_statistics = small.statistics()
    assert small_statistics.sentences is None
    assert (small_statistics.chunks.files, small_statistics.chunks.bytes) == (
        len(on_disk),
        sum(path.stat().st_size for path in on_disk),
    )
    small.close()


def test_a_folder_without_an_index_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "chunks").mkdir()
    with pytest.raises(IndexDamagedError) as caught:
        LuceneEngine.open(tmp_path, "my index")
    assert caught.value.what.startswith(
        "The passages of the index cannot be opened: IndexNotFoundException: no segments"
    )
    assert (caught.value.where, caught.value.do) == (
        "my index",
        "Build the index again with `overwrite=True`.",
    )


@pytest.mark.parametrize(("folder", "held"), [("chunks", "passages"), ("sentences", "sentences")])
def test_a_file_that_is_missing_or_truncated_is_reported_at_opening(
    folder: str, held: str, tmp_path: Path
) -> None:
    build(tmp_path, CHUNKS[:5]).close()
    largest = max((tmp_path / folder).iterdir(), key=lambda path: path.stat().st_size)
    for harm in (lambda: os.truncate(largest, 100), largest.unlink):
        harm()
        with pytest.raises(IndexDamagedError, match=f"^The {held} of the index cannot be opened: "):
            LuceneEngine.open(tmp_path, "my index")


def test_an_index_that_cannot_be_opened_for_now_is_not_called_damaged(tmp_path: Path) -> None:
    build(tmp_path, CHUNKS[:5]).close()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        with pytest.raises(EngineError, match=r"FileSystemException: .*: Too many open files"):
            LuceneEngine.open(tmp_path, "my index")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_changed_byte_is_found_by_verifying(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "VERIFIED_BYTES", 0)  # as in a large index
    build(tmp_path, CHUNKS[:5]).close()
    (data,) = (tmp_path / "chunks").glob("*.cfs")
    content = data.read_bytes()
    assert content.count(b'"d3.1"') == 1
    data.write_bytes(content.replace(b'"d3.1"', b'"d4.1"'))
    engine = LuceneEngine.open(tmp_path, "my index")
    with pytest.raises(IndexDamagedError, match=r"^A file of the index is damaged: "):
        engine.verify()
    engine.close()


DATA = {"manifest": manifest_of(CHUNKS[:2]).to_json(), "update": "1"}


def write_index(folder: Path, data: dict[str, str]) -> None:
    writer = LuceneWriter(
        folder, metadata=METADATA, language=LANGUAGE, sentences=True, resume=False
    )
    writer.add(CHUNKS[:2])
    writer.commit(data)
    writer.abort()


def test_sentences_of_another_update_are_refused(tmp_path: Path) -> None:
    write_index(tmp_path / "a", DATA)
    write_index(tmp_path / "b", {**DATA, "update": "7"})
    shutil.rmtree(tmp_path / "a" / "sentences")
    (tmp_path / "b" / "sentences").rename(tmp_path / "a" / "sentences")
    with pytest.raises(IndexDamagedError) as caught:
        LuceneEngine.open(tmp_path / "a", "my index")
    assert caught.value.where == "my index"
    assert "update 7" in caught.value.what


def test_a_manifest_that_is_absent_or_foreign_is_refused(tmp_path: Path) -> None:
    write_index(tmp_path / "a", {"update": "1"})
    with pytest.raises(IndexDamagedError, match=r"^The index has no manifest\.\n"):
        LuceneEngine.open(tmp_path / "a", "my index")
    other = DATA["manifest"].replace('"lucene"', '"other"')
    write_index(tmp_path / "b", {**DATA, "manifest": other})
    with pytest.raises(
        IndexDamagedError, match=r'^The manifest is of an index of engine "other"\.\n'
    ):
        LuceneEngine.open(tmp_path / "b", "my index")
    newer = DATA["manifest"].replace(f'"format_version":{FORMAT_VERSION}', '"format_version":99')
    write_index(tmp_path / "c", {**DATA, "manifest": newer})
    with pytest.raises(IndexVersionError, match=r"^The index has format version 99\."):
        LuceneEngine.open(tmp_path / "c", "my index")
