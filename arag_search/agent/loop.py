"""The agent: tool calls until the model answers (A-RAG's Algorithm 1, one call a turn; AgenticRAG's
Algorithm 1, several).

    with open_index("my-index") as index:
        agent = Agent(index, load_preset("logical_read"), model)
        record = agent.ask("Where was the poet who wrote Evangeline born?")
        print(record.answer_short, record.cited_ids)

There are two kinds of failure. A mistake of the model is returned to it and counts as a step. A
failure that it cannot correct ends the question, with its cause in the record.
"""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, cast

from arag_search.agent.answers import Answer, cited_documents, has_answer_line, parse_answer
from arag_search.agent.calls import AgentTools, history_calls
from arag_search.agent.context import SUMMARIZE, Context
from arag_search.agent.given import (
    Evidence,
    Given,
    check_for_agent,
    encoder_of,
    evidence_text,
    given_by,
    one_search,
)
from arag_search.agent.memory_agent import MemoryReader
from arag_search.agent.models.base import (
    NO_CALL,
    ChatModel,
    Message,
    ModelReply,
    ModelRequest,
    ToolCall,
)
from arag_search.agent.models.usage import Usage, usage_warning
from arag_search.agent.no_answer import cut_off_error, no_answer_error
from arag_search.agent.prompts import (
    PASSAGES_ABOVE,
    QUESTION_BELOW,
    preset_fingerprint,
    prompt_text,
    system_prompt,
)
from arag_search.agent.record import MemoryState, Outcome, Record, Route, Step
from arag_search.agent.state import PendingCall, State, message_tokens
from arag_search.agent.switcher import route_by_rules
from arag_search.agent.wording import is_refusal
from arag_search.errors import AragError, ArgumentError, ContextLengthError
from arag_search.search.index import Index
from arag_search.tokens import count_tokens
from arag_search.tools.arguments import parsed_arguments
from arag_search.tools.passages.read import ChunkRead
from arag_search.tools.preset import Preset
from arag_search.tools.registry import meant_tool
from arag_search.tools.replies.parts import CALLS_LEFT
from arag_search.tools.tool import ToolResult, no_such_tool
from arag_search.tools.toolbox import Toolbox

FEW_CALLS = 3
"""When at most this many calls are left, each result says how many."""
OnStep = Callable[[Step], None]
Phase = Generator[Step, None, "Ended | None"]
"""What happens before the loop or before a turn: its steps, and the end of the question if it ends
there."""

