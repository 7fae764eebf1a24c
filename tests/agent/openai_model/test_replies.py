"""Replies of an endpoint, odd ones too, as OpenAIModel returns them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from arag_search.agent.models.base import Message, ModelReply, ModelRequest, ToolCall, Usage
from arag_search.agent.models.openai import OpenAIModel
from arag_search.errors import ConfigError, ModelReplyError
from tests.support.endpoint import Answer, Endpoint, completion, refusal
from tests.support.openai_asking import FINAL, KEY, QUESTION, SEARCH


def test_a_reply_in_words_has_its_usage(shared: OpenAIModel, endpoint: Endpoint) -> None:
    endpoint.reply_with(completion("Ada", usage={"prompt_tokens": 12, "completion_tokens": 3}))
    assert shared.reply(FINAL) == ModelReply("Ada", usage=Usage(12, 3, "endpoint"))
    assert endpoint.paths == ["/v1/chat/completions"]
    assert endpoint.keys == [f"Bearer {KEY}"]
    messages = [{"role": "user", "content": "Who?"}]
    assert endpoint.requests == [{"model": "m", "messages": messages, "stream": False}]


def test_a_tool_call_is_asked_for_one_at_a_time(shared: OpenAIModel, endpoint: Endpoint) -> None:
    endpoint.reply_with(completion(None, ("search", '{"query": "ada"}')))
    assert shared.reply(QUESTION) == ModelReply(
        "", (ToolCall("id1", "search", '{"query": "ada"}'),)
    )
    assert endpoint.requests[0]["tools"] == [SEARCH]
    assert endpoint.requests[0]["parallel_tool_calls"] is False


def test_earlier_steps_are_sent_and_half_an_emoji_in_them_is_replaced(
    shared: OpenAIModel, endpoint: Endpoint
) -> None:
    calls = (ToolCall("a", "search", '{"query": "ada"}'), ToolCall("b", "search", '{"q": "\ud83d'))
    endpoint.reply_with(completion("Ada"))
    shared.reply(
        ModelRequest(
            [
                Message("system", "Be brief."),
                Message("user", "Who? \ud83d"),
                Message("assistant", "", calls),
                Message("tool", "nothing", tool_call_id="a"),
            ]
        )
    )
    system, user, assistant, tool = endpoint.requests[0]["messages"]
    assert system == {"role": "system", "content": "Be brief."}
    assert user == {"role": "user", "content": "Who? ?"}
    assert assistant["content"] is None
    assert assistant["tool_calls"] == [
        {"id": call.id, "type": "function", "function": {"name": "search", "arguments": arguments}}
        for call, arguments in zip(calls, ('{"query": "ada"}', '{"q": "?'), strict=True)
    ]
    assert tool == {"role": "tool", "content": "nothing", "tool_call_id": "a"}


def test_only_options_that_are_set_are_sent(endpoint: Endpoint) -> None:
    endpoint.reply_with(completion("Ada"))
    model = OpenAIModel(
        "m", base_url=endpoint.base_url, temperature=0.0, top_p=0.5, reasoning_effort="low", seed=0
    )
    model.reply(FINAL)
    model.close()
    request = endpoint.requests[0]
    assert sorted(request) == [
        "messages", "model", "reasoning_effort", "seed", "stream", "temperature", "top_p",
    ]  # fmt: skip
    assert (request["temperature"], request["top_p"]) == (0.0, 0.5)
    assert (request["reasoning_effort"], request["seed"]) == ("low", 0)
    assert endpoint.keys == ["Bearer none"]


def test_the_bound_of_a_reply_has_its_older_name_where_the_newer_one_is_refused(
    endpoint: Endpoint,
) -> None:
    endpoint.reply_with(
        completion("Ada"),
        refusal(400, "Unknown parameter: 'max_completion_tokens'."),
        completion("Bob"),
        refusal(400, "max_tokens is too large: 16384."),
    )
    model = OpenAIModel("m", base_url=endpoint.base_url, key=KEY, max_retries=0, max_tokens=16_384)
    assert [model.reply(QUESTION).text, model.reply(QUESTION).text] == ["Ada", "Bob"]
    with pytest.raises(ModelReplyError, match="max_tokens is too large"):
        model.reply(QUESTION)
    bounds = [
        {name: request[name] for name in request if name.startswith("max_")}
        for request in endpoint.requests
    ]
    newer, older = {"max_completion_tokens": 16_384}, {"max_tokens": 16_384}
    assert bounds == [newer, newer, older, older]
    plain = OpenAIModel("m", base_url=endpoint.base_url, key=KEY)
    assert plain.fingerprint != model.fingerprint
    model.close()
    plain.close()
    with pytest.raises(ConfigError, match=r"max_tokens 0 \(1 or more\)"):
        OpenAIModel("m", base_url=endpoint.base_url, max_tokens=0)


@pytest.mark.parametrize("status", [400, 422])
def test_an_endpoint_without_the_option_of_one_call_is_not_asked_for_it_again(
    endpoint: Endpoint, status: int
) -> None:
    endpoint.reply_with(
        refusal(status, "Unknown parameter: 'parallel_tool_calls'."),
        completion("Ada"),
        completion("Bob"),
    )
    model = OpenAIModel("m", base_url=endpoint.base_url, key=KEY, max_retries=0)
    assert [model.reply(QUESTION).text, model.reply(QUESTION).text] == ["Ada", "Bob"]
    model.close()
    assert ["parallel_tool_calls" in request for request in endpoint.requests] == [
        True,
        False,
        False,
    ]


def test_threads_share_one_model(shared: OpenAIModel, endpoint: Endpoint) -> None:
    endpoint.reply_with(completion("Ada"))
    with ThreadPoolExecutor(8) as threads:
        replies = list(threads.map(lambda _: shared.reply(QUESTION).text, range(40)))
    assert replies == ["Ada"] * 40


@pytest.mark.parametrize(
    "answer",
    [
        refusal(400, "Bad request", param="parallel_tool_calls"),
        refusal(400, f"{'x' * 400} parallel_tool_calls is not supported"),
        refusal(404, "No endpoints found that support the provided 'parallel_tool_calls' value"),
    ],
)
def test_an_option_may_be_refused_anywhere_in_an_error(endpoint: Endpoint, answer: Answer) -> None:
    endpoint.reply_with(answer, completion("Ada"))
    model = OpenAIModel("m", base_url=endpoint.base_url)
    assert model.reply(QUESTION).text == "Ada"
    model.close()
    sent = ["parallel_tool_calls" in request for request in endpoint.requests]
    assert sent == [True, False]


def test_first_tokens_are_read_where_an_endpoint_has_them_and_not_asked_for_again_where_not(
    shared: OpenAIModel, endpoint: Endpoint
) -> None:
    judged = replace(FINAL, logprobs=True)
    likely: list[object] = [
        {"token": "Yes", "logprob": -0.1}, {"token": "No", "logprob": -2}, {"token": 3},
        {"token": "?", "logprob": 10**400}, {"token": "!", "logprob": "high"}, None,
    ]  # fmt: skip
    answer = completion("Yes")
    for given in (None, [], {"content": [{"top_logprobs": likely}, {}]}):
        answer.body["choices"][0]["logprobs"] = given  # type: ignore[index]
        endpoint.reply_with(answer)
        expected = {"Yes": -0.1, "No": -2.0} if given else {}
        assert shared.reply(judged) == ModelReply("Yes", logprobs=expected)
    assert endpoint.requests[0]["top_logprobs"] == 5
    endpoint.reply_with(
        refusal(400, "Unsupported parameter: 'logprobs' is not supported with this model."),
        refusal(400, "'top_logprobs' is only allowed with 'logprobs'"),
        completion("Yes"),
        completion("Yes"),
    )
    assert shared.reply(judged) == shared.reply(judged) == ModelReply("Yes")
    assert not {"logprobs", "top_logprobs"} & endpoint.requests[-1].keys()
    assert len(endpoint.requests) == 4
