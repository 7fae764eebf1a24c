"""Refusals of an endpoint are told apart, each with its own message."""

from __future__ import annotations

import pytest

from arag_search.agent.models.openai import OpenAIModel
from arag_search.errors import ContextLengthError, ModelAccessError, ModelReplyError
from tests.support.endpoint import Answer, Endpoint, refusal
from tests.support.openai_asking import KEY, raised_message, where_line


def test_a_refused_key_names_the_variables_that_hold_one(
    shared: OpenAIModel, endpoint: Endpoint
) -> None:
    endpoint.reply_with(refusal(401, f"Incorrect API key provided: {KEY}."))
    assert raised_message(shared, ModelAccessError) == (
        "The endpoint refused the key (status 401): Incorrect API key provided: [key]."
        f"{where_line(endpoint)}\n"
        f"Do: Set ARAG_API_KEY or OPENAI_API_KEY to a key that {endpoint.base_url} accepts."
    )
    assert len(endpoint.requests) == 1


def test_an_endpoint_that_requires_a_key_says_so(endpoint: Endpoint) -> None:
    endpoint.reply_with(refusal(403, "no"))
    model = OpenAIModel("m", base_url=endpoint.base_url)
    message = raised_message(model, ModelAccessError)
    assert message.startswith("The endpoint requires a key (status 403): no\n")
    model.close()


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (refusal(404, "The model does not exist", code="model_not_found"), 404),
        (refusal(404, "The model does not exist"), 404),
        (refusal(400, "The model does not exist", code="model_not_found"), 400),
        (refusal(400, "The model does not exist: m is not a valid model ID"), 400),
    ],
)
def test_an_unknown_model_names_it_and_the_base_url(
    shared: OpenAIModel, endpoint: Endpoint, answer: Answer, status: int
) -> None:
    endpoint.reply_with(answer)
    words = answer.body["error"]["message"]  # type: ignore[index]
    assert raised_message(shared, ModelAccessError).startswith(
        f"The endpoint does not know model 'm' (status {status}): {words}{where_line(endpoint)}\n"
    )


def test_a_key_may_also_be_refused_as_a_bad_request(
    shared: OpenAIModel, endpoint: Endpoint
) -> None:
    endpoint.reply_with(refusal(400, "API key not valid. Pass a valid one."))
    message = raised_message(shared, ModelAccessError)
    assert message.startswith("The endpoint refused the key (status 400): API key not valid.")


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (402, refusal(402, "Insufficient balance")),
        (429, refusal(429, "Insufficient balance", code="insufficient_quota")),
        (429, refusal(429, "Insufficient balance", code=429, type="insufficient_quota")),
    ],
)
def test_an_account_without_money_is_not_retried(
    shared: OpenAIModel, endpoint: Endpoint, status: int, answer: Answer
) -> None:
    endpoint.reply_with(answer)
    assert raised_message(shared, ModelAccessError) == (
        f"The endpoint requires payment (status {status}): Insufficient balance"
        f"{where_line(endpoint)}"
    )


@pytest.mark.parametrize(
    "answer",
    [
        refusal(400, "too long", code="context_length_exceeded"),
        refusal(400, "This model's maximum context length is 8192 tokens."),
        refusal(400, "the request exceeds the available context size, try increasing it"),
        refusal(400, "prompt is too long: 210000 tokens > 200000 maximum"),
        refusal(400, "Your input exceeds the context window of this model."),
        refusal(500, "Requested token count exceeds the model's context length of 4096."),
        Answer(400, {"object": "error", "message": "maximum context length is 10"}),
        Answer(422, {"error": "`inputs` tokens + `max_new_tokens` must be <= 4096"}),
        Answer(413, "Payload too large"),
        refusal(400, "Your request exceeded model token limit: 8192"),
        refusal(400, "Trying to keep the first 9000 tokens when context the overflows."),
        refusal(400, "Input length 9000 exceeds the maximum"),
        refusal(400, "The input (9000 tokens) is longer than the model's context length"),
        refusal(400, "Range of input length should be [1, 30720]"),
        refusal(400, "This model's maximum prompt length is 8192"),
        refusal(400, "Input tokens exceed the configured limit of 272000 tokens."),
        refusal(400, "The total length of all messages is too long."),
        refusal(
            400,
            "Provider returned error",
            code=400,
            metadata={
                "provider_name": "Acme",
                "raw": '{"error": {"message": "This model\'s maximum context length is 9"}}',
            },
        ),
        refusal(400, f"{'x' * 400} maximum context length is 10"),
    ],
)
def test_a_request_that_is_too_long_is_recognised(
    shared: OpenAIModel, endpoint: Endpoint, answer: Answer
) -> None:
    endpoint.reply_with(answer)
    message = raised_message(shared, ContextLengthError)
    assert message.startswith("The request is too long for the model: ")
    assert message.endswith(where_line(endpoint))
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (refusal(400, "Unsupported value: 'temperature'"), "Unsupported value: 'temperature'"),
        (Answer(400, {"detail": [{"loc": ["seed"]}]}), '[{"loc": ["seed"]}]'),
        (Answer(400, "<p>Bad\n  request</p>"), "<p>Bad request</p>"),
        (Answer(400, ""), "no explanation"),
        (refusal(400, "x" * 400), "x" * 297 + "..."),
        *(
            (refusal(400, words, param=param), words)
            for param, words in (
                ("", "Invalid 'tools[1].function.description': string too long."),
                (
                    "messages[3].tool_calls[0].id",
                    "Invalid 'messages[3].tool_calls[0].id': string "
                    "too long. Expected a string with maximum length 40.",
                ),
                ("max_tokens", "max_tokens is too large: 100000."),
                ("max_tokens", "'max_tokens' exceeds the context length."),
                ("", "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'."),
                ("", "Input should be a valid integer: max_tokens"),
                ("", "Unexpected token in the request."),
            )
        ),
    ],
)
def test_any_other_bad_request_shows_the_words_of_the_endpoint_and_is_not_retried(
    shared: OpenAIModel, endpoint: Endpoint, answer: Answer, words: str
) -> None:
    endpoint.reply_with(answer)
    assert raised_message(shared, ModelReplyError) == (
        f"The endpoint refused the request (status 400): {words}{where_line(endpoint)}"
    )
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("<p>Welcome</p>", "The endpoint's reply is not JSON: <p>Welcome</p>"),
        ("[" * 200_000, f"The endpoint's reply is not JSON: {'[' * 297}..."),
        (
            'data: {"choices": []}',
            "The endpoint's reply is an event stream, although the request asked for one piece: "
            'data: {"choices": []}',
        ),
        ({"error": {"message": "overfull"}}, "The endpoint's reply holds no choices: overfull"),
    ],
)
def test_a_body_that_is_not_a_completion_is_shown(
    shared: OpenAIModel, endpoint: Endpoint, body: object, words: str
) -> None:
    endpoint.reply_with(Answer(200, body))
    assert raised_message(shared, ModelReplyError) == words + where_line(endpoint)
    assert len(endpoint.requests) == 1
