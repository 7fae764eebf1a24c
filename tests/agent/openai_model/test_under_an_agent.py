"""OpenAIModel under an agent, and its options."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from arag_search.agent.loop import Agent
from arag_search.agent.models.openai import OpenAIModel
from arag_search.cli.output.answers import trajectory_text
from arag_search.corpus import Chunk, ordinal_of
from arag_search.errors import ConfigError
from arag_search.search.index import Index
from arag_search.tools.preset_files import load_preset
from tests.support.endpoint import Endpoint, completion, refusal
from tests.support.oracle.engine import MemoryEngine

# Under an agent


def agent_of(model: OpenAIModel) -> Agent:
    """Return an agent over an index of one passage."""
    opera = Chunk("g.1", "g", "Griselda", "By Vivaldi.", 1, 1, ordinal_of(0, 0, 0), (11,), {})
    return Agent(Index(MemoryEngine([opera]), "memory"), load_preset("logical_read"), model)


def test_an_agent_answers_over_http_whatever_the_model_gets_wrong(
    shared: OpenAIModel, endpoint: Endpoint
) -> None:
    agent = agent_of(shared)
    query = '{"query": "griselda"}'
    endpoint.reply_with(
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
        ("logical_search", "ok"),
        ("logical_search", "error"),
        ("google", "error"),
        ("chunk_read", "ok"),
    ]
    assert record.usage.source == "counted"
    # Some servers refuse a history with calls where the tools are missing.
    assert all("tools" in request for request in endpoint.requests)
    choices = [request.get("tool_choice") for request in endpoint.requests]
    assert choices == [None] * 6 + ["none"]
    for request in endpoint.requests:  # Strict endpoints check these.
        calls = [call for message in request["messages"] for call in message.get("tool_calls", ())]
        replies = [
            message["tool_call_id"] for message in request["messages"] if message["role"] == "tool"
        ]
        assert [call["id"] for call in calls] == replies
        assert all(isinstance(json.loads(call["function"]["arguments"]), dict) for call in calls)


def test_a_call_that_the_server_did_not_read_is_run_and_recorded_as_such(
    shared: OpenAIModel, endpoint: Endpoint
) -> None:
    agent = agent_of(shared)
    written = '{"name": "logical_search", "arguments": {"query": "griselda"}}'
    endpoint.reply_with(
        completion(f"<think>Search.</think><tool_call>{written}</tool_call>"),
        completion("<think>Found.</think>Answer: Vivaldi\nSources: g.1"),
    )
    record = agent.ask("Who wrote Griselda?", "q1")
    assert (record.status, record.answer_short, record.cited_ids) == (
        "answered", "Vivaldi", ("g.1",),
    )  # fmt: skip
    (step,) = record.trajectory
    assert (step.tool_name, step.status, step.from_text) == ("logical_search", "ok", True)
    assert written in step.reasoning
    assert "the call was read from text" in trajectory_text(record, "m")


# Options

WITH_SECRET = "base URL with a user, password or query (scheme, host, port, path)"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            {"base_url": "localhost:8000"},
            "base URL 'localhost:8000' (http:// or https://, host, path)",
        ),
        ({"base_url": "https://me:pass@host/v1"}, WITH_SECRET),
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


def test_a_fingerprint_covers_name_address_and_sampling_and_shows_no_key(
    shared: OpenAIModel, endpoint: Endpoint
) -> None:
    def fingerprint(name: str = "m", base_url: str = endpoint.base_url, **options: object) -> str:
        make: Callable[..., OpenAIModel] = OpenAIModel
        return make(name, base_url=base_url, **options).fingerprint

    assert fingerprint(timeout_s=3, max_retries=1) == shared.fingerprint
    assert fingerprint(base_url=endpoint.base_url + "/") == shared.fingerprint
    others = {
        fingerprint("n"),
        fingerprint(base_url="http://other/v1"),
        fingerprint(seed=1),
        fingerprint(temperature=0),
    }
    assert len({*others, shared.fingerprint}) == 5
    assert repr(shared) == f"OpenAIModel('m', base_url='{endpoint.base_url}')"
