"""What a reply is, in the forms of the servers that people run."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag_search.agent.models.base import ModelReply
from arag_search.agent.models.replies import raw_calls, read_reply, read_unread_call, split_thoughts

OFFERED = ("logical_search", "chunk_read")
ARGUMENTS = {"query": "vivaldi AND opera"}
CALL = {"name": "logical_search", "arguments": ARGUMENTS}
WRITTEN = json.dumps(CALL)


def read(message: object, ending: object = "stop", **choice: object) -> ModelReply:
    body = {"choices": [{"index": 0, "message": message, "finish_reason": ending, **choice}]}
    return read_reply(json.dumps(body), 3, OFFERED)


def text(content: object, ending: object = "stop", **message: object) -> ModelReply:
    return read({"role": "assistant", "content": content, **message}, ending)


def called(*calls: object) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def function(name: object, arguments: object, id: object = "a") -> dict[str, object]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


# Answers


@pytest.mark.parametrize(
    "reply",
    [
        text("Vivaldi"),
        text("Vivaldi", "STOP"),  # Gemini
        text("Vivaldi", None),  # older servers
        text("Vivaldi", ""),
        text("Vivaldi", "eos_token"),  # TGI
        text("Vivaldi", "end_turn"),  # Anthropic behind a proxy
        *(text("Vivaldi", ending) for ending in ("eos", "function_call", "tool_calls", 7, [], {})),
        text([{"type": "text", "text": "Vivaldi"}]),
        text({"type": "text", "text": "Vivaldi"}),
        text(["Viv", {"type": "text", "text": "aldi"}, {"type": "text", "text": None}, {}]),
        text("Vivaldi", tool_calls=[]),
        text("Vivaldi", tool_calls={}),
        text("Vivaldi", tool_calls=None, function_call=None, refusal=None),
        text("Vivaldi<|im_end|>"),
        text("<think>Who?</think>\n\nVivaldi"),  # vLLM without a reasoning parser
        text("<think>a</think><think>b</think>Vivaldi"),
        text("[THINK]Who?[/THINK]Vivaldi"),  # Magistral
        text("<seed:think>Who?</seed:think>Vivaldi"),
        text("◁think▷Who?◁/think▷Vivaldi"),  # Kimi
        text("<|channel|>analysis<|message|>Who?<|end|><|start|>assistant<|channel|>final"
             "<|message|>Vivaldi<|return|>"),  # gpt-oss
        text([{"type": "reasoning", "text": "Who?"}, {"type": "text", "text": "Vivaldi"}]),
        text([{"type": "thinking", "thinking": "Who?"}, {"type": "text", "text": "Vivaldi"}]),
        text("Vivaldi", reasoning_content="Who?"),  # DeepSeek
        text("Vivaldi", reasoning="Who?"),  # OpenRouter, Ollama
    ],
)  # fmt: skip
def test_an_answer_is_its_text_without_thoughts(reply: ModelReply) -> None:
    assert (reply.verdict, reply.text, reply.cut) == ("answer", "Vivaldi", None)


@pytest.mark.parametrize(
    "answer",
    [
        "The tag </think> ends thoughts.",
        "Vivaldi</think>",
        "Vivaldi <think>or Goldoni?</think>",
        f"He wrote {WRITTEN} there.",
        f"The passage says <tool_call>{WRITTEN}</tool_call>, and no more.",
        '{"answer": "Vivaldi"}',
        'logical_search("vivaldi")',
        'print("Vivaldi", sep=")")',
        "find(x=1)",
        "<answer>Vivaldi</answer>",  # which the parser of answers reads
        "[1] Vivaldi",
        "Answer: Vivaldi\nSources: [TOOL_CALLS]",
    ],
)
def test_marks_within_an_answer_are_its_text(answer: str) -> None:
    reply = text(answer)
    assert (reply.verdict, reply.text, reply.reasoning) == ("answer", answer, "")


@pytest.mark.parametrize(
    "reply",
    [
        text("<think>Who wrote it?"),
        text("<think>Who wrote it?</think>"),
        text("[THINK]Who wrote it?[/THINK]\n"),
        text("<|channel|>analysis<|message|>Who wrote it?"),
        text([{"type": "reasoning", "text": "Who wrote it?"}]),
        text("", reasoning_content="Who wrote it?"),
        text(None, reasoning="Who wrote it?"),
    ],
)
def test_a_reply_of_thoughts_alone_is_no_answer(reply: ModelReply) -> None:
    assert (reply.verdict, reply.reasoning) == ("thoughts", "Who wrote it?")


@pytest.mark.parametrize(
    "body",
    [
        "", "  \n", '{"choices": []}', '{"choices": null}', '{"choices": [null]}',
        '{"choices": [{}]}', '{"choices": [{"text": "Ada"}]}', '{"choices": [{"message": null}]}',
        '{"choices": [{"message": {"content": null}, "finish_reason": "stop"}]}',
        '{"choices": [{"message": {"content": " "}}]}',
    ],
)  # fmt: skip
def test_a_reply_without_anything_is_nothing(body: str) -> None:
    assert read_reply(body, 1, OFFERED).verdict == "nothing"


@pytest.mark.parametrize(
    ("ending", "cut"),
    [
        ("length", "length"), ("MAX_TOKENS", "length"), ("model_length", "length"),
        ("content_filter", "content_filter"), ("SAFETY", "content_filter"),
        *((ending, ending) for ending in ("error", "abort", "insufficient_system_resource")),
    ],
)  # fmt: skip
def test_a_reply_with_another_ending_is_broken_off(ending: str, cut: str) -> None:
    reply = text("Half a", ending)
    assert (reply.verdict, reply.cut) == ("broken off", cut)
    called_too = read(called(function("logical_search", "{}")), ending)
    assert called_too.verdict == ("calls" if cut == "length" else "broken off")


def test_a_byte_order_mark_is_no_part_of_a_reply() -> None:
    assert read_reply('\ufeff{"choices": [{"message": {"content": "Ada"}}]}', 1).text == "Ada"


NO_CHOICES = "holds no choices"
NO_COMPLETION = "is not a chat completion (at choices)"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("{}", NO_CHOICES), ("[]", NO_CHOICES), ('{"error": {"message": "no"}}', NO_CHOICES),
        ('{"error": "no", "choices": []}', NO_CHOICES), ("[" * 100_000, "is not JSON"),
        ('{"choices": {}}', NO_COMPLETION), ('{"choices": "ab"}', NO_COMPLETION),
        ('{"choices": [{"error": {"code": 502}, "message": {"content": "Half"}}]}',
         "broke off with an error"),
    ],
)  # fmt: skip
def test_what_is_no_reply_or_an_error_with_a_good_status_is_refused(
    body: str, problem: str
) -> None:
    with pytest.raises(ValueError, match=r"^The endpoint's reply ") as caught:
        read_reply(body, 1)
    assert str(caught.value) == f"The endpoint's reply {problem}"


# Calls


@pytest.mark.parametrize(
    "reply",
    [
        read(called(function("logical_search", json.dumps(ARGUMENTS))), "tool_calls"),
        read(called(function("logical_search", ARGUMENTS)), "stop"),  # Ollama
        read(called(function("functions.logical_search", ARGUMENTS))),
        read({"function_call": {"name": "logical_search", "arguments": json.dumps(ARGUMENTS)}},
             "function_call"),  # OpenAI, 2023
        read({"content": "", "tool_calls": [], "function_call": CALL}, None),
        read(called(function("default_api.logical_search", ARGUMENTS))),  # Gemini
        read(called(function("functions.logical_search:0", ARGUMENTS, 7))),  # Kimi
        text(f"<tool_call>\n{WRITTEN}\n</tool_call>", "tool_calls"),  # Hermes, Qwen
        text(f"<think>Search.</think><tool_call>{WRITTEN}</tool_call>"),
        text(WRITTEN),  # Llama 3
        text(json.dumps({"name": "logical_search", "parameters": ARGUMENTS})),
        text(json.dumps({"type": "function", "function": CALL})),
        text(json.dumps({"name": "logical_search", "args": ARGUMENTS})),
    ],
)  # fmt: skip
def test_a_call_is_read_from_its_place_or_from_a_text_that_is_all_call(reply: ModelReply) -> None:
    (call,) = reply.tool_calls
    assert (reply.verdict, reply.text, call.name) == ("calls", "", "logical_search")
    assert json.loads(call.arguments) == ARGUMENTS
    assert call.id
    assert call.from_text is ("vivaldi" in reply.reasoning)


READS = json.dumps({"name": "chunk_read", "arguments": {"chunk_ids": ["a.1"]}})


def test_several_calls_in_a_text_are_read_in_order() -> None:
    written = f"<tool_call>{WRITTEN}</tool_call>\n<tool_call>{READS}</tool_call>"
    for text_of_calls in (written, written.replace("chunk_read", "read_chunk")):
        calls = raw_calls(text_of_calls, 3, OFFERED)
        assert [call.name for call in calls] == ["logical_search", "chunk_read"]
        assert [call.id for call in calls] == ["call_3_1", "call_3_2"]


def test_calls_of_a_message_are_kept_as_written_and_get_ids_where_they_have_none() -> None:
    broken = function("logical_search", '{"query": "ad')
    message = {**called(broken, {"function": {"name": "google"}}, {}), "content": "Both."}
    reply = read(message)
    assert reply.text == "Both."
    assert [(call.id, call.name, call.arguments) for call in reply.tool_calls] == [
        ("a", "logical_search", '{"query": "ad'),
        ("call_3_2", "google", "{}"),
        ("call_3_3", "", "{}"),
    ]


@pytest.mark.parametrize(
    "reply",
    [
        text(None, refusal="I will not."),
        text("", refusal="I will not."),  # Azure
        text("I will not.", refusal="It is not allowed."),
        text([{"type": "refusal", "refusal": "I will not."}]),
        text("I will not.", "refusal"),  # Anthropic's
    ],
)
def test_a_refusal_is_no_answer(reply: ModelReply) -> None:
    assert reply == ModelReply("I will not.", cut="refusal")


@pytest.mark.parametrize(
    "half",
    ["Half a sent", "Answer: He was born in", "The poet who wrote it in 1847 was Henry",
     "Answer: Paris\nExplanation: Goldoni died in the", "Answer: Paris\nSources:", "Paris, Vienna,",
     "Answer: Paris\nSources: goldoni.1,", "First:\n\nThe opera was"],
)  # fmt: skip
@pytest.mark.parametrize("ending", [None, ""])
def test_half_a_sentence_without_an_ending_is_broken_off(half: str, ending: object) -> None:
    reply = text(half, ending)
    assert (reply.verdict, reply.text, reply.cut) == ("broken off", half, "none")
    assert text(half).verdict == "answer"


@pytest.mark.parametrize(
    "whole",
    ["Vivaldi", "Universal Declaration of Human Rights", "Answer: yes", "He was born in Venice.",
     "He was born in Venice [goldoni.1]", "Answer: in the year of the war (1914)",
     "他出生在威尼斯",
     "Answer: Paris\nExplanation: He died there.\nSources: a.1, b.2, c.3, d.4, e.5, and f",
     "<update></update>", "**The battle was fought near the bridge**"],
)  # fmt: skip
def test_a_whole_text_without_an_ending_is_an_answer(whole: str) -> None:
    assert text(whole, None).verdict == "answer"


def test_reasoning_is_apart_from_the_text() -> None:
    for field in ("reasoning_content", "reasoning"):
        assert text("Ada", **{field: "Hm."}) == ModelReply("Ada", reasoning="Hm.")


@pytest.mark.parametrize("part", ["prompt_tokens", "completion_tokens"])
@pytest.mark.parametrize(
    "count", [-1, 10**10, 10**400, 1.5, math.inf, math.nan, True, "7", None, [7], {}]
)
def test_usage_that_is_absent_partial_or_impossible_is_none(part: str, count: object) -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 4}
    for reported in (None, {}, {part: 5}, {**usage, part: count}):
        body = {"choices": [{"message": {"content": "Ada"}}], "usage": reported}
        assert read_reply(json.dumps(body), 1) == ModelReply("Ada")


def test_a_number_too_long_for_python_does_not_lose_a_reply() -> None:
    usage = f'{{"prompt_tokens": 3, "completion_tokens": {"9" * 5000}}}'
    body = f'{{"choices": [{{"message": {{"content": "Ada"}}}}], "usage": {usage}}}'
    assert read_reply(body, 1) == ModelReply("Ada")


@pytest.mark.parametrize("arguments", [[], {}, None, ""])
def test_no_arguments_are_an_empty_object(arguments: object) -> None:
    (call,) = read(called(function("logical_search", arguments))).tool_calls
    assert call.arguments in ("{}", "")


@pytest.mark.parametrize(
    "reply",
    [
        text("", "tool_calls"),
        text(None, "tool_use"),
        text('<tool_call>{"name": "google", "arguments": {}}</tool_call>'),
        text('<tool_call>{"name": "logical_search", "arg'),
        text('{"name": "google", "parameters": {"q": "x"}}'),
        text("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function"),  # DeepSeek
        text("[TOOL_CALLS]google[ARGS]{}"),
        text('<function_calls>\n<invoke name="logical_'),
        text('<tool_code>\nprint(google.search(query="x"))\n</tool_code>'),
        text("logical_search(query={1})"),
        text(f"{WRITTEN}\n{READS}"),
        text(f"{WRITTEN}; {READS}"),
        text(f"[{WRITTEN}, {READS}]"),
        text(json.dumps({"tool_calls": [CALL]})),
        text(f"```json\n{WRITTEN}\n```"),
        text(f"<|python_tag|>{WRITTEN}"),
        text(f"<|python_start|>{WRITTEN}<|python_end|>"),  # Llama 4
        text(f"<|action_start|><|plugin|>{WRITTEN}<|action_end|>"),  # InternLM
        text(f"<|tool_call>call:logical_search{json.dumps(ARGUMENTS)}<tool_call|>"),  # Gemma
        text(f"<|tool_call|>[{WRITTEN}]"),  # Granite
        text(f"functools[{WRITTEN}]"),  # Phi
        text(f"[TOOL_CALLS] [{WRITTEN}]"),  # Mistral
        text(f"[TOOL_CALLS]logical_search[ARGS]{json.dumps(ARGUMENTS)}"),
        text(f"<function=logical_search>{json.dumps(ARGUMENTS)}</function>"),
        text("<tool_call>\n<function=logical_search>\n<parameter=query>\nvivaldi AND opera\n"
             "</parameter>\n</function>\n</tool_call>"),  # Qwen3-Coder
        text("<|channel|>commentary to=functions.logical_search <|constrain|>json<|message|>"
             f"{json.dumps(ARGUMENTS)}<|call|>"),  # gpt-oss
        text('<function_calls>\n<invoke name="logical_search">\n<parameter name="query">vivaldi '
             'AND opera</parameter>\n</invoke>\n</function_calls>'),  # Anthropic, older
        text('<minimax:tool_call>\n<invoke name="logical_search">\n<parameter name="query">'
             'vivaldi AND opera</parameter>\n</invoke>\n</minimax:tool_call>'),
        text('<｜DSML｜function_calls><｜DSML｜invoke name="logical_search"><｜DSML｜parameter '
             'name="query" string="true">vivaldi AND opera</｜DSML｜parameter></｜DSML｜invoke>'
             '</｜DSML｜function_calls>'),  # DeepSeek 3.2
        text("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>logical_search\n"
             f"```json\n{json.dumps(ARGUMENTS)}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"),
        text("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>logical_search<｜tool▁sep｜>"
             f"{json.dumps(ARGUMENTS)}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"),  # DeepSeek
        text("<|tool_calls_section_begin|><|tool_call_begin|>functions.logical_search:0"
             f"<|tool_call_argument_begin|>{json.dumps(ARGUMENTS)}<|tool_call_end|>"
             "<|tool_calls_section_end|>"),  # Kimi
        text("<tool_call>logical_search\n<arg_key>query</arg_key>\n<arg_value>vivaldi AND opera"
             "</arg_value>\n</tool_call>"),  # GLM
        text('<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "logical_search", "parameters": '
             f"{json.dumps(ARGUMENTS)}}}]<|END_ACTION|>"),  # Command A
        text('[logical_search(query="vivaldi AND opera")]'),  # Llama 3.2
        text('<|python_start|>[logical_search(query="vivaldi AND opera")]<|python_end|>'),
        text('```tool_code\nprint(default_api.logical_search(query="vivaldi AND opera"))\n```'),
        text('<tool_code>\nlogical_search(\n    query="vivaldi AND opera",\n)\n</tool_code>'),
        text(f"Action: logical_search\nAction Input: {json.dumps(ARGUMENTS)}"),  # ReAct
    ],
)  # fmt: skip
def test_a_call_that_only_a_tool_parser_reads_is_no_answer(reply: ModelReply) -> None:
    assert (reply.verdict, reply.tool_calls) == ("unread call", ())


def test_a_name_with_a_wrapper_is_taken_only_where_one_tool_is_left() -> None:
    names = ("search", "a.search")
    body = {"choices": [{"message": called(function("x.a.search", {}))}]}
    assert read_reply(json.dumps(body), 1, names).tool_calls[0].name == "x.a.search"
    (call,) = read(called(function("google", {}))).tool_calls
    assert call.name == "google"


# Any reply and any text

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["text", "name", "arguments", "function", "id", "content", "type"]),
            inner,
        )
    ),
    max_leaves=6,
)
FIELDS = st.sampled_from(
    ["content", "refusal", "reasoning", "reasoning_content", "tool_calls", "role"]
)


@given(
    message=st.dictionaries(FIELDS, JSON) | JSON,
    more=st.dictionaries(st.sampled_from(["finish_reason", "index"]), JSON),
    usage=JSON | st.dictionaries(st.sampled_from(["prompt_tokens", "completion_tokens"]), JSON),
    choices=st.none() | JSON,
)
def test_any_reply_is_read_or_refused_with_a_message_of_ours(
    message: object, more: dict[str, object], usage: object, choices: object
) -> None:
    content: dict[str, object] = {"choices": choices or [{"message": message, **more}]}
    try:
        reply = read_reply(json.dumps({**content, "usage": usage}), 1)
    except ValueError as error:
        assert str(error).startswith("The endpoint's reply ")
    else:
        assert reply.usage is None or reply.usage.is_plausible


@given(st.text(st.sampled_from('<>think/[]THINK{}|"a: \n')))
def test_thoughts_and_text_are_all_that_a_text_holds(written: str) -> None:
    rest, thoughts = split_thoughts(written, [])
    assert rest in written
    assert all(line in written for line in thoughts.split("\n"))
    assert raw_calls(written, 1, OFFERED) == ()


@pytest.mark.parametrize(
    "piece",
    ["<tool_call>", "<tool_call> \n", "<function=a>", "[TOOL_CALLS]", "{}", "{", "[1", " ", "\n",
     "<|tool_call|>", "<|tool_call>call:a{", "<think>", "</think>", "<|end|>", "```json",
     "<answer>", "<invoke", '<invoke name="a">', "f(", "Action: a\nAction Input: {}", "<tool_code>",
     "<｜tool▁call▁begin｜>a{}", "}", "} ", ") ", "raw='"],
)  # fmt: skip
def test_a_long_text_is_read_once(piece: str) -> None:
    """Check texts on which reading from every offset to the end would take many minutes."""
    written = f"a{piece * 10_000}b"
    assert text(written).text == written
    assert raw_calls(piece * 10_000, 1, OFFERED) == ()
    unread = read_unread_call(piece * 10_000, "", 1, OFFERED)
    assert unread.is_unread is (piece != "<answer>")
    assert read_unread_call(f"f{{{piece * 10_000}}}", "", 1, OFFERED).is_unread


def test_many_thoughts_are_read_once() -> None:
    rest, thoughts = split_thoughts("<think>a</think> \n" * 50_000 + "Vivaldi", [])
    assert (rest, thoughts.count("a")) == ("Vivaldi", 50_000)
