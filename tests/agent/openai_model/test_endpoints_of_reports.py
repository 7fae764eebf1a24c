"""Endpoints in the words of public reports: what they send, what goes back to them, and what the
record of the question says. Each row names its report."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from arag_search.agent.loop import Agent
from arag_search.agent.models.base import Message, ModelRequest, ToolCall
from arag_search.agent.models.openai import OpenAIModel
from arag_search.agent.models.replay import RecordingModel, ReplayModel
from arag_search.agent.record import Record
from arag_search.agent.state import State
from arag_search.corpus import Chunk, ordinal_of
from arag_search.search.index import Index
from arag_search.tools.preset_files import load_preset
from tests.support.endpoint import Answer, Endpoint, completion, refusal
from tests.support.openai_asking import KEY, SEARCH
from tests.support.oracle.engine import MemoryEngine

Messages = Sequence[Mapping[str, Any]]
Rule = Callable[[Messages], Answer | None]

SEARCHED = ("logical_search", '{"query": "griselda"}')
ANSWER = completion("Answer: Vivaldi\nExplanation: It says so.\nSources: g.1")
THOUGHTS = "I look for the opera."


def agent_of(endpoint: Endpoint, preset: str = "logical_read", **changes: object) -> Agent:
    """Return an agent over one passage, with a model of its own."""
    opera = Chunk("g.1", "g", "Griselda", "By Vivaldi.", 1, 1, ordinal_of(0, 0, 0), (11,), {})
    changed = load_preset(preset).model_copy(update=changes)
    model = OpenAIModel("m", base_url=endpoint.base_url, key=KEY, max_retries=0)
    return Agent(Index(MemoryEngine([opera]), "memory"), changed, model)


def ask(endpoint: Endpoint, rules: Sequence[Rule], *turns: Answer, **changes: object) -> Record:
    """Ask a question of an endpoint that refuses by rules, and else answers with the turns."""
    left = list(turns)

    def script(request: dict[str, Any]) -> Answer:
        refused = (rule(request["messages"]) for rule in rules)
        answer = next(filter(None, refused), None)
        return answer or (left.pop(0) if len(left) > 1 else left[0])

    endpoint.reply_by(script)
    agent = agent_of(endpoint, **changes)
    record = agent.ask("Who wrote Griselda?", "q1")
    agent.model.close()
    return record


def replies(messages: Messages) -> list[tuple[int, Mapping[str, Any]]]:
    return [(at, of) for at, of in enumerate(messages) if of["role"] == "assistant"]


def requires(key: str, words: str, *, in_call: bool = False, status: int = 400) -> Rule:
    """Refuse replies of the assistant with calls that lack a key."""

    def rule(messages: Messages) -> Answer | None:
        for at, reply in replies(messages):
            calls = reply.get("tool_calls", ())
            holder = calls[0] if calls and in_call else reply
            if calls and not holder.get(key):
                return refusal(status, words.replace("{at}", str(at)))
        return None

    return rule


def refuses(key: str, make: Callable[[int], Answer]) -> Rule:
    """Refuse replies of the assistant with a key, also in calls and their functions."""

    def rule(messages: Messages) -> Answer | None:
        for at, reply in replies(messages):
            calls = reply.get("tool_calls", [])
            holders = [reply, *calls, *(call["function"] for call in calls)]
            if any(key in holder for holder in holders):
                return make(at)
        return None

    return rule


def thinking(beside: Mapping[str, object], in_call: Mapping[str, object] | None = None) -> Answer:
    """Return a reply with a call and something beside it, in the message or in the call."""
    answer = completion(None, SEARCHED, **beside)
    body: Any = answer.body
    body["choices"][0]["message"]["tool_calls"][0] |= dict(in_call or {})
    return answer


# 1. What stands beside calls goes back


@dataclass(frozen=True)
class Kept:
    """A kind of endpoint whose replies hold more than text and calls."""

    report: str
    beside: Mapping[str, object] = field(default_factory=dict[str, object])
    in_call: Mapping[str, object] = field(default_factory=dict[str, object])
    rule: Rule = lambda messages: None


SIGNATURE = {"extra_content": {"google": {"thought_signature": "CiQB4/H/XpZz=="}}}
MISSING = "Function call is missing a thought_signature in functionCall parts. This is required"
KEPT = (
    Kept(
        "anomalyco/opencode#10996, Kimi",
        {"reasoning_content": THOUGHTS},
        rule=requires(
            "reasoning_content",
            "thinking is enabled but reasoning_content is missing in assistant tool call message "
            "at index {at}",
        ),
    ),
    Kept(
        "anomalyco/opencode#25758, DeepSeek behind a gateway",
        {"reasoning_content": THOUGHTS},
        rule=requires(
            "reasoning_content",
            "Error from provider (DeepSeek): The `reasoning_content` in the thinking mode must be "
            "passed back to the API.",
        ),
    ),
    Kept(
        "securo-finance/securo#884, Gemini",
        in_call=SIGNATURE,
        rule=requires("extra_content", MISSING, in_call=True),
    ),
    Kept(
        "GewoonJaap/gemini-cli-openai#156, Vertex",
        in_call=SIGNATURE,
        rule=requires(
            "extra_content",
            "Unable to submit request because function call `x` in the 5. content block is missing "
            "a `thought_signature`. Learn more: https://docs.cloud.google.com",
            in_call=True,
        ),
    ),
    Kept(
        "maximhq/bifrost#4942, thoughts that are encrypted",
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "ErQB=", "index": 0}]},
        rule=requires(
            "reasoning_details",
            "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
            "`tool_use`. When `thinking` is enabled, a final `assistant` message must start with "
            "a thinking block",
        ),
    ),
    Kept(
        "anomalyco/opencode#3077, Claude by LiteLLM",
        {"thinking_blocks": [{"type": "thinking", "thinking": "Hm.", "signature": "EqQ="}]},
        {"provider_specific_fields": {"thought_signature": "x"}},
    ),
    Kept("OpenRouter, both kinds", {"reasoning": "Hm.", "reasoning_details": [{"text": "Hm."}]}),
    Kept("Ollama", {"reasoning": "Hm."}, {"index": 0}),
)


@pytest.mark.parametrize("kind", KEPT, ids=lambda kind: kind.report)
def test_what_stands_beside_a_call_goes_back_as_it_came(endpoint: Endpoint, kind: Kept) -> None:
    first = thinking({**kind.beside, "refusal": None, "annotations": []}, kind.in_call)
    record = ask(endpoint, [kind.rule], first, first, ANSWER)
    assert (record.failure, record.answer_short, len(record.trajectory)) == (None, "Vivaldi", 2)
    assert len(endpoint.requests) == 3
    for _, reply in replies(endpoint.requests[-1]["messages"]):
        (call,) = reply["tool_calls"]
        beside = {key: reply[key] for key in reply.keys() - {"role", "content", "tool_calls"}}
        in_call = {key: call[key] for key in call.keys() - {"id", "type", "function"}}
        assert (beside, in_call) == (kind.beside, kind.in_call)
        assert reply["content"] is None


@pytest.mark.parametrize(
    "content",
    [
        f"<think>{THOUGHTS}</think>\n\nI search.",  # MiniMax, without reasoning_split
        [
            {"type": "thinking", "thinking": [{"type": "text", "text": THOUGHTS}]},
            {"type": "text", "text": "I search."},
        ],  # Magistral
        [{"type": "reasoning", "text": THOUGHTS}, {"type": "text", "text": "I search."}],
    ],
)
def test_thoughts_in_the_content_go_back_with_it(endpoint: Endpoint, content: object) -> None:
    record = ask(endpoint, [], completion(content, SEARCHED), ANSWER)
    assert record.trajectory[0].reasoning == f"{THOUGHTS}\nI search."
    (_, reply) = replies(endpoint.requests[-1]["messages"])[0]
    assert reply["content"] == content


def test_a_plain_reply_goes_back_as_before(endpoint: Endpoint) -> None:
    ask(endpoint, [], completion("I search.", SEARCHED, refusal=None), ANSWER)
    (_, reply) = replies(endpoint.requests[-1]["messages"])[0]
    assert sorted(reply) == ["content", "role", "tool_calls"]


# ... unless the endpoint refuses it


def named(words: str, status: int = 400) -> Callable[[int], Answer]:
    return lambda at: refusal(status, words.replace("{at}", str(at)))


REFUSED: tuple[tuple[str, str, Callable[[int], Answer]], ...] = (
    ("karthink/gptel#774, Groq", "reasoning",
     named(
         "'messages.{at}' : for 'role:assistant' the following must be satisfied["
         "('messages.{at}' : property 'reasoning' is unsupported, did you mean 'role'?)]"
     )),
    ("janhq/jan#8136, Groq", "reasoning_content",
     named(
         "'messages.{at}' : for 'role:assistant' the following must be satisfied["
         "('messages.{at}' : property 'reasoning_content' is unsupported)]"
     )),
    ("vercel/ai#8057, Groq", "reasoning",
     named("messages[{at}].reasoning: reasoning is not supported with this model")),
    ("egoist/chatwise-releases#1442, Cerebras", "reasoning_content",
     lambda at: refusal(
         400,
         f"messages.{at}.assistant.reasoning_content: property "
         f"'messages.{at}.assistant.reasoning_content' is unsupported",
         param="validation_error",
         code="wrong_api_format",
     )),
    ("QwenLM/qwen-code#11045, Cerebras", "reasoning_content", lambda at: Answer(400, "")),
    ("charmbracelet/crush#1590, Mistral", "reasoning_content",
     lambda at: Answer(
         422,
         {
             "object": "error",
             "message": {
                 "detail": [
                     {
                         "type": "extra_forbidden",
                         "loc": ["body", "messages", at, "assistant", "reasoning_content"],
                         "msg": "Extra inputs are not permitted",
                         "input": "\n",
                     }
                 ]
             },
         },
     )),
    ("a server of one line", "reasoning_details", lambda at: Answer(422, {"detail": "Invalid"})),
)  # fmt: skip


@pytest.mark.parametrize(("report", "key", "make"), REFUSED, ids=[of[0] for of in REFUSED])
def test_a_key_that_an_endpoint_refuses_is_left_out_and_remembered(
    endpoint: Endpoint, report: str, key: str, make: Callable[[int], Answer]
) -> None:
    first = thinking({key: THOUGHTS, "seen": 1})
    record = ask(endpoint, [refuses(key, make)], first, first, ANSWER)
    assert (record.failure, record.answer_short) == (None, "Vivaldi")
    assert len(endpoint.requests) == 4  # one of them refused, once
    keys = [reply.keys() for _, reply in replies(endpoint.requests[-1]["messages"])]
    assert not any(key in of for of in keys)
    if "messages" in str(make(2).body):  # what the refusal does not name is still sent
        assert "seen" in keys[0]


def test_a_refusal_that_names_nothing_and_stays_leaves_nothing_out(endpoint: Endpoint) -> None:
    filtered = refusal(400, "The prompt was filtered.", code="content_filter")
    left = [thinking({"reasoning": THOUGHTS}), filtered, filtered, filtered, ANSWER, ANSWER]
    endpoint.reply_by(lambda request: left.pop(0))
    agent = agent_of(endpoint)
    record = agent.ask("Who wrote Griselda?")
    assert record.status == "failed"
    assert "The prompt was filtered." in (record.failure or "")
    state = agent.start("Who?")
    state.add(Message("assistant", "", (), None, _beside(agent, {"reasoning": THOUGHTS})))
    agent.resume(state)
    agent.model.close()
    assert endpoint.requests[-1]["messages"][-1]["reasoning"] == THOUGHTS


def test_a_signature_of_another_session_is_left_out_once(endpoint: Endpoint) -> None:
    """See google-gemini/gemini-cli#13467, massgen/MassGen#665."""
    corrupted = Answer(
        400,
        {
            "error": {
                "message": "Provider returned error",
                "code": 400,
                "metadata": {
                    "raw": '{"error": {"code": 400, "message": "Corrupted thought signature."}}',
                    "provider_name": "Google AI Studio",
                },
            }
        },
    )
    turns = [thinking({}, SIGNATURE), thinking({}, SIGNATURE), corrupted, ANSWER]
    endpoint.reply_by(lambda request: turns.pop(0))
    agent = agent_of(endpoint)
    assert agent.ask("Who wrote Griselda?").answer_short == "Vivaldi"
    sent = [
        ["extra_content" in reply["tool_calls"][0] for _, reply in replies(request["messages"])]
        for request in endpoint.requests
    ]
    assert sent == [[], [True], [True, True], [False, False]]
    turns += [thinking({}, SIGNATURE), ANSWER]
    agent.ask("Who wrote Griselda?")
    agent.model.close()
    (_, reply) = replies(endpoint.requests[-1]["messages"])[0]
    assert "extra_content" in reply["tool_calls"][0]


