"""The command questions, as a user at a terminal sees it."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from arag_search.evaluation.description import answers_itself, describe, is_yes_or_no
from arag_search.questions.files import QuestionFile, read_questions
from arag_search.questions.question import Hop, Question
from tests.support.commands import Command
from tests.support.passages import VIVALDI

SAMPLE = str(files("arag_search") / "sample" / "questions.jsonl")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def problems_of(*questions: Question) -> tuple[str, ...]:
    return describe(QuestionFile(Path("q"), questions, {"plain": len(questions)})).problems


def test_a_file_is_described_with_three_examples(arag: Command) -> None:
    result = arag("questions", SAMPLE)
    assert (result.code, result.err) == (0, "")
    assert result.lines[:6] == [
        f"{SAMPLE}: 12 questions, read as plain",
        "  types        compositional 9, comparison 2, inference 1",
        "  hops         2 hops 12",
        "  answers      with aliases 10, in the question 2",
        "  evidence     hops 12, titles 12",
        "  fingerprint  " + describe(read_questions(SAMPLE)).fingerprints["questions"][:16],
    ]
    assert [line for line in result.lines if line.startswith("Example")] == [
        "Example 1", "Example 2", "Example 3",
    ]  # fmt: skip
    assert (
        "  hop 1        Griselda (Vivaldi) · libretto revised by -> Carlo Goldoni  "
        "[Griselda (Vivaldi)]"
    ) in result.lines
    assert result.lines[-1] == "No problems found."


def test_json_has_the_whole_description(arag: Command) -> None:
    description = arag("questions", SAMPLE, "--json").json
    assert sorted(description) == [
        "answers", "evidence", "examples", "fingerprints", "hops", "path", "problems", "questions",
        "resolution", "shapes", "types",
    ]  # fmt: skip
    assert (description["questions"], description["hops"], description["resolution"]) == (
        12,
        {"2": 12},
        None,
    )


def test_a_file_without_questions_is_an_error_in_four_parts(arag: Command) -> None:
    Path("none.jsonl").write_text("")
    result = arag("questions", "none.jsonl")
    assert result.code == 1
    assert result.err.startswith(
        "arag-search: There are no questions.\nWhere: none.jsonl\nAllowed: "
    )


# Problems


def test_problems_are_counted_over_all_questions() -> None:
    sub = Hop("Where did #2 die?", None, None, "Rome", None, None)
    assert problems_of(
        Question("a", "Who was it?", ("Ann",), "t", ("T",)),
        Question("b", "who was  it", ("Ann",), "t", ("T",)),
        Question("c", "Where?", ("Vienna",), "t", hops=(sub, sub)),
        Question("d", "Why?", ("x",), "t"),
        Question("e", "When?", ("x",), None, ("T",)),
    ) == (
        "1 of 5 questions ask what an earlier one asks.",
        "1 of 5 questions name no evidence: it is not measured whether that is found.",
        "1 of 5 questions have no type, which others have.",
        "1 of 5 questions have a last hop that gives none of their answers.",
        '1 of 5 questions have a hop with "#k" where k is not the number of an earlier hop.',
    )


def test_a_set_without_any_types_has_no_problem() -> None:
    assert problems_of(Question("a", "Who?", ("Ann",), None, ("T",))) == ()


def test_relevant_documents_are_looked_up_by_id() -> None:
    question = Question(
        "a", "Who?", (), relevant_documents=(("vivaldi", 2), ("nobody", 1), ("page", 0))
    )
    description = describe(QuestionFile(Path("q"), (question,), {"BEIR": 1}), VIVALDI)
    assert description.resolution is not None
    assert (description.resolution.documents, description.resolution.documents_found) == (2, 1)
    assert description.resolution.questions == 0
    assert description.problems == ("1 of 2 relevant documents are not in the index.",)


@pytest.mark.parametrize(
    ("text", "answer", "yes_or_no", "itself"),
    [
        ("Is Ann a singer?", "Yes.", True, False),
        ("Ann or Bea?", "Bea", False, True),
        ("Annabel?", "Ann", False, False),
        ("Who?", "...", False, False),
    ],
)
def test_answers_that_need_no_search_are_recognised(
    text: str, answer: str, yes_or_no: bool, itself: bool
) -> None:
    question = Question("q", text, (answer,))
    assert (is_yes_or_no(question), answers_itself(question)) == (yes_or_no, itself)