ONE_A_STEP = "One tool a step: this call was not run."
NO_TEXT = "(No text.)"
LEFT_OUT = "(Left out: the conversation is too long for the model.)"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a question; ``failure`` is kind and message if it failed, and ``text`` is then
    the incomplete answer. ``from_turn`` is the turn of an answer that the last reply does not
    repeat."""

    text: str
    status: Outcome
    failure: str | None = None
    from_turn: int | None = None


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
        self.toolbox: Toolbox = AgentTools(index, preset)
        self.schemas = tuple(self.toolbox.schemas)
        self._schema_tokens = sum(count_tokens(str(schema)) for schema in self.schemas)
        self._context = (
            Context(preset.token_budget, self._schema_tokens) if preset.manages_context else None
        )
        self._system = system_prompt(preset)
        self._given = given_by(preset, index)
        self.reader = MemoryReader(index, preset) if preset.memory_tokens else None
        before_loop = {
            self._read_in_order: preset.memory_tokens,
            self._begin_with_given: self._given,
            self._switch: preset.switcher,
        }
        self._before_loop = [phase for phase, is_used in before_loop.items() if is_used]
        self._before_turn = [self._with_room if preset.manages_context else self._within_budget]
        self._after_reply = [self._accept_plan] if preset.plan_first else []
        self.encoder = encoder_of(preset, index)
        self.fingerprints: dict[str, str] = {
            "preset": preset_fingerprint(preset),
            "index": _index_fingerprint(index),
            "model": model.fingerprint,
            "code": version("arag-search"),
        }
        if self.encoder is not None:
            self.fingerprints["encoder"] = self.encoder.fingerprint

    def ask(
        self,
        question: str,
        question_id: str = "",
        on_step: OnStep | None = None,
        evidence: Sequence[Evidence] = (),
    ) -> Record:
        """Answer a question. ``on_step`` is called after each step. ``evidence`` are the texts that
        a preset with ``given: evidence`` shows with the question; others do not use them.

        A question that fails has a record with status "failed". Raises ArgumentError for an empty
        question, and for a question without evidence if the preset needs it.
        """
        return self.resume(self.start(question, question_id, evidence), on_step)

    def start(
        self, question: str, question_id: str = "", evidence: Sequence[Evidence] = ()
    ) -> State:
        """Return the state before the first turn."""
        question = _checked(question)
        state = State(question_id, question)
        state.add(Message("system", self._system))
        if self.preset.given == "evidence":
            question = self._with_evidence(state, question, evidence)
        state.add(Message("user", question))
        return state

    def follow_up(self, state: State, question: str, question_id: str = "") -> None:
        """Add the next question of a conversation, which may use what was found before (AgenticRAG,
        section 3.1). Raises ArgumentError for an empty question, and for a preset without document
        tools, whose conversations have no documents to refer back to."""
        question = _checked(question)
        if not self.preset.uses_documents:
            raise ArgumentError(
                f"Preset {self.preset.name} answers single questions.",
                allowed="a preset with the tools search, find and open, such as agentic_rag",
                do="Ask without a conversation, or choose another preset.",
            )
        state.begin(question_id, question)
        state.add(Message("user", question))

    def _with_evidence(self, state: State, question: str, evidence: Sequence[Evidence]) -> str:
        if not evidence:
            raise ArgumentError(
                "The question has no evidence to be given.",
                where=f"preset {self.preset.name}, key given",
                allowed="questions with supporting passages, from a file (arag-search run)",
                do="Use another preset, or add the passages to the file of questions.",
            )
        references = state.read_set.references
        text = evidence_text(evidence, references, self.preset.max_result_tokens)
        return f"{question}\n\n{text}"

    def resume(self, state: State, on_step: OnStep | None = None) -> Record:
        """Resume a question from its state, and return its record."""
        began = time.perf_counter() - state.seconds
        steps = self._steps(state)
        while True:
            step = _advance(steps, state)
            state.seconds = time.perf_counter() - began
            if isinstance(step, Ended):
                return self._record(state, step)
            if on_step is not None:
                on_step(step)

    def _steps(self, state: State) -> Generator[Step, None, Ended]:
        """Yield each step when it is done; return how the question ended."""
        for phase in self._before_loop:
            if (end := (yield from phase(state))) is not None:
                return end
        while True:
            began = time.perf_counter()
            while state.pending:  # also those of a state that was written between two calls
                yield self._run_pending(state, began)
                began = time.perf_counter()
            if state.loops >= self.preset.max_loops:
                return self._force_answer(state)
            for phase in self._before_turn:
                if (end := (yield from phase(state))) is not None:
                    return end
            began = time.perf_counter()
            try:
                reply = self._reply(state, self.schemas)
            except ContextLengthError as error:
                return self._force_answer(state, too_long=error)
            if any(is_done(state, reply) for is_done in self._after_reply):
                continue
            state.loops += 1
            if reply.verdict != "calls":
                return self._end_of(state, reply, "answered")
            self._take(state, reply)
            yield self._run_pending(state, began)

    # Before the loop

    def _read_in_order(self, state: State) -> Phase:
        """Read the passages, each of them with an update of the memory, then answer (MemoryAgent).
        Every request replaces the one before."""
        assert self.reader is not None
        while len(state.steps) < len(self.reader.results):
            began = time.perf_counter()
            number = len(state.steps)
            request = self.reader.request(number, state.question, state.memory)
            state.replace(1, Message("user", request))
            reply = self._reply(state, ())
            state.loops += 1
            state.memory = self.reader.updated(state.memory, reply)
            call, result = self.reader.calls[number], self.reader.results[number]
            thoughts = "\n".join(filter(None, (reply.reasoning, reply.text)))
            state.read_set.ids.update(result.ids)
            yield add_step(state, ChunkRead.name, call, thoughts, result, began)
        state.replace(1, Message("user", self.reader.answer_request(state.question, state.memory)))
        return self._end_of(state, self._reply(state, ()), "answered")

    def _begin_with_given(self, state: State) -> Phase:
        """Search once for the question (A-RAG's Naive RAG)."""
        if self._given is not None and not state.steps:
            yield self._add_given(state, self._given)
        return None

    def _switch(self, state: State) -> Phase:
        """Route a question. Return its end if one search answers it; otherwise the loop continues
        with the documents that the search found."""
        if state.route is None:
            state.route = route_by_rules(state.question)
            if state.route.kind == "simple":
                step = self._add_given(state, one_search(self.preset, self.index))
                asked = state.messages[-1]
                text = f"{asked.content}\n\n{prompt_text('one_search')}"
                state.replace(-1, Message(asked.role, text))
                yield step
        if state.route.kind != "simple":
            return None
        try:
            reply = self._reply(state, ())
        except ContextLengthError:
            reply = ModelReply("")
        answer = self._answer(reply.text, state)
        state.add(_message_of(reply))
        if reply.cut is None and answer.citation == "cited" and not is_refusal(answer.short):
            return Ended(reply.text, "answered")
        state.route = Route("escalated", f"{state.route.why}, which one search did not answer")
        state.add(Message("user", prompt_text("escalated")))
        return None

    # Before a turn

    def _within_budget(self, state: State) -> Phase:
        """Demand the answer if the conversation has as many tokens as the preset allows."""
        yield from ()
        is_full = state.context_tokens >= self.preset.token_budget
        return self._force_answer(state) if is_full else None

    def _with_room(self, state: State) -> Phase:
        """Demand a summary if the conversation is full (AgenticRAG), and the answer if it is full
        even so."""
        context = self._context
        if context is None or not context.is_full(state):
            return None
        end = yield from self._summarize(state, context)
        if end is None and context.is_full(state):
            context.exhausted(state)
            return self._force_answer(state)
        return end

    def _end_of(self, state: State, reply: ModelReply, status: Outcome) -> Ended:
        """Return the end of a question with this reply; an incomplete reply is not an answer. If it
        has no answer line, and an earlier reply of the question has one, that is the answer."""
        earlier = state.answer if reply.cut is None and not has_answer_line(reply.text) else ""
        state.add(_message_of(reply) if reply.text.strip() else Message("assistant", earlier))
        if reply.cut is not None:
            error = cut_off_error(reply, self.model.name)
            return Ended(reply.text, "failed", _failure(error))
        return Ended(earlier or reply.text, status, None, state.answer_turn if earlier else None)

    def _add_given(self, state: State, given: Given) -> Step:
        """Add the results of a search below the question, and record the search as a step. For
        A-RAG's Naive RAG, the results are above the question."""
        began = time.perf_counter()
        search, arguments = given.tool, given.arguments_for(state.question)
        result = search.run(arguments, state.read_set, tells_standing=False)
        state.read_set.ids.update(result.ids)
        asked = state.messages[-1]
        text = f"{asked.content}\n\n{result.text}"
        if self.preset.replies == "A-RAG":
            text = f"{PASSAGES_ABOVE}{result.text}{QUESTION_BELOW}{asked.content}"
        state.replace(-1, Message(asked.role, text))
        return add_step(state, search.name, arguments, "", result, began)

    def _reply(
        self, state: State, schemas: Sequence[Mapping[str, Any]], tool_choice: str | None = None,
        *, logprobs: bool = False,
    ) -> ModelReply:  # fmt: skip
        """Return the next reply to the messages. Ask once more if it is neither an answer nor an
        allowed call. The model is told if a call was not read. After a second such reply, return an
        empty one if an earlier one has the answer."""
        request = ModelRequest(
            tuple(state.messages),
            schemas,
            state.question_id,
            tool_choice,
            parallel_calls=self.preset.calls_a_turn > 1,
            logprobs=logprobs,
        )
        prompt_tokens = state.context_tokens + (self._schema_tokens if schemas else 0)
        reply = ModelReply("")
        for _ in range(2):
            reply = self._ask(state, request, prompt_tokens)
            verdict = reply.verdict
            if verdict == "calls" and not request.may_call and has_answer_line(reply.text):
                return replace(reply, tool_calls=())
            is_partial = verdict == "broken off" and bool(reply.text.strip())
            if verdict == "answer" or is_partial or (verdict == "calls" and request.may_call):
                return reply
            if verdict == "unread call":
                demand = prompt_text("unread_call").replace(
                    " {problem}", f" {reply.problem}".rstrip()
                )
                said = Message("assistant", reply.text or NO_TEXT)
                request = replace(
                    request, messages=[*state.messages, said, Message("user", demand)]
                )
        if state.answer:
            return ModelReply("")
        raise no_answer_error(reply, self.model.name, state.loops + 1)

    def _ask(self, state: State, request: ModelRequest, prompt_tokens: int) -> ModelReply:
        """Call the model once, and add up what it used; where the endpoint reports no usage, or an
        implausible one, that is counted here."""
        given = self.model.reply(request)
        calls = tuple(
            replace(
                call,
                name=meant_tool(_valid(call.name), request.offered),
                arguments=_valid(call.arguments),
            )
            for call in given.tool_calls
        )
        reply = replace(
            given, text=_valid(given.text), tool_calls=calls, reasoning=_valid(given.reasoning)
        )
        state.note_reading(reply)
        usage = given.usage
        if usage is None or not usage.is_plausible:
            written = Message("assistant", reply.text + reply.reasoning, calls)
            usage = Usage(prompt_tokens, message_tokens(written), "counted")
        state.spend(usage, prompt_tokens)
        return reply

    # After a reply

    def _accept_plan(self, state: State, reply: ModelReply) -> bool:
        """Take the first reply without a call or an answer as a plan; return whether it is one."""
        is_plan = (
            bool(self.schemas)
            and not (state.planned or state.steps or reply.tool_calls)
            and not has_answer_line(reply.text)
        )
        if is_plan:
            state.planned = True
            state.add(_message_of(reply))
            state.add(Message("user", prompt_text("plan_accepted")))
        return is_plan

    def _take(self, state: State, reply: ModelReply) -> None:
        """Add a reply with calls to the messages; the calls that the preset allows become
        pending."""
        calls = history_calls(reply.tool_calls, len(state.steps) + 1)
        state.add(_message_of(reply, calls))
        if has_answer_line(reply.text) and not is_refusal(parse_answer(reply.text).short):
            state.answer, state.answer_turn = reply.text, state.loops
        reasoning = "\n".join(text for text in (reply.reasoning, reply.text) if text.strip())
        for call, known in zip(reply.tool_calls, calls, strict=True):
            state.pending.append(PendingCall(call, known.id, reasoning))
            reasoning = ""

    def _run_pending(self, state: State, began: float, demanded: str | None = None) -> Step:
        """Run the next pending call. If a turn has too many calls, answer those beyond the limit:
        beyond the first one where a tool is ``demanded``."""
        context, most = self._context, self.preset.calls_a_turn if demanded is None else 1
        pending = state.pending[0]
        if demanded in (None, pending.call.name):
            arguments, result = self._called(state, pending.call)
        else:
            arguments, result = pending.call.arguments, no_such_tool(pending.call.name, [demanded])
        ran_in_turn = sum(
            step.turn == state.loops and step.tool_name != SUMMARIZE
            for step in state.steps[state.first_step :]
        )
        is_last = len(state.pending) == 1 or ran_in_turn + 1 >= most
        if context is not None:
            if result.kept is not None:
                result = context.summarized(state, result, "forced" if demanded else "voluntary")
            elif is_last:
                result = context.warned(state, result)
        step = add_step(
            state,
            pending.call.name,
            arguments,
            pending.reasoning,
            result,
            began,
            call_id=pending.id,
            turn=state.loops if self.preset.calls_a_turn > 1 else None,
            from_text=pending.call.from_text,
        )
        state.pending.pop(0)
        if is_last:
            for other in state.pending:
                state.add(Message("tool", _not_run(most), (), other.id))
            state.pending.clear()
        return step

    def _called(self, state: State, call: ToolCall) -> tuple[Any, ToolResult]:
        """Run a call. Return the arguments to record, which are their text if they are no JSON, and
        the result, which says so if few calls are left."""
        state.read_set.step = len(state.steps)
        result = self.toolbox.in_conversation(state.read_set).call(call.name, call.arguments)
        left = self.preset.max_loops - state.loops
        if self.preset.replies is None and 0 < left <= FEW_CALLS:
            result = replace(result, text=f"{result.text}\n{CALLS_LEFT}{left}.")
        try:
            return parsed_arguments(call.arguments), result
        except ValueError:
            return call.arguments, result

    def _summarize(self, state: State, context: Context) -> Phase:
        """Demand a call of summarize before the next turn; this does not count as a turn. Return
        the end of the question if the model answers instead. If the model twice names no reference
        that exists, or makes no call, the documents that it looked at last are kept.
        """
        tool = self.toolbox.tools[SUMMARIZE]
        state.add(Message("user", prompt_text("context_full")))
        for _ in range(2):
            began = time.perf_counter()
            try:
                reply = self._reply(state, (tool.openai_schema(),), SUMMARIZE)
            except ContextLengthError as error:
                return self._force_answer(state, too_long=error)
            if not reply.tool_calls:
                if has_answer_line(reply.text):
                    return self._end_of(state, reply, "answered")
                state.add(_message_of(reply))
                state.add(Message("user", prompt_text("context_full")))
                continue
            self._take(state, reply)
            step = self._run_pending(state, began, SUMMARIZE)
            yield step
            if step.status == "ok":
                return None
        began = time.perf_counter()
        kept = context.fallback(state)
        arguments = {"summary": "", "candidate_reference_ids": kept}
        call = ToolCall(f"call_{len(state.steps) + 1}", SUMMARIZE, json.dumps(arguments))
        state.add(Message("assistant", "", (call,)))
        chosen = ToolResult("", "ok", kept=tuple(kept))
        result = context.summarized(state, chosen, "forced")
        yield add_step(
            state, SUMMARIZE, arguments, "", result, began, call_id=call.id, turn=state.loops
        )
        return None

    def _force_answer(self, state: State, too_long: ContextLengthError | None = None) -> Ended:
        """Ask for the answer without tools.

        After a context-length error, the newest tool result is left out, then the older half of the
        results too, then all of them. Raises the last error if even that is too long.
        """
        demand = "forced_answer" if self.preset.asks_for_form else "forced_answer_free"
        state.add(Message("user", prompt_text(demand)))
        results = [at for at, message in enumerate(state.messages) if message.role == "tool"]
        newest, older = set(results[-1:]), set(results[: len(results) // 2])
        attempts = [newest, newest | older, set(results)] if results else []
        if too_long is None:
            attempts.insert(0, set())
        for left_out in attempts:
            for at in left_out:
                old = state.messages[at]
                if old.content != LEFT_OUT:
                    state.replace(at, Message("tool", LEFT_OUT, (), old.tool_call_id))
            try:
                reply = self._reply(state, self.schemas, NO_CALL)
                return self._end_of(state, reply, "forced")
            except ContextLengthError as error:
                too_long = error
        assert too_long is not None
        raise too_long

    def _record(self, state: State, ended: Ended) -> Record:
        steps = tuple(state.steps[state.first_step :])
        answer = self._answer("" if ended.status == "failed" else ended.text, state)
        known, now = state.read_set.references, state.read_set.references.question
        cited = answer.cited_ids if self.preset.cites_documents else ()
        citations = cited_documents(cited, answer.scores, known)
        read = dict.fromkeys(id for step in steps if step.is_read for id in step.hit_ids)
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
            tool_usage_summary=dict(Counter(step.tool_name for step in steps)),
            total_retrieved_tokens=sum(step.retrieved_tokens for step in steps),
            chunks_read_count=len(read),
            chunks_read_ids=tuple(read),
            usage=state.usage or Usage(0, 0, "counted"),
            requests=tuple(state.requests),
            usage_warning=usage_warning([state.requests], state.most_reported),
            seconds=state.seconds,
            fingerprints=dict(self.fingerprints),
            invented_ids=answer.invented_ids,
            answer_form_read=answer.form,
            citations=citations,
            context=tuple(state.context[state.first_event :]),
            route=state.route,
            reused=tuple(
                id for id in cited if (of := known.get(id)) is not None and of.question < now
            ),
            memory_state=None if self.reader is None else MemoryState(state.memory, len(steps)),
            answer_from_turn=ended.from_turn,
            other_models=tuple(state.other_models),
            reply_forms=dict(state.reply_forms),
        )

    def _answer(self, text: str, state: State) -> Answer:
        """Parse an answer. Ids in it that were not shown are looked up in the index. References are
        not looked up, because every existing reference was assigned by a search."""
        if self.preset.cites_documents:
            return parse_answer(text, state.read_set.references.known, lambda _: (), scored=True)

        def exists(ids: Sequence[str]) -> set[str]:
            chunks = self.index.read(ids)
            return {id for id, chunk in zip(ids, chunks, strict=True) if chunk is not None}

        try:
            return parse_answer(text, state.read_set.ids, exists)
        except AragError:  # the engine fails after the answer was given
            return parse_answer(text, state.read_set.ids)


def _advance(steps: Generator[Step, None, Ended], state: State) -> Step | Ended:
    try:
        return next(steps)
    except StopIteration as end:
        return cast(Ended, end.value)
    except AragError as error:
        return Ended("", "failed", _failure(error))
    except Exception as error:  # a bug of ours ends one question and is logged; the run continues
        _log.exception("Question %s failed.", state.question_id or state.question)
        return Ended("", "failed", _failure(error))


def _message_of(reply: ModelReply, calls: tuple[ToolCall, ...] = ()) -> Message:
    return Message("assistant", reply.text, calls, beside=reply.beside)


def _failure(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def add_step(
    state: State,
    tool: str,
    arguments: Any,
    reasoning: str,
    result: ToolResult,
    began: float,
    *,
    call_id: str | None = None,
    turn: int | None = None,
    from_text: bool = False,
) -> Step:
    """Add a step with the time that it has taken so far. If the step answers a call of the
    conversation, add its result as a message."""
    step = Step(
        step=len(state.steps) + 1,
        tool_name=tool,
        tool_input=arguments,
        tool_output=result.text,
        reasoning=reasoning,
        status=result.status,
        hit_ids=result.ids,
        total_hits=result.total,
        retrieved_tokens=result.retrieved_tokens,
        result_tokens=result.tokens,
        seconds=time.perf_counter() - began,
        passages=result.passages,
        total_is_exact=result.total_is_exact,
        turn=turn,
        references=result.references,
        from_text=from_text,
    )
    state.steps.append(step)
    state.messages_of_steps.append(-1 if call_id is None else len(state.messages))
    if call_id is not None:
        state.add(Message("tool", result.text, (), call_id), result.tokens)
    return step


def _not_run(most: int) -> str:
    return ONE_A_STEP if most == 1 else f"At most {most} tool calls a turn: this call was not run."


def _index_fingerprint(index: Index) -> str:
    manifest = index.manifest
    fingerprint = f"{manifest.fingerprint} bm25={manifest.k1:g},{manifest.b:g}"
    if manifest.without:
        fingerprint += f" without={','.join(manifest.without)}"
    return f"{fingerprint} in {index.scope}" if index.scope is not None else fingerprint


def _checked(question: str) -> str:
    question = _valid(question).strip()
    if not question:
        raise ArgumentError("The question is empty.", do="Write a question.")
    return question


def _valid(text: str) -> str:
    """Replace lone surrogates in a text, so that it can be written and sent."""
    return text.encode("utf-8", "replace").decode("utf-8")