@pytest.mark.parametrize("kind", KEPT[:4], ids=lambda kind: kind.report)
def test_a_call_that_the_model_did_not_make_gets_what_the_endpoint_requires(
    endpoint: Endpoint, kind: Kept
) -> None:
    made = Message("assistant", "", (ToolCall("a", "search", "{}"),))
    result = Message("tool", "Nothing.", (), "a")
    request = ModelRequest([Message("user", "Who?"), made, result], [SEARCH])

    def script(sent: dict[str, Any]) -> Answer:
        return kind.rule(sent["messages"]) or ANSWER

    endpoint.reply_by(script)
    model = OpenAIModel("m", base_url=endpoint.base_url, max_retries=0)
    assert model.reply(request).verdict == model.reply(request).verdict == "answer"
    model.close()
    assert len(endpoint.requests) == 3


def _beside(agent: Agent, message: Mapping[str, object]) -> str:
    base_url = agent.model.base_url  # type: ignore[attr-defined]
    return json.dumps({"from": f"model m at {base_url}", "message": message})


def test_another_endpoint_gets_nothing_of_it(endpoint: Endpoint) -> None:
    beside = json.dumps({"from": "model m at https://other/v1", "message": {"reasoning": "Hm."}})
    endpoint.reply_with(ANSWER)
    model = OpenAIModel("m", base_url=endpoint.base_url)
    model.reply(ModelRequest([Message("assistant", "Hm.", (), None, beside)]))
    model.close()
    assert endpoint.requests[0]["messages"] == [{"role": "assistant", "content": "Hm."}]


