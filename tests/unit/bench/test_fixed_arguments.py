"""A model with fixed values for some arguments of its tools."""

from __future__ import annotations

import json

from arag_search.agent.models.base import ModelReply, ModelRequest, ToolCall
from bench.ablation.agent_runs import FixedArguments
from tests.support.scripted_model import ScriptedModel

SCHEMA = {
    "type": "function",
    "function": {
        "name": "logical_search",
        "description": "Search.",
        "parameters": {
            "properties": {"query": {}, "top_k": {}, "default_operator": {}},
            "required": ["query"],
        },
    },
}


def test_fixed_arguments_are_added_to_calls_and_removed_from_the_schema() -> None:
    calls = (
        ToolCall("1", "logical_search", '{"query": "ö", "top_k": 3}'),
        ToolCall("2", "logical_search", "{broken"),
        ToolCall("3", "logical_search", "[1]"),
        ToolCall("4", "chunk_read", "{}"),
        ToolCall("5", "logical_search", ""),
    )
    inner = ScriptedModel([ModelReply("", calls)])
    fixed = {"logical_search": {"top_k": 10, "default_operator": "AND"}}
    model = FixedArguments(inner, fixed)
    reply = model.reply(ModelRequest((), (SCHEMA,)))
    arguments = [call.arguments for call in reply.tool_calls]
    assert json.loads(arguments[0]) == {"query": "ö", "top_k": 10, "default_operator": "AND"}
    assert arguments[1:4] == ["{broken", "[1]", "{}"]
    assert json.loads(arguments[4]) == fixed["logical_search"]
    (tool,) = inner.requests[0].tools
    assert list(tool["function"]["parameters"]["properties"]) == ["query"]
    assert tool["function"]["description"] == (
        'Search.\nSet already, not to be given: top_k 10, default_operator "AND".'
    )
    assert "top_k" in SCHEMA["function"]["parameters"]["properties"]  # pyright: ignore
    assert model.fingerprint != FixedArguments(inner, {"logical_search": {"top_k": 5}}).fingerprint
    assert model.name == "scripted"
