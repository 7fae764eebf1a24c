"""The bench of growth: its corpus, and a small run on each engine."""

from collections.abc import Mapping
from itertools import islice
from pathlib import Path

import orjson
import pytest

from bench import BenchError
from bench.scale import scale, synthetic
from bench.scale.queries import CLASSES, drawn_queries
from tests.support.bench_passages import chunk, passages
from tests.support.drawn_queries import logical_queries


def test_a_corpus_is_a_prefix_of_every_larger_corpus() -> None:
    first = list(synthetic.passages(1500))
    assert list(islice(synthetic.passages(2500), 1500)) == first
    assert [passage.number for passage in first] == list(range(1500))
    titles = [passage.title for passage in first]
    assert len(set(titles[:4])) == 1 != len(set(titles))
    by_number = {passage.number: passage for passage in synthetic.passages(3_000)}
    assert list(synthetic.passages(1_500, first=900)) == [by_number[n] for n in range(900, 2_400)]


def test_a_passage_has_a_hundred_words_in_sentences() -> None:
    for passage in synthetic.passages(50):
        assert len(passage.text.split()) == 100
        sentences = [sentence.strip() for sentence in passage.chunk().sentences()]
        assert sentences == list(passage.sentences)


def test_a_sample_comes_from_all_over_the_corpus() -> None:
    assert synthetic.sample(300, 2000) == list(synthetic.passages(300))
    sample = synthetic.sample(40_000, 100)
    assert len(sample) == 100
    assert max(passage.number for passage in sample) > 30_000 > 1_000 > sample[0].number


def test_each_rank_has_its_own_word_and_frequent_words_are_short() -> None:
    words = [synthetic.word_of(rank) for rank in range(300_000)]
    assert len(set(words)) == len(words)
    assert [len(words[rank]) for rank in (0, 499, 500, 250_499, 250_500)] == [3, 3, 6, 6, 9]


def test_the_vocabulary_grows_by_heaps_law_as_that_of_real_text() -> None:
    sizes: list[int] = []
    seen: set[str] = set()
    for passage in synthetic.passages(4_000):
        seen.update(passage.text.lower().replace(".", "").split())
        sizes.append(len(seen))
    # The exponent of 2WikiMultiHopQA is .667: 2.5 times the vocabulary for 4 times the words.
    assert 2.3 < sizes[3_999] / sizes[999] < 2.7


def test_query_classes_have_the_shapes_they_are_named_for() -> None:
    sample = [passage.chunk() for passage in synthetic.passages(200)]
    drawn = drawn_queries(sample, 8, 1)
    assert set(drawn) == set(CLASSES)
    assert all(len(set(queries)) == 8 for queries in drawn.values())
    assert all(" AND NOT " in query for query in drawn["NOT"])
    assert all(query.startswith('"') for query in drawn["phrase"])
    assert all(query.endswith("*") for query in drawn["prefix"])
    assert drawn == drawn_queries(sample, 8, 1) != drawn_queries(sample, 8, 2)


def test_passages_without_a_word_are_an_error() -> None:
    with pytest.raises(BenchError, match="There is no passage with words to draw from"):
        drawn_queries([chunk(1, "...")], 1, 1)


def test_queries_on_which_engines_are_compared_are_of_every_kind() -> None:
    queries = logical_queries(passages(40), 150)
    assert len(set(queries)) == 150
    assert queries == logical_queries(passages(40), 150) != logical_queries(passages(40), 150, 2)
    for piece in ("AND", "OR", "NOT", '"', "~", "*", "title:", "^", "("):
        assert piece in " | ".join(queries)


@pytest.mark.long
@pytest.mark.usefixtures("opensearch_jars")
def test_each_size_of_both_engines_is_measured_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(scale, "SEARCHES_BEFORE", 1)
    out = tmp_path / "results" / "scale.json"
    options = ["--json", str(out), "--work", str(tmp_path), "--queries", "3", "--heap", "512m"]
    assert scale.main([*options, "--sizes", "200", "--nodes", "3"]) == 0
    first = out.read_bytes()
    assert scale.main([*options, "--sizes", "200", "--nodes", "3"]) == 0
    assert "lucene, 200 passages: measured already.\n" in capsys.readouterr().err
    assert out.read_bytes() == first
    assert [path.name for path in tmp_path.iterdir()] == ["results"]
    figures: Mapping[str, dict[str, list[dict[str, object]]]] = orjson.loads(first)["figures"]
    assert set(figures) == {"lucene, 200 passages", "opensearch, 3 nodes, 200 passages"}
    for figure in figures.values():
        values = {str(row["what"]): row["value"] for row in figure["rows"]}
        assert all(isinstance(value, float | int) and value > 0 for value in values.values())
        for step in ("build", "deletion", "addition", "compaction"):
            assert f"{step}, index afterwards" in values
        assert "sentence, 4 at once: 95th percentile" in values


def test_too_little_room_is_reported_before_anything_is_built(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--engine", "lucene", "--json", str(tmp_path / "s.json"), "--work", str(tmp_path)]
    assert scale.main(["--sizes", "900000000000", *options]) == 1
    assert capsys.readouterr().err.startswith("There is room for ")
