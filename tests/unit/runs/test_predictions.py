"""Predictions in A-RAG's form: written from records, read as records, and scored."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from arag_search.agent.record import MemoryState
from arag_search.errors import AragError, RunError
from arag_search.evaluation.score import score
from arag_search.questions.question import Question
from arag_search.runs.predictions import read_predictions, write_predictions
from tests.support.records import read, record, search

QUESTION = Question("q1", "Where did he die?", ("Paris", "Lutetia"))
WRITTEN = {
    "qid": "7",
    "question": "Where did he die?",
    "trajectory": [
        {"loop": 1, "tool_name": "keyword_search", "arguments": {"keywords": ["Goldoni"]},
         "tool_result": "Chunk ID: 1", "retrieved_tokens": 12, "chunks_found": 1},
        {"loop": 2, "tool_name": "read_chunk", "arguments": {"chunk_ids": ["1"]},
         "tool_result": "[Chunk 1] He died in Paris.", "retrieved_tokens": 30},
    ],
    "gold_answer": "Paris",
    "pred_answer": "Goldoni moved to France. He died there, in Paris.",
    "total_cost": 0.002,
    "loops": 3,
    "total_retrieved_tokens": 42,
    "retrieval_logs": [],
    "chunks_read_count": 1,
    "chunks_read_ids": ["1"],
}  # fmt: skip


def file_of(folder: Path, *predictions: object) -> Path:
    file = folder / "predictions.jsonl"
    file.write_text("".join(json.dumps(prediction) + "\n" for prediction in predictions))
    return file


def test_a_record_is_written_with_the_names_of_a_rag(tmp_path: Path) -> None:
    steps = (search("a.1", tool="keyword_search", tool_input={"keywords": ["x"]}), read("a.1"))
    written = replace(record("q1", "Paris", *steps), memory_state=MemoryState("Paris [a.1]", 2))
    failed = replace(record("q2", "", status="failed"), answer="", failure="E: busy")
    questions = [QUESTION, Question("q2", "Who?", ()), Question("q3", "Not asked?", ())]
    file = tmp_path / "predictions.jsonl"
    write_predictions(file, questions, {"q2": failed, "q1": written})
    first, second = map(json.loads, file.read_text().splitlines())
    assert [*WRITTEN] == [key for key in first if key not in ("answer_aliases", "memory_state")]
    assert (first["qid"], first["gold_answer"], first["answer_aliases"]) == (
        "q1", "Paris", ["Lutetia"],
    )  # fmt: skip
    assert (first["pred_answer"], first["loops"]) == (written.answer, written.loops)
    assert [step["tool_name"] for step in first["trajectory"]] == ["keyword_search", "read_chunk"]
    assert [*first["trajectory"][0]] == [
        "loop", "tool_name", "arguments", "tool_result", "retrieved_tokens",
    ]  # fmt: skip
    assert first["retrieval_logs"][1] == {
        "tool_name": "read_chunk",
        "tokens": first["trajectory"][1]["retrieved_tokens"],
        "metadata": {},
    }
    assert first["memory_state"] == {"final_memory": "Paris [a.1]", "history_size": 2}
    assert (second["pred_answer"], second["error"]) == ("", "E: busy")
    questions_read, records = read_predictions(file)
    assert [(item.id, item.answers) for item in questions_read] == [
        ("q1", ("Paris", "Lutetia")), ("q2", ()),
    ]  # fmt: skip
    again = records["q1"]
    assert again.tool_usage_summary == {"keyword_search": 1, "chunk_read": 1}
    assert (again.answer, again.answer_short) == (written.answer, written.answer_short)
    assert again.total_retrieved_tokens == written.total_retrieved_tokens
    assert (records["q2"].status, records["q2"].failure) == ("failed", "E: busy")


def test_a_file_of_a_rag_is_scored_by_its_whole_answers(tmp_path: Path) -> None:
    wrong = {**WRITTEN, "qid": 8, "pred_answer": "In Rome.", "total_retrieved_tokens": 8}
    empty = {**WRITTEN, "qid": 9, "pred_answer": "", "total_retrieved_tokens": 10}
    scored = score(file_of(tmp_path, WRITTEN, wrong, empty))
    assert [item.id for item in scored.questions] == ["7", "8", "9"]
    assert [item.contain_accuracy for item in scored.questions] == [1.0, 0.0, 0.0]
    assert (scored.rows[0].failed, scored.rows[0].retrieved_tokens) == (1, 20)
    assert (scored.rows[0].steps, scored.rows[0].evidence_recall) == (2, None)
    assert scored.questions[0].cost_usd == 0.002
    assert scored.notes[0].startswith("Predictions do not say which passages a search showed")


def test_the_names_of_the_readme_are_read_with_answers_of_another_file(tmp_path: Path) -> None:
    prediction = {
        "question_id": "q1",
        "question": QUESTION.text,
        "answer": "In Lutetia.",
        "trajectory": [
            {"step": 1, "tool_name": "chunk_read", "tool_input": {"chunk_ids": ["1"]},
             "tool_output": "He died.", "reasoning": "Read it."},
        ],
    }  # fmt: skip
    questions = tmp_path / "questions.jsonl"
    questions.write_text(
        '{"id": "q1", "question": "Where did he die?", "answer": "Paris", '
        '"answer_aliases": ["Lutetia"], "question_type": "inference", '
        '"supporting_titles": ["Carlo Goldoni"]}\n'
        '{"id": "q2", "question": "Who?", "answer": "Vivaldi"}\n'
    )
    file = file_of(tmp_path, prediction)
    alone = score(file)
    assert alone.rows[0].contain_accuracy == 0.0
    assert alone.notes[1] == "1 questions have no gold answer: EM, F1 and Contain-Acc are 0."
    scored = score(file, questions)
    assert [(row.type, row.contain_accuracy, row.evidence_recall) for row in scored.rows] == [
        ("all", 1.0, None), ("inference", 1.0, None),
    ]  # fmt: skip
    assert scored.notes[1] == "1 of 2 questions have a prediction."


def test_answer_is_the_gold_answer_beside_a_predicted_one(tmp_path: Path) -> None:
    old = {"id": 3, "question": "Where?", "pred_answer": "Rome", "answer": ["Paris", "Lutetia"]}
    (question,), records = read_predictions(file_of(tmp_path, old))
    assert (question.answers, records["3"].answer) == (("Paris", "Lutetia"), "Rome")


def test_a_json_array_and_predictions_without_ids_are_read(tmp_path: Path) -> None:
    file = tmp_path / "predictions.json"
    file.write_text(json.dumps([{"question": "A?", "pred_answer": "a"}, {"question": "B?"}]))
    questions, records = read_predictions(file)
    assert [(item.id, item.text) for item in questions] == [("q1", "A?"), ("q2", "B?")]
    assert records["q2"].failure == "The prediction is empty."


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (({"qid": "1", "pred_answer": 3},), "A prediction cannot be read: pred_answer, question."),
        ((WRITTEN, WRITTEN), 'The id "7" is duplicated.'),
        (([1],), "A prediction cannot be read: all of it."),
        ((), "There are no predictions."),
    ],
)
def test_a_wrong_prediction_is_named(tmp_path: Path, lines: tuple[object], message: str) -> None:
    file = file_of(tmp_path, *lines)
    with pytest.raises(RunError) as caught:
        read_predictions(file)
    assert caught.value.what == message
    assert str(file) in caught.value.where
    assert caught.value.allowed.startswith("predictions as A-RAG writes them")


def test_predictions_of_other_questions_are_refused(tmp_path: Path) -> None:
    questions = tmp_path / "questions.jsonl"
    questions.write_text('{"id": "other", "question": "Who?", "answer": "Vivaldi"}\n')
    with pytest.raises(AragError, match="lack some that have a record: 7"):
        score(file_of(tmp_path, WRITTEN), questions)
