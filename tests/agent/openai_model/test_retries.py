"""Failed requests are retried, a bounded number of times and after bounded waits."""

from __future__ import annotations

import email.utils
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from arag_search.agent.models.openai import OpenAIModel
from arag_search.endpoints.calls import Retry
from arag_search.errors import (
    ModelUnavailableError,
)
from tests.support.endpoint import Answer, Endpoint, completion, refusal
from tests.support.openai_asking import FINAL, QUESTION, WaitLog, raised_message, where_line
from tests.support.patience import PATIENCE_S


def test_a_rate_limit_is_waited_out_as_long_as_the_endpoint_says(
    patient: OpenAIModel, endpoint: Endpoint, waits: WaitLog
) -> None:
    endpoint.reply_with(refusal(429, "Slow down", headers={"Retry-After": "7"}), completion("Ada"))
    assert patient.reply(QUESTION).text == "Ada"
    assert waits.seconds == [7.0]
    assert waits.retries == [Retry("q1", 1, 3, "Slow down", 7.0)]


@pytest.mark.parametrize(
    ("headers", "expected_s"),
    [
        ({"Retry-After": "0"}, 0.0),
        ({"Retry-After": "37s"}, 37.0),
        ({"Retry-After": "-4"}, 0.0),
        ({"Retry-After": "soon"}, 1.0),
        ({"Retry-After": "nan"}, 1.0),
        ({"Retry-After": "2", "Retry-After-Ms": "1500"}, 1.5),
        ({}, 1.0),
    ],
)
def test_retry_after_is_seconds(
    patient: OpenAIModel,
    endpoint: Endpoint,
    waits: WaitLog,
    headers: dict[str, str],
    expected_s: float,
) -> None:
    endpoint.reply_with(refusal(429, "Slow down", headers=headers), completion("Ada"))
    patient.reply(QUESTION)
    assert waits.seconds == [expected_s]


def test_the_delay_that_google_asks_for_is_read(
    patient: OpenAIModel, endpoint: Endpoint, waits: WaitLog
) -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "37s"}]
    error = {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "Quota", "details": details}
    endpoint.reply_with(Answer(429, [{"error": error}]), completion("Ada"))
    assert patient.reply(QUESTION).text == "Ada"
    assert waits.seconds == [37.0]


def test_a_wait_that_is_too_long_fails_at_once_and_says_when_to_come_back(
    patient: OpenAIModel, endpoint: Endpoint, waits: WaitLog
) -> None:
    endpoint.reply_with(refusal(429, "Slow down", headers={"Retry-After": "7500"}))
    assert raised_message(patient, ModelUnavailableError) == (
        "The endpoint asks to wait 2 h 5 min (status 429): Slow down"
        f"{where_line(endpoint)}\n"
        "Allowed: waits of up to 120 s\n"
        "Do: Run the same command again in 2 h 5 min."
    )
    assert (waits.seconds, len(endpoint.requests)) == ([], 1)


def test_retry_after_may_be_a_date(
    patient: OpenAIModel, endpoint: Endpoint, waits: WaitLog
) -> None:
    date = email.utils.formatdate(time.time() + 40, usegmt=True)
    endpoint.reply_with(refusal(503, "Later", headers={"Retry-After": date}), completion("Ada"))
    patient.reply(QUESTION)
    assert 35 < waits.seconds[0] <= 40


def test_a_rate_limit_without_end_is_reported_with_the_attempts(
    patient: OpenAIModel, endpoint: Endpoint, waits: WaitLog
) -> None:
    endpoint.reply_with(refusal(429, "Slow down"))
    assert raised_message(patient, ModelUnavailableError) == (
        f"The endpoint gave no reply in 3 attempts (status 429: Slow down).{where_line(endpoint)}\n"
        "Do: Try again later, or with fewer workers."
    )
    assert len(endpoint.requests) == 3
    assert waits.seconds == [1.0, 2.0]


@pytest.mark.parametrize("status", [408, 500, 502, 503, 529])
def test_transient_statuses_are_retried(
    patient: OpenAIModel, endpoint: Endpoint, waits: WaitLog, status: int
) -> None:
    endpoint.reply_with(Answer(status, "<h1>oops</h1>"), completion("Ada"))
    assert patient.reply(QUESTION).text == "Ada"
    assert [retry.reason for retry in waits.retries] == ["<h1>oops</h1>"]


