"""Mistakes of other tools in public reports, with the right values here."""

from __future__ import annotations

import pytest

from arag_search.evaluation.judging.factuality import read_score
from arag_search.evaluation.judging.judge import read_verdict

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
