"""Requests to an endpoint on loopback, with their waits and errors."""

from __future__ import annotations

import pytest

from arag_search.agent.models.base import ChatModel, Message, ModelRequest
from arag_search.endpoints.calls import Retry
from tests.support.endpoint import Endpoint

KEY = "sk-very-secret"
SEARCH = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}
QUESTION = ModelRequest([Message("user", "Who?")], [SEARCH], question_id="q1")
FINAL = ModelRequest([Message("user", "Who?")])


class WaitLog:
    """A log of waits, which takes the place of sleeping."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.retries: list[Retry] = []

    def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)


def fail_on_wait(seconds: float) -> None:
    raise AssertionError(f"waited {seconds} s")


def where_line(endpoint: Endpoint) -> str:
    return f"\nWhere: question q1, model m at {endpoint.base_url}"


def raised_message(
    model: ChatModel, error: type[Exception], request: ModelRequest = QUESTION
) -> str:
    with pytest.raises(error) as raised:
        model.reply(request)
    assert type(raised.value) is error
    return str(raised.value)
