"""The kinds of a model's reply: an answer, calls, thoughts, broken off, or nothing.

Endpoints differ in what they add, leave out and name otherwise. This module decides from the whole
structure of a reply, so that the agent sees only the verdict. Only known endings end a reply well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import cast

from arag_search.agent.answers import has_answer_line, is_half_sentence
from arag_search.agent.models.base import REFUSED, UNNAMED, ModelReply, ToolCall
from arag_search.agent.models.usage import read_usage
from arag_search.endpoints.refusals import fields_of, items_of
from arag_search.tokens import encodable
from arag_search.tools.registry import meant_tool

_LEAST_LOGPROB = -1e6
_MOST_OF_AN_ENDING, _MOST_OF_A_NAME = 40, 100  # characters
_OWN_THOUGHTS = "thoughts in "
_MAX_DIGITS = 4_000  # Python converts no more than 4,300
_GOOD_ENDINGS = frozenset(
    {
        *("", "stop", "tool_calls", "function_call", "eos"),  # OpenAI's, and none
        *("eos_token", "stop_sequence", "end_turn", "tool_use", "complete"),  # passed through
        *("malformed_function_call", "unexpected_tool_call"),  # Gemini's, of calls that it drops
    }
)
_PLAIN_ENDINGS = ("", "stop", "tool_calls", "length")
_CALL_ENDINGS = ("tool_calls", "tool_use", "malformed_function_call", "unexpected_tool_call")
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
_END_MARKS = ("<|return|>", "<|end|>", "<|eot_id|>", "<|im_end|>", "<|END_RESPONSE|>")
_THOUGHT_PARTS = ("reasoning", "thinking", "thought", "reasoning_text", "redacted_thinking")

_OUR_KEYS = ("role", "content", "tool_calls", "function_call", "id", "type", "name", "arguments")
"""The keys of a message, of a call and of its function that a request has from us."""
_EMPTY: tuple[object, ...] = (None, [], {})
_VERSION = re.compile(r"(?:-latest|-preview|-exp|-\d{2}-\d{2,4}|-\d{3,8}|-\d{4}-\d{2}-\d{2})+$")

_TOOL_CALL = re.compile(r"<tool_call>(.*?)</tool_call>\s*", re.DOTALL)
"""A call as Hermes and Qwen write it, which many servers leave in the text."""
_MARKUP = re.compile(
    r"<tool_call>|<\|?tool_calls?(?:_section)?(?:_begin)?\|>|<function=|<｜tool|\[TOOL_CALLS\]"
    r"|<\|(?:python_tag|python_start|action_start|START_ACTION)\|>|<\|tool_call>call:|functools\["
    r"|(?:<\|start\|>assistant)?<\|channel\|>commentary to="
    r"|<(?:[\w:]+:|｜DSML｜)?(?:function_calls|tool_call|invoke)\b"
    r"|<tool_code>|```tool_c|Action:\s*[\w.:-]+\s*Action Input:",
)
"""How calls begin that only a tool parser reads. The markup is from Granite, Llama, Mistral,
harmony, Phi, Cohere, InternLM, Gemma, GLM, MiniMax, DeepSeek, Kimi and ReAct."""
_NAMED_CALL = re.compile(
    r"(?:<function=)?([\w.-]+)[>=(\s]*(\{.*\})[\s)]*(?:</function>)?", re.DOTALL
)
"""A name with its arguments, as Llama writes a call that Groq cannot read."""
_LANGUAGE = re.compile(r"\w*")
_PYTHON_CALL = re.compile(r"\[?(?:\w+\.)*(\w+)\(\s*\w+\s*=.*\)\s*\]?", re.DOTALL)
_FURTHER = re.compile(r"[\s,;]*(?:\{.*)?", re.DOTALL)
_SPACE = re.compile(r"\s*")
_DECODER = json.JSONDecoder()


def read_reply(
    body: str,
    position: int,
    offered: Collection[str] = (),
    origin: str = "",
    refused: Collection[str] = (),
) -> ModelReply:
    """Return the reply in the body of a response to a request that ``offered`` tools.

    Arguments stay as the model wrote them. A call without an id gets one, made from ``position``
    (the number of messages so far) and its number in the reply. A body without a reply is an empty
    one. ``origin`` names the endpoint, and ``refused`` are keys that it does not take back.

    Raises ValueError, saying what is wrong, for a body that holds an error or is no chat
    completion.
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
    reply = _understood(choice, position, offered)
    model = completion.get("model")
    return replace(
        reply,
        usage=read_usage(completion.get("usage")),
        beside=_beside(fields_of(choice.get("message")), reply, origin, refused),
        other_model=model[:_MOST_OF_A_NAME] if isinstance(model, str) else "",
    )


