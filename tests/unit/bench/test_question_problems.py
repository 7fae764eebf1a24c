"""Problems of files of questions, which make figures doubtful."""

from __future__ import annotations

from arag_search.questions.files import QuestionFile
from arag_search.questions.question import Hop, Question
from bench.published.problems import problems_of
from tests.support.passages import VIVALDI, chunk


def problems(*questions: Question) -> list[str]:
    return problems_of(QuestionFile(questions), [*VIVALDI, chunk(9, "t", "T", "Text.")])


def test_problems_are_counted_over_all_questions() -> None:
    sub = Hop("Where did #2 die?", None, None, "Rome", None, None)
    assert problems(
        Question("a", "Who was it?", ("Ann",), "t", ("T",)),
        Question("b", "who was  it", ("Ann",), "t", ("T",)),
        Question("c", "Where?", ("Vienna",), "t", hops=(sub, sub)),
        Question("d", "Why?", ("x",), "t"),
        Question("e", "When?", ("x",), None, ("T",)),
    ) == [
        "1 of 5 questions ask what an earlier one asks.",
        "1 of 5 questions name no evidence: it is not measured whether that is found.",
        "1 of 5 questions have no type, which others have.",
        "1 of 5 questions have a last hop that gives none of their answers.",
        '1 of 5 questions have a hop with "#k" where k is not the number of an earlier hop.',
        "1 of 4 questions name evidence that no passage of the index holds: no search can find all "
        "of it.",
    ]


def test_a_set_without_any_types_has_no_problem() -> None:
    assert problems(Question("a", "Who?", ("Ann",), None, ("T",))) == []


def test_evidence_that_no_passage_holds_and_missing_documents_are_counted() -> None:
    relevant = (("vivaldi", 2), ("nobody", 1), ("page", 0))
    assert problems(Question("a", "Who?", (), relevant_documents=relevant)) == [
        "1 of 2 relevant documents are not in the index."
    ]
    assert problems(Question("a", "Who?", ("Ann",), None, ("Nobody",))) == [
        "1 of 1 questions name evidence that no passage of the index holds: no search can find all "
        "of it."
    ]
