"""Models without a network: scripted, recorded, and how one is chosen."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from arag_search.agent.models.base import ChatModel, Message, ModelReply, ModelRequest
from arag_search.agent.models.scripted import ScriptedModel
from arag_search.errors import ModelReplyError, ModelUnavailableError


def asked(*texts: str, question_id: str = "") -> ModelRequest:
    return ModelRequest([Message("user", text) for text in texts], question_id=question_id)


def test_a_script_is_given_out_in_order_and_its_exceptions_are_raised() -> None:
    model: ChatModel = ScriptedModel(
        [ModelReply("one"), ModelUnavailableError("busy"), ModelReply("two")]
    )
    assert model.reply(asked("a")).text == "one"
    with pytest.raises(ModelUnavailableError, match=r"^busy$"):
        model.reply(asked("b"))
    assert model.reply(asked("c")).text == "two"


def test_a_script_that_is_over_says_how_long_it_was() -> None:
    model = ScriptedModel([ModelReply("one")])
    model.reply(asked("a"))
    with pytest.raises(ModelReplyError) as refused:
        model.reply(asked("b", question_id="q7"))
    assert str(refused.value) == (
        "The script is over: it has 1 replies, and reply 2 was asked for.\nWhere: question q7"
    )
    assert [request.messages[0].content for request in model.requests] == ["a", "b"]


def test_a_script_may_be_a_function_of_the_request() -> None:
    model = ScriptedModel(lambda request: ModelReply(request.messages[-1].content.upper()))
    assert model.reply(asked("a", "b")).text == "B"


def test_threads_share_a_script_and_each_reply_is_given_once() -> None:
    model = ScriptedModel([ModelReply(str(number)) for number in range(100)], delay_s=0.0001)
    with ThreadPoolExecutor(8) as threads:
        replies = list(threads.map(lambda _: model.reply(asked("a")).text, range(100)))
    assert sorted(replies, key=int) == [str(number) for number in range(100)]
