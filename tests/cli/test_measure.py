"""The command measure: what each query interface finds on a corpus, by each rule, and what it
costs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from arag_search.evaluation.known_items import known_items
from arag_search.search.opening import open_index
from tests.support.commands import SAMPLE, Command, CommandResult

pytestmark = pytest.mark.usefixtures("commands_folder")

QUESTIONS = str(Path(SAMPLE).with_name("questions.jsonl"))
WITHOUT_VECTORS = {"words", "keyword_search", "logical by rules"}


def test_titles_answers_judgements_and_queries_alone_are_measured_by_their_own_rule(
    arag: Command, tmp_path: Path
) -> None:
    report = arag("measure", "my-index", QUESTIONS, "--json").json
    (group,) = report["groups"]
    assert (group["rule"], group["questions"]) == ("evidence", 12)
    shares = [row["share"]["value"] for row in group["rows"]]
    assert {row["interface"] for row in group["rows"]} == WITHOUT_VECTORS
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.8
    assert group["rows"][0]["beside_best"] is None
    assert all(row["tokens"] > 0 for row in group["rows"])
    assert len(report["questions"]) == 12 * len(WITHOUT_VECTORS)
    best = [row for row in report["questions"] if row["interface"] == group["rows"][0]["interface"]]
    assert sum(row["share"] for row in best) / 12 == pytest.approx(shares[0])

    answers = tmp_path / "answers.jsonl"
    answers.write_text(
        json.dumps({"question": "In which city did Carlo Goldoni die?", "answer": "Paris"}), "utf-8"
    )
    (group,) = arag("measure", "my-index", str(answers), "--json").json["groups"]
    assert (group["rule"], group["rows"][0]["share"]["value"]) == ("answer", 1.0)

    judged = tmp_path / "beir"
    (judged / "qrels").mkdir(parents=True)
    (judged / "queries.jsonl").write_text('{"_id": "1", "text": "carlo goldoni"}\n', "utf-8")
    rows = "query-id\tcorpus-id\tscore\n1\tgoldoni\t1\n1\tvivaldi\t0\n"
    (judged / "qrels" / "test.tsv").write_text(rows, "utf-8")
    (group,) = arag("measure", "my-index", str(judged), "--json").json["groups"]
    assert (group["rule"], group["rows"][0]["share"]["value"]) == ("documents", 1.0)


def test_documents_that_a_question_leaves_out_of_rankings_give_their_places_to_the_next(
    arag: Command, tmp_path: Path
) -> None:
    (tmp_path / "qrels").mkdir()
    rows = "query-id\tcorpus-id\tscore\n1\tgriselda-vivaldi\t1\n"
    (tmp_path / "qrels" / "test.tsv").write_text(rows, "utf-8")
    query = {"_id": "1", "text": "carlo goldoni libretto"}

    def shares_of(query: dict[str, object]) -> set[float]:
        (tmp_path / "queries.jsonl").write_text(json.dumps(query), "utf-8")
        report = arag("measure", "my-index", str(tmp_path), "--top-k", "1", "--json").json
        return {row["share"]["value"] for row in report["groups"][0]["rows"]}

    assert shares_of(query) == {0.0}
    assert shares_of({**query, "metadata": {"excluded_ids": ["goldoni"]}}) == {1.0}


def test_judged_documents_that_the_index_lacks_are_named(arag: Command, tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "queries.jsonl").write_text('{"_id": "1", "text": "carlo goldoni"}\n', "utf-8")

    def measured(*ids: str) -> CommandResult:
        rows = "".join(f"1\t{id}\t1\n" for id in ids)
        text = f"query-id\tcorpus-id\tscore\n{rows}"
        (tmp_path / "qrels" / "test.tsv").write_text(text, "utf-8")
        return arag("measure", "my-index", str(tmp_path))

    foreign = measured("goldoni.1", "vivaldi.1")
    assert (foreign.code, foreign.out) == (1, "")
    assert 'is in the index: "goldoni.1", "vivaldi.1".' in foreign.err
    assert "Allowed: ids of its documents, such as " in foreign.err
    assert (
        '1 relevant document is not in the index (of 2): "doc_1".'
        in measured("goldoni", "doc_1").out
    )


def test_more_passages_than_a_tool_shows_are_refused(arag: Command) -> None:
    refused = arag("measure", "my-index", "--top-k", "21")
    assert refused.code == 1
    assert "Invalid value for '--top-k': Input should be less than or equal to 20." in refused.err


@pytest.mark.parametrize(
    "content",
    ["vivaldi operas\n\n the of \n", '{"query": "vivaldi operas"}\n{"question": "the of"}\n'],
)
def test_queries_without_judgements_have_overlap_and_cost_only(
    arag: Command, tmp_path: Path, content: str
) -> None:
    queries = tmp_path / "queries"
    queries.write_text(content, "utf-8")
    report = arag("measure", "my-index", str(queries), "--json").json
    (group,) = report["groups"]
    assert (group["rule"], group["questions"]) == ("none", 2)
    assert all(row["share"] is row["beside_best"] is None for row in group["rows"])
    assert all(0 <= share <= 1 for share in group["overlap"].values())
    text = arag("measure", "my-index", str(queries)).out
    assert "no judgements: overlap and cost alone" in text
    assert "Could not be asked: logical by rules 1." in text


@pytest.mark.parametrize(
    ("content", "problem"), [(b"", "There are no queries."), (b"a\xff", "are not UTF-8")]
)
def test_files_without_a_query_are_refused(
    arag: Command, tmp_path: Path, content: bytes, problem: str
) -> None:
    queries = tmp_path / "queries"
    queries.write_bytes(content)
    done = arag("measure", "my-index", str(queries))
    assert (done.code, done.out) == (1, "")
    assert problem in done.err


def test_without_questions_known_items_are_drawn_and_called_what_they_are(arag: Command) -> None:
    text = arag("measure", "my-index").out
    assert "Found: the passage that the need was made of." in text
    assert "so they favour searches by words" in text
    assert "say more: arag-search measure my-index questions.jsonl\nEach line of the file" in text
    with open_index("my-index") as index:
        needs = known_items(index, count=4)
        assert needs == known_items(index, count=4)
        assert needs != known_items(index, count=4, seed=1)
        for need in needs:
            (chunk,) = index.read([need.id])
            assert chunk is not None
            assert len(words := need.text.split()) == 3
            assert index.words(" AND ".join(words))[0].passages
            assert need.text not in chunk.content
