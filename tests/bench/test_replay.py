"""Recorded queries, read from records, and asking and comparing peers."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from arag_search.agent.models.base import ModelReply, ModelRequest, ToolCall
from arag_search.agent.presets import load_preset
from arag_search.questions.files import Question
from arag_search.runs.run import run
from arag_search.search.index import Index
from bench import BenchError
from bench.replay.peers import Pyserini
from bench.replay.recorded import RecordedQueries, read_queries, recorded
from bench.report.rounds import Latencies, Played, threads
from tests.support.passages import VIVALDI, chunk, index_of
from tests.support.scripted_model import ScriptedModel

K1, B = 1.2, 0.75


# Recorded queries


def searching_model(*calls: tuple[str, str]) -> ScriptedModel:
    """Return a model that makes these calls of tools, then answers."""

    def reply(request: ModelRequest) -> ModelReply:
        replies = sum(message.role == "tool" for message in request.messages)
        if replies < len(calls):
            return ModelReply("", (ToolCall(f"c{replies}", *calls[replies]),))
        return ModelReply("Answer: x\nSources: vivaldi.1")

    return ScriptedModel(reply)


def queries_of(folder: Path, index: Index, preset: str, *calls: tuple[str, str]):
    questions = [Question("q", "Who?", ("x",))]
    run(index, questions, load_preset(preset), searching_model(*calls), folder / "run")
    return read_queries([folder / "run"], index)


def test_the_searches_of_a_run_are_read_in_order_and_rejected_ones_are_counted(
    tmp_path: Path,
) -> None:
    search = "logical_search"
    recorded_queries = queries_of(
        tmp_path,
        index_of(*VIVALDI),
        "logical_read",
        (search, '{"query": "\\"antonio vivaldi\\" AND libret* NOT title:venice"}'),
        (search, '{"query": "opera AND NOT"}'),
        ("chunk_read", '{"chunk_ids": ["vivaldi.1"]}'),
        (search, '{"query": "opera AND violin"}'),
        (search, '{"query": "year:1678"}'),
    )
    assert [(query.text, query.words, query.keywords) for query in recorded_queries.queries] == [
        (
            '"antonio vivaldi" AND libret* NOT title:venice',
            ("antonio", "vivaldi", "libret"),
            ("antonio vivaldi", "libret"),
        ),
        ("opera AND violin", ("opera", "violin"), ("opera", "violin")),
    ]
    assert recorded_queries.counts == {
        "logical_search": 4, "refused or without a word": 2, "queries": 2, "different queries": 2,
    }  # fmt: skip
    assert recorded_queries.runs[0].preset == "logical_read"


def test_keywords_of_a_run_become_alternatives(tmp_path: Path) -> None:
    recorded_queries = queries_of(
        tmp_path,
        index_of(*VIVALDI),
        "arag_without_semantic",
        ("keyword_search", '{"keywords": ["antonio \\"vivaldi\\"", "opera"]}'),
    )
    (query,) = recorded_queries.queries
    assert query.words == ("antonio", "vivaldi", "opera")
    assert query.plan.root.text == '("antonio vivaldi" OR "opera")'


def test_a_run_without_a_search_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="No search is on record"):
        queries_of(tmp_path, index_of(*VIVALDI), "logical_read")


def test_some_queries_are_drawn_by_a_seed_and_keep_their_order() -> None:
    index = index_of(*VIVALDI)
    searches = [recorded(f"opera w{number}", index) for number in range(50)]
    queries = [query for query in searches if query is not None]
    everything = RecordedQueries(queries, {}, ())
    sample = everything.some(10).queries
    assert list(sample) == list(everything.some(10).queries)
    assert [queries.index(query) for query in sample] == sorted(
        queries.index(query) for query in sample
    )
    assert everything.some(50).queries == queries


# Clients


def test_latencies_are_those_of_the_last_rounds() -> None:
    latencies = Latencies()
    rounds = iter([Played(9.0, [9.0]), Played(1.0, [0.25, 0.75]), Played(2.0, [1.0, 1.0])])
    side = latencies.side("a", lambda clients: next(rounds), 2)
    assert [side() for _ in range(3)] == [9.0, 1.0, 2.0]
    assert latencies.of("a", 2) == [0.25, 0.75, 1.0, 1.0]


def test_the_clients_together_ask_every_query_once() -> None:
    numbers: list[int] = []
    played = threads(numbers.append, 20)(4)
    assert sorted(numbers) == list(range(20))
    assert len(played.latencies) == 20
    assert played.seconds > 0


# Other libraries


def test_bm25s_gives_our_scores_where_lengths_are_exact() -> None:
    """Compare passages that are so short that Lucene does not round their lengths."""
    bm25s = pytest.importorskip("bm25s")
    random = Random(4)
    texts = [" ".join(random.choices("abcdefghij", k=random.randint(1, 39))) for _ in range(60)]
    passages = [chunk(number, str(number), "", text) for number, text in enumerate(texts)]
    peer = bm25s.BM25(k1=K1, b=B, method="lucene")
    peer.index([text.split() for text in texts], show_progress=False)
    index = index_of(*passages)
    for words in (["a"], ["b", "c"], ["d", "e", "f", "a"]):
        result = index.logical_search(" OR ".join(words), top_k=60)
        scores = peer.get_scores(words)
        assert len(result.hits) == (scores > 0).sum()
        for hit in result.hits:
            assert hit.score == pytest.approx(scores[int(hit.doc_id)], rel=1e-5)


# Pyserini, in its own process


FAKE = """
class LuceneSearcher:
    num_docs = 2
    def __init__(self, folder): self.folder = folder
    def set_analyzer(self, analyzer): pass
    def set_bm25(self, k1, b): self.bm25 = (k1, b)
    def search(self, query, k):
        if query == "fail":
            raise ValueError("no such thing")
        print("a logger writes to stdout")
        return [type("Hit", (), {"docid": word, "score": 1.0})() for word in query.split()[:k]]
"""


@pytest.fixture(name="fake")
def fake_pyserini(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package that looks like Pyserini, for this process only."""
    folder = tmp_path / "packages"
    for name, text in (
        ("pyserini/__init__.py", ""),
        ("pyserini/pyclass.py", "autoclass = lambda name: type('S', (), {'getProperty': str})"),
        ("pyserini/analysis.py", "JWhiteSpaceAnalyzer = object"),
        ("pyserini/search/__init__.py", ""),
        ("pyserini/search/lucene.py", FAKE),
        ("pyserini-2.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: pyserini\nVersion: 2.0"),
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(folder))


def test_pyserini_answers_through_a_pipe_and_its_loggers_do_no_harm(fake: None) -> None:
    with Pyserini() as peer:
        assert peer.versions["pyserini"] == "2.0"
        assert peer.open(Path("index"), [["a", "b", "c"], ["d"]], K1, B) == 2
        played = peer.play(3, 5)
        assert len(played.latencies) == 2
        peer.open(Path("index"), [["fail"]], K1, B)
        with pytest.raises(BenchError, match="Pyserini failed: ValueError: no such thing"):
            peer.play(1, 2)
        assert peer.open(Path("index"), [], K1, B) == 2
