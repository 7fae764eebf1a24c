"""The command questions, as someone at a terminal meets it."""

from __future__ import annotations

import json
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


def described(*questions: Question) -> tuple[str, ...]:
    return describe(QuestionFile(Path("q"), questions, {"plain": len(questions)})).problems


def test_a_file_is_described_with_three_examples(arag: Command) -> None:
    done = arag("questions", SAMPLE)
    assert (done.code, done.err) == (0, "")
    assert done.lines[:6] == [
        f"{SAMPLE}: 12 questions, read as plain",
        "  types        compositional 9, comparison 2, inference 1",
        "  hops         2 hops 12",
        "  answers      with aliases 10, in the question 2",
        "  evidence     hops 12, titles 12",
        "  fingerprint  " + describe(read_questions(SAMPLE)).fingerprints["questions"][:16],
    ]
    assert [line for line in done.lines if line.startswith("Example")] == [
        "Example 1", "Example 2", "Example 3",
    ]  # fmt: skip
    assert (
        "  hop 1        Griselda (Vivaldi) · libretto revised by -> Carlo Goldoni  "
        "[Griselda (Vivaldi)]"
    ) in done.lines
    assert done.lines[-1] == "No problems found."


def test_json_has_all_of_it(arag: Command) -> None:
    found = arag("questions", SAMPLE, "--json").json
    assert sorted(found) == [
        "answers", "evidence", "examples", "fingerprints", "hops", "path", "problems", "questions",
        "resolution", "shapes", "types",
    ]  # fmt: skip
    assert (found["questions"], found["hops"], found["resolution"]) == (12, {"2": 12}, None)


def test_a_file_that_is_none_is_told_in_four_parts(arag: Command) -> None:
    Path("none.jsonl").write_text("")
    done = arag("questions", "none.jsonl")
    assert done.code == 1
    assert done.err.startswith("arag-search: There are no questions.\nWhere: none.jsonl\nAllowed: ")


@pytest.mark.engine
def test_evidence_is_resolved_to_the_passages_of_an_index(arag: Command) -> None:
    corpus = str(files("arag_search") / "sample" / "corpus.jsonl")
    assert arag("index", corpus, "--to", "sample").code == 0
    unknown = {"id": "x", "question": "Who?", "answer": "Ann", "supporting_titles": ["Nobody"]}
    lines = [*Path(SAMPLE).read_text().splitlines(), json.dumps(unknown)]
    Path("q.jsonl").write_text("\n".join(lines))
    done = arag("questions", "q.jsonl", "--index", "sample")
    assert "  resolved by  title 24, unresolved 1" in done.lines
    assert (
        "  found whole  12 of 13 questions; several passages hold 0 of 25 pieces, and any of "
        "them counts"
    ) in done.lines
    assert "  unresolved   Nobody (x)" in done.lines
    assert done.lines[-2:] == [
        "Problem: 1 of 13 questions have no type, which others have.",
        "Problem: 1 of 13 questions name evidence that no passage of the index holds: no search "
        "can find all of it.",
    ]


# Parts


def test_problems_are_counted_over_all_questions() -> None:
    sub = Hop("Where did #2 die?", None, None, "Rome", None, None)
    assert described(
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


def test_a_set_without_types_has_no_problem_with_them() -> None:
    assert described(Question("a", "Who?", ("Ann",), None, ("T",))) == ()


def test_relevant_documents_are_looked_up_by_id() -> None:
    judged = Question(
        "a", "Who?", (), relevant_documents=(("vivaldi", 2), ("nobody", 1), ("page", 0))
    )
    found = describe(QuestionFile(Path("q"), (judged,), {"BEIR": 1}), VIVALDI)
    assert found.resolution is not None
    assert (found.resolution.documents, found.resolution.documents_found) == (2, 1)
    assert found.resolution.questions == 0
    assert found.problems == ("1 of 2 relevant documents are not in the index.",)


@pytest.mark.parametrize(
    ("text", "answer", "yes_or_no", "itself"),
    [
        ("Is Ann a singer?", "Yes.", True, False),
        ("Ann or Bea?", "Bea", False, True),
        ("Annabel?", "Ann", False, False),
        ("Who?", "...", False, False),
    ],
)
def test_answers_that_need_no_search_are_told(
    text: str, answer: str, yes_or_no: bool, itself: bool
) -> None:
    question = Question("q", text, (answer,))
    assert (is_yes_or_no(question), answers_itself(question)) == (yes_or_no, itself)