def read_unread_call(
    written: str, problem: str, position: int, offered: Collection[str]
) -> ModelReply:
    """Return the reply that a server refused because it could not read it as a call. It is the call
    if an offered tool has it, else an answer if it has an answer line, else an unread call."""
    forms = ["call that the server refused"]
    text, thoughts = split_thoughts(written, forms)
    text = _unfenced(text)
    if named := _NAMED_CALL.fullmatch(text):
        value: object = {"name": named[1], "arguments": _json_of(named[2])}
    else:
        value = _json_of(text)
    value = fields_of(value).get("tool_calls", value)
    calls = _offered_calls(items_of(value) or [value], position, offered)
    if calls:
        text, thoughts = "", "\n".join(filter(None, (thoughts, text)))
    elif not has_answer_line(text):
        return ModelReply(text, (), thoughts, is_unread=True, problem=problem, forms=tuple(forms))
    return ModelReply(text, calls, thoughts, forms=tuple(forms))


def is_other_model(asked: str, answered: str) -> bool:
    """Return whether the name of the model that answered belongs to another model. A path before
    the name, a tag, a version or a date behind it make no other model."""
    asked, answered = map(_bare_name, (asked, answered))
    return bool(answered) and asked != answered


def _bare_name(model: str) -> str:
    name = model.strip().lower().rstrip("/").rpartition("/")[2].partition("@")[0]
    return _VERSION.sub("", name.partition(":")[0].removesuffix(".gguf"))


def _understood(
    choice: Mapping[str, object], position: int, offered: Collection[str]
) -> ModelReply:
    forms: list[str] = []
    message = fields_of(choice.get("message"))
    written, thoughts = _text_and_thoughts(message, forms)
    text, own_thoughts = split_thoughts(written, forms)
    calls = _calls(message, position, offered, forms)
    reason = choice.get("finish_reason")
    ending = reason.lower().rpartition(": ")[2] if isinstance(reason, str) else ""
    is_unread = False
    if not calls:
        calls = raw_calls(text, position, offered)
        is_unread = not calls and (
            _is_unread_call(text, offered) or (ending in _CALL_ENDINGS and not text.strip())
        )
    from_text = bool(calls) and calls[0].from_text
    cut = None if ending in _GOOD_ENDINGS else _CUTS.get(ending, ending)
    if refusal := _refusal(message):
        text, cut = text or refusal, REFUSED
    elif not ending and not calls and is_half_sentence(text):
        cut = UNNAMED
    if ending not in _PLAIN_ENDINGS:
        forms.append(f"ending {ending[:_MOST_OF_AN_ENDING]}")
    seen = {
        "call in the text": from_text,
        "unread call": is_unread,
        "refusal": cut == REFUSED,
        "half a sentence": cut == UNNAMED,
    }
    forms += [form for form, is_seen in seen.items() if is_seen]
    reasoning = "\n".join(filter(None, (thoughts, own_thoughts, text if from_text else "")))
    return ModelReply(
        text="" if from_text else text,
        tool_calls=calls,
        reasoning=reasoning,
        cut=cut,
        is_unread=is_unread,
        logprobs=_first_logprobs(choice),
        forms=tuple(dict.fromkeys(forms)),
    )


