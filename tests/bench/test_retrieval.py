"""The bench of first-stage retrieval: its numbers by hand, and a small run. No test judges a
figure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from arag_search.evaluation.bootstrap import Interval, intervals, resampled_means
from arag_search.questions.files import Question
from arag_search.search.hits import SearchHit
from bench import BenchError
from bench.quality.first_stage import (
    MACRO,
    SEARCHES,
    Answer,
    Column,
    Evidence,
    Measured,
    estimates,
    evidence_of,
    measure,
    values_of,
    verdict,
)
from bench.quality.question_words import content_words, words_query
from bench.quality.retrieval import drawn, main
from tests.support.passages import VIVALDI, index_of
from tests.support.semantic_indexes import vector_index

NO_TYPES = [None] * 10


def question_with(
    titles: Sequence[str] = (), subjects: Sequence[str] = (), text: str = "?", id: str = "q"
) -> Question:
    facts = tuple((subject, "r", "o") for subject in subjects)
    return Question(id, text, ("x",), None, tuple(titles), facts)


def hit(number: int, title: str) -> SearchHit:
    return SearchHit(str(number), str(number), title, 1, 1, 1.0, {}, "Text.", (5,), (0,))


def table(*values: float) -> np.ndarray:
    return np.array([values], np.float64).T


# Intervals


def test_an_interval_has_the_percentiles_of_the_binomial_distribution() -> None:
    # One of ten questions: the number of hits is binomial (10, 0.1), which is 0 with probability
    # 0.349, at most 2 with 0.930 and at most 3 with 0.987.
    means = resampled_means(table(1, *[0] * 9), NO_TYPES, "set")
    assert means.shape == (10_000, 1)
    (interval,) = intervals([0.1], means, [0.95])
    assert interval == Interval(0.1, 0.0, 0.3)
    assert not interval.is_resolved
    assert interval.resolution == pytest.approx(0.15)


def test_questions_are_resampled_within_their_type() -> None:
    values = table(*[1] * 5, *[0] * 5)
    means = resampled_means(values, [*["a"] * 5, *["b"] * 5], "set")
    assert (means == 0.5).all()
    assert resampled_means(values, NO_TYPES, "set").std() > 0.1


def test_all_columns_have_the_same_draws_so_that_differences_are_paired() -> None:
    first = np.arange(10.0)
    means = resampled_means(np.array([first, first + 0.1]).T, NO_TYPES, "set")
    assert np.allclose(means[:, 1] - means[:, 0], 0.1)


def test_the_draws_are_the_same_for_a_name_and_differ_for_another() -> None:
    values = table(*range(10))
    first, again, other = (resampled_means(values, NO_TYPES, name) for name in ("a", "a", "b"))
    assert (first == again).all()
    assert (first != other).any()


def test_a_difference_whose_interval_holds_0_is_not_resolved() -> None:
    assert verdict(Interval(0.2, 0.1, 0.3), "recall@5") == "above 0"
    assert verdict(Interval(-0.2, -0.3, -0.1), "recall@5") == "below 0"
    assert verdict(Interval(0.1, 0.0, 0.3), "recall@5") == "not resolved (from 0.150)"
    assert verdict(Interval(0.0, -1000, 1600), "tokens@5") == "not resolved (from 1,300)"


# Recall and evidence


def test_recall_and_tokens_are_those_of_the_first_5_and_20_passages() -> None:
    titles = ["Gold One", "B", "C", "D", "E", "gold two!", *"GHIJKLMNOPQRSTU", "Gold Three"]
    hits = [hit(number, title) for number, title in enumerate(titles)]
    tokens = {hit.id: 10 + (hit.id == "20") for hit in hits}
    question = question_with(["Gold One", "Gold Two", "Gold Three", "Nowhere"])
    assert values_of(question, hits, tokens) == (0.25, 0.5, 50, 200)
    assert values_of(question, [], {}) == (0, 0, 0, 0)


def test_evidence_without_a_passage_is_counted_and_so_are_shared_titles() -> None:
    titles = ["Camille (1936 film)", "Camille (1926 film)", "Vivaldi", "Griselda", "Griselda"]
    questions = [
        question_with(["Vivaldi", "Camille"]),  # supporting titles must match as a whole
        question_with(subjects=["Camille", "Vivaldi"]),
        question_with(["Nowhere", "Nothing"]),
        question_with(["Griselda"]),
    ]
    assert evidence_of(titles, questions) == Evidence(titles=7, unresolved=3, questions=2, shared=2)


def test_a_question_without_evidence_is_rejected() -> None:
    with pytest.raises(BenchError) as raised:
        measure("set", index_of(*VIVALDI), [question_with(id="q7")], print)
    assert str(raised.value).startswith('The question "q7" names no evidence.\n')


def test_a_question_that_a_search_rejects_or_has_no_hits_for_counts_as_0() -> None:
    index = vector_index(*VIVALDI)
    titles = [chunk.title for chunk in VIVALDI]
    questions = [
        question_with(titles[:1], text=f"{titles[0]} {'x' * 2_000}", id="long"),
        question_with(titles[:1], text="?!", id="no word"),
        question_with(titles[:1], text=titles[0], id="good"),
    ]
    measurement = measure("set", index, questions, lambda _: None)
    for kind in SEARCHES:
        long, no_word, good = measurement.answers[kind]
        assert long.refused is (kind != "keyword")  # which takes the words, not the text
        assert not no_word.refused
        assert good.values[0] == 1
    assert measurement.answers["semantic"][0] == Answer((0, 0, 0, 0), 0, True)
    assert measurement.answers["logical"][1] == Answer((0, 0, 0, 0), 0, False)
    assert measurement.answers["keyword"][1].hits == 0


def measured_set(name: str, *recalls: tuple[float, float]) -> Measured:
    """Build a data set; each pair is the recall of semantic search, and of all other searches."""
    questions = [question_with(["T"], id=str(number)) for number in range(len(recalls))]
    answers = {
        kind: [
            Answer((semantic if kind == "semantic" else other,) * 4, 1, False)
            for semantic, other in recalls
        ]
        for kind in SEARCHES
    }
    return Measured(name, questions, answers, Evidence(1, 0, 0, 0))


def test_data_sets_are_averaged_and_not_pooled() -> None:
    sets = [
        measured_set("small", (1.0, 0.0)),
        measured_set("large", (0.0, 0.0), (0.0, 1.0), (0.5, 0.5)),
    ]
    values = estimates(sets)
    assert list(values) == ["small", "large", MACRO]
    semantic, difference = Column("semantic", "recall@5"), Column("semantic - logical", "recall@5")
    assert values["small"][semantic] == Interval(1, 1, 1)
    assert values["large"][semantic].value == pytest.approx(1 / 6)
    assert values[MACRO][semantic].value == pytest.approx((1 + 1 / 6) / 2)
    assert values[MACRO][difference].value == pytest.approx((1 - 1 / 3) / 2)
    interval = values["large"][difference]
    assert (interval.value, interval.low, interval.high) == pytest.approx((-1 / 3, -1, 0))
    assert list(estimates(sets[:1])) == ["small"]


# Words and questions


def test_a_question_is_searched_with_all_its_words_and_with_its_content_words() -> None:
    question = 'Who is the "mother" of a NOT title:mother, and Öjendorf?'
    assert words_query(question) == (
        '"who" "is" "the" "mother" "of" "a" "not" "title:mother" "and" "öjendorf"'
    )
    assert content_words(question) == ["mother", "title:mother", "öjendorf"]
    assert content_words("Who is it?") == ["who", "is", "it"]
    assert content_words("?!") == []
    assert words_query("?!") == ""
    assert content_words(" ".join(f"w{number}" for number in range(30)))[-1] == "w19"
    assert content_words("x" * 201 + " short") == ["short"]


def test_questions_are_drawn_by_a_seed_and_keep_their_order() -> None:
    questions = [question_with(id=str(number)) for number in range(100)]
    sample = drawn(questions, 10, "set")
    assert sample == drawn(questions, 10, "set")
    assert sample != drawn(questions, 10, "other")
    assert [int(question.id) for question in sample] == sorted(
        int(question.id) for question in sample
    )
    assert len({question.id for question in sample}) == 10
    assert drawn(questions, None, "set") == drawn(questions, 1000, "set") == questions


# A small run


def test_the_bench_runs_over_the_sample_and_keeps_index_and_vectors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "data" / "sample"
    folder.mkdir(parents=True)
    for name in ("corpus.jsonl", "questions.jsonl"):
        (folder / name).write_bytes((files("arag_search") / "sample" / name).read_bytes())
    results = tmp_path / "retrieval.json"
    command = [
        "--sets", "sample", "--data", str(tmp_path / "data"), "--encoder", "hashing:16",
        "--work", str(tmp_path / "work"), "--json", str(results),
    ]  # fmt: skip

    assert main(command) == 0, capsys.readouterr().err
    first = capsys.readouterr()
    assert "sample: hybrid - logical, recall@5" in first.out
    assert "Indexing sample/corpus.jsonl" in first.err
    figure = json.loads(results.read_bytes())["figures"]["retrieval"]
    details = figure["details"]["sets"]["sample"]
    assert details["encoder"]["name"] == "hashing:16"
    assert details["questions"]["count"] == len(details["values"]) == 12
    rows = {row["what"]: row["value"] for row in figure["rows"]}
    for kind in SEARCHES:
        values = [recalls[kind] for recalls in details["values"].values()]
        assert rows[f"sample: {kind}, recall@20"] == pytest.approx(sum(v[1] for v in values) / 12)
        assert all(v[0] <= v[1] <= 1 and 0 < v[2] <= v[3] for v in values)
    assert rows["sample: logical, recall@20"] > 0.5
    assert figure["run"]["command"].startswith("python -m bench retrieval --sets sample")
    assert str(tmp_path) not in results.read_text()

    assert main([*command, "--questions", "3"]) == 0
    again = capsys.readouterr()
    assert "Indexing" not in again.err
    assert "sample: hybrid, 3 questions" in again.err

    with (folder / "corpus.jsonl").open("a") as file:
        file.write('{"id": "new", "title": "New", "text": "One more."}\n')
    assert main(command) == 0
    assert "Indexing sample/corpus.jsonl" in capsys.readouterr().err


def test_a_missing_data_set_is_a_message_and_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--data", str(tmp_path), "--work", str(tmp_path)]) == 1
    assert 'There is no data set "2wikimultihopqa".' in capsys.readouterr().err
