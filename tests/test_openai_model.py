"""OpenAIModel against a real HTTP server on loopback that behaves well and badly."""

from __future__ import annotations

import email.utils
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from arag_search.agent.loop import Agent
from arag_search.agent.models.base import (
    ChatModel,
    Message,
    ModelReply,
    ModelRequest,
    ToolCall,
    Usage,
)
from arag_search.agent.models.openai import OpenAIModel, Retry
from arag_search.config import load_preset
from arag_search.corpus import Chunk, ordinal_of
from arag_search.engines.memory import MemoryEngine
from arag_search.errors import (
    ConfigError,
    ContextLengthError,
    ModelAccessError,
    ModelReplyError,
    ModelUnavailableError,
)
from arag_search.index import Index
from tests.endpoint import Answer, Endpoint, completion, refusal, running_endpoint

KEY = "sk-very-secret"
SEARCH = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}
QUESTION = ModelRequest([Message("user", "Who?")], [SEARCH], question_id="q1")
FINAL = ModelRequest([Message("user", "Who?")])


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    with pytest.MonkeyPatch.context() as patch, running_endpoint() as running:
        patch.setenv("NO_PROXY", "127.0.0.1")
        yield running


class Waits:
    """Stands for time: notes how long would have been waited."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.retries: list[Retry] = []

    def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)


@pytest.fixture(scope="module")
def all_waits() -> Waits:
    return Waits()


@pytest.fixture
def waits(all_waits: Waits) -> Waits:
    all_waits.seconds.clear()
    all_waits.retries.clear()
    return all_waits


@pytest.fixture(scope="module")
def shared(endpoint: Endpoint) -> Iterator[OpenAIModel]:
    """One model for the tests that change none of its options and wait for nothing."""
    model = OpenAIModel("m", base_url=endpoint.base_url, key=KEY, sleep=never)
    yield model
    model.close()


def never(seconds: float) -> None:
    raise AssertionError(f"waited {seconds} s")


@pytest.fixture(scope="module")
def patient(endpoint: Endpoint, all_waits: Waits) -> Iterator[OpenAIModel]:
    """A model that tries three times, with no chance in its waits."""
    model = OpenAIModel(
        "m",
        base_url=endpoint.base_url,
        key=KEY,
        timeout_s=0.05,
        max_retries=2,
        sleep=all_waits.sleep,
        chance=lambda: 0.0,
        on_retry=all_waits.retries.append,
    )
    yield model
    model.close()


def where(endpoint: Endpoint) -> str:
    return f"\nWhere: question q1, model m at {endpoint.base_url}"


def refused(model: ChatModel, error: type[Exception], request: ModelRequest = QUESTION) -> str:
    with pytest.raises(error) as raised:
        model.reply(request)
    assert type(raised.value) is error
    return str(raised.value)


# Replies


def test_a_reply_in_words_with_what_it_used(shared: OpenAIModel, endpoint: Endpoint) -> None:
    endpoint.will(completion("Ada", usage={"prompt_tokens": 12, "completion_tokens": 3}))
    assert shared.reply(FINAL) == ModelReply("Ada", usage=Usage(12, 3, "endpoint"))
    assert endpoint.paths == ["/v1/chat/completions"]
    assert endpoint.keys == [f"Bearer {KEY}"]
    assert endpoint.requests == [{"model": "m", "messages": [{"role": "user", "content": "Who?"}]}]


def test_a_tool_call_is_asked_for_one_at_a_time(shared: OpenAIModel, endpoint: Endpoint) -> None:
    endpoint.will(completion(None, ("search", '{"query": "ada"}')))
    assert shared.reply(QUESTION) == ModelReply(
        "", (ToolCall("id1", "search", '{"query": "ada"}'),)
    )
    assert endpoint.requests[0]["tools"] == [SEARCH]
    assert endpoint.requests[0]["parallel_tool_calls"] is False


def test_several_calls_at_once_are_all_given(shared: OpenAIModel, endpoint: Endpoint) -> None:
    endpoint.will(completion("Both.", ("search", "{}"), ("read", '{"ids": [1]}')))
    reply = shared.reply(QUESTION)
    assert reply.text == "Both."
    assert [(call.id, call.name) for call in reply.tool_calls] == [
        ("id1", "search"),
        ("id2", "read"),
    ]


@pytest.mark.parametrize("arguments", ['{"query": "ad', "", "[1]", "ada"])
def test_broken_arguments_are_given_as_they_were_written(
    shared: OpenAIModel, endpoint: Endpoint, arguments: str
) -> None:
    endpoint.will(completion(None, ("search", arguments)))
    assert shared.reply(QUESTION).tool_calls[0].arguments == arguments


def test_an_unknown_tool_is_given_as_it_was_named(shared: OpenAIModel, endpoint: Endpoint) -> None:
    endpoint.will(completion(None, ("google", "{}")))
    assert shared.reply(QUESTION).tool_calls == (ToolCall("id1", "google", "{}"),)


def test_arguments_that_come_as_an_object_and_calls_without_ids_are_understood(
    shared: OpenAIModel, endpoint: Endpoint
) -> None:
    function = {"name": "search", "arguments": {"query": "ada"}}
    endpoint.will(completion(None, tool_calls=[{"function": function}, {"function": {}}]))
    assert shared.reply(QUESTION).tool_calls == (
        ToolCall("call_1_1", "search", '{"query": "ada"}'),
        ToolCall("call_1_2", "", "{}"),
    )


def test_an_empty_reply_is_a_reply_without_text(shared: OpenAIModel, endpoint: Endpoint) -> None:
    endpoint.will(completion(None))
    assert shared.reply(QUESTION) == ModelReply("")


def test_a_refusal_and_a_text_in_parts_are_text(shared: OpenAIModel, endpoint: Endpoint) -> None:
    parts = [{"type": "text", "text": "Ada "}, {"type": "text", "text": "Lovelace"}]
    endpoint.will(completion(None, refusal="I will not."), completion(parts))
    assert shared.reply(FINAL).text == "I will not."
    assert shared.reply(FINAL).text == "Ada Lovelace"


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_kept_apart_from_the_text(
    shared: OpenAIModel, endpoint: Endpoint, field: str
) -> None:
    endpoint.will(completion("Ada", **{field: "Hm."}))
    assert shared.reply(FINAL) == ModelReply("Ada", reasoning="Hm.")


@pytest.mark.parametrize("usage", ["absent", None, {}, {"prompt_tokens": 5}])
def test_usage_that_is_absent_or_partial_is_none(
    shared: OpenAIModel, endpoint: Endpoint, usage: object
) -> None:
    endpoint.will(completion("Ada", usage=usage))
    assert shared.reply(FINAL).usage is None


def test_earlier_steps_are_sent_and_half_an_emoji_in_them_is_replaced(
    shared: OpenAIModel, endpoint: Endpoint
) -> None:
    calls = (ToolCall("a", "search", '{"query": "ada"}'), ToolCall("b", "search", '{"q": "\ud83d'))
    endpoint.will(completion("Ada"))
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
        {"id": made.id, "type": "function", "function": {"name": "search", "arguments": sent}}
        for made, sent in zip(calls, ('{"query": "ada"}', '{"q": "?'), strict=True)
    ]
    assert tool == {"role": "tool", "content": "nothing", "tool_call_id": "a"}


def test_only_options_that_are_set_are_sent(endpoint: Endpoint) -> None:
    endpoint.will(completion("Ada"))
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
    sent = endpoint.requests[0]
    assert sorted(sent) == ["messages", "model", "reasoning_effort", "seed", "temperature", "top_p"]
    assert (sent["temperature"], sent["top_p"]) == (0.0, 0.5)
    assert (sent["reasoning_effort"], sent["seed"]) == ("low", 0)
    assert endpoint.keys == ["Bearer none"]


@pytest.mark.parametrize("status", [400, 422])
def test_an_endpoint_without_the_option_of_one_call_is_not_asked_for_it_again(
    endpoint: Endpoint, status: int
) -> None:
    endpoint.will(
        refusal(status, "Unknown parameter: 'parallel_tool_calls'."),
        completion("Ada"),
        completion("Bob"),
    )
    model = OpenAIModel("m", base_url=endpoint.base_url, key=KEY, max_retries=0)
    assert [model.reply(QUESTION).text, model.reply(QUESTION).text] == ["Ada", "Bob"]
    model.close()
    assert ["parallel_tool_calls" in sent for sent in endpoint.requests] == [True, False, False]


def test_threads_share_one_model(shared: OpenAIModel, endpoint: Endpoint) -> None:
    endpoint.will(completion("Ada"))
    with ThreadPoolExecutor(8) as threads:
        replies = list(threads.map(lambda _: shared.reply(QUESTION).text, range(40)))
    assert replies == ["Ada"] * 40


# Refusals


def test_a_refused_key_names_the_variables_that_hold_one(
    shared: OpenAIModel, endpoint: Endpoint
) -> None:
    endpoint.will(refusal(401, f"Incorrect API key provided: {KEY}."))
    assert refused(shared, ModelAccessError) == (
        "The endpoint refused the key (status 401): Incorrect API key provided: [key]."
        f"{where(endpoint)}\n"
        f"Do: Set ARAG_API_KEY or OPENAI_API_KEY to a key that {endpoint.base_url} accepts."
    )
    assert len(endpoint.requests) == 1


def test_an_endpoint_that_wants_a_key_says_so(endpoint: Endpoint) -> None:
    endpoint.will(refusal(403, "no"))
    model = OpenAIModel("m", base_url=endpoint.base_url)
    said = refused(model, ModelAccessError)
    assert said.startswith("The endpoint wants a key (status 403): no\n")
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
    endpoint.will(answer)
    words = answer.body["error"]["message"]  # type: ignore[index]
    assert refused(shared, ModelAccessError) == (
        f"The endpoint does not know model 'm' (status {status}): {words}{where(endpoint)}\n"
        f"Do: Name a model that {endpoint.base_url} serves, or correct the base URL "
        "(it often ends in /v1)."
    )


def test_a_key_may_also_be_refused_as_a_bad_request(
    shared: OpenAIModel, endpoint: Endpoint
) -> None:
    endpoint.will(refusal(400, "API key not valid. Pass a valid one."))
    said = refused(shared, ModelAccessError)
    assert said.startswith("The endpoint refused the key (status 400): API key not valid.")


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (402, refusal(402, "Insufficient balance")),
        (429, refusal(429, "Insufficient balance", code="insufficient_quota")),
    ],
)
def test_an_account_without_money_is_not_tried_again(
    shared: OpenAIModel, endpoint: Endpoint, status: int, answer: Answer
) -> None:
    endpoint.will(answer)
    assert refused(shared, ModelAccessError) == (
        f"The endpoint wants to be paid (status {status}): Insufficient balance{where(endpoint)}"
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
    ],
)
def test_a_request_that_is_too_long_is_recognised(
    shared: OpenAIModel, endpoint: Endpoint, answer: Answer
) -> None:
    endpoint.will(answer)
    said = refused(shared, ContextLengthError)
    assert said.startswith("The request is too long for the model: ")
    assert said.endswith(where(endpoint))
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (refusal(400, "Unsupported value: 'temperature'"), "Unsupported value: 'temperature'"),
        (Answer(400, {"detail": [{"loc": ["seed"]}]}), '[{"loc": ["seed"]}]'),
        (Answer(400, "<p>Bad\n  request</p>"), "<p>Bad request</p>"),
        (Answer(400, ""), "no explanation"),
        (refusal(400, "x" * 400), "x" * 297 + "..."),
    ],
)
def test_another_bad_request_gives_the_words_of_the_endpoint_and_is_not_tried_again(
    shared: OpenAIModel, endpoint: Endpoint, answer: Answer, words: str
) -> None:
    endpoint.will(answer)
    assert refused(shared, ModelReplyError) == (
        f"The endpoint refused the request (status 400): {words}{where(endpoint)}"
    )
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("<p>Welcome</p>", "The endpoint's reply is no JSON: <p>Welcome</p>"),
        ("[" * 200_000, f"The endpoint's reply is no JSON: {'[' * 297}..."),
        ([], "The endpoint's reply holds no choices: []"),
        ({"choices": []}, 'The endpoint\'s reply holds no choices: {"choices": []}'),
        ({"error": {"message": "overfull"}}, "The endpoint's reply holds no choices: overfull"),
        (
            {"choices": [{"text": "Ada"}]},
            "The endpoint's reply is no chat completion (at choices.0.message): "
            '{"choices": [{"text": "Ada"}]}',
        ),
    ],
)
def test_a_body_that_is_no_completion_is_shown(
    shared: OpenAIModel, endpoint: Endpoint, body: object, words: str
) -> None:
    endpoint.will(Answer(200, body))
    assert refused(shared, ModelReplyError) == words + where(endpoint)
    assert len(endpoint.requests) == 1


# Retries


def test_a_rate_limit_is_waited_out_as_long_as_the_endpoint_says(
    patient: OpenAIModel, endpoint: Endpoint, waits: Waits
) -> None:
    endpoint.will(refusal(429, "Slow down", headers={"Retry-After": "7"}), completion("Ada"))
    assert patient.reply(QUESTION).text == "Ada"
    assert waits.seconds == [7.0]
    assert waits.retries == [Retry("q1", 1, 3, "Slow down", 7.0)]


@pytest.mark.parametrize(
    ("headers", "expected_s"),
    [
        ({"Retry-After": "0"}, 0.0),
        ({"Retry-After": "3600"}, 120.0),
        ({"Retry-After": "-4"}, 0.0),
        ({"Retry-After": "soon"}, 1.0),
        ({"Retry-After": "nan"}, 1.0),
        ({"Retry-After": "2", "Retry-After-Ms": "1500"}, 1.5),
        ({}, 1.0),
    ],
)
def test_retry_after_is_seconds_and_capped(
    patient: OpenAIModel,
    endpoint: Endpoint,
    waits: Waits,
    headers: dict[str, str],
    expected_s: float,
) -> None:
    endpoint.will(refusal(429, "Slow down", headers=headers), completion("Ada"))
    patient.reply(QUESTION)
    assert waits.seconds == [expected_s]


def test_retry_after_may_be_a_date(patient: OpenAIModel, endpoint: Endpoint, waits: Waits) -> None:
    date = email.utils.formatdate(time.time() + 40, usegmt=True)
    endpoint.will(refusal(503, "Later", headers={"Retry-After": date}), completion("Ada"))
    patient.reply(QUESTION)
    assert 35 < waits.seconds[0] <= 40


def test_a_rate_limit_without_end_says_how_often_it_was_tried(
    patient: OpenAIModel, endpoint: Endpoint, waits: Waits
) -> None:
    endpoint.will(refusal(429, "Slow down"))
    assert refused(patient, ModelUnavailableError) == (
        f"The endpoint gave no reply in 3 attempts (status 429: Slow down).{where(endpoint)}\n"
        "Do: Try again later, or with fewer workers."
    )
    assert len(endpoint.requests) == 3
    assert waits.seconds == [1.0, 2.0]


@pytest.mark.parametrize("status", [408, 500, 502, 503, 529])
def test_statuses_that_pass_are_tried_again(
    patient: OpenAIModel, endpoint: Endpoint, waits: Waits, status: int
) -> None:
    endpoint.will(Answer(status, "<h1>oops</h1>"), completion("Ada"))
    assert patient.reply(QUESTION).text == "Ada"
    assert [retry.reason for retry in waits.retries] == ["<h1>oops</h1>"]


def test_an_error_of_a_gateway_with_status_200_has_the_status_it_names(
    patient: OpenAIModel, endpoint: Endpoint, waits: Waits
) -> None:
    wrapped = Answer(200, {"error": {"message": "Provider is down", "code": 502}})
    endpoint.will(wrapped, completion("Ada"))
    assert patient.reply(QUESTION).text == "Ada"
    assert waits.seconds == [1.0]


def test_a_cut_connection_is_tried_again(
    patient: OpenAIModel, endpoint: Endpoint, waits: Waits
) -> None:
    cut = Answer(200, completion("Ada").body, cut=True)
    endpoint.will(cut, completion("Ada"))
    assert patient.reply(QUESTION).text == "Ada"
    assert waits.retries[0].reason.startswith("RemoteProtocolError: peer closed connection")


def test_an_endpoint_that_says_nothing_is_given_up_after_the_last_attempt(
    patient: OpenAIModel, endpoint: Endpoint
) -> None:
    endpoint.will(Answer(silent=True))
    assert refused(patient, ModelUnavailableError) == (
        "The endpoint gave no reply in 3 attempts (the endpoint did not answer in time)."
        f"{where(endpoint)}\n"
        f"Do: Check that {endpoint.base_url} is the right address, or try again later."
    )


def test_an_endpoint_that_is_not_there_is_told_with_the_cause() -> None:
    model = OpenAIModel("m", base_url="http://127.0.0.1:9/v1", max_retries=0)
    assert refused(model, ModelUnavailableError, FINAL) == (
        "The endpoint gave no reply in 1 attempt (ConnectError: [Errno 111] Connection refused).\n"
        "Where: model m at http://127.0.0.1:9/v1\n"
        "Do: Check that http://127.0.0.1:9/v1 is the right address, or try again later."
    )
    model.close()


def test_waits_double_to_a_bound_and_chance_shortens_them(endpoint: Endpoint, waits: Waits) -> None:
    endpoint.will(Answer(500, "oops"))
    for chance in (0.0, 1.0):
        model = OpenAIModel(
            "m",
            base_url=endpoint.base_url,
            max_retries=7,
            sleep=waits.sleep,
            chance=lambda chance=chance: chance,
        )
        refused(model, ModelUnavailableError)
        model.close()
    assert waits.seconds[:7] == [1, 2, 4, 8, 16, 30, 30]
    assert waits.seconds[7:] == [0.5, 1, 2, 4, 8, 15, 15]


def test_closing_a_model_ends_its_waits(endpoint: Endpoint) -> None:
    endpoint.will(refusal(429, "Slow down", headers={"Retry-After": "60"}))
    waiting = threading.Event()
    model = OpenAIModel("m", base_url=endpoint.base_url, on_retry=lambda _: waiting.set())
    with ThreadPoolExecutor(1) as threads:
        call = threads.submit(model.reply, FINAL)
        assert waiting.wait(5)
        model.close()
        with pytest.raises(ModelUnavailableError, match=r"^The model was closed\."):
            call.result(5)
    model.close()


# Under an agent


def test_an_agent_answers_over_http_whatever_the_model_gets_wrong(
    shared: OpenAIModel, endpoint: Endpoint
) -> None:
    opera = Chunk("g.1", "g", "Griselda", "By Vivaldi.", 1, 1, ordinal_of(0, 0, 0), (11,), {})
    agent = Agent(Index(MemoryEngine([opera]), "memory"), load_preset("logical_read"), shared)
    query = '{"query": "griselda"}'
    endpoint.will(
        completion("Two at once.", ("logical_search", query), ("logical_search", query)),
        completion(None, ("logical_search", '{"query": "gris')),
        completion(None, ("google", "{}")),
        completion(None),
        completion(None, ("chunk_read", '{"chunk_ids": ["g.1"]}')),
        refusal(400, "too long", code="context_length_exceeded"),
        completion("Answer: Vivaldi\nExplanation: It says so.\nSources: g.1"),
    )
    record = agent.ask("Who wrote Griselda?", "q1")
    assert (record.status, record.failure, record.answer_short) == ("forced", None, "Vivaldi")
    assert [(step.tool_name, step.status) for step in record.trajectory] == [
        ("logical_search", "ok"),
        ("logical_search", "error"),
        ("google", "error"),
        ("chunk_read", "ok"),
    ]
    assert record.usage.source == "counted"
    assert ["tools" in sent for sent in endpoint.requests] == [True] * 6 + [False]
    for sent in endpoint.requests:  # what strict endpoints check
        calls = [call for one in sent["messages"] for call in one.get("tool_calls", ())]
        replies = [one["tool_call_id"] for one in sent["messages"] if one["role"] == "tool"]
        assert [call["id"] for call in calls] == replies
        assert all(isinstance(json.loads(call["function"]["arguments"]), dict) for call in calls)


def test_a_refused_key_is_a_failed_question_that_does_not_show_it(
    shared: OpenAIModel, endpoint: Endpoint
) -> None:
    opera = Chunk("g.1", "g", "Griselda", "By Vivaldi.", 1, 1, ordinal_of(0, 0, 0), (11,), {})
    agent = Agent(Index(MemoryEngine([opera]), "memory"), load_preset("logical_read"), shared)
    endpoint.will(refusal(401, f"Incorrect API key provided: {KEY}."))
    record = agent.ask("Who wrote Griselda?", "q1")
    assert record.status == "failed"
    assert (record.failure or "").startswith("ModelAccessError: The endpoint refused the key")
    assert KEY.encode() not in record.to_line()


# Options and secrets

WITH_SECRET = "base URL with a user, password or query (scheme, host, port, path)"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            {"base_url": "localhost:8000"},
            "base URL 'localhost:8000' (http:// or https://, host, path)",
        ),
        (
            {"base_url": "https://me:pass@host/v1"},
            WITH_SECRET,
        ),
        *(
            ({"base_url": url}, f"base URL {url!r} (http:// or https://, host, path)")
            for url in (
                "http://[bad/v1",
                "http://host:port/v1",
                "http://my host/v1",
                "http://h\t/v1",
            )
        ),
        ({"base_url": "http://me:pass@[bad/v1"}, WITH_SECRET),
        ({"name": " "}, "model '' (the endpoint's name of a model)"),
        ({"key": "sk-\u2026"}, "key with characters no HTTP header may hold (printable ASCII)"),
        ({"temperature": 2.5}, "temperature 2.5 (0 to 2)"),
        ({"top_p": float("nan")}, "top_p nan (0 to 1)"),
        ({"timeout_s": 0}, "timeout_s 0 (seconds above 0)"),
        ({"max_retries": -1}, "max_retries -1 (0 or more)"),
        ({"top_p": -1, "max_retries": -1}, "top_p -1 (0 to 1); max_retries -1 (0 or more)"),
    ],
)
def test_options_that_no_endpoint_takes_are_refused_together(
    options: dict[str, object], problem: str
) -> None:
    make: Callable[..., OpenAIModel] = OpenAIModel
    with pytest.raises(ConfigError) as raised:
        make(**{"name": "m", **options})
    assert str(raised.value) == f"No endpoint takes these options: {problem}."


def test_a_fingerprint_is_of_name_address_and_sampling_and_shows_no_key(
    shared: OpenAIModel, endpoint: Endpoint
) -> None:
    def model(name: str = "m", base_url: str = endpoint.base_url, **options: object) -> str:
        make: Callable[..., OpenAIModel] = OpenAIModel
        return make(name, base_url=base_url, **options).fingerprint

    assert model(timeout_s=3, max_retries=1) == shared.fingerprint
    assert model(base_url=endpoint.base_url + "/") == shared.fingerprint
    others = {model("n"), model(base_url="http://other/v1"), model(seed=1), model(temperature=0)}
    assert len({*others, shared.fingerprint}) == 5
    assert repr(shared) == f"OpenAIModel('m', base_url='{endpoint.base_url}')"


def test_a_key_is_in_no_error_nor_what_it_came_from(
    patient: OpenAIModel, endpoint: Endpoint
) -> None:
    for answer in (
        refusal(401, f"Incorrect API key provided: {KEY}"),
        Answer(400, f"Header was: Bearer {KEY}"),
        refusal(500, f"{KEY} crashed us"),
        Answer(200, f"echo {KEY}"),
    ):
        endpoint.will(answer)
        with pytest.raises(Exception, match=r"\[key\]") as raised:
            patient.reply(QUESTION)
        error: BaseException | None = raised.value
        while error is not None:
            assert KEY not in str(error) + json.dumps([str(part) for part in error.args])
            error = error.__cause__ or error.__context__