def test_a_state_keeps_it_and_counts_its_tokens(endpoint: Endpoint) -> None:
    turns = [thinking({"reasoning_content": THOUGHTS * 100}), ANSWER]
    endpoint.reply_by(lambda request: turns.pop(0))
    agent = agent_of(endpoint)
    state = agent.start("Who wrote Griselda?", "q1")
    steps: list[int] = []

    def stop(step: object) -> None:
        steps.append(state.context_tokens)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        agent.resume(state, stop)
    assert steps[0] > 600  # 100 times the six tokens of the thoughts
    record = agent.resume(State.from_json(json.loads(json.dumps(state.to_json()))))
    agent.model.close()
    assert record.answer_short == "Vivaldi"
    (_, reply) = replies(endpoint.requests[-1]["messages"])[0]
    assert reply["reasoning_content"] == THOUGHTS * 100


def test_a_replay_of_thinking_replies_takes_the_same_way(
    endpoint: Endpoint, tmp_path: Path
) -> None:
    turns = [thinking({"reasoning_content": THOUGHTS}, SIGNATURE), ANSWER]
    endpoint.reply_by(lambda request: turns.pop(0))
    agent = agent_of(endpoint)
    agent.model = RecordingModel(agent.model, tmp_path / "replies.jsonl")
    record = agent.ask("Who wrote Griselda?", "q1")
    agent.model.close()
    agent.model = ReplayModel(tmp_path / "replies.jsonl")
    again = agent.ask("Who wrote Griselda?", "q1")
    assert (again.answer, again.reply_forms) == (record.answer, record.reply_forms)
    assert [step.tool_input for step in again.trajectory] == [{"query": "griselda"}]


