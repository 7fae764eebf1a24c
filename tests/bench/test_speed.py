"""The bench of speed: its numbers by hand, and a run of every comparison. No test judges a time."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import orjson
import pytest

from arag_search.agent.models.base import ModelReply, ModelRequest, ToolCall
from arag_search.evaluation.bootstrap import Interval
from arag_search.questions.files import Question
from arag_search.runs.run import run
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from arag_search.tools.preset_files import load_preset
from bench import BenchError, processes
from bench.report.rounds import Timings, interleaved, median_interval, percentile, played
from bench.report.rows import Figure, Row, Target, table, write_results
from bench.speed import building, loading, speed
from bench.speed.bare import scan
from bench.speed.peers import SIDES, Passages, Pyserini, Setup, check_hits, searched_text
from bench.speed.rates import Rates
from bench.speed.recorded import generated, read_queries
from bench.workbench import check_room
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from tests.support.bench_passages import passages
from tests.support.drawn_queries import keyword_sets
from tests.support.oracle.engine import MemoryEngine
from tests.support.passages import VIVALDI, index_of
from tests.support.scripted_model import ScriptedModel


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Passages]:
    """Index a few passages, with queries drawn from them."""
    folder = tmp_path_factory.mktemp("bench")
    corpus = folder / "corpus.jsonl"
    lines = [orjson.dumps({"title": c.title, "text": c.content}) for c in passages(12)]
    corpus.write_bytes(b"\n".join(lines))
    build_index([str(corpus)], folder / "index", BuildOptions())
    with open_index(folder / "index") as index:
        queries = generated(index, list(index.scan()), 20, 1)
        yield Passages(index, corpus, BuildOptions(), queries, folder)


# Statistics


def test_the_interval_of_a_median_is_of_order_statistics_and_with_few_values_their_range() -> None:
    # Of 8 values the 2nd and the 7th hold it with 0.93; of 20, the 6th and the 15th with 0.96.
    assert median_interval([8.0, 1.0, 5.0, 2.0, 7.0, 3.0, 6.0, 4.0]) == (1.0, 8.0)
    assert median_interval([float(at) for at in range(1, 21)]) == (6.0, 15.0)
    timings = Timings({"bare": (1.0, 2.0, 6.0), "ours": (2.0, 8.0, 3.0)})
    # The rounds give 1/2, 2/8 and 6/3.
    assert timings.ratio("bare", "ours") == Interval(0.5, 0.25, 2.0)


def test_the_median_of_an_even_number_of_rounds_is_the_mean_of_the_two_in_the_middle() -> None:
    assert Timings({"a": (1.0, 10.0, 4.0, 2.0)}).median_s("a") == 3.0


def test_sides_take_turns_in_running_first_and_the_warm_up_does_not_count() -> None:
    order: list[str] = []
    seconds = iter(range(100))

    def side(name: str) -> float:
        order.append(name)
        return float(next(seconds))

    sides = {name: lambda name=name: side(name) for name in "abc"}
    timings = interleaved(sides, 2)
    assert "".join(order) == "cba" + "abc" + "cba"
    assert timings.seconds == {"a": (3.0, 8.0), "b": (4.0, 7.0), "c": (5.0, 6.0)}


def test_zero_rounds_are_rejected() -> None:
    with pytest.raises(ValueError, match="0 rounds"):
        interleaved({"a": lambda: 1.0}, 0)


@pytest.mark.parametrize(
    ("share", "expected"), [(0.5, 2.0), (0.51, 3.0), (0.95, 4.0), (1.0, 4.0), (0.01, 1.0)]
)
def test_a_percentile_is_the_value_of_that_rank(share: float, expected: float) -> None:
    assert percentile([4.0, 1.0, 3.0, 2.0], share) == expected


# Reports


def test_a_table_says_value_range_target_and_verdict() -> None:
    figures = [
        Figure(
            "search",
            (
                Row.of_ratio("ours", Interval(0.625, 0.5, 0.75), Target("at least", 0.6)),
                Row("ours", 1234.5, "ms"),
            ),
        ),
        Figure("startup", (Row("first", 2.0, "s", 1.0, 3.0, Target("at most", 1.5)),)),
    ]
    assert table(figures).splitlines() == [
        "| figure | what | value | range | target |  |",
        "| --- | --- | --- | --- | --- | --- |",
        "| search | ours | 0.625 x | 0.5 to 0.75 | at least 0.6 | reached |",
        "| search | ours | 1,234 ms |  |  |  |",
        "| startup | first | 2 s | 1 to 3 | at most 1.5 | missed |",
    ]


@pytest.mark.parametrize(("kind", "verdict"), [("at least", "reached"), ("at most", "reached")])
def test_a_value_on_the_bound_reaches_the_target(kind: str, verdict: str) -> None:
    assert Row("x", 0.6, "x", target=Target(kind, 0.6)).verdict == verdict  # pyright: ignore


def test_parts_that_run_separately_are_merged_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "results" / "efficiency.json"
    write_results(path, [Figure("search", (Row("ours", 1.0, "s"),))], {"command": "first"})
    write_results(path, [Figure("indexing", ())], {"command": "second"})
    write_results(path, [Figure("search", (Row("ours", 2.0, "s"),))], {"command": "third"})
    figures = orjson.loads(path.read_bytes())["figures"]
    assert list(figures) == ["indexing", "search"]
    assert figures["search"]["rows"] == [{"what": "ours", "value": 2.0, "unit": "s"}]
    assert figures["search"]["run"] == {"command": "third"}


# Queries and the scan


def test_the_scan_scores_count_times_length_and_prefers_the_earlier_of_equal_passages() -> None:
    texts = ["opera", "opera opera libretto", "a libretto", "opera", "none"]
    # opera counts 5, libretto 8: 5, 18, 8, 5, 0.
    assert scan(texts, ["Opera", "libretto"], 3) == [(18.0, -1), (8.0, -2), (5.0, 0)]


def test_the_scan_equals_keyword_search_by_substrings() -> None:
    chunks = passages(30)
    texts = list(map(searched_text, chunks))
    with Index(MemoryEngine(chunks), "memory") as index:
        for keywords in keyword_sets(chunks, 20):
            hits = index.keyword_search(keywords, matching="substring").hits
            scored = [(chunks[-place].id, score) for score, place in scan(texts, keywords, 5)]
            assert [(hit.id, hit.score) for hit in hits] == scored


def test_the_searches_of_a_run_are_read_in_order_and_rejected_ones_are_left_out(
    tmp_path: Path,
) -> None:
    search = "logical_search"
    index = index_of(*VIVALDI)
    calls = (
        (search, '{"query": "\\"antonio vivaldi\\" AND libret* NOT title:venice"}'),
        (search, '{"query": "opera AND NOT"}'),
        ("chunk_read", '{"chunk_ids": ["vivaldi.1"]}'),
        (search, '{"query": "opera AND violin"}'),
        (search, '{"query": "year:1678"}'),
    )

    def reply(request: ModelRequest) -> ModelReply:
        replies = sum(message.role == "tool" for message in request.messages)
        if replies < len(calls):
            return ModelReply("", (ToolCall(f"c{replies}", *calls[replies]),))
        return ModelReply("Answer: x\nSources: vivaldi.1")

    questions = [Question("q", "Who?", ("x",))]
    run(index, questions, load_preset("logical_read"), ScriptedModel(reply), tmp_path / "run")
    queries = read_queries([tmp_path / "run"], index)
    assert [(query.text, query.words, query.keywords) for query in queries] == [
        (
            '"antonio vivaldi" AND libret* NOT title:venice',
            ("antonio", "vivaldi", "libret"),
            ("antonio vivaldi", "libret"),
        ),
        ("opera AND violin", ("opera", "violin"), ("opera", "violin")),
    ]


# Clients


def test_the_clients_together_ask_every_query_once() -> None:
    numbers: list[int] = []
    play = played(numbers.append, 20, 4)
    assert sorted(numbers) == list(range(20))
    assert len(play.latencies) == 20
    assert play.seconds > 0


# A run of every comparison, on a few passages


def test_building_is_compared_with_a_bare_loop_that_indexes_the_same_words(bench: Passages) -> None:
    figure = building.beside_bare(bench, 1, warm_up=0)
    assert [row.unit for row in figure.rows] == ["x", "passages/s", "passages/s"]


@pytest.mark.usefixtures("opensearch_jars")
@pytest.mark.parametrize("left_out", ["OpenSearch", pytest.param("", marks=pytest.mark.long)])
def test_every_rival_is_asked_the_same_as_ours_with_each_number_of_clients(
    left_out: str, bench: Passages, tmp_path: Path
) -> None:
    pytest.importorskip("bm25s")
    options = [name for name in ("OpenSearch", "bm25s", "scan") if name != left_out]
    with ExitStack() as stack:
        rates = Rates(stack, Setup(tmp_path), options)
        figure = rates.measure(bench, (1, 3), 1, 0)
    ratios = [row.what.removeprefix("rate of ") for row in figure.rows if row.unit == "x"]
    sides = [side for side in SIDES if side.beside and side.option in ("", *options)]
    assert [what for what in ratios if what.endswith("1 client")] == [
        f"{side.beside.name} over {side.name}, 1 client" for side in sides if side.beside
    ]
    assert "pyserini" in figure.details["left out"]
    latencies = figure.details["latency_ms"]["A-RAG's scan, 3 clients"]
    assert 0 < latencies["P50"] <= latencies["P99"]


def test_hits_may_differ_in_the_choice_among_equal_scores_alone() -> None:
    def check(*theirs: tuple[str, float]) -> None:
        check_hits(["opera"], lambda number: [("a", 2.0), ("b", 1.0)], lambda number: theirs)

    check(("a", 2.0), ("b", 1.0))
    check(("a", 2.0), ("c", 1.0))
    for theirs in ([("a", 2.0)], [("b", 2.0), ("a", 1.0)], [("a", 2.0), ("b", 1.1)]):
        with pytest.raises(BenchError, match="The bare client finds other passages than ours"):
            check(*theirs)


def test_a_missing_rival_is_an_error_that_says_how_to_get_it_or_leave_it_out(
    tmp_path: Path,
) -> None:
    absent = str(tmp_path / "python")
    with ExitStack() as stack, pytest.raises(BenchError) as raised:
        Rates(stack, Setup(tmp_path, absent), ("pyserini",))
    what, where, _, do = str(raised.value).splitlines()
    assert what.startswith("A rival is missing: Pyserini does not start (No such file")
    assert where == f"Where: {absent}"
    assert do.endswith(" Or leave it out with --without pyserini.")


FAKE = """
class LuceneIndexer:
    def __init__(self, args, threads): pass
    def add_doc_raw(self, line): assert " " in line
    def close(self): pass
