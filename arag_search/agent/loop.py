"""The agent: one tool call a step, until the model answers (A-RAG's Algorithm 1).

    with open_index("my-index") as index:
        agent = Agent(index, load_preset("logical_read"), model)
        record = agent.ask("Where was the poet who wrote Evangeline born?")
        print(record.answer_short, record.cited_ids)

There are two kinds of failure. A mistake of the model is returned to it and counts as a step; a
failure that it cannot correct ends the question, with its cause in the record.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, cast

from arag_search.agent.answers import Answer, has_answer_line, parse_answer
from arag_search.agent.calls import CallRunner, history_call
from arag_search.agent.models.base import (
    ChatModel,
    Cut,
    Message,
    ModelReply,
    ModelRequest,
    ToolCall,
    Usage,
)
from arag_search.agent.presets import Preset
from arag_search.agent.prompts import prompt_text
from arag_search.agent.record import Outcome, Record, Step
from arag_search.agent.state import State, message_tokens
from arag_search.agent.toolbox import check_for_agent, encoder_of, given_by, tools_of
from arag_search.errors import AragError, ArgumentError, ContextLengthError, ModelReplyError
from arag_search.query.limits import MAX_CHARACTERS
from arag_search.search.index import Index
from arag_search.tokens import count_tokens
from arag_search.tools.base import ToolResult
from arag_search.tools.naive_embedding_search import NaiveEmbeddingSearch

OnStep = Callable[[Step], None]

ONE_A_STEP = "One tool a step: this call was not run."
LEFT_OUT = "(Left out: the conversation is too long for the model.)"
_CUT_OFF: dict[Cut, str] = {
    "length": "it reached the token limit of a reply",
    "content_filter": "the endpoint's content filter withheld the rest",
}

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Ended:
    """The end of a question; ``failure`` is kind and message if it failed, and ``text`` is then
    the incomplete answer."""

    text: str
    status: Outcome
    failure: str | None = None


class Agent:
    """An agent that answers questions over one index with one preset and one model.

    It keeps no state between questions, so threads may share it. Raises NotServedError if the
    index cannot serve a tool of the preset.
    """

    def __init__(self, index: Index, preset: Preset, model: ChatModel) -> None:
        check_for_agent(preset)
        self.index = index
        self.preset = preset
        self.model = model
        self.calls = CallRunner(
            tools_of(preset, index),
            guarded=preset.loop_guards,
            max_calls=preset.max_loops if preset.reproduces is None else None,
        )
        self._schemas: tuple[Mapping[str, Any], ...] = self.calls.schemas
        self._schema_tokens = sum(count_tokens(str(schema)) for schema in self._schemas)
        self._system = preset.system_prompt
        self._given = given_by(preset, index)
        self.encoder = encoder_of(preset, index)
        self.fingerprints: dict[str, str] = {
            "preset": preset.fingerprint,
            "index": _index_fingerprint(index),
            "model": model.fingerprint,
            "code": version("arag-search"),
        }
        if self.encoder is not None:
            self.fingerprints["encoder"] = self.encoder.fingerprint

    def ask(self, question: str, question_id: str = "", on_step: OnStep | None = None) -> Record:
        """Answer a question. ``on_step`` is called after each step.

        A question that fails has a record with status "failed". Raises ArgumentError for an
        empty question.
        """
        return self.resume(self.start(question, question_id), on_step)

    def start(self, question: str, question_id: str = "") -> State:
        """Return the state before the first turn."""
        question = _valid(question).strip()
        if not question:
            raise ArgumentError("The question is empty.", do="Write a question.")
        state = State(question_id, question)
        state.add(Message("system", self._system))
        state.add(Message("user", question))
        return state

    def resume(self, state: State, on_step: OnStep | None = None) -> Record:
        """Resume a question from its state, and return its record."""
        began = time.perf_counter() - state.seconds
        steps = self._steps(state)
        while True:
            step = _advance(steps, state)
            state.seconds = time.perf_counter() - began
            if isinstance(step, _Ended):
                return self._record(state, step)
            if on_step is not None:
                on_step(step)

    def _steps(self, state: State) -> Generator[Step, None, _Ended]:
        """Yield each step when it is done; return how the question ended."""
        if self._given is not None and not state.steps:
            yield self._add_given_passages(state, self._given)
        while state.loops < self.preset.max_loops:
            if state.context_tokens >= self.preset.token_budget:
                break
            began = time.perf_counter()
            try:
                reply = self._reply(state, self._schemas)
            except ContextLengthError as error:
                return self._end_of(self._force_answer(state, too_long=error), "forced")
            if self._is_plan(state, reply):
                state.planned = True
                state.add(Message("assistant", reply.text))
                state.add(Message("user", prompt_text("plan_accepted")))
                continue
            state.loops += 1
            if not (reply.tool_calls and self._schemas):
                state.add(Message("assistant", reply.text))
                return self._end_of(reply, "answered")
            yield self._step(state, reply, began)
        return self._end_of(self._force_answer(state), "forced")

    def _end_of(self, reply: ModelReply, status: Outcome) -> _Ended:
        """Return the end of a question with this reply; an incomplete reply is not an answer."""
        if reply.cut is None:
            return _Ended(reply.text, status)
        error = ModelReplyError(
            f"The answer was cut off: {_CUT_OFF[reply.cut]}.",
            where=f"model {self.model.name}, finish reason {reply.cut}",
            do="Allow the model longer replies, or try another model.",
        )
        return _Ended(reply.text, "failed", _failure(error))

    def _add_given_passages(self, state: State, search: NaiveEmbeddingSearch) -> Step:
        """Add the passages nearest to the question below it, and record this as a search."""
        began = time.perf_counter()
        arguments = {
            "query": state.question[:MAX_CHARACTERS],
            "top_k": self.preset.given_passages,
        }
        result = search.run(arguments, state.read_set)
        state.shown_ids.update(result.ids)
        asked = state.messages[-1]
        state.replace(-1, Message(asked.role, f"{asked.content}\n\n{result.text}"))
        step = _step_of(1, search.name, arguments, "", result, began)
        state.steps.append(step)
        return step

    def _reply(self, state: State, schemas: Sequence[Mapping[str, Any]]) -> ModelReply:
        """Return the next reply to the messages; ask once more if it is empty."""
        reply = ModelReply("")
        for _ in range(2):
            reply = self._call_model(state, state.messages, schemas)
            if reply.text.strip() or (reply.tool_calls and schemas):
                return reply
        cut_off = "" if reply.cut is None else f"; {_CUT_OFF[reply.cut]}"
        raise ModelReplyError(
            f"The model replied twice with neither text nor a tool call{cut_off}.",
            where=f"model {self.model.name}, turn {state.loops + 1}",
            do="Try another model, or other settings of it.",
        )

    def _call_model(
        self, state: State, messages: Sequence[Message], schemas: Sequence[Mapping[str, Any]]
    ) -> ModelReply:
        """Call the model once and add up its usage."""
        request = ModelRequest(tuple(messages), schemas, state.question_id)
        given = self.model.reply(request)
        calls = tuple(
            ToolCall(call.id, _valid(call.name), _valid(call.arguments))
            for call in given.tool_calls
        )
        reply = replace(
            given, text=_valid(given.text), tool_calls=calls, reasoning=_valid(given.reasoning)
        )
        usage = given.usage
        if usage is None or not usage.is_plausible:
            usage = self._own_usage(state, reply, bool(schemas))
        state.spend(usage)
        return reply

    def _own_usage(self, state: State, reply: ModelReply, with_tools: bool) -> Usage:
        """Count the tokens here if the endpoint reports no usage, or an implausible one."""
        written = Message("assistant", reply.text + reply.reasoning, reply.tool_calls)
        prompt = state.context_tokens + (self._schema_tokens if with_tools else 0)
        return Usage(prompt, message_tokens(written), "counted")

    def _is_plan(self, state: State, reply: ModelReply) -> bool:
        """Return whether a reply is only the plan that was requested, not an answer."""
        return (
            self.preset.plan_first
            and bool(self._schemas)
            and not (state.planned or state.steps or reply.tool_calls)
            and not has_answer_line(reply.text)
        )

    def _step(self, state: State, reply: ModelReply, began: float) -> Step:
        """Run the first call of a reply and answer all of them."""
        first = reply.tool_calls[0]
        ran = self.calls.run(state, first)
        result = ran.result
        reasoning = "\n".join(text for text in (reply.reasoning, reply.text) if text.strip())
        number = len(state.steps) + 1
        step = _step_of(number, first.name, ran.arguments, reasoning, result, began)
        state.steps.append(step)
        calls = _history(reply.tool_calls, step.step)
        state.add(Message("assistant", reply.text, calls))
        state.add(Message("tool", result.text, (), calls[0].id), result.result_tokens)
        for other in calls[1:]:
            state.add(Message("tool", ONE_A_STEP, (), other.id))
        return step

    def _force_answer(self, state: State, too_long: ContextLengthError | None = None) -> ModelReply:
        """Ask for the answer without tools.

        After a context-length error, the newest tool result is left out, then the older half of
        them too, then all of them. Raises the last error if even that is too long.
        """
        state.add(Message("user", prompt_text("forced_answer")))
        if too_long is None:
            try:
                return self._final_reply(state)
            except ContextLengthError as error:
                too_long = error
        results = [at for at, message in enumerate(state.messages) if message.role == "tool"]
        newest = set(results[-1:])
        for left_out in (newest, newest | set(results[: len(results) // 2]), set(results)):
            if not left_out:
                break
            for at in left_out:
                old = state.messages[at]
                if old.content != LEFT_OUT:
                    state.replace(at, Message("tool", LEFT_OUT, (), old.tool_call_id))
            try:
                return self._final_reply(state)
            except ContextLengthError as error:
                too_long = error
        raise too_long

    def _final_reply(self, state: State) -> ModelReply:
        reply = self._reply(state, ())
        state.add(Message("assistant", reply.text))
        return reply

    def _record(self, state: State, ended: _Ended) -> Record:
        steps = tuple(state.steps)
        answer = self._answer("" if ended.status == "failed" else ended.text, state)
        read = dict.fromkeys(id for step in steps if step.is_read for id in step.hit_ids)
        used: dict[str, int] = {}
        for step in steps:
            used[step.tool_name] = used.get(step.tool_name, 0) + 1
        return Record(
            question_id=state.question_id,
            question=state.question,
            answer=ended.text,
            answer_short=answer.short,
            explanation=answer.explanation,
            cited_ids=answer.cited_ids,
            wrong_ids=answer.wrong_ids,
            citation=answer.citation if ended.failure is None else None,
            status=ended.status,
            failure=ended.failure,
            trajectory=steps,
            total_cost=None,
            loops=state.loops,
            tool_usage_summary=used,
            total_retrieved_tokens=sum(step.retrieved_tokens for step in steps),
            chunks_read_count=len(read),
            chunks_read_ids=tuple(read),
            usage=state.usage or Usage(0, 0, "counted"),
            seconds=state.seconds,
            fingerprints=dict(self.fingerprints),
            invented_ids=answer.invented_ids,
        )

    def _answer(self, text: str, state: State) -> Answer:
        """Parse an answer; ids in it that were not shown are looked up in the index."""

        def held(ids: Sequence[str]) -> set[str]:
            chunks = self.index.read(ids)
            return {id for id, chunk in zip(ids, chunks, strict=True) if chunk is not None}

        try:
            return parse_answer(text, state.shown_ids, held)
        except AragError:  # the engine fails after the answer was given
            return parse_answer(text, state.shown_ids)


def _advance(steps: Generator[Step, None, _Ended], state: State) -> Step | _Ended:
    """Return the next step, or the end of the question, whether answered or failed."""
    try:
        return next(steps)
    except StopIteration as end:
        return cast(_Ended, end.value)
    except AragError as error:
        return _Ended("", "failed", _failure(error))
    except Exception as error:  # a bug of ours ends one question and is logged; the run continues
        _log.exception("Question %s failed.", state.question_id or state.question)
        return _Ended("", "failed", _failure(error))


def _failure(error: Exception) -> str:
    """Return the kind and the message of a failure in the form of records."""
    return f"{type(error).__name__}: {error}"


def _step_of(
    number: int, tool: str, arguments: Any, reasoning: str, result: ToolResult, began: float
) -> Step:
    """Return the step to record, with the time that it has taken so far."""
    return Step(
        step=number,
        tool_name=tool,
        tool_input=arguments,
        tool_output=result.text,
        reasoning=reasoning,
        status=result.status,
        hit_ids=result.ids,
        total_hits=result.total,
        retrieved_tokens=result.retrieved_tokens,
        result_tokens=result.result_tokens,
        seconds=time.perf_counter() - began,
        passages=result.passages,
        total_is_exact=result.total_is_exact,
    )


def _history(calls: Sequence[ToolCall], step: int) -> tuple[ToolCall, ...]:
    """Return the calls in the form of later requests, with unique ids."""
    taken: set[str] = set()
    kept: list[ToolCall] = []
    for number, call in enumerate(calls, 1):
        call_id = call.id if call.id and call.id not in taken else f"call_{step}_{number}"
        taken.add(call_id)
        kept.append(history_call(call, call_id))
    return tuple(kept)


def _index_fingerprint(index: Index) -> str:
    """Return the fingerprint of the corpus and its ranking, with the scope if there is one."""
    manifest = index.manifest
    fingerprint = f"{manifest.fingerprint} bm25={manifest.k1:g},{manifest.b:g}"
    if manifest.without:
        fingerprint += f" without={','.join(manifest.without)}"
    return f"{fingerprint} in {index.scope}" if index.scope is not None else fingerprint


def _valid(text: str) -> str:
    """Replace lone surrogates in a text, so that it can be written and sent."""
    return text.encode("utf-8", "replace").decode("utf-8")
