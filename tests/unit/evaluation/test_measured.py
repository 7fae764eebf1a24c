"""Measures by name over the questions of a run, rankings too, and their means."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from arag_search.agent.answers import CitedDocument
from arag_search.agent.models.base import Usage
from arag_search.agent.record import Record
from arag_search.evaluation.judging.judge import Judgement, Verdict
from arag_search.evaluation.measurement import means_by_type, measure_questions, ranking_values
from arag_search.evaluation.measures import parse_measures
from arag_search.evaluation.resolution import LocatedEvidence, Passages
from arag_search.questions.question import Hop, Question
from tests.support.passages import VIVALDI
from tests.support.records import record, search

NAMES = ("EM", "F1", "ContainAcc", "JudgeAcc", "EvidenceRecall", "FullEvidence",
         "TokensToEvidence", "RetrievedTokens", "Steps", "Seconds", "Cost", "Recall@5")  # fmt: skip
MEASURES = parse_measures(NAMES)

HOP = Hop(None, "Griselda", "premiere", "Venice", "Griselda (Vivaldi)", None)
CHAIN = Question("c", "?", ("Venice",), "chain", ("Griselda (Vivaldi)",), hops=(HOP,))
PLAIN = Question("p", "?", ("x",), "plain")
JUDGED = Question("j", "?", (), None, relevant_documents=(("vivaldi", 2), ("page", 0)))
QUESTIONS = (CHAIN, PLAIN, JUDGED)
SEES_TITLE = search("griselda.1", text="head\n[griselda.1] Griselda (Vivaldi)\nAn opera.", tokens=9)


def located_evidence() -> LocatedEvidence:
    return LocatedEvidence.of(QUESTIONS, Passages(VIVALDI))


def values_of(
    *records: Record, with_index: bool = False, **verdicts: Verdict
) -> dict[str, dict[str, float | None]]:
    return measure_questions(
        QUESTIONS,
        {run_record.question_id: run_record for run_record in records},
        MEASURES,
        located=located_evidence() if with_index else None,
        judgements={id: Judgement(verdict, (verdict,)) for id, verdict in verdicts.items()},
    )[1]


def test_what_cannot_be_measured_is_none() -> None:
    values = values_of(record("j", "y", SEES_TITLE))
    assert values["j"] == {
        **dict.fromkeys(NAMES), "RetrievedTokens": 9, "Steps": 1, "Seconds": 2,
    }  # fmt: skip


def test_a_question_without_a_record_gets_the_missing_value_of_the_measure() -> None:
    values = values_of()
    assert values["c"] == {
        "EM": 0, "F1": 0, "ContainAcc": 0, "JudgeAcc": 0, "EvidenceRecall": 0, "FullEvidence": 0,
        "TokensToEvidence": 8_000, "RetrievedTokens": None, "Steps": None, "Seconds": None,
        "Cost": None, "Recall@5": None,
    }  # fmt: skip
    assert values["p"]["EvidenceRecall"] is None


def test_with_an_index_evidence_counts_once_its_passage_text_is_visible() -> None:
    full_text = search("griselda.1", text=f"head\n[griselda.1] G\n{VIVALDI[2].content}", tokens=30)
    values = values_of(record("c", "x", SEES_TITLE), with_index=True)["c"]
    assert (values["EvidenceRecall"], values["TokensToEvidence"]) == (0, 8_000)
    values = values_of(record("c", "x", SEES_TITLE, full_text), with_index=True)["c"]
    assert (values["EvidenceRecall"], values["TokensToEvidence"]) == (1, 39)


def test_documents_are_ranked_in_the_order_in_which_their_passages_were_shown() -> None:
    steps = (search("page.1", "griselda.1"), search("vivaldi.2", "page.1", "vivaldi.1"))
    names = parse_measures(["Recall@1", "Recall@2", "Recall@3", "nDCG@5", "AP@5"])
    records = {"c": record("c", "x", *steps), "j": record("j", "x", *steps)}
    _, values = measure_questions(QUESTIONS, records, names, located=located_evidence())
    # For c, griselda is second; for j, vivaldi with grade 2 is third.
    assert list(values["c"].values()) == pytest.approx([0, 1, 1, 1 / math.log2(3), 1 / 2])
    assert list(values["j"].values()) == pytest.approx([0, 0, 1, 0.5, 1 / 3])
    assert values["p"] == dict.fromkeys(map(str, names))


CITING = record("j", "x", search("page.1"))
CITING = replace(
    CITING,
    citations=(
        CitedDocument("turn0search1", "page", 0.9),
        CitedDocument("turn0search0", "vivaldi", 0.6),
        CitedDocument("turn1search2", "griselda", 0.1),
    ),
    usage=Usage(1_000, 50, "endpoint"),
    tool_usage_summary={"search": 2, "open": 3, "summarize": 1, "invented": 4},
    loops=5,
)


def test_cited_documents_are_ranked_by_their_scores_without_an_index() -> None:
    names = ["CitedRecall@1", "CitedRecall@2", "CitedSuccess@2", "CitedNDCG@3", "Recall@2"]
    judged = Question(
        "j", "?", (), relevant_documents=(("vivaldi", 2), ("page", 0), ("griselda", 1), ("gone", 1))
    )
    _, by_id = measure_questions([judged], {"j": CITING}, parse_measures(names))
    values = by_id["j"]
    gains = 2 / math.log2(3) + 1 / math.log2(4)
    best = 2 / math.log2(2) + 1 / math.log2(3) + 1 / math.log2(4)
    assert values == {
        "CitedRecall@1": 0,
        "CitedRecall@2": pytest.approx(1 / 3),
        "CitedSuccess@2": 1,
        "CitedNDCG@3": pytest.approx(gains / best),
        "Recall@2": None,
    }


def test_excluded_documents_are_left_out_of_rankings_before_they_are_measured() -> None:
    names = ["CitedSuccess@1", "Recall@1", "Recall@5"]
    question = replace(JUDGED, id="c", excluded_documents=("page", "griselda"))
    answer = replace(CITING, question_id="c", trajectory=(search("page.1", "vivaldi.1"),))
    for asked, expected in ((replace(question, excluded_documents=()), 0), (question, 1)):
        located = LocatedEvidence.of([asked], Passages(VIVALDI))
        _, values = measure_questions(
            [asked], {"c": answer}, parse_measures(names), located=located
        )
        assert [values["c"][name] for name in names] == [expected, expected, 1]


def test_an_answer_without_citations_scores_0_and_a_question_without_judgements_nothing() -> None:
    names = parse_measures(["CitedRecall@1"])
    failed = replace(CITING, status="failed")
    for answer in (record("j", "x", SEES_TITLE), failed):
        _, values = measure_questions(QUESTIONS, {"j": answer}, names)
        assert values == {
            "c": {"CitedRecall@1": None}, "p": {"CitedRecall@1": None}, "j": {"CitedRecall@1": 0},
        }  # fmt: skip
    chain = replace(CITING, question_id="c")
    _, values = measure_questions(QUESTIONS, {"c": chain}, names, located=located_evidence())
    assert values["c"] == {"CitedRecall@1": 0}
    cited_first = replace(chain, citations=CITING.citations[2:])
    _, values = measure_questions(QUESTIONS, {"c": cited_first}, names, located=located_evidence())
    assert values["c"] == {"CitedRecall@1": 1}


def test_calls_of_one_tool_are_those_of_the_record_failed_or_not() -> None:
    names = ["ToolCalls:open", "ToolCalls:find"]
    for answer in (CITING, replace(CITING, status="failed")):
        _, values = measure_questions(QUESTIONS, {"j": answer}, parse_measures(names))
        assert (values["j"], values["p"]) == (
            {"ToolCalls:open": 3, "ToolCalls:find": 0},
            dict.fromkeys(names),
        )


def test_a_record_of_an_older_version_has_no_citations_but_its_tokens_and_calls() -> None:
    line = CITING.to_json()
    assert line.pop("citations")
    older = Record.from_json(line)
    names = parse_measures(["CitedRecall@1", "TotalTokens", "ToolCalls"])
    _, values = measure_questions(QUESTIONS, {"j": older}, names)
    assert values["j"] == {"CitedRecall@1": 0, "TotalTokens": 1_050, "ToolCalls": 10}


def test_a_question_without_a_ranking_scores_0_and_one_without_judgements_nothing() -> None:
    judgements = {"a": {"d": 1}, "b": {"d": 1, "e": -1}, "c": {"d": 0}}
    names = parse_measures(["Recall@1", "nDCG@5"])
    values = ranking_values(names, judgements, {"a": ["d"], "c": ["d"]})
    assert values == {"a": {"Recall@1": 1, "nDCG@5": 1}, "b": {"Recall@1": 0, "nDCG@5": 0}}


def test_means_are_over_the_measured_questions_and_give_their_number() -> None:
    records = {"c": record("c", "Venice", SEES_TITLE), "p": record("p", "y")}
    names = parse_measures(["EM", "EvidenceRecall", "RetrievedTokens", "Cost"])
    outcomes, values = measure_questions(QUESTIONS, records, names)
    scores = [outcome.score for outcome in outcomes]
    overall, chain, plain = means_by_type(scores, values, names)
    assert (overall.type, overall.questions, chain.type, plain.type) == ("all", 3, "chain", "plain")
    assert overall.values == {
        "EM": 0.5, "EvidenceRecall": 1, "RetrievedTokens": 4.5, "Cost": None,
    }  # fmt: skip
    assert overall.counted == {"EM": 2, "EvidenceRecall": 1, "RetrievedTokens": 2, "Cost": 0}
    assert plain.values["EvidenceRecall"] is None
