"""The bench of single searches: its numbers by hand, and small runs. No test judges a figure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from arag_search.engines.hits import Hit
from arag_search.errors import QuestionsError
from arag_search.evaluation.bootstrap import Interval, intervals, resampled_means
from arag_search.evaluation.interfaces import content_words, words_query
from arag_search.questions.files import load_questions
from arag_search.questions.question import Question
from bench import BenchError
from bench.data import drawn
from bench.report.rows import MACRO
from bench.retrieval import (
    EXCLUDED,
    SEARCHES,
    WITH_QUERIES,
    Measured,
    evidence,
    evidence_of,
    figure,
    main,
    ranking,
)
from tests.support.passages import VIVALDI, index_of
from tests.support.semantic_indexes import vector_index

NO_TYPES = [None] * 10


def question_with(
    titles: Sequence[str] = (), subjects: Sequence[str] = (), text: str = "?", id: str = "q"
) -> Question:
    facts = tuple((subject, "r", "o") for subject in subjects)
    return Question(id, text, ("x",), None, tuple(titles), facts)


def hit(number: int, title: str) -> Hit:
    return Hit(str(number), str(number), title, 1, 1, number, {}, (5,), "Text.", sentences=(0,))


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


# Recall and evidence


def test_recall_and_tokens_are_those_of_the_first_5_and_20_passages() -> None:
    titles = ["Gold One", "B", "C", "D", "E", "gold two!", *"GHIJKLMNOPQRSTU", "Gold Three"]
    hits = [hit(number, title) for number, title in enumerate(titles)]
    tokens = {hit.id: 10 + (hit.id == "20") for hit in hits}
    question = question_with(["Gold One", "Gold Two", "Gold Three", "Nowhere"])
    assert list(evidence_of(question, hits, tokens).values()) == [0.25, 0.5, 50, 200]
    assert list(evidence_of(question, [], {}).values()) == [0, 0, 0, 0]


def test_a_question_without_evidence_is_rejected() -> None:
    with pytest.raises(BenchError) as raised:
        evidence("set", index_of(*VIVALDI), [question_with(id="q7")], SEARCHES, {})
    assert str(raised.value).startswith('The question "q7" names no evidence.\n')


def test_a_question_that_a_search_rejects_or_has_no_hits_for_counts_as_0() -> None:
    index = vector_index(*VIVALDI)
    titles = [chunk.title for chunk in VIVALDI]
    questions = [
        question_with(titles[:1], text=f"{titles[0]} {'x' * 2_000}", id="long"),
        question_with(titles[:1], text="?!", id="no word"),
        question_with(titles[:1], text=titles[0], id="good"),
    ]
    measured = evidence("set", index, questions, SEARCHES, {})
    # keyword_search takes the words, not the text
    assert measured.refused == {kind: kind != "keyword" for kind in SEARCHES}
    assert all(values["recall@5"][2] == 1 for values in measured.values.values())
    assert measured.values["semantic"]["recall@5"][0] == 0
    assert measured.values["logical"]["tokens@20"][1] == 0


def test_data_sets_are_averaged_and_not_pooled_and_differences_are_from_the_words() -> None:
    sets = [
        Measured("small", {"logical": {"r": [0.0]}, "semantic": {"r": [1.0]}}, [None], {}),
        Measured(
            "large",
            {"logical": {"r": [0.0, 1.0, 0.5]}, "semantic": {"r": [0.0, 0.0, 0.5]}},
            [None] * 3,
            {},
        ),
    ]
    rows = {row.what: row for row in figure("f", sets).rows}
    assert list(rows)[::3] == [f"{name}: logical, r" for name in ("small", "large", MACRO)]
    values = {what: row.value for what, row in rows.items() if MACRO in what}
    assert list(values.values()) == pytest.approx([0.25, (1 + 1 / 6) / 2, (1 - 1 / 3) / 2])
    row = rows["large: semantic - logical, r"]
    assert (row.value, row.low, row.high) == pytest.approx((-1 / 3, -1, 0))


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


@pytest.mark.server
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
    assert details["encoder"] == "hashing:16"
    assert details["questions"]["count"] == 12
    rows = {row["what"]: row["value"] for row in figure["rows"]}
    for kind in SEARCHES:
        first, more = (rows[f"sample: {kind}, recall@{cut}"] for cut in (5, 20))
        assert 0 < first <= more <= 1
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


# Judged sets, on generated files of BEIR and MTEB

DOCUMENTS = {
    "d1": "The Reformation began in Wittenberg.",
    "d2": "The Reformation changed the religious practice of towns.",
    "d3": "Printing presses spread pamphlets of the Reformation.",
    "d4": "Tulips were traded in Haarlem.",
}
NEEDS = {"n1": "the Reformation, but not religious practice", "n2": "tulips, and no printing"}
JUDGED = [("n1", "d1", 1), ("n1", "d3", 1), ("n1", "d2", -1), ("n2", "d4", 1), ("n2", "d3", -1)]
QUERIES = {"n1": 'reformation NOT "religious practice"', "n2": "tulips NOT printing"}


def written(folder: Path, *, mteb: bool) -> Path:
    """Write the set in one of the forms, and the queries beside it."""
    folder.mkdir()
    lines = [json.dumps({"_id": id, "text": text}) for id, text in DOCUMENTS.items()]
    (folder / "corpus.jsonl").write_text("\n".join(lines) + "\n")
    lines = [json.dumps({"_id": id, "text": text}) for id, text in NEEDS.items()]
    (folder / "queries.jsonl").write_text("\n".join(lines) + "\n")
    names = ("query-id", "corpus-id", "score")
    if mteb:
        rows = [json.dumps(dict(zip(names, row, strict=True))) for row in JUDGED]
        (folder / "qrels.jsonl").write_text("\n".join(rows) + "\n")
    else:
        (folder / "qrels").mkdir()
        rows = ["\t".join(map(str, row)) for row in (names, *JUDGED)]
        (folder / "qrels" / "test.tsv").write_text("\r\n".join(rows) + "\r\n")
    lines = [json.dumps({"id": id, "query": query}) for id, query in QUERIES.items()]
    file = folder.parent / "logical.jsonl"
    file.write_text("\n".join(lines) + "\n")
    return file


@pytest.mark.parametrize("mteb", [False, True], ids=["BEIR", "MTEB"])
def test_a_folder_is_measured_with_its_own_needs_and_with_queries_from_a_file(
    tmp_path: Path, mteb: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    queries = written(tmp_path / "set", mteb=mteb)
    results = tmp_path / "results.json"
    arguments = [
        *("--data", str(tmp_path / "set"), "--queries", str(queries), "--encoder", "hashing"),
        *("--work", str(tmp_path / "work"), "--json", str(results)),
    ]
    assert main(arguments) == 0
    (figure,) = json.loads(results.read_text())["figures"].values()
    rows = {row["what"].removeprefix("set: "): row["value"] for row in figure["rows"]}
    assert rows["query, nDCG@10"] == rows["query, AP@100"] == rows["query, Recall@10"] == 1
    assert rows["query, Recall@1"] == 0.75
    assert rows[f"query, {EXCLUDED}"] == 0
    assert rows[f"logical, {EXCLUDED}"] == pytest.approx(0.1)
    assert rows[f"query - logical, {EXCLUDED}"] == pytest.approx(-0.1)
    assert rows["nearest where query, nDCG@10"] == 1
    assert {what.split(",")[0] for what in rows if " - " not in what} == {*SEARCHES, *WITH_QUERIES}
    assert set(figure["details"]["sets"]["set"]["refused"].values()) == {0}
    assert "query - logical, nDCG@10" in capsys.readouterr().out


def test_a_need_without_a_query_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queries = written(tmp_path / "set", mteb=True)
    queries.write_text('{"id": "n2", "query": "tulips"}\n')
    places = ["--work", str(tmp_path / "work"), "--json", str(tmp_path / "results.json")]
    command = ["--data", str(tmp_path / "set"), "--queries", str(queries), "--encoder", "hashing"]
    assert main([*command, *places]) == 1
    assert '1 needs have no query, the first of them "n1".' in capsys.readouterr().err


def test_a_refused_query_finds_nothing_and_documents_that_a_need_leaves_out_do_not_count() -> None:
    index = vector_index(*VIVALDI)
    relevant = (("griselda", 1), ("scarlatti", -1))
    needs = [
        Question("a", "griselda", (), relevant_documents=relevant),
        Question(
            "b", "griselda", (), relevant_documents=relevant, excluded_documents=("scarlatti",)
        ),
        Question("c", "griselda", (), relevant_documents=relevant),
    ]
    queries = {"a": "title:griselda", "b": "title:griselda", "c": "(griselda"}
    measured = ranking("set", index, needs, {"query": WITH_QUERIES["query"]}, queries)
    assert measured.refused == {"query": 1}
    assert measured.values["query"]["Recall@10"] == [1, 1, 0]
    assert measured.values["query"][EXCLUDED] == [0.1, 0, 0]


@pytest.mark.parametrize("row", ['{"query-id": "n1", "corpus-id": "d1"}', "[]", "{"])
def test_a_row_that_is_no_judgement_is_named(tmp_path: Path, row: str) -> None:
    written(tmp_path / "set", mteb=True)
    file = tmp_path / "set" / "qrels.jsonl"
    file.write_text(f"{file.read_text()}{row}\n")
    with pytest.raises(QuestionsError) as raised:
        load_questions(tmp_path / "set")
    assert f"line {len(JUDGED) + 1}" in str(raised.value)
