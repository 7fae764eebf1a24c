"""The bench of growth: its corpus, its statistics, its extrapolation, and small runs."""

import math
from itertools import islice
from pathlib import Path
from random import Random

import orjson
import pytest

from arag_search.corpus import Chunk
from bench import BenchError
from bench.scale import scale, synthetic
from bench.scale.law import laws, power_law
from bench.scale.sides import CLASSES, Latency, Measured, drawn_queries
from bench.scale.words import word_statistics
from tests.support.lucene_indexes import chunk

QUICK = ["--queries", "5", "--max-build-s", "60"]


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
    assert all(by_number[passage.number] == passage for passage in synthetic.sample(3_000, 70))


def test_each_rank_has_its_own_word_and_frequent_words_are_short() -> None:
    words = [synthetic.word_of(rank) for rank in range(300_000)]
    assert len(set(words)) == len(words)
    assert [len(words[rank]) for rank in (0, 499, 500, 250_499, 250_500)] == [3, 3, 6, 6, 9]


def test_words_are_written_as_documents(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    assert synthetic.write(3, path) == path.stat().st_size
    lines = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    expected = [(str(p.number), p.title, p.text) for p in synthetic.passages(3)]
    assert [(line["id"], line["title"], line["text"]) for line in lines] == expected


# Statistics


def words(terms: list[str], length: int = 50) -> list[Chunk]:
    return [
        chunk(at, " ".join(terms[at : at + length]) + ".") for at in range(0, len(terms), length)
    ]


def test_zipfs_slope_of_an_exact_zipf_corpus_is_found() -> None:
    terms = [f"w{rank}" for rank in range(1, 400) for _ in range(round(4000 / rank**0.8))]
    Random(1).shuffle(terms)
    statistics = word_statistics(words(terms))
    assert statistics["Zipf slope"] == pytest.approx(0.8, abs=0.01)
    assert statistics["share of the most frequent word"] == pytest.approx(4000 / len(terms))


def test_heaps_exponent_is_1_if_every_word_is_new_and_0_if_none_is() -> None:
    new = word_statistics(words([f"w{number}" for number in range(20_000)]))
    assert new["Heaps exponent"] == pytest.approx(1)
    old = word_statistics(words([f"w{number % 40}" for number in range(20_000)]))
    assert old["Heaps exponent"] == pytest.approx(0)
    assert old["words of a passage"] == old["words of a sentence"] == 50
    assert old["passages with a word of a passage"] == 1


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
    latency = Latency(10, 0, passages**exponent / 1000, passages**exponent / 100)
    return Measured(passages, passages / 500, passages * 1000, passages * 5, {"term": latency})


def test_extrapolations_state_their_basis() -> None:
    sizes = {size: measured_size(size) for size in (1000, 10_000, 100_000, 1_000_000)}
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


def test_a_small_run_is_saved_and_not_measured_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scale, "FIRST_ROUNDS", 1)
    out = tmp_path / "results" / "scale.json"
    options = ["--engine", "lucene", "--out", str(out), "--work", str(tmp_path), *QUICK]
    options += ["--data", str(tmp_path)]
    assert scale.main(["--sizes", "100", *options]) == 0
    output = capsys.readouterr()
    assert "lucene, 100 passages, measured" in output.out
    assert "EXTRAPOLATED" not in output.out
    first = orjson.loads(out.read_bytes())
    (measurement,) = first["measured"]["lucene"]
    assert measurement["passages"] == 100
    assert set(measurement["latency"]) == set(CLASSES)
    assert {
        measurement["latency"][name]["without_hits"] for name in ("term", "AND", "sentence")
    } == {0}
    assert {path.suffix for path in out.parent.iterdir()} == {".json", ".png", ".svg"}
    assert [path.name for path in tmp_path.iterdir()] == ["results"]

    assert scale.main(["--sizes", "100", *options]) == 0
    assert "lucene: everything is measured.\n" in capsys.readouterr().err
    assert orjson.loads(out.read_bytes()) == first


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
    assert scale.main(["--sizes", "300,900000000000", *options]) == 1
    assert capsys.readouterr().err.startswith("There is room for ")
    assert not (tmp_path / "s.json").exists()
