"""What a reply of a model is: an answer, calls, thoughts, broken off, or nothing.

Endpoints differ in what they add, leave out and name otherwise. This module decides from the whole
structure of a reply, so that the agent sees only the verdict. Only known endings end a reply well.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Collection, Iterator, Mapping
from typing import Any, cast

from arag_search.agent.models.base import ModelReply, ToolCall, Usage
from arag_search.endpoints.refusals import fields_of, items_of
from arag_search.tools.registry import meant_tool

_MAX_DIGITS = 4_000  # Python converts no more than 4,300
_GOOD_ENDINGS = frozenset(
    {
        *("", "stop", "tool_calls", "function_call", "eos"),  # OpenAI's, and none
        *("eos_token", "stop_sequence", "end_turn", "tool_use", "complete"),  # passed through
    }
)
_CUTS = {
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
}
"""Other names of OpenAI's two endings of an incomplete reply, which servers pass on."""

_THOUGHTS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|channel|>analysis<|message|>", "<|end|>"),
)
"""How models mark thoughts that their server does not set apart."""
_FINAL = re.compile(
    r"\s*(?:<\|start\|>assistant)?<\|channel\|>final(?:<\|constrain\|>\w+)?<\|message\|>"
)
_WRAPPED = re.compile(
    r"\s*(?:<(answer|final_answer|response)>(.*)</\1>|<\|begin_of_box\|>(.*)<\|end_of_box\|>)\s*",
    re.DOTALL,
)
"""An answer that a model puts between marks, with nothing outside them."""
_END_MARKS = ("<|return|>", "<|end|>", "<|eot_id|>", "<|im_end|>", "<|END_RESPONSE|>")
_THOUGHT_PARTS = ("reasoning", "thinking", "thought", "reasoning_text", "redacted_thinking")

_RAW_CALLS = (
    re.compile(r"<tool_call>(?P<json>.*?)</tool_call>", re.DOTALL),
    re.compile(r"<\|tool_call\|>(?P<json>.*?)(?:<\|/tool_call\|>|\Z)", re.DOTALL),
    re.compile(r"<function=(?P<name>[\w.:-]+)>(?P<json>.*?)</function>", re.DOTALL),
    re.compile(
        r"\[TOOL_CALLS\]\s*(?P<name>[\w.:-]+)\s*\[ARGS\]\s*(?P<json>\{.*?\})"
        r"(?=\s*(?:\[TOOL_CALLS\]|\Z))",
        re.DOTALL,
    ),
    re.compile(r"\[TOOL_CALLS\]\s*(?P<json>[\[{].*[\]}])", re.DOTALL),
    re.compile(
        r"(?:<\|start\|>assistant)?<\|channel\|>commentary to=(?P<name>[\w.:-]+)[^{]*"
        r"(?P<json>\{.*\})\s*(?:<\|call\|>)?",
        re.DOTALL,
    ),
    re.compile(
        r"(?:<\|(?:python_tag|python_start|action_start|START_ACTION)\|>(?:\s*<\|plugin\|>)?"
        r"|functools)"
        r"\s*(?P<json>[\[{].*[\]}])\s*(?:<\|(?:python_end|action_end|END_ACTION)\|>)?",
        re.DOTALL,
    ),
    re.compile(r"<\|tool_call>call:(?P<name>[\w.:-]+)(?P<json>\{.*?\})<tool_call\|>", re.DOTALL),
    re.compile(r"<tool_call>\s*(?P<name>[\w.:-]+)\s*(?P<json>.*?)</tool_call>", re.DOTALL),
    re.compile(
        r"(?:<(?!/|invoke)[^<>]*>\s*)?<(?:｜DSML｜)?invoke name=\"(?P<name>[\w.:-]+)\">"
        r"(?P<json>.*?)</(?:｜DSML｜)?invoke>(?:\s*</[^<>]*>)?",
        re.DOTALL,
    ),
    re.compile(
        r"(?:<[|｜]tool.calls[^<>]*>\s*)?<[|｜]tool.call.begin[|｜]>(?:function<｜tool.sep｜>)?"
        r"(?P<name>[\w.:-]+)\s*(?:<[^<>]*>)?[^{<]*(?P<json>\{.*?\})[\s`]*"
        r"<[|｜]tool.call.end[|｜]>(?:\s*<[|｜]tool.calls[^<>]*>)?",
        re.DOTALL,
    ),
    re.compile(
        r"Action:\s*(?P<name>[\w.:-]+)\s*Action Input:\s*(?P<json>\{.*?\})(?=\s*(?:Action:|\Z))",
        re.DOTALL,
    ),
    re.compile(r"<tool_code>(?P<json>.*?)</tool_code>", re.DOTALL),
    re.compile(r"```(?:json|tool_call|tool_code|python)?\s*(?P<json>.*?)\s*```", re.DOTALL),
    re.compile(r"(?P<json>[\[{].*[\]}]|[\w.]+\(.*\))", re.DOTALL),
)
"""How models write calls that their server does not read: Hermes and Qwen, Granite, Llama, Mistral,
harmony, Phi, Cohere, InternLM, Gemma, GLM, MiniMax, DeepSeek and Kimi, ReAct, and plain JSON or
Python."""
_MARKUP = re.compile(
    r"<tool_call>|<\|?tool_calls?(?:_section)?(?:_begin)?\|>|<function=|<｜tool|\[TOOL_CALLS\]"
    r"|<\|(?:python_tag|python_start|action_start|START_ACTION)\|>|<\|tool_call>call:"
    r"|<\|channel\|>commentary to=|<(?:[\w:]+:|｜DSML｜)?(?:function_calls|tool_call|invoke)\b"
    r"|<tool_code>|```tool_c",
)
_PARAMETERS = re.compile(
    r"<(?:｜DSML｜)?parameter(?:=| name=\")(\w+)\"?[^<>]*>\n?(.*?)\n?</(?:｜DSML｜)?parameter>"
    r"|<arg_key>\s*(\w+)\s*</arg_key>\s*<arg_value>\n?(.*?)\n?</arg_value>",
    re.DOTALL,
)
_SPACE = re.compile(r"\s*")
_BETWEEN_CALLS = re.compile(r"[ \n,;]*")
_BETWEEN_VALUES = re.compile(r"[ \n\t,;]*")
_DECODER = json.JSONDecoder()
_FUNCTION = re.compile(r"<function=(?P<name>[\w.:-]+)>")