@pytest.mark.parametrize(
    "written",
    [
        '{"reasoning_content": "half \\ud83d", "seen": [1e999]}',
        '{"reasoning_content": "half \\ud83d"}',
        '{"deep": ' + "[" * 300 + "]" * 300 + "}",
        '{"role": "user", "tool_calls": [], "name": "x", "id": 7, "reasoning_content": "a"}',
    ],
)
def test_odd_values_beside_a_call_never_break_the_next_request(
    endpoint: Endpoint, written: str
) -> None:
    call = '{"id": "a", "type": "function", "function": {"name": "logical_search", "x": null, '
    call += '"arguments": "{\\"query\\": \\"griselda\\"}"}}'
    message = f'{written[:-1]}, "content": null, "tool_calls": [{call}]}}'
    body = f'{{"choices": [{{"message": {message}, "finish_reason": "tool_calls"}}]}}'
    record = ask(endpoint, [], Answer(200, body), ANSWER)
    assert (record.failure, record.answer_short) == (None, "Vivaldi")
    (_, reply) = replies(endpoint.requests[-1]["messages"])[0]
    assert reply["role"] == "assistant"
    assert reply["tool_calls"][0]["function"].keys() == {"name", "arguments"}


# content: null beside calls

NULL_REFUSED = (
    ("SAIL-Research-Lab/cheetahclaws#72, Ollama", 400, "invalid message content type: <nil>"),
    ("mistralai/mistral-common#324", 422, "messages.1.content: Input should be a valid string"),
    ("Blaizzy/mlx-vlm#1785", 500, "TypeError: 'NoneType' object is not iterable"),
    ("vLLM's templates", 400, 'can only concatenate str (not "NoneType") to str'),
    ("spring-projects/spring-ai#5510", 400, "messages[2]: content is required"),
    ("Zhipu, which names nothing", 400, "messages 参数非法。请检查文档。"),
)


