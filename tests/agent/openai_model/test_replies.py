"""Replies of an endpoint, odd ones too, as OpenAIModel returns them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from arag_search.agent.models.base import (
    Message,
    ModelReply,
    ModelRequest,
    ToolCall,
    Usage,
)
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


def test_several_calls_at_once_are_all_returned(shared: OpenAIModel, endpoint: Endpoint) -> None:
    endpoint.reply_with(completion("Both.", ("search", "{}"), ("read", '{"ids": [1]}')))
    reply = shared.reply(QUESTION)
    assert reply.text == "Both."
    assert [(call.id, call.name) for call in reply.tool_calls] == [
        ("id1", "search"),
        ("id2", "read"),
    ]


@pytest.mark.parametrize("arguments", ['{"query": "ad', "", "[1]", "ada"])
def test_broken_arguments_are_returned_as_they_were_written(
    shared: OpenAIModel, endpoint: Endpoint, arguments: str
) -> None:
    endpoint.reply_with(completion(None, ("search", arguments)))
    assert shared.reply(QUESTION).tool_calls[0].arguments == arguments


def test_an_unknown_tool_is_returned_under_its_name(
    shared: OpenAIModel, endpoint: Endpoint
) -> None:
    endpoint.reply_with(completion(None, ("google", "{}")))
    assert shared.reply(QUESTION).tool_calls == (ToolCall("id1", "google", "{}"),)


def test_arguments_sent_as_an_object_and_calls_without_ids_are_understood(
    shared: OpenAIModel, endpoint: Endpoint
) -> None:
    function = {"name": "search", "arguments": {"query": "ada"}}
    endpoint.reply_with(completion(None, tool_calls=[{"function": function}, {"function": {}}]))
    assert shared.reply(QUESTION).tool_calls == (
        ToolCall("call_1_1", "search", '{"query": "ada"}'),
        ToolCall("call_1_2", "", "{}"),
    )


def test_an_empty_reply_is_a_reply_without_text(shared: OpenAIModel, endpoint: Endpoint) -> None:
    endpoint.reply_with(completion(None))
    assert shared.reply(QUESTION) == ModelReply("")


def test_a_refusal_and_a_text_in_parts_are_text(shared: OpenAIModel, endpoint: Endpoint) -> None:
    parts = [{"type": "text", "text": "Ada "}, {"type": "text", "text": "Lovelace"}]
    endpoint.reply_with(completion(None, refusal="I will not."), completion(parts))
    assert shared.reply(FINAL).text == "I will not."
    assert shared.reply(FINAL).text == "Ada Lovelace"


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_separate_from_the_text(
    shared: OpenAIModel, endpoint: Endpoint, field: str
) -> None:
    endpoint.reply_with(completion("Ada", **{field: "Hm."}))
    assert shared.reply(FINAL) == ModelReply("Ada", reasoning="Hm.")


@pytest.mark.parametrize("usage", ["absent", None, {}, {"prompt_tokens": 5}])
def test_usage_that_is_absent_or_partial_is_none(
    shared: OpenAIModel, endpoint: Endpoint, usage: object
) -> None:
    endpoint.reply_with(completion("Ada", usage=usage))
    assert shared.reply(FINAL).usage is None


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
        "m",
        base_url=endpoint.base_url,
        temperature=0.0,
        top_p=0.5,
        reasoning_effort="low",
        seed=0,
    )
    model.reply(FINAL)
    model.close()
    request = endpoint.requests[0]
    assert sorted(request) == [
        "messages",
        "model",
        "reasoning_effort",
        "seed",
        "stream",
        "temperature",
        "top_p",
    ]
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
