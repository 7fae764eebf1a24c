"""A model that does not choose some arguments of its tools: the suite does."""

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
    """Passes requests on to a model, which is told what is fixed in the descriptions of the tools,
    finds no such argument in their schemas, and has it added to the calls that it makes.

    What is fixed wins over what a model writes all the same. A call whose arguments are no JSON
    object is passed on as it is.
    """

    def __init__(self, model: ChatModel, fixed: Fixed) -> None:
        self._model = model
        self._fixed = fixed
        self.name = model.name
        digest = hashlib.sha256(orjson.dumps(fixed, option=orjson.OPT_SORT_KEYS)).hexdigest()
        self.fingerprint = f"{model.fingerprint} arguments={digest[:16]}"

    def reply(self, request: ModelRequest) -> ModelReply:
        """See ChatModel."""
        tools = tuple(self._without_fixed(one) for one in request.tools)
        given = self._model.reply(replace(request, tools=tools))
        return replace(given, tool_calls=tuple(self._completed(one) for one in given.tool_calls))

    def close(self) -> None:
        """See ChatModel."""
        self._model.close()

    def _without_fixed(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        fixed = self._fixed.get(schema["function"]["name"])
        if not fixed:
            return schema
        copied = deepcopy(dict(schema))
        told = ", ".join(f"{name} {orjson.dumps(value).decode()}" for name, value in fixed.items())
        copied["function"]["description"] += f"\nSet already, not to be given: {told}."
        parameters = copied["function"]["parameters"]
        for name in fixed:
            parameters["properties"].pop(name, None)
        if "required" in parameters:
            parameters["required"] = [one for one in parameters["required"] if one not in fixed]
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