@pytest.mark.parametrize(("report", "status", "words"), NULL_REFUSED)
def test_a_server_that_refuses_null_gets_an_empty_text(
    endpoint: Endpoint, report: str, status: int, words: str
) -> None:
    def rule(messages: Messages) -> Answer | None:
        is_null = any(message["content"] is None for message in messages)
        return refusal(status, words) if is_null else None

    first = thinking({"reasoning": THOUGHTS})
    record = ask(endpoint, [rule], first, first, ANSWER)
    assert (record.failure, record.answer_short) == (None, "Vivaldi")
    (_, reply) = replies(endpoint.requests[-1]["messages"])[0]
    assert (reply["content"], reply["reasoning"]) == ("", THOUGHTS)


# 2. Roles in an order that the server takes

JINJA = (
    "After the optional system message, conversation roles must alternate user and assistant roles "
    "except for tool calls and results."
)
ORDERS: tuple[tuple[str, Answer], ...] = (
    ("zed-industries/zed#37021, Mistral",
     Answer(
         400,
         {
             "object": "error",
             "message": "Unexpected role 'user' after role 'tool'",
             "type": "invalid_request_message_order",
             "param": None,
             "code": "3230",
         },
     )),
    ("NousResearch/hermes-agent#20154, NIM",
     refusal(400, "Unexpected role 'user' after role 'tool'")),
    ("charmbracelet/crush#279, OpenRouter",
     Answer(
         400,
         {
             "error": {
                 "message": "Provider returned error",
                 "code": 400,
                 "metadata": {
                     "raw": '{"object":"error","message":"Unexpected role \'user\' after role '
                     '\'tool\'","type":"invalid_request_message_order"}',
                     "provider_name": "Mistral",
                 },
             }
         },
     )),
    ("eclipse-theia/theia#17104, llama.cpp",
     refusal(
         500, f"While executing CallExpression at line 189: Error: Jinja Exception: {JINJA}"
     )),
    ("huggingface/text-generation-inference#3198",
     Answer(
         422,
         {
             "error": "Template error: syntax error: Conversation roles must alternate "
             "user/assistant/user/assistant/... (in <string>:3)",
             "error_type": "template_error",
         },
     )),
    ("mistralai/mistral-vibe#578, vLLM", refusal(400, f"{JINJA} None", type="BadRequestError")),
)  # fmt: skip


def in_order(refused: Answer) -> Rule:
    def rule(messages: Messages) -> Answer | None:
        roles = [message["role"] for message in messages]
        pairs = itertools.pairwise(roles)
        is_wrong = any(pair in (("tool", "user"), ("user", "user")) for pair in pairs)
        return refused if is_wrong else None

    return rule


@pytest.mark.parametrize(("report", "refused"), ORDERS, ids=[of[0] for of in ORDERS])
def test_a_demand_behind_a_result_follows_a_line_of_the_assistant_where_it_must(
    endpoint: Endpoint, report: str, refused: Answer
) -> None:
    first = completion(None, SEARCHED)
    record = ask(endpoint, [in_order(refused)], first, ANSWER, max_loops=1)
    assert (record.failure, record.status, record.answer_short) == (None, "forced", "Vivaldi")
    *_, result, line, demand = endpoint.requests[-1]["messages"]
    assert (result["role"], line["role"], demand["role"]) == ("tool", "assistant", "user")
    assert line == {"role": "assistant", "content": "Understood."}
    assert demand["content"].startswith("There are no more tool calls.")


