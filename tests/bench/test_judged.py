"""Rankings of judged sets, on generated files of BEIR and MTEB."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from arag_search.errors import QuestionsError
from arag_search.questions.files import load_questions
from arag_search.questions.question import Question
from bench.quality.judged import EXCLUDED, SEARCHES, WITH_QUERIES, measure
from bench.quality.retrieval import main
from tests.support.passages import VIVALDI
from tests.support.semantic_indexes import vector_index

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
        *("--judged", str(tmp_path / "set"), "--queries", str(queries), "--encoder", "hashing"),
        *("--work", str(tmp_path / "work"), "--json", str(results)),
    ]
    assert main(arguments) == 0
    (figure,) = json.loads(results.read_text())["figures"].values()
    rows = {row["what"]: row["value"] for row in figure["rows"]}
    assert rows["query, nDCG@10"] == rows["query, AP@100"] == rows["query, Recall@10"] == 1
    assert rows["query, Recall@1"] == 0.75
    assert rows[f"query, {EXCLUDED}"] == 0
    assert rows[f"words, {EXCLUDED}"] == pytest.approx(0.1)
    assert rows[f"query - words, {EXCLUDED}"] == pytest.approx(-0.1)
    assert rows["nearest where query, nDCG@10"] == 1
    assert {what.split(",")[0] for what in rows if " - " not in what} == {
        *SEARCHES,
        *WITH_QUERIES,
    }
    details = figure["details"]
    assert details["needs"] == 2
    assert set(details["refused"].values()) == {0}
    assert "query - words, nDCG@10" in capsys.readouterr().out


def test_needs_without_a_query_and_queries_without_a_set_are_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queries = written(tmp_path / "set", mteb=True)
    queries.write_text('{"id": "n2", "query": "tulips"}\n')
    common = ["--work", str(tmp_path / "work"), "--json", str(tmp_path / "results.json")]
    with_set = ["--judged", str(tmp_path / "set"), "--encoder", "hashing"]
    assert main([*with_set, "--queries", str(queries), *common]) == 1
    assert '1 needs have no query, the first of them "n1".' in capsys.readouterr().err
    assert main(["--queries", str(queries), *common]) == 1
    assert "--queries has no effect here." in capsys.readouterr().err


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
    values, refused = measure(index, needs, queries, {"query": WITH_QUERIES["query"]})
    assert refused == {"query": 1}
    assert values["query"]["c"]["Recall@10"] == 0
    assert values["query"]["a"]["Recall@10"] == 1
    assert [values["query"][id][EXCLUDED] for id in "abc"] == [0.1, 0, 0]


@pytest.mark.parametrize("row", ['{"query-id": "n1", "corpus-id": "d1"}', "[]", "{"])
def test_a_row_that_is_no_judgement_is_named(tmp_path: Path, row: str) -> None:
    written(tmp_path / "set", mteb=True)
    file = tmp_path / "set" / "qrels.jsonl"
    file.write_text(f"{file.read_text()}{row}\n")
    with pytest.raises(QuestionsError) as raised:
        load_questions(tmp_path / "set")
    assert f"line {len(JUDGED) + 1}" in str(raised.value)
