"""Questions whose evidence is removed: the chosen questions, the rest of the scope, the records."""

from __future__ import annotations

import pytest

from arag_search.errors import QuestionsError
from arag_search.questions.question import Question
from bench.ablation.unavailable import take_away
from tests.support.passages import VIVALDI, index_of


def question_with(
    id: str, answer: str, *titles: str, text: str = "Who?", answerable: bool = True
) -> Question:
    return Question(id, text, (answer,), "type", titles, answerable=answerable)


VIENNA = question_with("vienna", "Vienna", "Antonio Vivaldi")
VENICE = question_with("venice", "Venice", "Antonio Vivaldi")


def test_documents_with_evidence_are_out_of_scope_and_no_others() -> None:
    result = take_away([VIENNA], VIVALDI)
    assert (result.documents, result.filter) == (("vivaldi",), "NOT doc_id:vivaldi")
    index = index_of(*VIVALDI, scope=result.filter)
    assert [passage.id for passage in index.scan()] == ["griselda.1", "scarlatti.1", "page.1"]


def test_only_answers_that_must_be_read_and_stand_in_no_other_document_are_chosen() -> None:
    titled = question_with("titled", "Scarlatti", "Antonio Vivaldi")
    part = question_with("part", "Ven", "Antonio Vivaldi")
    result = take_away(
        [
            VIENNA,
            VENICE,
            titled,
            part,
            question_with("a", "Yes", "Antonio Vivaldi"),
            question_with("b", "Vienna", "Antonio Vivaldi", text="Venice or Vienna?"),
            question_with("c", "Vienna"),
            question_with("d", "Vienna", "Antonio Vivaldi", "Nobody"),
            question_with("e", "...", "Antonio Vivaldi"),
            question_with("f", "Vienna", "Antonio Vivaldi", answerable=False),
            Question("g", "?", (), relevant_documents=(("vivaldi", 1),)),
        ],
        VIVALDI,
    )
    assert [question.id for question in result.questions] == ["vienna", "part"]
    assert not any(question.answerable for question in result.questions)


def test_a_limit_takes_the_first_questions_and_removes_only_their_evidence() -> None:
    older = question_with("older", "older", "Griselda (Scarlatti)")
    result = take_away([older, VIENNA], VIVALDI, lambda chosen: chosen[:1])
    assert result.documents == ("scarlatti",)


def test_a_choice_without_questions_or_without_passages_is_rejected() -> None:
    with pytest.raises(QuestionsError) as caught:
        take_away([question_with("a", "no", "Antonio Vivaldi")], VIVALDI)
    assert caught.value.what == "No question can be chosen."
    with pytest.raises(QuestionsError) as caught:
        take_away([VIENNA], VIVALDI[:2])
    assert caught.value.what == "No passage is left."
