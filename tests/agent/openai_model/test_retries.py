"""Failed requests are retried, a bounded number of times and after bounded waits."""

from __future__ import annotations

import email.utils
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from arag_search.agent.models.openai import OpenAIModel
from arag_search.endpoints.calls import Retry
from arag_search.errors import ModelUnavailableError
from tests.support.endpoint import Answer, Endpoint, completion, refusal
from tests.support.openai_asking import FINAL, QUESTION, WaitLog, raised_message, where_line
from tests.support.patience import PATIENCE_S


def limit(**headers: str) -> Answer:
    """Return a refusal for too many requests, with headers whose names have _ for -."""
    return refusal(
        429, "Slow down", headers={name.replace("_", "-"): text for name, text in headers.items()}
    )


GOOGLE = {
    "code": 429, "status": "RESOURCE_EXHAUSTED", "message": "Quota",
    "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "37s"}],
}  # fmt: skip
OOPS = "<h1>oops</h1>"


def under_200(error: dict[str, object]) -> list[tuple[Answer, float, str]]:
    """Return rows of an error that comes with a good status, alone or beside half a reply."""
    half = {"choices": [{"error": error, "message": {"content": "Half"}}]}
    return [(Answer(200, body), 1.0, "x") for body in ({"error": error}, half)]


@pytest.mark.parametrize(
    ("answer", "wait_s", "reason"),
    [
        (limit(), 1.0, "Slow down"),
        (limit(Retry_After="7"), 7.0, "Slow down"),
        (limit(Retry_After="0"), 0.0, "Slow down"),
        (limit(Retry_After="37s"), 37.0, "Slow down"),
        (limit(Retry_After="-4"), 0.0, "Slow down"),
        (limit(Retry_After="soon"), 1.0, "Slow down"),
        (limit(Retry_After="nan"), 1.0, "Slow down"),
        (limit(Retry_After="2", Retry_After_Ms="1500"), 1.5, "Slow down"),
        (Answer(429, [{"error": GOOGLE}]), 37.0, "Quota"),
        *((Answer(status, OOPS), 1.0, OOPS) for status in (408, 500, 502, 503, 529)),
        (refusal(498, "Flex tier capacity exceeded"), 1.0, "Flex tier capacity exceeded"),
        (Answer(200, completion("Ada").body, cut=True), 1.0, "RemoteProtocolError: peer closed"),
        *under_200({"code": "server_error", "message": "x"}),
        *under_200({"code": "502", "message": "x"}),
        *under_200({"code": 503, "message": "x"}),
        *under_200({"type": "overloaded_error", "message": "x"}),
        *under_200({"code": "rate_limit_exceeded", "message": "x"}),
    ],
)
def test_a_passing_failure_is_retried_after_the_wait_that_is_asked_for(
    patient: OpenAIModel,
    endpoint: Endpoint,
    waits: WaitLog,
    answer: Answer,
    wait_s: float,
    reason: str,
) -> None:
    endpoint.reply_with(answer, completion("Ada"))
    assert patient.reply(QUESTION).text == "Ada"
    assert waits.seconds == [wait_s]
    (retry,) = waits.retries
    assert retry.reason.startswith(reason)
    assert replace(retry, reason="") == Retry("q1", 1, 3, "", wait_s)


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


def test_a_silent_endpoint_is_given_up_after_the_last_attempt(
    endpoint: Endpoint, waits: WaitLog
) -> None:
    endpoint.reply_with(Answer(silent=True))
    model = OpenAIModel(
        "m", base_url=endpoint.base_url, timeout_s=0.1, max_retries=2, sleep=waits.sleep
    )
    assert raised_message(model, ModelUnavailableError) == (
        "The endpoint gave no reply in 3 attempts "
        f"(the endpoint did not answer in full within 0.1 s).{where_line(endpoint)}\n"
        f"Do: Check that {endpoint.base_url} is the right address, or try again later."
    )
    model.close()


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