def test_an_error_of_a_gateway_under_status_200_counts_as_the_status_it_names(
    patient: OpenAIModel, endpoint: Endpoint, waits: WaitLog
) -> None:
    answer = Answer(200, {"error": {"message": "Provider is down", "code": 502}})
    endpoint.reply_with(answer, completion("Ada"))
    assert patient.reply(QUESTION).text == "Ada"
    assert waits.seconds == [1.0]


def test_a_broken_connection_is_retried(
    patient: OpenAIModel, endpoint: Endpoint, waits: WaitLog
) -> None:
    answer = Answer(200, completion("Ada").body, cut=True)
    endpoint.reply_with(answer, completion("Ada"))
    assert patient.reply(QUESTION).text == "Ada"
    assert waits.retries[0].reason.startswith("RemoteProtocolError: peer closed connection")


def test_a_silent_endpoint_is_given_up_after_the_last_attempt(
    patient: OpenAIModel, endpoint: Endpoint
) -> None:
    endpoint.reply_with(Answer(silent=True))
    assert raised_message(patient, ModelUnavailableError) == (
        "The endpoint gave no reply in 3 attempts (the endpoint did not answer in time)."
        f"{where_line(endpoint)}\n"
        f"Do: Check that {endpoint.base_url} is the right address, or try again later."
    )


def test_an_absent_endpoint_is_reported_with_the_cause() -> None:
    model = OpenAIModel("m", base_url="http://127.0.0.1:9/v1", max_retries=0)
    assert raised_message(model, ModelUnavailableError, FINAL) == (
        "The endpoint gave no reply in 1 attempt (ConnectError: [Errno 111] Connection refused).\n"
        "Where: model m at http://127.0.0.1:9/v1\n"
        "Do: Check that http://127.0.0.1:9/v1 is the right address, or try again later."
    )
    model.close()


def test_waits_double_to_a_bound_and_chance_shortens_them(
    endpoint: Endpoint, waits: WaitLog
) -> None:
    endpoint.reply_with(Answer(500, "oops"))
    for chance in (0.0, 1.0):
        model = OpenAIModel(
            "m",
            base_url=endpoint.base_url,
            max_retries=7,
            sleep=waits.sleep,
            chance=lambda chance=chance: chance,
        )
        raised_message(model, ModelUnavailableError)
        model.close()
    assert waits.seconds[:7] == [1, 2, 4, 8, 16, 30, 30]
    assert waits.seconds[7:] == [0.5, 1, 2, 4, 8, 15, 15]


def test_closing_a_model_ends_its_waits(endpoint: Endpoint) -> None:
    endpoint.reply_with(refusal(429, "Slow down", headers={"Retry-After": "60"}))
    waiting = threading.Event()
    model = OpenAIModel("m", base_url=endpoint.base_url, on_retry=lambda _: waiting.set())
    with ThreadPoolExecutor(1) as threads:
        call = threads.submit(model.reply, FINAL)
        assert waiting.wait(PATIENCE_S)
        model.close()
        with pytest.raises(ModelUnavailableError, match=r"^The model was closed\."):
            call.result(30)  # less than the wait
    model.close()


@pytest.mark.parametrize(
    "error",
    [
        {"code": "server_error", "message": "x"},
        {"code": "502", "message": "x"},
        {"code": 503, "message": "x"},
        {"type": "overloaded_error", "message": "x"},
        {"code": "rate_limit_exceeded", "message": "x"},
    ],
)
def test_an_error_with_a_good_status_is_retried_as_its_code_says(
    patient: OpenAIModel, endpoint: Endpoint, waits: WaitLog, error: dict[str, object]
) -> None:
    half = {"choices": [{"error": error, "message": {"content": "Half"}}]}
    for body in ({"error": error}, half):
        endpoint.reply_with(Answer(200, body), completion("Ada"))
        assert patient.reply(QUESTION).text == "Ada"
    assert len(waits.seconds) == 2
