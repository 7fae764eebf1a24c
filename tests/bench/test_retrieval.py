"""The bench of first-stage retrieval: its numbers by hand, and that it runs. No figure is judged
here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from arag_search.evaluation.bootstrap import Interval, intervals, resampled_means
from arag_search.questions.files import Question
from arag_search.search.results import SearchHit
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
from bench.quality.retrieval import drawn, main, tables
from tests.support.passages import VIVALDI, index_of
from tests.support.semantic_indexes import vector_index

NO_TYPES = [None] * 10


def asked(
    titles: Sequence[str] = (), subjects: Sequence[str] = (), text: str = "?", id: str = "q"
) -> Question:
    facts = tuple((one, "r", "o") for one in subjects)
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
    (found,) = intervals([0.1], means, [0.95])
    assert found == Interval(0.1, 0.0, 0.3)
    assert not found.is_resolved
    assert found.resolution == pytest.approx(0.15)


def test_questions_are_drawn_again_within_their_type() -> None:
    values = table(*[1] * 5, *[0] * 5)
    within = resampled_means(values, [*["a"] * 5, *["b"] * 5], "set")
    assert (within == 0.5).all()
    assert resampled_means(values, NO_TYPES, "set").std() > 0.1


def test_all_columns_have_the_same_draws_so_that_differences_are_paired() -> None:
    first = np.arange(10.0)
    means = resampled_means(np.array([first, first + 0.1]).T, NO_TYPES, "set")
    assert np.allclose(means[:, 1] - means[:, 0], 0.1)


def test_the_draws_are_kept_for_a_name_and_differ_for_another() -> None:
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
    tokens = {each.id: 10 + (each.id == "20") for each in hits}
    question = asked(["Gold One", "Gold Two", "Gold Three", "Nowhere"])
    assert values_of(question, hits, tokens) == (0.25, 0.5, 50, 200)
    assert values_of(question, [], {}) == (0, 0, 0, 0)


def test_evidence_that_no_passage_has_is_counted_and_so_are_shared_titles() -> None:
    titles = ["Camille (1936 film)", "Camille (1926 film)", "Vivaldi", "Griselda", "Griselda"]
    questions = [
        asked(["Vivaldi", "Camille"]),  # supporting titles are met whole
        asked(subjects=["Camille", "Vivaldi"]),
        asked(["Nowhere", "Nothing"]),
        asked(["Griselda"]),
    ]
    assert evidence_of(titles, questions) == Evidence(titles=7, unresolved=3, questions=2, shared=2)


def test_a_question_without_evidence_is_refused() -> None:
    with pytest.raises(BenchError) as caught:
        measure("set", index_of(*VIVALDI), [asked(id="q7")], print)
    assert str(caught.value).startswith('The question "q7" names no evidence.\n')


def test_a_question_that_a_search_refuses_or_finds_nothing_for_counts_as_0() -> None:
    index = vector_index(*VIVALDI)
    titles = [chunk.title for chunk in VIVALDI]
    questions = [
        asked(titles[:1], text=f"{titles[0]} {'x' * 2_000}", id="long"),
        asked(titles[:1], text="?!", id="no word"),
        asked(titles[:1], text=titles[0], id="good"),
    ]
    found = measure("set", index, questions, lambda _: None)
    for kind in SEARCHES:
        long, no_word, good = found.answers[kind]
        assert long.refused is (kind != "keyword")  # which takes the words, not the text
        assert not no_word.refused
        assert good.values[0] == 1
    assert found.answers["semantic"][0] == Answer((0, 0, 0, 0), 0, True)
    assert found.answers["logical"][1] == Answer((0, 0, 0, 0), 0, False)
    assert found.answers["keyword"][1].hits == 0


def measured(name: str, *recalls: tuple[float, float]) -> Measured:
    """A data set: of each question recall of semantic search, and of all others."""
    questions = [asked(["T"], id=str(number)) for number in range(len(recalls))]
    answers = {
        kind: [
            Answer((one if kind == "semantic" else other,) * 4, 1, False) for one, other in recalls
        ]
        for kind in SEARCHES
    }
    return Measured(name, questions, answers, Evidence(1, 0, 0, 0))


def test_data_sets_are_averaged_and_not_pooled() -> None:
    sets = [measured("small", (1.0, 0.0)), measured("large", (0.0, 0.0), (0.0, 1.0), (0.5, 0.5))]
    found = estimates(sets)
    assert list(found) == ["small", "large", MACRO]
    semantic, difference = Column("semantic", "recall@5"), Column("semantic - logical", "recall@5")
    assert found["small"][semantic] == Interval(1, 1, 1)
    assert found["large"][semantic].value == pytest.approx(1 / 6)
    assert found[MACRO][semantic].value == pytest.approx((1 + 1 / 6) / 2)
    assert found[MACRO][difference].value == pytest.approx((1 - 1 / 3) / 2)
    spread = found["large"][difference]
    assert (spread.value, spread.low, spread.high) == pytest.approx((-1 / 3, -1, 0))
    assert list(estimates(sets[:1])) == ["small"]


def test_the_tables_say_what_is_not_resolved_and_never_that_two_are_equal() -> None:
    sets = [measured("set", (1.0, 0.5), (0.5, 1.0), (1.0, 1.0))]
    text = tables(sets, estimates(sets), "an encoder")
    lines = {tuple(line.split(" | ")[:2]): line for line in text.splitlines()}
    assert "0.833 [0.500, 1.000]" in lines["| set", "semantic"]
    assert "0.000 [-0.500, 0.500] not resolved (from 0.500)" in lines["| set", "semantic - logical"]
    assert "equal" not in text


# Words and questions


def test_a_question_is_searched_for_with_its_words_and_with_those_that_say_something() -> None:
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
    questions = [asked(id=str(number)) for number in range(100)]
    some = drawn(questions, 10, "set")
    assert some == drawn(questions, 10, "set")
    assert some != drawn(questions, 10, "other")
    assert [int(each.id) for each in some] == sorted(int(each.id) for each in some)
    assert len({each.id for each in some}) == 10
    assert drawn(questions, None, "set") == drawn(questions, 1000, "set") == questions


# The whole


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
    assert "| sample | hybrid - logical |" in first.out
    assert "Indexing sample/corpus.jsonl" in first.err
    figure = json.loads(results.read_bytes())["figures"]["retrieval"]
    kept = figure["details"]["sets"]["sample"]
    assert kept["encoder"]["name"] == "hashing:16"
    assert kept["questions"]["count"] == len(kept["values"]) == 12
    rows = {row["what"]: row["value"] for row in figure["rows"]}
    for kind in SEARCHES:
        values = [of[kind] for of in kept["values"].values()]
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


def test_a_data_set_that_is_not_there_is_a_message_and_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--data", str(tmp_path), "--work", str(tmp_path)]) == 1
    assert "2wikimultihopqa/questions.jsonl" in capsys.readouterr().err
