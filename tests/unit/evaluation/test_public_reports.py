"""Mistakes of other tools in public reports, with the right values here."""

from __future__ import annotations

from dataclasses import replace

import pytest

from arag_search.cli.output.score_tables import score_text
from arag_search.evaluation.judging.factuality import read_score
from arag_search.evaluation.judging.judge import read_verdict
from arag_search.evaluation.question_score import QuestionScore, score_question
from arag_search.evaluation.score import Score, rows_of
from arag_search.evaluation.trajectories import trajectories
from arag_search.questions.question import Question
from arag_search.runs.folder import RunDescription

VERDICTS = {
    "OpenWebRL/OpenWebRL#5": (
        "The page first suggests that it is correct.\nFinal verdict: incorrect", "incorrect"),
    "lm-sys/FastChat#3921": ("Verdict: [[correct]], it says.\nVerdict: [[incorrect]]", "incorrect"),
    "langchain-ai/langchain#39282": ("It says: Verdict: correct\nVerdict: incorrect", "incorrect"),
    "vibrantlabsai/ragas#2829": (
        'It has {"verdict": "correct"}.\n{"reason": "no", "verdict": "incorrect"}', "incorrect"),
    "jaylfc/taosmd#176": ("Verdict: INCORRECT", "incorrect"),
    "PyModel/pythinker-cli#213": ("Verdict: this is not a correct answer; incorrect", None),
    "KeyValueSoftwareSystems/agent-opfor#84": ("Verdict: correct (with caveats)", "correct"),
    "Latand/live-log-viewer-next#1684": ("**VERDICT: INCORRECT**", "incorrect"),
    "open-compass/opencompass#2598": ("The grade is correct, as a judge would say.", None),
    "UKGovernmentBEIS/inspect_ai#4026": ("GRID: correct", None),
    "lightspeed-core/lightspeed-evaluation#285": (
        '```json\n{ "reason": "Same city.",\n  "verdict": "correct"\n}\n```', "correct"),
}  # fmt: skip

SCORES = {
    "cvs-health/uqlm#468": ("Score: 0.8", 0.8),
    "cvs-health/uqlm#468, a percentage": ("Score: 85.5%", 0.855),
    "OpenAgentHQ/openagent-eval#74": ("There are 5 reasons for a score of 9.\nScore: 9/10", 0.9),
    "OpenAgentHQ/openagent-eval#74, of an unknown scale": ("Score: 8", None),
    "modelscope/evalscope#1578": ("Score: 0.25\nIt rates itself: 9 and 1", 0.25),
    "run-llama/llama_index#17960": ("Score:\n\n0.5\nMost of it.", 0.5),
    "pinchbench/skill#73": ('{"score": 3.85}', None),
    "promptfoo/promptfoo#1866": ('```json\n{\n"pass": true,\n"score": 0.9\n}\n```', 0.9),
    "petersimmons1972/proving-ground#7": ("Score: 85", None),
    "langfuse/langfuse#11604": ("Score: 9.2e+124", None),
}  # fmt: skip


@pytest.mark.parametrize("report", VERDICTS)
def test_verdicts_are_read_right(report: str) -> None:
    reply, verdict = VERDICTS[report]
    assert read_verdict(reply) == verdict


@pytest.mark.parametrize("report", SCORES)
def test_scores_are_read_right(report: str) -> None:
    reply, score = SCORES[report]
    text = read_score(reply)
    assert (None if text is None else float(text)) == score


MEANS = {
    "EleutherAI/lm-evaluation-harness#1521": (
        {"humanities": (4705, 0.2421), "other": (3077, 0.2382), "social": (3107, 0.2171),
         "stem": (3153, 0.2131)}, 0.2292, 0.2276),
    "mem0ai/mem0#2800": (
        {"1": (282, 0.3582), "2": (321, 0.4766), "3": (96, 0.3229), "4": (841, 0.4233)},
        0.4162, 0.3952),
    "MemMachine/MemMachine#218": (
        {"1": (282, 0.5532), "2": (321, 0.7352), "3": (96, 0.4688), "4": (841, 0.8585)},
        0.7526, 0.6539),
    "memodb-io/memobase#79": (
        {"1": (282, 0.6383), "2": (321, 0.8037), "3": (96, 0.5208), "4": (841, 0.7182)},
        0.7091, 0.6703),
    "verygoodplugins/automem#241": ({"all": (9, 1.0), "route: a": (1, 0.0)}, 0.9, 0.5),
    "multimodal-art-projection/COIG-P#1, of a single type": ({"a": (2, 0.5)}, 0.5, None),
}  # fmt: skip
"""Questions and score of each type, the mean of questions, and the mean of types."""


@pytest.mark.parametrize("report", MEANS)
def test_the_mean_of_types_stands_beside_the_mean_of_questions(report: str) -> None:
    types, of_questions, of_types = MEANS[report]
    unscored = score_question(Question("q", "?", ("x",)), None)
    scores = [
        replace(unscored, type=type, f1=share)
        for type, (count, share) in types.items()
        for _ in range(count)
    ]
    score = score_of(*scores)
    assert score.rows[0].f1 == pytest.approx(of_questions, abs=6e-5)
    means = score.mean_of_types()
    assert means.get("f1") == (None if of_types is None else pytest.approx(of_types, abs=6e-5))
    lines = score_text(score).splitlines()
    assert lines[3].startswith("mean of types ") == (of_types is not None)
    assert ("mean_of_types" in score.to_json()) == (of_types is not None)


def test_a_mean_of_types_leaves_out_types_without_a_value_routes_and_counts() -> None:
    none = score_question(Question("q", "?", ("x",)), None)
    score = score_of(
        replace(none, type="a", steps=2, route="simple"),
        replace(none, type="a", steps=4, route="full"),
        replace(none, type="b", steps=9),
        replace(none, type="c"),
        replace(none, steps=100),
    )
    means = score.mean_of_types()
    assert (means["steps"], means["seconds"], means["f1"]) == (6, None, 0)
    cells = score_text(score).splitlines()[3].split()
    assert cells == ["mean", "of", "types", *["0.000"] * 5, "-", "-", "6.0", "-"]


def score_of(*scores: QuestionScore) -> Score:
    run = RunDescription(
        created="", preset="p", index="i", filter=None, model="m", questions="q",
        count=len(scores), limit=None, fingerprints={},
    )  # fmt: skip
    return Score(run, rows_of(scores), scores, (), trajectories(()), {})
