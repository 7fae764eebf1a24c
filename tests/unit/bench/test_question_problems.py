"""Problems of files of questions, which make figures doubtful."""

from __future__ import annotations

from arag_search.questions.files import QuestionFile
from arag_search.questions.question import Question
from bench.published.problems import problems_of
from tests.support.passages import VIVALDI, chunk


def problems(*questions: Question) -> list[str]:
    return problems_of(QuestionFile(questions), [*VIVALDI, chunk(9, "t", "T", "Text.")])


def test_problems_are_counted_over_all_questions() -> None:
    assert problems(
        Question("a", "Who was it?", ("Ann",), "t", ("T",)),
        Question("b", "who was  it", ("Ann",), "t", ("T",)),
        Question("c", "Why?", ("x",), "t"),
        Question("d", "When?", ("x",), "t", ("Nobody",)),
    ) == [
        "1 of 4 questions ask what an earlier one asks.",
        "1 of 4 questions name no evidence: it is not measured whether it is found.",
        "1 of 3 questions name evidence that no passage of the index holds.",
    ]


def test_relevant_documents_that_are_missing_are_counted() -> None:
    relevant = (("vivaldi", 2), ("nobody", 1), ("page", 0))
    assert problems(Question("a", "Who?", (), relevant_documents=relevant)) == [
        "1 of 2 relevant documents are not in the index."
    ]
