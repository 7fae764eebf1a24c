"""Evidence taken away: which questions are chosen, what the scope leaves, and the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from arag_search.errors import QuestionsError
from arag_search.evaluation.unavailable import (
    GONE,
    IN_QUESTION,
    NO_ANSWER,
    NO_EVIDENCE,
    STILL_PRESENT,
    UNRESOLVED,
    YES_NO,
    take_away,
)
from arag_search.questions.files import load_questions
from arag_search.questions.question import Hop, Question
from arag_search.questions.record import plain_record
from tests.support.passages import VIVALDI, index_of


def asked(
    id: str, answer: str, *titles: str, text: str = "Who?", answerable: bool = True
) -> Question:
    return Question(id, text, (answer,), "type", titles, answerable=answerable)


VIENNA = asked("vienna", "Vienna", "Antonio Vivaldi")
VENICE = asked("venice", "Venice", "Antonio Vivaldi")


def test_the_documents_with_any_evidence_are_out_of_scope_and_nothing_else_is() -> None:
    found = take_away([VIENNA], VIVALDI)
    assert (found.documents, found.filter) == (("vivaldi",), "NOT doc_id:vivaldi")
    assert (found.passages, found.removed) == (5, 2)
    index = index_of(*VIVALDI, scope=found.filter)
    assert [one.id for one in index.scan()] == ["griselda.1", "scarlatti.1", "page.1"]


def test_questions_whose_answer_still_stands_somewhere_are_apart() -> None:
    found = take_away([VIENNA, VENICE], VIVALDI)
    assert [(one.id, one.type, one.answerable) for one in found.questions] == [
        ("vienna", GONE, False),
        ("venice", STILL_PRESENT, False),
    ]
    assert (found.count(GONE), found.count(STILL_PRESENT)) == (1, 1)
    titled = asked("scarlatti", "Scarlatti", "Antonio Vivaldi")
    assert take_away([titled], VIVALDI).questions[0].type == STILL_PRESENT
    part = asked("part", "Ven", "Antonio Vivaldi")
    assert take_away([part], VIVALDI).questions[0].type == GONE


def test_only_answers_that_must_be_read_are_chosen_and_the_others_counted_by_reason() -> None:
    found = take_away(
        [
            VIENNA,
            asked("a", "Yes", "Antonio Vivaldi"),
            asked("b", "Vienna", "Antonio Vivaldi", text="Venice or Vienna?"),
            asked("c", "Vienna"),
            asked("d", "Vienna", "Antonio Vivaldi", "Nobody"),
            asked("e", "...", "Antonio Vivaldi"),
            asked("f", "Vienna", "Antonio Vivaldi", answerable=False),
            Question("g", "?", (), relevant_documents=(("vivaldi", 1),)),
        ],
        VIVALDI,
    )
    assert [one.id for one in found.questions] == ["vienna"]
    assert found.left_out == {
        YES_NO: 1, IN_QUESTION: 1, NO_EVIDENCE: 1, UNRESOLVED: 1, NO_ANSWER: 3,
    }  # fmt: skip


def test_a_limit_takes_the_first_and_only_their_evidence() -> None:
    older = asked("older", "older", "Griselda (Scarlatti)")
    assert take_away([older, VIENNA], VIVALDI, limit=1).documents == ("scarlatti",)


def test_no_question_and_no_passage_left_are_refused() -> None:
    with pytest.raises(QuestionsError) as caught:
        take_away([asked("a", "no", "Antonio Vivaldi")], VIVALDI)
    assert str(caught.value) == (
        "No question can be chosen.\n"
        "Where: 1: the answer is yes or no\n"
        "Allowed: questions with an answer that must be read, and evidence that is in the index"
    )
    with pytest.raises(QuestionsError) as caught:
        take_away([VIENNA], VIVALDI[:2])
    assert caught.value.what == "No passage would be left: every document holds evidence."


def test_hops_with_texts_are_read_back(tmp_path: Path) -> None:
    hop = Hop("Who wrote #1?", None, None, "Ann", "A", "Ann wrote it.")
    question = Question("q", "?", ("Ann", "Anna"), None, ("A",), hops=(hop,), source="s")
    path = tmp_path / "q.jsonl"
    path.write_text(json.dumps(plain_record(question)))
    assert load_questions(path) == (question,)
