"""A model for which the suite chooses some arguments of the tools."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any, cast

import orjson

from arag_search.agent.models.base import ChatModel, ModelReply, ModelRequest, ToolCall

Fixed = Mapping[str, Mapping[str, Any]]
"""Tool -> argument -> value."""


class FixedArguments:
    """A ChatModel that forwards requests to another one: the descriptions of the tools name the
    fixed arguments, their schemas lack them, and they are added to the calls that the model makes.

    Fixed arguments win over those that a model writes nevertheless. A call whose arguments are not
    a JSON object is forwarded unchanged.
    """

    def __init__(self, model: ChatModel, fixed: Fixed) -> None:
        self._model = model
        self._fixed = fixed
        self.name = model.name
        digest = hashlib.sha256(orjson.dumps(fixed, option=orjson.OPT_SORT_KEYS)).hexdigest()
        self.fingerprint = f"{model.fingerprint} arguments={digest[:16]}"

    def reply(self, request: ModelRequest) -> ModelReply:
        tools = tuple(self._without_fixed(schema) for schema in request.tools)
        reply = self._model.reply(replace(request, tools=tools))
        return replace(reply, tool_calls=tuple(self._completed(call) for call in reply.tool_calls))

    def close(self) -> None:
        self._model.close()

    def _without_fixed(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        fixed = self._fixed.get(schema["function"]["name"])
        if not fixed:
            return schema
        copied = deepcopy(dict(schema))
        settings = ", ".join(
            f"{name} {orjson.dumps(value).decode()}" for name, value in fixed.items()
        )
        copied["function"]["description"] += f"\nSet already, not to be given: {settings}."
        parameters = copied["function"]["parameters"]
        for name in fixed:
            parameters["properties"].pop(name, None)
        if "required" in parameters:
            parameters["required"] = [name for name in parameters["required"] if name not in fixed]
        return copied

    def _completed(self, call: ToolCall) -> ToolCall:
        fixed = self._fixed.get(call.name)
        if not fixed:
            return call
        try:
            arguments = orjson.loads(call.arguments or "{}")
        except orjson.JSONDecodeError:
            return call
        if not isinstance(arguments, dict):
            return call
        whole = {**cast(dict[str, Any], arguments), **fixed}
        return replace(call, arguments=orjson.dumps(whole).decode())