def read_reply(body: str, position: int, offered: Collection[str] = ()) -> ModelReply:
    """Return the reply in the body of a response to a request that ``offered`` tools.

    Arguments stay as the model wrote them. A call without an id gets one, made from ``position``
    (the number of messages so far) and its number in the reply. A body without a reply is an empty
    one. Raises ValueError, saying what is wrong, for a body that is no chat completion, or one that
    holds an error.
    """
    text = body.removeprefix("\ufeff").strip()
    if not text:
        return ModelReply("")
    if text.startswith(("data:", "event:", ":")):
        raise ValueError(
            "The endpoint's reply is an event stream, although the request asked for one piece"
        )
    try:
        content: object = json.loads(text, parse_int=_number)
    except (ValueError, RecursionError):
        raise ValueError("The endpoint's reply is not JSON") from None
    completion = fields_of(content)
    if "choices" not in completion or completion.get("error"):
        raise ValueError("The endpoint's reply holds no choices")
    choices = completion["choices"]
    if choices is not None and not isinstance(choices, list):
        raise ValueError("The endpoint's reply is not a chat completion (at choices)")
    choice = fields_of(next(iter(cast(list[object], choices or ())), None))
    if choice.get("error"):
        raise ValueError("The endpoint's reply broke off with an error")
    return _understood(choice, position, offered, _usage(completion.get("usage")))