class LuceneSearcher:
    num_docs = 2
    def __init__(self, folder): pass
    def set_analyzer(self, analyzer): pass
    def set_bm25(self, k1, b): pass
    def search(self, query, k):
        print("a logger writes to stdout")
        return [type("Hit", (), {"docid": word})() for word in query.split()[:k]]
"""


def test_pyserini_answers_through_a_pipe_and_its_loggers_do_no_harm(
    bench: Passages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (
        ("pyserini/__init__.py", ""),
        ("pyserini/pyclass.py", "autoclass = lambda name: type('S', (), {'getProperty': str})"),
        ("pyserini/analysis.py", "JWhiteSpaceAnalyzer = object"),
        ("pyserini/index/__init__.py", ""),
        ("pyserini/index/lucene.py", FAKE),
        ("pyserini/search/__init__.py", ""),
        ("pyserini/search/lucene.py", FAKE),
        ("pyserini-2.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: pyserini\nVersion: 2.0"),
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with ExitStack() as stack:
        peer = Pyserini(Setup(tmp_path), stack, None)
        assert peer.version is not None
        assert peer.version.startswith("2.0, Java ")
        peer.build(bench)
        assert len(peer.play(3).latencies) == len(bench.queries)
        (tmp_path / "pyserini" / "search" / "lucene.py").write_text("raise ValueError('no such')")
        broken = Pyserini(Setup(tmp_path), stack, None)
        with pytest.raises(BenchError, match="Pyserini failed: ValueError: no such"):
            broken.build(bench)


# Processes


def test_a_process_has_its_processor_time_and_one_that_fails_is_an_error() -> None:
    slow = "import os, sys, time\nwhile time.process_time() < 0.3: pass\n"
    answer = "for _ in sys.stdin: print(os.getpid(), flush=True)"
    command = (sys.executable, "-S", "-c", slow + answer)
    with ExitStack() as stack:
        pid = processes.Process(stack, command, {}).ask({})
        assert 0.25 <= processes.processor_time(pid) < 3
        failing = (sys.executable, "-S", "-c", "import sys; sys.exit('no index')")
        with pytest.raises(BenchError, match="A process ended: no index"):
            processes.Process(stack, failing, {}).ask({})
    assert 0.3 <= processes.run(command).processor_s < 3
    with pytest.raises(BenchError, match="A command failed: no index"):
        processes.run(failing)


@pytest.mark.server
def test_generated_passages_are_asked_generated_queries_by_hybrid_search_too(
    tmp_path: Path,
) -> None:
    pytest.importorskip("faiss")
    results = tmp_path / "speed.json"
    command = ["--passages", "300", "--only", "rates", "--queries", "5", "--rounds", "1"]
    more = ["--without", "OpenSearch,pyserini,bm25s,scan", "--encoder", "hashing:64"]
    to = ["--warm-up", "0", "--json", str(results), "--work", str(tmp_path)]
    assert speed.main([*command, *more, *to]) == 0
    rows = orjson.loads(results.read_bytes())["figures"]["rates, 300 passages"]["rows"]
    assert rows[0]["what"] == "hybrid, recall@10 of IVF4,PQ8"
    assert 0.5 < rows[0]["value"] <= 1


@pytest.mark.server
def test_loading_a_node_is_compared_with_parallel_bulk(bench: Passages) -> None:
    figure = loading.beside_parallel_bulk(bench, 1, warm_up=0)
    values = {row.what: row.value for row in figure.rows}
    assert figure.details["documents"] > bench.index.manifest.chunks
    for name in (loading.OURS, loading.BULK):
        assert values[f"{name}: client, processor time"] > 0
        assert values[f"{name}: node, processor time"] > 0
        assert values[f"{name}: node, indexing, time of its threads"] > 0


# Anserini


@pytest.fixture
def java_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a JDK whose Java reads the passages and writes their number, instead of an index.

    It ends with code 3 where a passage is not as Anserini reads it.
    """
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        f"#!{sys.executable} -S\n"
        "import json, pathlib, sys\n"
        "at = lambda name: pathlib.Path(sys.argv[sys.argv.index(name) + 1])\n"
        "lines = [json.loads(text) for file in at('-input').iterdir() for text in file.open()]\n"
        "if any(set(line) != {'id', 'contents'} for line in lines): sys.exit(3)\n"
        "at('-index').mkdir()\n"
        "(at('-index') / 'segments').write_text(str(len(lines)))\n"
    )
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    return tmp_path


