"""The bench of growth: its corpus, its statistics, its extrapolation, and small runs."""

import math
from itertools import islice
from pathlib import Path
from random import Random

import orjson
import pytest

from arag_search.query.fields import Schema
from arag_search.query.reading import parse
from bench import BenchError
from bench.scale import scale, searching, steps, synthetic, worst
from bench.scale.law import last_decades, laws, power_law
from bench.scale.searching import CLASSES, Latency, Searched, drawn_queries
from bench.scale.sides import Cost, Measured, Side
from bench.scale.steps import Point, Record, Task
from bench.scale.words import word_statistics

# The corpus


def test_a_corpus_is_a_prefix_of_every_larger_corpus_and_reproducible() -> None:
    first = list(synthetic.passages(1500))
    assert list(islice(synthetic.passages(2500), 1500)) == first
    assert list(synthetic.passages(10, seed=1)) != first[:10]
    assert [passage.number for passage in first] == list(range(1500))
    assert (
        len({passage.title for passage in first[:4]})
        == 1
        != len({passage.title for passage in first})
    )


def test_a_passage_has_a_hundred_words_in_sentences() -> None:
    for passage in synthetic.passages(50):
        assert len(passage.text.split()) == 100
        assert passage.chunk().sentences() == [
            f"{sentence} " if at < len(passage.sentences) - 1 else sentence
            for at, sentence in enumerate(passage.sentences)
        ]


def test_a_sample_comes_from_all_over_the_corpus() -> None:
    assert synthetic.sample(300, 2000) == list(synthetic.passages(300))
    sample = synthetic.sample(40_000, 100)
    assert len(sample) == 100
    assert max(passage.number for passage in sample) > 30_000 > 1_000 > sample[0].number
    by_number = {passage.number: passage for passage in synthetic.passages(3_000)}
    assert list(synthetic.passages(1_500, first=900)) == [by_number[n] for n in range(900, 2_400)]
    assert all(by_number[passage.number] == passage for passage in synthetic.sample(3_000, 70))


def test_each_rank_has_its_own_word_and_frequent_words_are_short() -> None:
    words = [synthetic.word_of(rank) for rank in range(300_000)]
    assert len(set(words)) == len(words)
    assert [len(words[rank]) for rank in (0, 499, 500, 250_499, 250_500)] == [3, 3, 6, 6, 9]


# Statistics


def test_the_vocabulary_of_synthetic_passages_grows_by_heaps_law() -> None:
    statistics = word_statistics([passage.chunk() for passage in synthetic.passages(3_000)])
    assert 0.6 < statistics["Heaps exponent"] < 0.72
    assert 0.85 < statistics["Zipf slope"] < 1.05


# Extrapolation


def test_an_exact_power_law_is_extrapolated_without_uncertainty() -> None:
    law = power_law([(size, 3 * size**0.75) for size in (10, 100, 1000, 5000)])
    assert (law.factor, law.exponent) == (pytest.approx(3), pytest.approx(0.75))
    assert law.last_exponent == pytest.approx(0.75)
    prediction = law.predict(1e6)
    assert [prediction.low, prediction.value, prediction.high] == pytest.approx([3 * 1e6**0.75] * 3)


def test_nineteen_of_twenty_intervals_contain_the_value() -> None:
    random = Random(7)
    hits = 0
    for _ in range(1000):
        sizes = (1e4, 3e4, 1e5, 3e5, 1e6, 2.2e7)
        values = [size * math.exp(random.gauss(0, 0.1)) for size in sizes]
        prediction = power_law(list(zip(sizes, values, strict=True))[:-1]).predict(2.2e7)
        hits += prediction.low <= values[-1] <= prediction.high
    assert 930 <= hits <= 970


def test_three_sizes_are_too_few() -> None:
    with pytest.raises(BenchError) as raised:
        power_law([(1, 1), (2, 2), (3, 3)])
    assert str(raised.value) == (
        "3 sizes are measured, which is too few to go beyond them.\nAllowed: at least 4\n"
        "Do: Name more with --sizes."
    )
    assert laws({1: measured_size(1), 2: measured_size(2), 3: measured_size(3)}) == {}