def _understood(
    choice: Mapping[str, object], position: int, offered: Collection[str], usage: Usage | None
) -> ModelReply:
    message = fields_of(choice.get("message"))
    written, thoughts = _text_and_thoughts(message)
    text, own_thoughts = split_thoughts(written)
    calls = _calls(message, position, offered)
    reason = choice.get("finish_reason")
    ending = reason.lower() if isinstance(reason, str) else ""
    is_unread = False
    if not calls:
        calls = raw_calls(text, position, offered)
        is_unread = not calls and (
            _is_markup(text, offered) or (ending in ("tool_calls", "tool_use") and not text.strip())
        )
    from_text = bool(calls) and calls[0].from_text
    refusal = message.get("refusal")
    reasoning = "\n".join(filter(None, (thoughts, own_thoughts, text if from_text else "")))
    return ModelReply(
        text="" if from_text else text or (refusal if isinstance(refusal, str) else ""),
        tool_calls=calls,
        reasoning=reasoning,
        usage=usage,
        cut=None if ending in _GOOD_ENDINGS else _CUTS.get(ending, ending),
        is_unread=is_unread,
    )


# Text and thoughts


def _text_and_thoughts(message: Mapping[str, object]) -> tuple[str, str]:
    """Return the text of a message, and what the endpoint sets apart from it."""
    thoughts = next(
        (
            value
            for value in (message.get("reasoning_content"), message.get("reasoning"))
            if isinstance(value, str) and value
        ),
        "",
    )
    content = message.get("content")
    if isinstance(content, dict):
        content = [cast(object, content)]
    if not isinstance(content, list):
        return (content if isinstance(content, str) else ""), thoughts
    texts: list[str] = []
    for part in cast(list[object], content):
        fields = fields_of(part)
        value = part if isinstance(part, str) else fields.get("text")
        if fields.get("type") in _THOUGHT_PARTS:
            own = value or fields.get("thinking") or fields.get("reasoning")
            thoughts += own if isinstance(own, str) else ""
        elif isinstance(value, str):
            texts.append(value)
    return "".join(texts), thoughts


def split_thoughts(text: str) -> tuple[str, str]:
    """Return a text without the thoughts at its beginning, and these thoughts.

    Thoughts stand between a pair of marks. A mark that is never closed makes all of the text
    thoughts; one that nothing opens, and every mark behind other text, is text.
    """
    thoughts: list[str] = []
    at = 0
    while True:
        begin = _behind(_SPACE, text, at)
        pair = next((pair for pair in _THOUGHTS if text.startswith(pair[0], begin)), None)
        if pair is None:
            break
        opening, closing = pair
        begin += len(opening)
        end = text.find(closing, begin)
        thoughts.append(text[begin : end if end >= 0 else None].strip())
        at = end + len(closing) if end >= 0 else len(text)
    rest = text[at:]
    if final := _FINAL.match(rest):
        rest = rest[final.end() :]
    if thoughts or final:
        rest = rest.lstrip()
    ended = rest.rstrip()
    if mark := next(filter(ended.endswith, _END_MARKS), ""):
        rest = ended.removesuffix(mark).rstrip()
    if wrapped := _WRAPPED.fullmatch(rest):
        rest = (wrapped[2] or wrapped[3] or "").strip()
    return rest, "\n".join(filter(None, thoughts))


# Calls


def _calls(
    message: Mapping[str, object], position: int, offered: Collection[str]
) -> tuple[ToolCall, ...]:
    calls: list[ToolCall] = []
    for number, item in enumerate(items_of(message.get("tool_calls")), 1):
        call = fields_of(item)
        function = fields_of(call.get("function"))
        id_, name = call.get("id"), function.get("name")
        calls.append(
            ToolCall(
                id=f"call_{position}_{number}" if id_ in (None, "") else str(id_),
                name=meant_tool(name if isinstance(name, str) else "", offered),
                arguments=_arguments(function.get("arguments")),
            )
        )
    return tuple(calls)


def raw_calls(text: str, position: int, offered: Collection[str]) -> tuple[ToolCall, ...]:
    """Return the calls of offered tools that a text is, in one of the forms in which models write
    them; none if the text is anything else as well."""
    text = text.strip()
    for form in _RAW_CALLS:
        named = [pair for match in _matches(form, text) for pair in _named_arguments(match)]
        names = [meant_tool(name, offered) for name, _ in named]
        if named and set(names) <= set(offered):
            return tuple(
                ToolCall(f"call_{position}_{number}", name, arguments, from_text=True)
                for number, (name, (_, arguments)) in enumerate(zip(names, named, strict=True), 1)
            )
    return ()


