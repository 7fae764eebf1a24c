"""Records as rows of a cell: their values, and why answers are wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from arag_search.agent.models.base import ModelReply, Usage
from arag_search.agent.models.usage import RequestTokens
from arag_search.agent.record import Record
from arag_search.evaluation.judging.judge import Judge
from arag_search.evaluation.judging.judges import Judges
from arag_search.evaluation.resolution import EvidencePiece, LocatedEvidence, Passages
from arag_search.questions.question import Question
from bench.ablation.cells import CellRow
from bench.ablation.judging.judges import NOBODY, Judging
from bench.ablation.scoring import rows_of
from tests.support.records import record, search
from tests.support.scripted_model import ScriptedModel

QUESTION = Question("q", "Where?", ("Venice",), "bridge", ("Griselda", "Vivaldi"))
SETS = [
    [
        EvidencePiece("Griselda", ("g.1", "g.2"), "title"),
        EvidencePiece("Vivaldi", ("v.1",), "title"),
    ]
]


def row(
    scored: Record | None,
    sets: Any = SETS,
    question: Question = QUESTION,
    judging: Judging = NOBODY,
) -> CellRow:
    records = {} if scored is None else {"q": scored}
    located = LocatedEvidence(Passages(()), {"q": sets})
    (made,) = rows_of([question], records, 1, located, ["ToolCalls:open"], judging)
    return made


def test_a_record_has_all_measures_with_those_of_benches_and_of_its_suite() -> None:
    steps = (search("v.1", tokens=100), search(tokens=5), search(status="error", tokens=7))
    values = row(record("q", "Venice", *steps)).values
    assert (values["EM"], values["RetrievedTokens"], values["ToolCalls:open"]) == (1, 100, 0)
    assert (values["Steps"], values["Searches"]) == (3, None)


def test_fixed_tokens_are_what_requests_hold_beside_replies_and_calls_that_are_repeated() -> None:
    # Three requests of 1,000 fixed tokens; the first reply of 110 tokens is sent twice, the second
    # of 210 once, and calls of 20 tokens three times.
    spent = 3 * 1_000 + 2 * 110 + 210 + 3 * 20
    asked = replace(
        record("q", "Venice", search("a", tokens=100), search("b", tokens=200)),
        usage=Usage(spent, 90, "endpoint", 640, 30),
        requests=(RequestTokens(1, 1),) * 3,
    )
    values = row(asked).values
    assert (values["FixedTokens"], values["CachedTokens"]) == (3_000, 640)
    assert row(replace(asked, requests=(), loops=3)).values["FixedTokens"] == 3_000
    counted = row(replace(asked, usage=Usage(spent, 90, "counted"))).values
    assert (counted["FixedTokens"], counted["CachedTokens"]) == (None, None)


def test_a_question_without_a_record_has_failed_and_is_charged_the_cap() -> None:
    for missing in (None, record("q", "", status="failed")):
        made = row(missing)
        assert made.failed
        assert made.values["TokensToEvidence"] == 8_000
        assert made.failure == "no answer"


def test_evidence_that_no_passage_holds_is_unresolved_and_none_is_not_measured() -> None:
    lost = [[EvidencePiece("Griselda", (), None), EvidencePiece("Vivaldi", ("v.1",), "title")]]
    assert row(record("q", "Venice", search("v.1")), lost).unresolved
    made = row(record("q", "Venice"), (), Question("q", "Where?", ("Venice",)))
    assert (made.values["TokensToEvidence"], made.unresolved) == (None, False)


def test_a_wrong_answer_has_a_reason_and_a_judge_may_find_it_right() -> None:
    wrong = record("q", "Rome", search("v.1"))
    assert row(wrong).failure == "never shown"
    judge = Judge(ScriptedModel(lambda request: ModelReply("Verdict: correct")))
    judged = row(wrong, judging=Judging(Judges(judge)))
    assert (judged.values["JudgeAcc"], judged.failure) == (1, None)
