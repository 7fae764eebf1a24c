"""Files of questions: the formats that are read, and the errors for other files."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest

from arag_search.errors import QuestionsError
from arag_search.questions.files import (
    ALLOWED,
    load_questions,
    questions_fingerprint,
    read_questions,
)
from arag_search.questions.question import GoldPassage, Hop, Question

PLAIN = {"id": "q1", "question": "Who wrote Griselda?", "answer": "Vivaldi"}


def question_file(tmp_path: Path, *records: object) -> Path:
    path = tmp_path / "q.jsonl"
    lines = (record if isinstance(record, str) else json.dumps(record) for record in records)
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def rejection(path: Path) -> str:
    with pytest.raises(QuestionsError) as caught:
        load_questions(path)
    return str(caught.value).replace(str(path), "q").replace(ALLOWED, "...")


def test_the_sample_questions_have_aliases_titles_and_evidence() -> None:
    questions = load_questions(str(files("arag_search") / "sample" / "questions.jsonl"))
    assert len(questions) == 12
    assert questions[0] == Question(
        id="s01",
        text="In which city did the playwright who revised the libretto of Antonio Vivaldi's opera "
        "Griselda die?",
        answers=("Paris", "Paris, France"),
        type="compositional",
        supporting_titles=("Griselda (Vivaldi)", "Carlo Goldoni"),
        evidence=(
            ("Griselda (Vivaldi)", "libretto revised by", "Carlo Goldoni"),
            ("Carlo Goldoni", "place of death", "Paris"),
        ),
        hops=(
            Hop(None, "Griselda (Vivaldi)", "libretto revised by", "Carlo Goldoni",
                "Griselda (Vivaldi)", None),
            Hop(None, "Carlo Goldoni", "place of death", "Paris", "Carlo Goldoni", None),
        ),
    )  # fmt: skip


def test_a_question_needs_id_question_and_answer_alone(tmp_path: Path) -> None:
    assert load_questions(question_file(tmp_path, PLAIN)) == (
        Question("q1", "Who wrote Griselda?", ("Vivaldi",)),
    )


@pytest.mark.parametrize("name", ["id", "_id", "question_id", "qid", "query_id"])
def test_the_id_has_any_of_its_usual_names(tmp_path: Path, name: str) -> None:
    (question,) = load_questions(
        question_file(tmp_path, {name: 7, "question": "Q?", "answer": "A"})
    )
    assert question.id == "7"


def test_questions_without_an_id_are_named_by_position_beside_given_ids(tmp_path: Path) -> None:
    unnamed = {"question": "Q?", "answer": "A"}
    records = [unnamed, unnamed, {**unnamed, "id": "q2"}, {**unnamed, "id": None},
               {**unnamed, "id": "q2_2"}, {"input": "Q?", "output": [{"answer": "A"}]}]  # fmt: skip
    file = read_questions(question_file(tmp_path, *records))
    assert [question.id for question in file.questions] == ["q1", "q2_3", "q2", "q4", "q2_2", "q6"]
    assert file.notes == ("4 questions have no id, and are named by position: q1, q2, ...",)


def test_an_array_is_read_like_lines(tmp_path: Path) -> None:
    records = [PLAIN, {**PLAIN, "id": 2}]
    lines = load_questions(question_file(tmp_path, *records))
    assert load_questions(question_file(tmp_path, json.dumps(records, indent=2))) == lines
    assert [question.id for question in lines] == ["q1", "2"]


def test_an_arag_file_is_read_with_evidence_that_is_text_and_no_chain(tmp_path: Path) -> None:
    record = {
        "question_id": "m-1",
        "source": "musique",
        "question": "Who?",
        "answer": ["Ann", "Anne", "Ann"],
        "question_type": "2hop",
        "evidence": ["Ann was there.", " "],
    }
    (text,) = load_questions(question_file(tmp_path, {**PLAIN, "evidence": "a text"}))
    assert (text.evidence, text.hops) == ((), ())
    assert text.supporting_passages == (GoldPassage(None, "a text"),)
    assert load_questions(question_file(tmp_path, json.dumps([record]))) == (
        Question(
            "m-1",
            "Who?",
            ("Ann", "Anne"),
            "2hop",
            supporting_passages=(GoldPassage(None, "Ann was there."),),
        ),
    )


def test_null_is_like_an_absent_field(tmp_path: Path) -> None:
    record = {**PLAIN, "question_type": None, "type": "x", "answer_aliases": None, "evidence": None}
    assert load_questions(question_file(tmp_path, record))[0].type == "x"


def test_gold_titles_are_the_supporting_ones_else_the_subjects() -> None:
    chain = (("A", "r", "B"), ("B", "r", "C"), ("A", "s", "D"))
    assert Question("q", "?", ("C",), evidence=chain).gold_titles == ("A", "B")
    assert Question("q", "?", ("C",), None, ("T", "T"), chain).gold_titles == ("T",)
    assert Question("q", "?", ("C",)).gold_titles == ()


def test_texts_are_nfc(tmp_path: Path) -> None:
    (question,) = load_questions(question_file(tmp_path, {**PLAIN, "answer": "Cafe\u0301"}))
    assert question.answers == ("Caf\u00e9",)


# Fingerprints


def test_the_fingerprint_does_not_depend_on_the_form_of_the_file(tmp_path: Path) -> None:
    lines = load_questions(question_file(tmp_path, PLAIN))
    other = {"_id": "q1", "answer": ["Vivaldi"], "question": "Who wrote Griselda?", "source": "x"}
    array = load_questions(question_file(tmp_path, json.dumps([other], indent=1)))
    assert questions_fingerprint(lines) == questions_fingerprint(array)


@pytest.mark.parametrize(
    "change", [{"id": "q2"}, {"question": "Who?"}, {"answer": "Zeno"}, {"type": "x"}]
)
def test_the_fingerprint_changes_with_the_question_its_answer_and_its_type(
    tmp_path: Path, change: dict[str, str]
) -> None:
    before = questions_fingerprint(load_questions(question_file(tmp_path, PLAIN)))
    after = questions_fingerprint(load_questions(question_file(tmp_path, {**PLAIN, **change})))
    assert before != after


def test_the_fingerprint_of_questions_ignores_other_evidence(tmp_path: Path) -> None:
    """Check that recorded runs still belong to their questions."""
    plain = load_questions(question_file(tmp_path, PLAIN))
    marked = load_questions(question_file(tmp_path, {**PLAIN, "hops": [{"answer": "Vivaldi"}]}))
    assert questions_fingerprint(plain) == questions_fingerprint(marked)
    assert questions_fingerprint(plain) == (
        "a932a27225d45644543b8bde727de05de0a57ca2f272d7679a20268779105407"
    )


# Rejected files


@pytest.mark.parametrize("text", ["", " \n\n", "[]"])
def test_a_file_without_questions_is_rejected(tmp_path: Path, text: str) -> None:
    assert (
        rejection(question_file(tmp_path, text))
        == "There are no questions.\nWhere: q\nAllowed: ..."
    )


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert rejection(tmp_path / "none.jsonl") == (
        "The questions cannot be read (No such file or directory).\n"
        "Where: q\n"
        "Allowed: a file of JSON lines, or of one JSON array"
    )


def test_a_duplicate_id_is_reported_with_both_lines(tmp_path: Path) -> None:
    assert rejection(question_file(tmp_path, PLAIN, "", {**PLAIN, "question": "Other?"})) == (
        'The id "q1" is duplicated.\n'
        "Where: q, line 3, and q, line 1\n"
        "Do: Give each question a unique id."
    )


def test_missing_fields_are_named_together_with_the_present_ones(tmp_path: Path) -> None:
    assert rejection(question_file(tmp_path, PLAIN, {"query": "Who?", "gold": "Ann"})) == (
        'The record has no "question", no "answer".\n'
        'Where: q, line 2, with the fields ["query","gold"]\n'
        "Allowed: ..."
    )


def test_a_line_that_is_not_json_names_file_and_line(tmp_path: Path) -> None:
    assert rejection(question_file(tmp_path, PLAIN, "Who wrote Griselda?")) == (
        "The line is not JSON (unexpected character, expected a JSON value: "
        "line 1 column 1 (char 0)).\n"
        "Where: q, line 2\n"
        "Allowed: ..."
    )


def test_a_record_that_is_no_object_is_shown(tmp_path: Path) -> None:
    assert rejection(question_file(tmp_path, json.dumps([PLAIN, "0:a chunk of a corpus"]))) == (
        'The record is "0:a chunk of a corpus".\nWhere: q, record 2\nAllowed: ...'
    )


@pytest.mark.parametrize(
    ("field", "value", "printed", "allowed"),
    [
        ("id", True, "true", "a string or a whole number"),
        ("id", " ", '" "', "a string or a whole number"),
        ("question", "", '""', "a string that is not empty"),
        ("question", ["a"], '["a"]', "a string that is not empty"),
        ("answer", 7, "7", "a string that is not empty, or a list of them"),
        ("answer", [], "[]", "a string that is not empty, or a list of them"),
        ("answer", ["a", ""], '["a",""]', "a list of strings that are not empty"),
        ("answer_aliases", "b", '"b"', "a list of strings that are not empty"),
        ("supporting_titles", [1], "[1]", "a list of strings that are not empty"),
        ("supporting_facts", [["T"]], '[["T"]]', "a list of [title, sentence number]"),
        ("evidence", [["a", "b"]], '[["a","b"]]', "a list of [subject, relation, object]"),
        ("question_type", 3, "3", "a string that is not empty"),
        ("hops", [3], "[3]", "a list of objects"),
        ("hops", {"answer": "a"}, '{"answer":"a"}', "a list of objects"),
        ("supporting_passages", [{"title": "T"}], '[{"title":"T"}]', 'a list of {"title", "text"}'),
        ("supporting_passages", [{"title": 1, "text": "t"}], '[{"title":1,"text":"t"}]',
         'a list of {"title", "text"}'),
        ("supporting_facts", [["T", True]], '[["T",true]]', "a list of [title, sentence number]"),
        ("answerable", "no", '"no"', "true or false"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_shown_with_what_is_allowed(
    tmp_path: Path, field: str, value: object, printed: str, allowed: str
) -> None:
    assert rejection(question_file(tmp_path, {**PLAIN, field: value})) == (
        f'The field "{field}" is {printed}.\n'
        "Where: q, line 1\n"
        f"Allowed: {allowed}\n"
        "Do: Fix the record."
    )