def _matches(form: re.Pattern[str], text: str) -> list[re.Match[str]]:
    """Return the matches of a form that a text is, one after another; none if it is anything else.
    Where it breaks off, nothing behind is tried. O(text)."""
    matches: list[re.Match[str]] = []
    at = _behind(_BETWEEN_CALLS, text, 0)
    while at < len(text):
        match = form.match(text, at)
        if match is None:
            return []
        matches.append(match)
        at = _behind(_BETWEEN_CALLS, text, match.end())
    return matches


def _named_arguments(match: re.Match[str]) -> Iterator[tuple[str, str]]:
    """Yield name and arguments of each call in a piece of markup; an empty name for none."""
    groups = match.groupdict()
    name, inner = groups.get("name"), groups["json"].strip()
    if function := _FUNCTION.search(inner):
        name = function["name"]
    if name and (given := list(_PARAMETERS.finditer(inner))):
        yield name, json.dumps({item[1] or item[3]: item[2] or item[4] or "" for item in given})
        return
    values: list[object] = [{}] if name and not inner else _values(inner) or _python_calls(inner)
    if name and len(values) == 1:
        yield name, _arguments(values[0])
        return
    if len(values) == 1:
        listed = fields_of(values[0]).get("tool_calls", values[0])
        values = cast(list[object], listed) if isinstance(listed, list) else values
    if not values or name:
        yield "", ""
    for item in values:
        fields = fields_of(item)
        fields = fields_of(fields.get("function")) or fields
        written = next(
            (fields[key] for key in ("arguments", "parameters", "args") if key in fields), None
        )
        own = fields.get("name", fields.get("tool_name"))
        yield (own if isinstance(own, str) and written is not None else ""), _arguments(written)


def _values(text: str) -> list[object]:
    """Return the JSON values that a text is, one after another; none if it is anything else."""
    values: list[object] = []
    at = 0
    while at < len(text):
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return []
        values.append(value)
        at = _behind(_BETWEEN_VALUES, text, at)
    return values


def _python_calls(text: str) -> list[object]:
    """Return the calls that a text writes as Python does, printed or in a list or one in each line;
    none if it is anything else."""
    if "(" not in text:
        return []
    calls: list[object] = []
    try:
        with warnings.catch_warnings(action="ignore"):
            nodes: list[ast.AST] = list(ast.parse(text.strip()).body)
        while nodes:
            match nodes.pop(0):
                case ast.Expr(value=value):
                    nodes.insert(0, value)
                case ast.List(elts=inner) | ast.Call(func=ast.Name("print"), args=inner):
                    nodes[:0] = inner
                case ast.Call(func=func, args=[], keywords=words):
                    given = {word.arg or "": ast.literal_eval(word.value) for word in words}
                    calls.append({"name": ast.unparse(func), "arguments": json.dumps(given)})
                case _:
                    return []
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return []
    return calls


def _behind(separators: re.Pattern[str], text: str, at: int) -> int:
    """Return where the separators at an offset end."""
    match = separators.match(text, at)
    return at if match is None else match.end()


def _is_markup(text: str, offered: Collection[str]) -> bool:
    """Return whether a text is the markup of a call that cannot be run."""
    text = text.strip()
    if _MARKUP.match(text):
        return True
    form = _RAW_CALLS[-1].fullmatch(text)
    named = list(_named_arguments(form)) if form and _values(text) else []
    return bool(named and offered) and all(name for name, _ in named)


def _arguments(written: object) -> str:
    """Return arguments as text; none, and an empty list, are no arguments."""
    if isinstance(written, str):
        return written
    return json.dumps(written or {}, ensure_ascii=False)


# Values


def _number(digits: str) -> float:
    """Read an integer; one with too many digits becomes a float."""
    return int(digits) if len(digits) <= _MAX_DIGITS else float(digits)


def _usage(reported: object) -> Usage | None:
    """Return the usage; None if the endpoint reports none, only part of it, or an implausible
    one."""
    counts: Mapping[str, Any] = fields_of(reported)
    usage = Usage(counts.get("prompt_tokens", -1), counts.get("completion_tokens", -1), "endpoint")
    return usage if usage.is_plausible else None
