"""Judges whose endpoint refuses single answers: these are not judged, and all others are."""

from __future__ import annotations

from typing import Any

import pytest

from arag_search.agent.models.openai import OpenAIModel
from arag_search.errors import ModelAccessError, ModelError, ModelReplyError
from arag_search.evaluation.judging.factuality import FactualityJudge
from arag_search.evaluation.judging.judge import Judge
from arag_search.questions.question import Question
from tests.support.endpoint import Answer, Endpoint, completion, refusal
from tests.support.records import record

FILTERED = (
    "The response was filtered due to the prompt triggering Azure OpenAI's content management "
    "policy. Please modify your prompt and retry."
)
QUESTIONS = [Question(f"q{n}", "Who?", ("Ada",)) for n in range(6)]
RECORDS = {question.id: record(question.id, f"answer {question.id}") for question in QUESTIONS}


def refuse(endpoint: Endpoint, numbers: str, sent: Answer, good: str) -> None:
    """Let an endpoint send an answer about the questions with these numbers, else a good one."""

    def answer_to(request: dict[str, Any]) -> Answer:
        shown = request["messages"][1]["content"]
        return sent if any(f"answer q{n}" in shown for n in numbers) else completion(good)

    endpoint.reply_with(sent)
    endpoint.reply_by(answer_to)


def filtered(message: dict[str, object], reason: str) -> Answer:
    return Answer(body={"choices": [{"finish_reason": reason, "message": message}]})


SENT = [
    pytest.param(
        refusal(400, FILTERED, param="prompt", code="content_filter"),
        FILTERED,
        id="vibrantlabsai/ragas#649",
    ),
    pytest.param(
        refusal(
            400, f"litellm.ContentPolicyViolationError: AzureException - {FILTERED}", code="400"
        ),
        f"litellm.ContentPolicyViolationError: AzureException - {FILTERED}",
        id="meta-llama/PurpleLlama#109",
    ),
    pytest.param(
        filtered({"content": None}, "content_filter"), "content_filter", id="microsoft/PyRIT#2072"
    ),
    pytest.param(
        filtered({"content": None, "refusal": "I can't help."}, "stop"),
        "I can't help.",
        id="openai/openai-dotnet#55",
    ),
    pytest.param(
        refusal(422, "Input validation error"), "Input validation error", id="compl-ai/compl-ai#20"
    ),
    pytest.param(
        refusal(400, "This model's maximum context length is 4097 tokens."),
        "This model's maximum context length is 4097 tokens.",
        id="tatsu-lab/alpaca_eval#227",
    ),
]


@pytest.fixture
def model(endpoint: Endpoint, shared: OpenAIModel) -> Any:
    yield shared
    endpoint.reply_by(None)


@pytest.mark.parametrize(("sent", "words"), SENT)
@pytest.mark.parametrize(
    ("kind", "good"), [(Judge, "Verdict: correct"), (FactualityJudge, "Score: 1")]
)
def test_a_refused_answer_is_not_judged_and_all_others_are(
    endpoint: Endpoint, model: OpenAIModel, sent: Answer, words: str, kind: Any, good: str
) -> None:
    refuse(endpoint, "25", sent, good)
    judge = kind(model)
    opinions = judge.judge_all(QUESTIONS, RECORDS)
    assert [opinion.refused for opinion in opinions.values()] == ["", "", words, "", "", words]
    assert len(judge.cache) == 4
    assert len(endpoint.requests) == 6
    if kind is Judge:
        assert [opinion.shown for opinion in opinions.values()][1:3] == [
            "correct",
            "not judged (refused)",
        ]
    refuse(endpoint, "", sent, good)
    assert not any(
        opinion.refused
        for opinion in kind(model, cache=judge.cache).judge_all(QUESTIONS, RECORDS).values()
    )
    assert len(endpoint.requests) == 2


@pytest.mark.parametrize(
    ("refused", "sent", "error"),
    [
        ("012345", refusal(400, "Unknown option"), ModelReplyError),
        ("012345", filtered({"content": None}, "content_filter"), ModelReplyError),
        ("4", refusal(401, "Invalid key"), ModelAccessError),
        ("4", refusal(403, "Forbidden"), ModelAccessError),
        ("4", refusal(404, "No such model"), ModelAccessError),
    ],
)
def test_what_every_request_would_meet_is_an_error(
    endpoint: Endpoint, model: OpenAIModel, refused: str, sent: Answer, error: type[ModelError]
) -> None:
    refuse(endpoint, refused, sent, "Verdict: correct")
    with pytest.raises(error):
        Judge(model).judge_all(QUESTIONS, RECORDS)