def test_the_order_is_remembered_and_others_are_sent_as_before(endpoint: Endpoint) -> None:
    turns = [completion(None, SEARCHED), ORDERS[0][1], ANSWER, completion(None, SEARCHED), ANSWER]
    endpoint.reply_by(lambda request: turns.pop(0))
    agent = agent_of(endpoint, max_loops=1)
    for _ in range(2):
        assert agent.ask("Who wrote Griselda?").status == "forced"
    agent.model.close()
    lines = [request["messages"][-2]["role"] for request in endpoint.requests]
    assert lines == ["system", "tool", "assistant", "system", "assistant"]


def test_a_summary_that_is_demanded_follows_a_line_too(endpoint: Endpoint) -> None:
    long = completion("I think. " * 2_000, ("search", '{"query": "griselda"}'))
    summary = completion(None, ("summarize", '{"summary": "x", "candidate_reference_ids": []}'))
    turns, budget = [long, summary, ANSWER], {"token_budget": 9_000}
    record = ask(endpoint, [in_order(ORDERS[0][1])], *turns, preset="agentic_rag", **budget)
    assert (record.failure, record.answer_short) == (None, "Vivaldi")
    assert "forced" in [event.kind for event in record.context]
    assert endpoint.requests[2]["messages"][-2]["content"] == "Understood."


# 4. A call that the server could not read


def failed(written: str | None, message: str = "Failed to call a function.") -> Answer:
    more = {} if written is None else {"failed_generation": written}
    return refusal(400, message, type="invalid_request_error", code="tool_use_failed", **more)


ARGUMENTS = '{"query": "griselda"}'
RUN = (
    ("groq/groq-typescript#28", f'```\n{{"tool_calls": [{{"id": "p", "type": "function", '
     f'"function": {{"name": "logical_search"}}, "parameters": {ARGUMENTS}}}]}}\n```'),
    ("tashfeenahmed/freellmapi#291", f"<function=logical_search={ARGUMENTS}</function>"),
    ("huggingface/smolagents#1119", f"logical_search{ARGUMENTS}</function>"),
    ("BerriAI/litellm#21242", f'{{"name": "logical_search", "arguments": {ARGUMENTS}}}'),
    ("Llama 3.3", f"<function=logical_search>{ARGUMENTS}</function>"),
    ("a list", f'[{{"name": "logical_search", "parameters": {ARGUMENTS}}}]'),
    ("thoughts before it", f'<think>Hm.</think>{{"name": "logical_search", "args": {ARGUMENTS}}}'),
)  # fmt: skip


@pytest.mark.parametrize(("report", "written"), RUN, ids=[of[0] for of in RUN])
def test_a_refused_call_of_an_offered_tool_is_run(
    endpoint: Endpoint, report: str, written: str
) -> None:
    record = ask(endpoint, [], failed(written), ANSWER)
    assert (record.failure, record.answer_short) == (None, "Vivaldi")
    (step,) = record.trajectory
    assert (step.tool_name, step.tool_input) == ("logical_search", {"query": "griselda"})
    assert step.from_text
    assert record.reply_forms["call that the server refused"] == 1
    assert len(endpoint.requests) == 2


TOLD = (
    ("lucagrippa/obsidian-ai-tagger#34", failed(""), "Failed to call a function."),
    ("HunorLaczko/ha-groq-cloud-api#20",
     failed(None, "tool call validation failed: parameters for tool x did not match schema"),
     "did not match schema"),
    ("another tool", failed('<function=google={"q": "x"}</function>'), "Failed to call"),
    ("ollama/ollama#12884",
     Answer(500, {"error": 'error parsing tool call: raw=\'{"query": "a"]\', err=invalid'}),
     "error parsing tool call"),
    ("ollama/ollama#11704",
     Answer(500, {"error parsing tool call": "invalid character 'c' looking for beginning"}),
     "invalid character"),
    ("vxcontrol/pentagi#313, llama.cpp behind LiteLLM",
     refusal(
         500,
         "litellm.InternalServerError: Custom_openaiException - Failed to parse tool call "
         "arguments as JSON: [json.exception.parse_error.101] parse error at line 1, column 131",
     ),
     "parse error at line 1"),
    ("ggml-org/llama.cpp#24644",
     refusal(500, "Failed to parse input at pos 1360: <tool_call>\n<function=write>"),
     "Failed to parse input"),
    ("strands-agents/harness-sdk#649, Bedrock",
     refusal(424, "Model produced invalid sequence as part of ToolUse. Please refer to"),
     "invalid sequence"),
)  # fmt: skip


