"""The bench of speed: its numbers by hand, and a run of every comparison. No test judges a time."""

import gc
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import orjson
import pytest

from arag_search.plan.clauses import leaves
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from bench import BenchError
from bench.replay import against, rates, session, speed
from bench.replay.recorded import drawn_queries
from bench.report.rounds import Ratio, Timings, interleaved, median_interval, percentile
from bench.report.rows import Figure, Row, Target, read_results, table, write_results
from bench.speed import anserini, efficiency, indexing
from bench.speed.bare import scan
from bench.speed.copies import copies
from bench.speed.queries import keyword_sets, logical_queries
from bench.workbench import Workbench, check_room, set_up
from index_jobs.build.options import BuildOptions
from tests.support.bench_passages import chunk, passages
from tests.support.oracle.engine import MemoryEngine


@pytest.fixture(scope="module", autouse=True)
def fast_garbage_collections() -> Iterator[None]:
    """Freeze the objects of other tests, so that the collection in every round is fast."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    folder = tmp_path_factory.mktemp("bench")
    corpus = folder / "corpus.jsonl"
    lines = [orjson.dumps({"title": c.title, "text": c.content}) for c in passages(12)]
    corpus.write_bytes(b"\n".join(lines))
    with set_up(corpus, folder) as workbench:
        yield workbench


# Statistics


def test_a_ratio_is_that_of_the_medians_and_its_range_that_of_the_rounds() -> None:
    timings = Timings({"bare": (1.0, 2.0, 6.0), "ours": (2.0, 8.0, 3.0)})
    # Medians are 2 and 3; the rounds give 1/2, 2/8 and 6/3.
    assert timings.ratio("bare", "ours") == Ratio(2 / 3, 0.25, 2.0)
    assert timings.rounds == 3


def test_the_interval_of_a_median_is_of_order_statistics_and_with_few_values_their_range() -> None:
    # Of 8 values the 2nd and the 7th hold it with 0.93; of 20, the 6th and the 15th with 0.96.
    assert median_interval([8.0, 1.0, 5.0, 2.0, 7.0, 3.0, 6.0, 4.0]) == (1.0, 8.0)
    assert median_interval([float(at) for at in range(1, 21)]) == (6.0, 15.0)
    timings = Timings({"bare": (1.0, 2.0, 6.0), "ours": (2.0, 8.0, 3.0)})
    assert timings.paired("bare", "ours") == Ratio(0.5, 0.25, 2.0)


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
                Row.of_ratio("ours", Ratio(0.625, 0.5, 0.75), Target("at least", 0.6)),
                Row("ours", 1234.5, "ms"),
            ),
        ),
        Figure("startup", (Row("first", 2.0, "s", 1.0, 3.0, Target("at most", 1.5)),)),
    ]
    assert table(figures).splitlines() == [
        "figure   what   value     range        target",
        "search   ours   0.625 x   0.5 to 0.75  at least 0.6  reached",
        "         ours   1,234 ms",
        "startup  first  2 s       1 to 3       at most 1.5   missed",
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


def test_queries_are_different_and_the_same_for_a_seed() -> None:
    queries = logical_queries(passages(40), 150)
    assert len({query.plan for query in queries}) == 150
    assert queries == logical_queries(passages(40), 150)
    assert queries != logical_queries(passages(40), 150, seed=2)


def test_queries_are_of_every_kind() -> None:
    texts = " | ".join(query.text for query in logical_queries(passages(40), 150))
    for piece in ("AND", "OR", "NOT", '"', "~", "*", "title:", "^", "("):
        assert piece in texts
    for query in logical_queries(passages(40), 150):
        query_leaves = list(leaves(query.plan.root))
        assert 1 <= len(query_leaves) <= 5
        assert sum(leaf.kind == "prefix" for leaf in query_leaves) <= 4


def test_too_few_passages_for_so_many_queries_are_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bench.speed.queries.MAX_DRAWS", 1)
    with pytest.raises(BenchError, match=r"1 passages make \d+ different queries, not 60\."):
        logical_queries([chunk(1, "Opera.")], 60)


def test_passages_without_a_word_are_an_error() -> None:
    with pytest.raises(BenchError, match="There is no passage with words to draw from"):
        logical_queries([chunk(1, "...")], 1)


def test_keyword_sets_have_one_to_three_keywords_of_a_passage() -> None:
    texts = [passage.content for passage in passages(20)]
    for keywords in keyword_sets(passages(20), 30):
        assert 1 <= len(keywords) <= 3
        assert any(all(keyword in text for keyword in keywords) for text in texts)


def test_copies_have_other_ids_and_the_same_sentences_in_another_order() -> None:
    chunks = [chunk(1, "One. ", "Two. ", "Three. ", "Four.")]
    first, *others = copies(chunks, 4)
    assert (first.id, first.text) == ("c-1-0", chunks[0].content)
    assert [copy.id for copy in others] == ["c-1-1", "c-1-2", "c-1-3"]
    for copy in others:
        assert sorted(copy.text.split()) == ["Four.", "One.", "Three.", "Two."]
    assert len({copy.text for copy in others}) > 1


def test_the_scan_scores_count_times_length_and_prefers_the_earlier_of_equal_passages() -> None:
    texts = ["opera", "opera opera libretto", "a libretto", "opera", "none"]
    # opera counts 5, libretto 8: 5, 18, 8, 5, 0.
    assert scan(texts, ["Opera", "libretto"], 3) == [(18.0, -1), (8.0, -2), (5.0, 0)]


def test_the_scan_equals_keyword_search_by_substrings() -> None:
    chunks = passages(30)
    texts = [copy.searched.lower() for copy in copies(chunks, 1)]
    with Index(MemoryEngine(chunks), "memory") as index:
        for keywords in keyword_sets(chunks, 20):
            hits = index.keyword_search(keywords, matching="substring").hits
            scored = [(chunks[-place].id, score) for score, place in scan(texts, keywords, 5)]
            assert [(hit.id, hit.score) for hit in hits] == scored


# A run of every comparison, on a few passages


def test_indexing_compares_our_build_with_the_bare_loop(bench: Workbench) -> None:
    figure = indexing.measure(bench, 1, warm_up=0)
    assert [row.unit for row in figure.rows] == ["x", "passages/s", "passages/s"]


def test_every_rival_is_asked_the_same_as_ours_with_each_number_of_clients(
    bench: Workbench, tmp_path: Path
) -> None:
    pytest.importorskip("bm25s")
    left_out = (rates.CLIENT, rates.PYSERINI, rates.HYBRID)
    with ExitStack() as stack, open_index(bench.index) as index:
        rivals = rates.Rivals(stack, tmp_path, ("bm25s", "scan"), sys.executable)
        asked = drawn_queries(index, bench.chunks, 20)
        passages = rates.Passages(index, bench.corpus, BuildOptions(), asked, tmp_path)
        figure = rates.measure(passages, rivals, (1, 3), 1, 0)
    ratios = [row.what.removeprefix("rate of ") for row in figure.rows if row.unit == "x"]
    assert [what for what in ratios if what.endswith("1 client")] == [
        f"{ours} over {rival}, 1 client" for ours, rival in rates.PAIRS if rival not in left_out
    ]
    assert figure.details["left out"] == ["OpenSearch", "pyserini"]
    latencies = figure.details["latency_ms"]["A-RAG's scan, 3 clients"]
    assert 0 < latencies["P50"] <= latencies["P99"]


def test_hits_may_differ_in_the_choice_among_equal_scores_alone() -> None:
    def check(*theirs: tuple[str, float]) -> None:
        hits = [SimpleNamespace(id=name, score=score) for name, score in (("a", 2), ("b", 1))]
        search = lambda number: SimpleNamespace(hits=hits)  # noqa: E731
        rates.check_hits(["opera"], search, lambda number: theirs)

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
        rates.Rivals(stack, tmp_path, ("pyserini",), absent)
    what, where, _, do = str(raised.value).splitlines()
    assert what.startswith("A rival is missing: Pyserini does not start (No such file")
    assert where == f"Where: {absent}"
    assert do.endswith(" Or leave it out with --without pyserini.")


# Sessions


def test_a_session_has_the_processor_time_of_its_process_by_part() -> None:
    slow = "import sys, time\nwhile time.process_time() < 0.3: pass\nprint('open', flush=True)\n"
    command = (sys.executable, "-S", "-c", slow + "for _ in sys.stdin: print(1, flush=True)")
    spent = session.by_lines(command, ["a", "b", "c"])
    assert list(spent) == ["start", "first call", "other calls", "again", "warm"]
    assert 0.3 <= spent["start"].processor_s < 3
    assert spent["warm"].processor_s < 0.1 > spent["first call"].processor_s
    assert 0.3 <= session.by_commands([command])["other calls"].processor_s < 3


def test_a_session_and_a_command_that_fail_are_errors() -> None:
    command = (sys.executable, "-S", "-c", "import sys; sys.exit('no index')")
    with pytest.raises(BenchError, match="A session ended: no index"):
        session.by_lines(command, ["a"])
    with pytest.raises(BenchError, match="A command fails"):
        session.by_commands([command])


def test_calls_are_those_that_models_made_then_the_queries(tmp_path: Path) -> None:
    folder = tmp_path / "model_runs"
    folder.mkdir()
    given = {"query": "opera", "top_k": 3}
    search = {"tool_name": "logical_search", "status": "ok", "tool_input": given}
    steps = [search, {**search, "status": "error", "tool_input": {"query": "AND"}}, search]
    (folder / "one.logical_read.jsonl").write_bytes(orjson.dumps({"trajectory": steps}))
    calls = session.recorded_calls(tmp_path, tmp_path / "one" / "corpus.jsonl", ["violin", "opera"])
    assert calls == [{"query": "opera", "top_k": 3}, {"query": "violin"}]


@pytest.mark.long
def test_sessions_are_compared_with_bare_lucene_and_with_a_commit(
    bench: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "PASSES", 3)
    monkeypatch.setattr(session, "COMMANDS", 1)
    results = tmp_path / "speed.json"
    options = ["--data", str(bench.corpus.parent), "--queries", "6", "--rounds", "1"]
    more = ["--json", str(results), "--work", str(tmp_path)]
    assert speed.main([*options, *more, "--only", "session"]) == 0
    monkeypatch.setattr(against, "WARM_UP", dict.fromkeys(against.WARM_UP, 0))
    assert speed.main([*options, *more, "--against", "HEAD"]) == 0
    figures = read_results(results)
    names = ("loops beside HEAD", "session", "session beside HEAD")
    assert set(figures) == {f"{name}, 12 passages" for name in names}
    assert all(row.value > 0 for figure in figures.values() for row in figure.rows)


def test_generated_passages_are_asked_generated_queries_by_hybrid_search_too(
    tmp_path: Path,
) -> None:
    pytest.importorskip("faiss")
    results = tmp_path / "speed.json"
    command = ["--passages", "300", "--only", "rates", "--queries", "5", "--rounds", "1"]
    more = ["--without", "OpenSearch,pyserini,bm25s,scan", "--encoder", "hashing:64"]
    to = ["--warm-up", "0", "--json", str(results), "--work", str(tmp_path)]
    assert speed.main([*command, *more, *to]) == 0
    recall = read_results(results)["rates, 300 passages"].rows[0]
    assert recall.what == "hybrid, recall@10 of IVF4,PQ8"
    assert 0.5 < recall.value <= 1


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
        "sys.exit(4 if 'broken' in str(at('-cp')) else 0)\n"
    )
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    return tmp_path


@pytest.mark.long
def test_our_build_is_compared_with_that_of_anserini(bench: Workbench, java_home: Path) -> None:
    jar = java_home / "anserini.jar"
    jar.touch()
    figure = anserini.measure(bench, 1, jar)
    values = {row.what: row.value for row in figure.rows}
    assert figure.details["passages"] == anserini.TIMES * len(bench.chunks)
    assert values["Anserini: index"] == len(str(figure.details["passages"])) / 1e6
    assert values["sentences: index"] > values["no sentences: index"] > 0
    for name in anserini.TARGETS:
        ratio = values[f"{name}: time"] / values["Anserini: time"]
        assert values[f"time of ours over Anserini, {name}"] == pytest.approx(ratio)
        assert values[f"{name}: processor time"] > values["Anserini: processor time"] > 0


def test_a_build_by_anserini_that_fails_is_an_error(bench: Workbench, java_home: Path) -> None:
    jar = java_home / "broken.jar"
    jar.touch()
    with pytest.raises(BenchError, match="A build failed"):
        anserini.measure(bench, 1, jar)


def test_anserini_without_its_jar_or_a_java_says_what_it_needs(
    bench: Workbench, java_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BenchError, match="needs its jar, and a JDK"):
        anserini.measure(bench, 1, java_home / "absent.jar")
    monkeypatch.delenv("JAVA_HOME")
    with pytest.raises(BenchError, match="needs its jar, and a JDK"):
        anserini.measure(bench, 1, Path(__file__))


def test_too_small_a_disk_is_an_error_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"There is room for .* MB, but 1,048,576 MB are needed"):
        check_room(tmp_path, 1 << 40)


def test_an_absent_corpus_is_a_failure_with_a_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    absent = tmp_path / "absent"
    options = ["--json", str(tmp_path / "results.json"), "--data", str(absent)]
    assert efficiency.main(["indexing", *options]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "There is no such folder.",
        f"Where: {absent}",
        "Allowed: a folder of data sets, a data set, or any folder of files",
        "Do: Name it with --data. bench/README.md says which public files belong there.",
    ]