def measured_size(passages: int, exponent: float = 1.0) -> Measured:
    latency = Latency(
        10, 0, passages**exponent / 1000, passages**exponent / 100, 1.0, 2.0, 100.0, 0.5
    )
    cost = Cost(passages / 500, passages / 400, passages * 1000, 1 << 28, passages * 2000)
    searched = Searched(passages * 5, 1.0, 0.1, 1 << 27, {1: {"term": latency}}, {}, ())
    changes = dict.fromkeys(("delete", "add", "compact"), cost)
    return Measured(passages, cost, (500.0,) * 10, (400.0,) * 10, 1.0, searched, changes)


def test_a_measurement_is_the_same_after_it_was_kept_as_json() -> None:
    measured = measured_size(1000)
    kept = orjson.dumps(measured.to_dict(), option=orjson.OPT_NON_STR_KEYS)
    assert Measured.from_dict(orjson.loads(kept)) == measured


def test_only_sizes_of_the_last_two_decades_count() -> None:
    points = [(size, 1.0) for size in (1e7, 1e4, 9e4, 1e5, 1e6)]
    assert last_decades(points) == [(1e5, 1.0), (1e6, 1.0), (1e7, 1.0)]
    sizes = {size: measured_size(size) for size in (1000, 10_000, 30_000, 100_000, 10_000_000)}
    assert laws(sizes) == {}


def test_extrapolations_state_their_basis() -> None:
    sizes = {size: measured_size(size) for size in (10_000, 30_000, 100_000, 1_000_000)}
    by_measure = laws(sizes)
    assert by_measure["build"].row("build").value == pytest.approx(22_000_000 / 500 / 3600)
    assert by_measure["index"].to_dict()["value"] == pytest.approx(22)
    assert by_measure["term: median"].row("term").what == "term (grows as size^1.00)"
    slow = {size: measured_size(size, 0.2) for size in sizes}
    assert laws(slow)["term: median"].row("term").what == (
        "term (grows as size^0.20, LOWER BOUND: mostly overhead)"
    )
    sizes[1_000_000] = measured_size(1_000_000, 1.5)
    bent = laws(sizes)["term: median"]
    assert bent.bends
    assert bent.row("term").what.endswith(", TOO LOW: it bends)")


# Runs


