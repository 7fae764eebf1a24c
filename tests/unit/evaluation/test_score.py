"""Scores of runs, with every question in the denominator, and the values read from records."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from arag_search.agent.record import Record, Route, Step
from arag_search.cli.output.score_tables import score_text
from arag_search.errors import RunError
from arag_search.evaluation.evidence import shown_titles
from arag_search.evaluation.question_score import score_question
from arag_search.evaluation.score import Row, score
from arag_search.questions.files import Question, load_questions, questions_fingerprint
from arag_search.runs.folder import RECORDS_FILE, RunDescription, RunFolder
from arag_search.tools.replies.parts import read_spans
from tests.support.records import record

QUESTIONS = (
    {"id": "a", "question": "Who?", "answer": "Ann Lee", "question_type": "who",
     "supporting_titles": ["Ann", "Lee"]},
    {"id": "b", "question": "Where?", "answer": "Bath", "question_type": "where",
     "supporting_titles": ["Bath"]},
    {"id": "c", "question": "When?", "answer": "1700", "question_type": "who"},
    {"id": "d", "question": "What?", "answer": "no", "supporting_titles": ["Dee"]},
)  # fmt: skip


def step(output: str, *ids: str) -> Step:
    spans = read_spans(output)
    return Step(1, "logical_search", {}, output, "", "ok", ids, len(ids), 40, 60, 0.5, spans)


SEES_ANN = step("1 of 1 passage for ann\n[x.1] Ann\nAnn was a singer.", "x.1")
SEES_BATH = step("1 of 1 passage for bath\n[y.1] Bath\nA city.", "y.1")


def question_file(path: Path, *records: object) -> Path:
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return path


def run_of(tmp_path: Path, *records: Record, limit: int | None = None) -> Path:
    """Write the folder of a run over QUESTIONS."""
    file = question_file(tmp_path / "q.jsonl", *QUESTIONS)
    questions = load_questions(file)
    description = RunDescription(
        created="2026-01-01T00:00:00+00:00", preset="logical_read", index="my-index", filter=None,
        model="scripted", questions=str(file), count=len(questions), limit=limit,
        fingerprints={"questions": questions_fingerprint(questions)},
    )  # fmt: skip
    texts = {question.id: question.text for question in questions}
    with RunFolder(tmp_path / "run", description) as folder:
        for stored in records:
            text = texts[stored.question_id] if stored.question == "?" else stored.question
            folder.append(replace(stored, question=text))
    return tmp_path / "run"


def test_every_question_counts_overall_and_by_type(tmp_path: Path) -> None:
    scored = score(
        run_of(
            tmp_path,
            record("a", "Ann", SEES_ANN, explanation="She is Ann Lee.", seconds=1.0),
            record("b", "", SEES_BATH, status="failed", seconds=3.0),
            record("c", "Not found in the corpus.", seconds=2.0),
        )
    )
    assert scored.rows == (
        Row("all", 4, 0.0, pytest.approx(1 / 6), 0.25, pytest.approx(1 / 6), 0.0, 0.0,
            1, 1, 1, 1, 0, pytest.approx(80 / 3), pytest.approx(2 / 3), 2.0),
        Row("where", 1, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 1, 0, 0, 0, 40.0, 1.0, 3.0),
        Row("who", 2, 0.0, pytest.approx(1 / 3), 0.5, 0.5, None, None, 1, 0, 0, 1, 0,
            20.0, 0.5, 1.5),
    )  # fmt: skip
    assert [question.status for question in scored.questions] == [
        "answered",
        "failed",
        "answered",
        "missing",
    ]
    assert scored.notes == (
        "1 question failed and counts as 0: the same run asks again.",
        "1 question has no record yet and counts as 0: the same run asks again.",
    )


def test_questions_count_by_the_route_that_a_switcher_chose(tmp_path: Path) -> None:
    simple = replace(record("a", "Ann Lee"), route=Route("simple", "short"))
    escalated = replace(record("b", "Rome"), route=Route("escalated", "not answered"))
    scored = score(run_of(tmp_path, simple, escalated, record("c", "1700")))
    assert [(row.type, row.questions, row.exact_match) for row in scored.rows] == [
        ("all", 4, 0.5),
        ("where", 1, 0.0),
        ("who", 2, 1.0),
        ("route: escalated", 1, 0.0),
        ("route: simple", 1, 1.0),
    ]


def test_a_run_without_records_scores_0(tmp_path: Path) -> None:
    (row, *_) = score(run_of(tmp_path)).rows
    assert row == Row("all", 4, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, None, None, None)


def test_the_last_record_of_a_question_counts(tmp_path: Path) -> None:
    folder = run_of(tmp_path, record("b", "", status="failed"), record("b", "Bath"), limit=2)
    scored = score(folder)
    assert (scored.rows[0].questions, scored.rows[0].exact_match) == (2, 0.5)
    assert scored.notes == (
        "The run asked the first 2 of 4 questions.",
        "1 question has no record yet and counts as 0: the same run asks again.",
    )


def test_a_record_of_another_question_is_ignored(tmp_path: Path) -> None:
    matching = replace(record("b", "Bath"), question="Where?  ")
    other = replace(record("b", "Bath"), question="Where not?")
    scored = score(run_of(tmp_path, matching, other, record("c", "1700")))
    assert [question.status for question in scored.questions] == [
        "missing",
        "answered",
        "answered",
        "missing",
    ]
    assert scored.notes[0] == (
        "Records of another run are left out: b (another question). Run the questions again into "
        "the folder: they are asked again."
    )
    folder = tmp_path / "run"
    (folder / RECORDS_FILE).write_bytes(other.to_line())
    assert {question.status for question in score(folder).questions} == {"missing"}


def test_other_answers_are_scored_with_a_note_and_a_changed_file_is_rejected(
    tmp_path: Path,
) -> None:
    folder = run_of(tmp_path, record("a", "Anna"))
    other = question_file(
        tmp_path / "other.jsonl", {**QUESTIONS[0], "answer": "Anna"}, *QUESTIONS[1:]
    )
    scored = score(folder, other)
    assert scored.rows[0].exact_match == 0.25
    assert scored.notes[0] == ("Scored against other questions or answers than the run was given.")
    question_file(tmp_path / "q.jsonl", *QUESTIONS[:3])
    with pytest.raises(RunError) as caught:
        score(folder)
    assert str(caught.value) == (
        "The file of questions has changed since the run.\n"
        f"Where: {tmp_path / 'q.jsonl'}\n"
        "Do: Name the file to score against with `questions`."
    )
    with pytest.raises(RunError) as caught:
        score(folder, question_file(tmp_path / "few.jsonl", *QUESTIONS[1:]))
    assert str(caught.value).startswith(
        f"The questions lack some that have a record: a.\nWhere: {folder}\n"
    )


def test_a_folder_without_a_run_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(RunError) as caught:
        score(tmp_path)
    assert str(caught.value).startswith(
        f"There is no run (No such file or directory).\nWhere: {tmp_path / 'run.json'}\n"
    )


@pytest.mark.parametrize(
    ("field", "value"), [("format_version", 2), ("count", 0), ("limit", 0), ("limit", -1)]
)
def test_a_run_with_an_impossible_description_is_rejected(
    tmp_path: Path, field: str, value: int
) -> None:
    file = run_of(tmp_path) / "run.json"
    file.write_text(json.dumps({**json.loads(file.read_bytes()), field: value}))
    with pytest.raises(RunError) as caught:
        score(tmp_path / "run")
    assert caught.value.where == str(file)
    assert str(field) in caught.value.what


def test_a_run_without_the_name_of_its_questions_needs_them_as_an_argument(tmp_path: Path) -> None:
    folder = run_of(tmp_path)
    file = folder / "run.json"
    file.write_text(json.dumps({**json.loads(file.read_bytes()), "questions": ""}))
    with pytest.raises(RunError) as caught:
        score(folder)
    assert str(caught.value).startswith(
        f"The run does not say which file its questions are from.\nWhere: {file}\n"
    )
    assert score(folder, tmp_path / "q.jsonl").rows[0].questions == len(QUESTIONS)


# One question


@pytest.mark.parametrize(
    ("short", "explanation", "contained"),
    [
        ("No.", "", 1),
        ("It is in Norway", "", 1),
        ("Yes", "There is no other.", 1),
        ("Yes", "", 0),
        ("not found in the corpus", "No passage names it.", 0),
        ("", "No passage names it.", 0),
    ],
)
def test_containment_looks_at_answer_and_explanation_but_never_at_a_refusal(
    short: str, explanation: str, contained: float
) -> None:
    answer = record("d", short, explanation=explanation)
    assert score_question(Question("d", "?", ("no",)), answer).contain_accuracy == contained


@pytest.mark.parametrize(
    ("gold", "short", "refused"),
    [("A", "A.", 0), ("A", "The", 0), ("None", "none", 0), ("A", "-", 1)],
)
def test_no_answer_is_both_right_and_a_refusal(gold: str, short: str, refused: bool) -> None:
    scored = score_question(Question("q", "?", (gold,)), record("q", short))
    assert scored.refused == refused
    assert not (scored.refused and scored.exact_match)


def test_matches_that_rest_on_a_mark_are_counted(tmp_path: Path) -> None:
    file = question_file(
        tmp_path / "other.jsonl",
        *(
            {**question, "answer": gold}
            for question, gold in zip(QUESTIONS[:2], ("C++", "5%"), strict=True)
        ),
        *QUESTIONS[2:],
    )
    scored = score(
        run_of(tmp_path, record("a", "C"), record("b", "5%"), record("c", "17.00")), file
    )
    assert [row.by_mark for row in scored.rows] == [2, 0, 2]
    assert scored.notes[-1] == (
        "2 right answers of EM rest on a mark, a sign or a decimal point alone, which SQuAD's rule "
        "leaves out, such as that of a."
    )


def test_replies_before_which_no_search_ran_are_counted(tmp_path: Path) -> None:
    refused = replace(SEES_ANN, status="error", hit_ids=(), passages=())
    read = replace(SEES_ANN, tool_name="chunk_read")
    scored = score(
        run_of(
            tmp_path,
            record("a", "Ann", refused, read),
            record("b", "", status="failed"),
            record("c", "1700", SEES_BATH),
            record("d", "no", replace(SEES_ANN, tool_name="search_of_others")),
        )
    )
    assert [question.without_search for question in scored.questions] == [True, False, False, False]
    assert scored.rows[0].without_search == 1
    assert "without a search" in score_text(scored).splitlines()[1]


# Titles


def test_titles_are_read_from_the_lines_of_shown_passages() -> None:
    shown = record(
        "q",
        "x",
        step(
            "3 of 9 passages for a\n[a.2] Ann, Queen, part 2 of 3\nText.\n"
            "[c.1] Carl (shown before)\n[d.1] Dee, part 1 of 2 (shown before)\n[e.1]\nNo title.",
            "a.2",
            "c.1",
            "d.1",
            "e.1",
        ),
        step("[f.1] Fay\n(next: f.2)\nText.", "f.1"),
        step("No passage matches x."),
    )
    assert shown_titles(shown) == {"Ann, Queen", "Carl", "Dee", "Fay"}