def _beside(
    message: Mapping[str, object], reply: ModelReply, origin: str, refused: Collection[str]
) -> str:
    """Return what stands beside text and calls, as JSON; empty if nothing does. The content stands
    there too, as it came, if it holds thoughts or is in parts."""

    def others(value: object) -> dict[str, object]:
        fields = fields_of(value).items()
        dropped = {*_OUR_KEYS, *refused}
        return {key: of for key, of in fields if key not in dropped and of not in _EMPTY}

    kept = others(message)
    content = message.get("content")
    is_from_text = any(call.from_text for call in reply.tool_calls)
    has_thoughts = any(form.startswith(_OWN_THOUGHTS) for form in reply.forms)
    is_kept = not is_from_text and (isinstance(content, list) or has_thoughts)
    if content and is_kept and "content" not in refused:
        kept["content"] = content
    calls = [fields_of(call) for call in items_of(message.get("tool_calls"))]
    beside = [others({**call, "function": others(call.get("function")) or None}) for call in calls]
    if any(beside):
        kept["tool_calls"] = beside
    try:
        values = {"from": origin, "message": kept}
        written = json.dumps(values, ensure_ascii=False, allow_nan=False)
    except (RecursionError, ValueError):  # too deep, or a number that JSON does not have
        return ""
    return encodable(written) if kept and origin else ""


def _first_logprobs(choice: Mapping[str, object]) -> dict[str, float]:
    """Return the likeliest first tokens; none where the endpoint gives none that can be read."""
    places = items_of(fields_of(choice.get("logprobs")).get("content"))
    tokens = items_of(fields_of(next(iter(places), None)).get("top_logprobs"))
    pairs = ((of.get("token"), of.get("logprob")) for of in map(fields_of, tokens))
    return {
        token: float(value)
        for token, value in pairs
        if isinstance(token, str)
        and isinstance(value, int | float)
        and _LEAST_LOGPROB <= value <= 0
    }


# Text and thoughts


def _text_and_thoughts(message: Mapping[str, object], forms: list[str]) -> tuple[str, str]:
    # What the endpoint itself sets apart from the text.
    apart = (message.get("reasoning_content"), message.get("reasoning"))
    thoughts = next((value for value in apart if isinstance(value, str) and value), "")
    if thoughts:
        forms.append("thoughts beside the text")
    content = message.get("content")
    if isinstance(content, dict):
        content = [cast(object, content)]
    if not isinstance(content, list):
        return (content if isinstance(content, str) else ""), thoughts
    forms.append("content in parts")
    texts: list[str] = []
    for part in cast(list[object], content):
        fields = fields_of(part)
        value = part if isinstance(part, str) else fields.get("text")
        if fields.get("type") in _THOUGHT_PARTS:
            own = value or fields.get("thinking") or fields.get("reasoning")
            inner = [
                of if isinstance(of, str) else fields_of(of).get("text") for of in items_of(own)
            ]
            thoughts += "".join(of for of in (own, *inner) if isinstance(of, str))
        elif isinstance(value, str):
            texts.append(value)
    return "".join(texts), thoughts


def _refusal(message: Mapping[str, object]) -> str:
    """Return why the model declines, from the message or a part of its content; empty if it does
    not."""
    parts = [message, *map(fields_of, items_of(message.get("content")))]
    written = (part.get("refusal") for part in parts)
    return next((text for text in written if isinstance(text, str) and text.strip()), "")


def split_thoughts(text: str, forms: list[str]) -> tuple[str, str]:
    """Return a text without the thoughts at its beginning, and these thoughts. The rules that were
    needed are added to ``forms``.

    Thoughts stand between a pair of marks. A mark that is never closed makes all of the text
    thoughts. A closing mark without an opening one, and every mark behind other text, is text.
    """
    thoughts: list[str] = []
    at = 0
    while True:
        blank = _SPACE.match(text, at)
        begin = blank.end() if blank else at
        pair = next((pair for pair in _THOUGHTS if text.startswith(pair[0], begin)), None)
        if pair is None:
            break
        opening, closing = pair
        forms.append(f"{_OWN_THOUGHTS}{opening}")
        begin += len(opening)
        end = text.find(closing, begin)
        thoughts.append(text[begin : end if end >= 0 else None].strip())
        at = end + len(closing) if end >= 0 else len(text)
    rest = text[at:]
    if final := _FINAL.match(rest):
        forms.append("final channel")
        rest = rest[final.end() :]
    if thoughts or final:
        rest = rest.lstrip()
    ended = rest.rstrip()
    if mark := next(filter(ended.endswith, _END_MARKS), ""):
        forms.append(f"end mark {mark}")
        rest = ended.removesuffix(mark).rstrip()
    return rest, "\n".join(filter(None, thoughts))