@pytest.mark.long
def test_our_build_is_compared_with_that_of_anserini(bench: Passages, java_home: Path) -> None:
    jar = java_home / "anserini.jar"
    jar.touch()
    figure = building.beside_anserini(bench, 1, jar)
    values = {row.what: row.value for row in figure.rows}
    count = figure.details["passages"]
    assert count == building.COPIES * bench.index.manifest.documents
    assert values["Anserini: index"] == len(str(count)) / 1e6
    assert values["sentences: index"] > values["no sentences: index"] > 0
    for name in building.TARGETS:
        ratio = values[f"{name}: time"] / values["Anserini: time"]
        assert values[f"time of ours over Anserini, {name}"] == pytest.approx(ratio)
        assert values[f"{name}: processor time"] > values["Anserini: processor time"] > 0


def test_copies_have_other_ids_and_the_same_sentences_in_another_order(
    bench: Passages, tmp_path: Path
) -> None:
    paths = tmp_path / "ours.jsonl", tmp_path / "theirs.jsonl"
    assert building.write_copies(bench, *paths) == 12 * building.COPIES
    ours, theirs = (list(map(orjson.loads, path.read_bytes().splitlines())) for path in paths)
    contents = [f"{line['title']}\n{line['text']}" for line in ours]
    assert contents == [line["contents"] for line in theirs]
    assert len({line["id"] for line in ours}) == len(ours)
    copies = [line["text"] for line in ours[::12]]
    assert {tuple(sorted(text.split())) for text in copies} == {tuple(sorted(copies[0].split()))}
    assert len(set(copies)) > 1


def test_anserini_without_its_jar_or_a_java_says_what_it_needs(
    bench: Passages, java_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BenchError, match="needs its jar, and a JDK"):
        building.beside_anserini(bench, 1, java_home / "absent.jar")
    monkeypatch.delenv("JAVA_HOME")
    with pytest.raises(BenchError, match="needs its jar, and a JDK"):
        building.beside_anserini(bench, 1, Path(__file__))


def test_too_small_a_disk_is_an_error_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"There is room for .* MB, but 1,048,576 MB are needed"):
        check_room(tmp_path, 1 << 40)