@pytest.mark.parametrize(("report", "refused", "words"), TOLD, ids=[of[0] for of in TOLD])
def test_a_refused_call_that_is_none_is_told_to_the_model_once(
    endpoint: Endpoint, report: str, refused: Answer, words: str
) -> None:
    record = ask(endpoint, [], refused, completion(None, SEARCHED), ANSWER)
    assert (record.failure, record.answer_short, len(record.trajectory)) == (None, "Vivaldi", 1)
    *_, said, demand = endpoint.requests[1]["messages"]
    assert (said["role"], demand["role"]) == ("assistant", "user")
    assert words in demand["content"]
    assert demand["content"].startswith("Your last reply could not be read as a tool call.")
    assert demand not in endpoint.requests[2]["messages"]  # it is no part of the conversation
    record = ask(endpoint, [], refused)
    assert (record.status, len(endpoint.requests)) == ("failed", 2)
    assert "The model replied twice with a tool call that the server refused" in (
        record.failure or ""
    )


def test_an_answer_that_the_server_took_for_a_call_is_the_answer(endpoint: Endpoint) -> None:
    written = "Answer: Vivaldi\nSources: g.1"
    record = ask(endpoint, [], completion(None, SEARCHED), failed(written))
    assert (record.failure, record.answer_short, record.cited_ids) == (None, "Vivaldi", ("g.1",))


@pytest.mark.parametrize(
    "ending",
    ["malformed_function_call", "function_call_filter: MALFORMED_FUNCTION_CALL",
     "UNEXPECTED_TOOL_CALL"],
)  # fmt: skip
def test_a_call_that_gemini_drops_is_told_too(endpoint: Endpoint, ending: str) -> None:
    """See googleapis/python-genai#1836, NousResearch/hermes-agent#83882."""
    dropped = completion(None)
    body: Any = dropped.body
    body["choices"][0]["finish_reason"] = ending
    record = ask(endpoint, [], dropped, completion(None, SEARCHED), ANSWER)
    assert (record.failure, record.answer_short) == (None, "Vivaldi")
    assert "could not be read" in endpoint.requests[1]["messages"][-1]["content"]


@pytest.mark.parametrize("name", ["", "google search", "search\u0000", "x" * 65, "a.b"])
def test_a_name_that_no_tool_can_have_does_not_stand_in_the_history(
    endpoint: Endpoint, name: str
) -> None:
    """See mastra-ai/mastra#13632: Bedrock then refuses every later request."""
    record = ask(endpoint, [], completion(None, (name, "{}")), ANSWER)
    assert record.answer_short == "Vivaldi"
    assert record.trajectory[0].status == "error"
    (_, reply) = replies(endpoint.requests[-1]["messages"])[0]
    assert reply["tool_calls"][0]["function"]["name"] == "unknown_tool"


# 5. An answer beside one more call

EARLY = completion("Answer: Vivaldi\nExplanation: It says so.\nSources: g.1", SEARCHED)
CLOSINGS = (
    ("HolmesGPT/holmesgpt#2185", completion(None)),
    ("OpenRouterTeam/typescript-agent#63", completion("")),
    ("a remark", completion("The answer is above.")),
    ("thoughts alone", completion(None, reasoning_content="All is said.")),
    ("its last line again", completion("I have given the answer with its sources.")),
    ("the same in another language", completion("Die Antwort steht oben.")),
)