def test_query_classes_have_the_shapes_they_are_named_for() -> None:
    sample = [passage.chunk() for passage in synthetic.passages(200)]
    queries_by_class = drawn_queries(sample, 8, 1)
    assert list(queries_by_class) == list(CLASSES)
    assert all(len(set(queries)) == 8 for queries in queries_by_class.values())
    assert all(" AND NOT " in query for query in queries_by_class["NOT"])
    assert all(query.startswith('"') for query in queries_by_class["phrase"])
    assert all(query.endswith("*") for query in queries_by_class["prefix"])
    assert queries_by_class == drawn_queries(sample, 8, 1) != drawn_queries(sample, 8, 2)


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run steps in this process, since Java would start anew for each, and return their names."""
    names: list[str] = []

    def started(step: str, task: Task) -> int:
        names.append(step)
        return steps.main([step, orjson.dumps(task).decode()])

    monkeypatch.setattr(steps, "started", started)
    monkeypatch.setattr(searching, "MAX_WARM_UP", 1)
    monkeypatch.setattr(searching, "ROUNDS", 1)
    candidates = worst.candidates  # the fuzzy ones take seconds
    monkeypatch.setattr(worst, "candidates", lambda *words: candidates(*words)[:2])
    return names


def test_a_small_run_is_saved_and_not_measured_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], in_this_process: list[str]
) -> None:
    out, work = tmp_path / "results" / "scale.json", tmp_path / "work"
    options = ["--engine", "lucene", "--out", str(out), "--work", str(work), "--queries", "3"]
    options += ["--data", str(tmp_path), "--sizes", "100"]
    assert scale.main(options) == 0
    output = capsys.readouterr()
    assert "lucene, 100 passages, measured" in output.out
    assert "EXTRAPOLATED" not in output.out
    assert in_this_process == ["build", "search", "delete", "add", "compact"]
    first = orjson.loads(out.read_bytes())
    (kept,) = first["measured"]["lucene"]
    measured = Measured.from_dict(kept)
    assert measured.passages == 100
    assert 1 < len(measured.tenths) <= 10
    assert measured.search.worst[0].name == "frequent words, OR, chunks"
    assert measured.build.peak_disk >= measured.build.bytes > 100_000
    assert measured.build.peak_bytes > 50_000_000
    assert measured.search.latency.keys() == set(searching.CLIENTS)
    assert all(set(classes) == set(CLASSES) for classes in measured.search.latency.values())
    assert {measured.latency[name].without_hits for name in ("term", "AND", "sentence")} == {0}
    assert {path.suffix for path in out.parent.iterdir()} == {".json", ".png", ".svg"}
    assert list(work.iterdir()) == []

    assert scale.main(options) == 0
    assert "lucene: everything is measured.\n" in capsys.readouterr().err
    assert orjson.loads(out.read_bytes()) == first


def test_a_run_that_was_stopped_goes_on_with_the_index_that_it_has_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_this_process: list[str]
) -> None:
    folder = tmp_path / "lucene-100"
    folder.mkdir()
    with Side("lucene").task(folder, 100, 2) as task:
        synthetic.write(100, folder / steps.CORPUS)
        with monkeypatch.context() as patch:
            patch.setattr(steps.Meter, "read", interrupted)
            with pytest.raises(KeyboardInterrupt):
                steps.build(task)
        steps.build(task)
        built = Record.read(task.record("build"))
        assert built.is_finished
        assert [point.passages for point in built.points][-1] == 100
        steps.run("build", task)
        assert in_this_process == []
        steps.run("delete", task)
        assert in_this_process == ["delete"]
        before, after = (Record.read(task.record(step)) for step in ("build", "delete"))
        assert after.bytes != before.bytes


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_step_that_fails_is_an_error_that_says_how_to_go_on(tmp_path: Path) -> None:
    task = Task(str(tmp_path / "none"), 100, str(tmp_path), 1)
    with pytest.raises(BenchError) as raised:
        steps.run("compact", task)
    assert str(raised.value) == (
        "The step compact ended with exit code 1.\nWhere: 100 passages\n"
        "Do: Run the same command again: it goes on where it stopped."
    )


def test_the_rate_of_each_tenth_comes_from_the_points_around_it() -> None:
    points = [Point(at * 10, at * (1.0 if at <= 10 else 2.0), 0.0, 0.0) for at in range(1, 21)]
    rates = Record(points=tuple(points)).tenths(lambda point: point.seconds)
    assert rates == pytest.approx([10.0] * 5 + [20 / 14] + [5.0] * 4)
    assert Record().tenths(lambda point: point.seconds) == ()


def test_every_worst_query_is_within_the_limits() -> None:
    words = [synthetic.word_of(rank) for rank in range(66)]
    for candidate in worst.candidates(words, "rare"):
        parse(candidate.query, Schema())


def test_a_file_of_other_settings_or_another_kind_is_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "scale.json"
    out.write_text('{"format": 1, "figures": {}}')
    options = ["--sizes", "300", "--data", str(tmp_path), "--out", str(out)]
    assert scale.main(options) == 1
    assert capsys.readouterr().err == (
        f"The file holds no results of this bench.\nWhere: {out}\n"
        "Do: Name another file with --out.\n"
    )
    settings = {"queries": 3, "seed": 1750, "generator": 1}
    results = {"settings": settings, "measured": {}, "corpus": {}, "runs": {}}
    out.write_bytes(orjson.dumps(results))
    assert scale.main(options) == 1
    assert capsys.readouterr().err.startswith(
        "The results in the file were measured with other settings.\n"
    )


def test_too_little_room_is_reported_before_anything_is_built(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--engine", "lucene", "--out", str(tmp_path / "s.json"), "--data", str(tmp_path)]
    options += ["--work", str(tmp_path / "work")]
    assert scale.main(["--sizes", "300,900000000000", *options]) == 1
    assert capsys.readouterr().err.startswith("There is room for ")
    assert not (tmp_path / "s.json").exists()
