"""Names of measures: they print and parse, and their meanings are fixed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from arag_search.errors import ArgumentError
from arag_search.evaluation.measures import (
    EVIDENCE_CAP_TOKENS,
    KINDS,
    Measure,
    parse_measure,
    parse_measures,
)
from arag_search.tools.registry import TOOLS

ALLOWED = (
    "Allowed: EM, F1, ContainAcc, JudgeAcc, Factuality, Refusal, Hallucination, GoldLeak, "
    "GroundedAcc, MemoryShare, EvidenceRecall, FullEvidence, TokensToEvidence, RetrievedTokens, "
    "PromptTokens, CompletionTokens, TotalTokens, TokensToRight, ToolCalls, ToolCalls:TOOL, "
    "SummarizeCalls, Iterations, Steps, Seconds, Cost, Recall@k, nDCG@k, AP@k, CitedRecall@k, "
    "CitedNDCG@k, CitedSuccess@k, MODULE:FUNCTION; k from 1 to 1,000"
)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_printed_measure_parses_to_itself(kind: object) -> None:
    for cutoff in (1, 10, 1000) if kind.is_ranking else (None,):  # type: ignore[attr-defined]
        measure = Measure(kind, cutoff)  # type: ignore[arg-type]
        assert parse_measure(str(measure)) == measure


@pytest.mark.parametrize("tool", TOOLS)
def test_calls_of_one_tool_print_and_parse_with_its_name(tool: str) -> None:
    measure = parse_measure(f"ToolCalls:{tool}")
    assert (measure, str(measure)) == (
        replace(parse_measure("ToolCalls"), tool=tool),
        f"ToolCalls:{tool}",
    )


def test_calls_of_a_tool_are_counted_under_another_name_of_it() -> None:
    assert str(parse_measure("ToolCalls:read_chunk")) == "ToolCalls:chunk_read"


def test_a_wrong_tool_lists_the_tools_and_only_calls_take_one() -> None:
    with pytest.raises(ArgumentError) as caught:
        parse_measure("ToolCalls:shut")
    assert str(caught.value) == (
        'There is no tool "shut".\nWhere: the measure ToolCalls:shut\nAllowed: '
        + ", ".join(f"ToolCalls:{tool}" for tool in TOOLS)
    )
    with pytest.raises(ArgumentError, match='"EM" takes no tool'):
        parse_measure("EM:open")
    with pytest.raises(ArgumentError, match='There is no measure "ToolCalls:"'):
        parse_measure("ToolCalls:")


def test_a_ranking_prints_with_its_number_of_documents() -> None:
    measures = parse_measures(["Recall@10,TokensToEvidence"])
    assert (measures[0].cutoff, measures[1].cutoff) == (10, None)
    assert list(map(str, measures)) == ["Recall@10", "TokensToEvidence"]


@pytest.mark.parametrize(
    ("name", "problem", "advice"),
    [
        ("Accuracy", 'There is no measure "Accuracy".', ""),
        ("em", 'There is no measure "em".', "Do: Write EM."),
        ("mine.words", 'There is no measure "mine.words".', "Do: Write mine:words."),
        ("Recall@", 'There is no measure "Recall@".', ""),
        ("Recall@1.5", 'There is no measure "Recall@1.5".', ""),
        ("Recall", '"Recall" needs a number of documents: Recall@10.', ""),
        ("EM@5", '"EM" takes no number of documents.', ""),
        ("Recall@0", '"Recall@0" looks at 0 documents.', ""),
        ("Recall@05", '"Recall@05" looks at 05 documents.', ""),
        ("Recall@1001", '"Recall@1001" looks at 1001 documents.', ""),
    ],
)
def test_a_wrong_name_lists_the_allowed_ones(name: str, problem: str, advice: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        parse_measure(name)
    lines = [problem, "Where: the name of a measure", ALLOWED, *([advice] if advice else [])]
    assert str(caught.value) == "\n".join(lines)


def test_a_text_may_list_several_names_and_duplicates_count_once() -> None:
    measures = parse_measures(["EM, Recall@5,", "EM"])
    assert [str(measure) for measure in measures] == ["EM", "Recall@5"]
    assert measures[1].kind.name == "Recall"
    assert parse_measures([]) == ()
    with pytest.raises(ArgumentError, match='"," names no measure'):
        parse_measures(["EM", ","])


def test_missing_quality_is_0_and_missing_cost_is_left_out() -> None:
    missing = {kind.name: kind.missing for kind in KINDS}
    assert {name for name, value in missing.items() if value is None} == {
        "RetrievedTokens", "PromptTokens", "CompletionTokens", "TotalTokens", "TokensToRight",
        "ToolCalls", "SummarizeCalls", "Iterations", "Steps", "Seconds", "Cost",
    }  # fmt: skip
    assert missing["TokensToEvidence"] == EVIDENCE_CAP_TOKENS == 8_000
    assert all(missing[kind.name] == 0 for kind in KINDS if kind.higher_is_better)