@pytest.mark.parametrize(("report", "closing"), CLOSINGS, ids=[of[0] for of in CLOSINGS])
@pytest.mark.parametrize("max_loops", [1, 5])
def test_an_answer_beside_a_call_counts_if_the_closing_turn_has_none(
    endpoint: Endpoint, report: str, closing: Answer, max_loops: int
) -> None:
    record = ask(endpoint, [], EARLY, closing, max_loops=max_loops)
    assert (record.failure, record.answer_short, record.cited_ids) == (None, "Vivaldi", ("g.1",))
    assert (record.answer_from_turn, record.explanation) == (1, "It says so.")
    assert record.status == ("forced" if max_loops == 1 else "answered")


@pytest.mark.parametrize(
    ("early", "closing", "short"),
    [
        (EARLY, completion("Answer: Goldoni\nSources: g.1"), "Goldoni"),
        (completion("Answer: not found in the corpus", SEARCHED), completion("Goldoni."),
         "Goldoni."),
        (completion("I look for it.", SEARCHED), completion("Goldoni."), "Goldoni."),
    ],
)  # fmt: skip
def test_a_closing_turn_with_an_answer_counts_itself(
    endpoint: Endpoint, early: Answer, closing: Answer, short: str
) -> None:
    record = ask(endpoint, [], early, closing)
    assert (record.answer_short, record.answer_from_turn) == (short, None)


def test_a_closing_turn_that_is_cut_off_is_a_failure_all_the_same(endpoint: Endpoint) -> None:
    cut = completion("The answer is ab")
    body: Any = cut.body
    body["choices"][0]["finish_reason"] = "length"
    assert ask(endpoint, [], EARLY, cut).status == "failed"


# 7. Another model than asked for


def answered_by(name: object, answer: Answer = ANSWER) -> Answer:
    body: Any = answer.body
    return Answer(200, {**body, "model": name})


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("gpt-4o", "gpt-5.4"),  # icebear0828/codex-proxy#660
        ("openrouter/auto", "anthropic/claude-sonnet-4.5"),
        ("gpt-4", "gpt-4o"),
        ("qwen2.5-7b", "qwen2.5-72b"),
        ("my-deployment", "gpt-4o-2024-08-06"),  # Azure
    ],
)
def test_a_model_that_answers_in_place_of_another_is_named_and_recorded(
    endpoint: Endpoint, asked: str, answered: str
) -> None:
    endpoint.reply_with(answered_by(answered, completion(None, SEARCHED)), answered_by(answered))
    agent = agent_of(endpoint)
    agent.model.name = asked  # type: ignore[misc]
    record = agent.ask("Who wrote Griselda?")
    agent.model.close()
    assert record.other_models == (answered,)
    assert record.warnings == (f"Another model answered than the one that was asked: {answered}.",)


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("gpt-4o", "gpt-4o-2024-08-06"),
        ("gpt-3.5-turbo", "gpt-3.5-turbo-0125"),
        ("mistral-large-latest", "mistral-large-2411"),
        ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022"),
        ("deepseek/deepseek-r1:free", "deepseek/deepseek-r1"),
        ("gemini-2.5-pro", "models/gemini-2.5-pro-preview-05-06"),
        ("Qwen/Qwen3-8B", "/models/Qwen3-8B/"),
        ("qwen3-8b", "Qwen3-8B.gguf"),
        ("claude-sonnet-4@20250514", "claude-sonnet-4"),
        ("m", ""),
        ("m", None),
        ("m", 7),
    ],
)
def test_a_version_of_the_model_is_no_other_one(
    endpoint: Endpoint, asked: str, answered: object
) -> None:
    endpoint.reply_with(answered_by(answered))
    model = OpenAIModel(asked, base_url=endpoint.base_url)
    assert model.reply(ModelRequest([Message("user", "Who?")])).other_model == ""
    model.close()


# What was needed to read the replies


def test_the_rules_that_were_needed_are_counted_in_the_record(endpoint: Endpoint) -> None:
    call = f'<think>Hm.</think><tool_call>{{"name": "logical_search", "arguments": {ARGUMENTS}}}'
    record = ask(
        endpoint,
        [],
        completion(f"{call}</tool_call>"),
        completion("I search.", SEARCHED, reasoning="Hm."),
        completion([{"type": "text", "text": "<think>x</think>Answer: Vivaldi<|im_end|>"}]),
    )
    assert record.reply_forms == {
        "thoughts in <think>": 2,
        "call in the text": 1,
        "thoughts beside the text": 1,
        "content in parts": 1,
        "end mark <|im_end|>": 1,
    }