# Calls


def _calls(
    message: Mapping[str, object], position: int, offered: Collection[str], forms: list[str]
) -> tuple[ToolCall, ...]:
    calls: list[ToolCall] = []
    items = items_of(message.get("tool_calls"))
    if not items and (legacy := fields_of(message.get("function_call"))):
        items = [{"function": legacy}]  # OpenAI's form of 2023
        forms.append("function_call")
    for number, item in enumerate(items, 1):
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
    """Return the calls of offered tools that a text consists of: pieces of ``<tool_call>`` with
    JSON, or the JSON of one call. There are none if the text is anything else as well."""
    return _offered_calls([_json_of(piece) for piece in _pieces(text.strip())], position, offered)


def _offered_calls(
    written: Sequence[object], position: int, offered: Collection[str]
) -> tuple[ToolCall, ...]:
    """Return the calls that JSON values are; none unless all are calls of offered tools."""
    named = [_named_arguments(value) for value in written]
    names = [meant_tool(name, offered) for name, _ in named]
    if not set(names) <= set(offered):
        return ()
    return tuple(
        ToolCall(f"call_{position}_{number}", name, arguments, from_text=True)
        for number, (name, (_, arguments)) in enumerate(zip(names, named, strict=True), 1)
    )


def _pieces(text: str) -> list[str]:
    """Return what stands in ``<tool_call>`` if a text is nothing else, or the text if it has none.
    If a piece breaks off or other text follows it, return none. O(text)."""
    if not text.startswith("<tool_call>"):
        return [text]
    pieces: list[str] = []
    at = 0
    while at < len(text):
        match = _TOOL_CALL.match(text, at)
        if match is None:
            return []
        pieces.append(match[1])
        at = match.end()
    return pieces


def _unfenced(text: str) -> str:
    text = text.strip()
    if len(text) < 6 or not (text.startswith("```") and text.endswith("```")):
        return text
    return _LANGUAGE.sub("", text[3:-3], 1).strip()


def _json_of(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _named_arguments(value: object) -> tuple[str, str]:
    """Return name and arguments of the call that a JSON value is; an empty name for none."""
    fields = fields_of(value)
    fields = {**fields, **fields_of(fields.get("function"))}
    written = next(
        (fields[key] for key in ("arguments", "parameters", "args") if key in fields), None
    )
    name = fields.get("name", fields.get("tool_name"))
    return (name if isinstance(name, str) and written is not None else ""), _arguments(written)


def _is_unread_call(text: str, offered: Collection[str]) -> bool:
    """Return whether a text is a call that is not read. It may be in markup, or in JSON that is
    fenced, in a list or followed by other calls. Or it calls an offered tool in Python."""
    text = text.strip()
    if _MARKUP.match(text):
        return True
    text = _unfenced(text)
    if python := _PYTHON_CALL.fullmatch(text):
        return meant_tool(python[1], offered) in offered
    try:
        value, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return False
    value = fields_of(value).get("tool_calls", value)
    calls = items_of(value) or [value]
    return (
        bool(offered)
        and _FURTHER.fullmatch(text, end) is not None
        and all(_named_arguments(call)[0] for call in calls)
    )


def _arguments(written: object) -> str:
    if isinstance(written, str):
        return written
    return json.dumps(written or {}, ensure_ascii=False)


# Values


def _number(digits: str) -> float:
    return int(digits) if len(digits) <= _MAX_DIGITS else float(digits)
