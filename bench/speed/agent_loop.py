"""Time of a step of the agent loop without its model and tools.

    python -m bench agent_loop

The agent first works on a question until its history has a number of tokens, and its state is
saved. In every round the loop resumes from that state for a number of steps. The time of a round,
less that of model and tools, is divided by the number of steps. Requests grow from step to step;
the overhead of the loop must not.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from typing import Any

from arag_search.agent.calls import CallRunner
from arag_search.agent.loop import Agent
from arag_search.agent.models.base import ModelReply, ModelRequest, ToolCall
from arag_search.agent.models.scripted import ScriptedModel
from arag_search.agent.presets import load_preset
from arag_search.agent.record import Step
from arag_search.agent.state import State
from arag_search.corpus import Chunk, ordinal_of
from arag_search.engines.memory.engine import MemoryEngine
from arag_search.search.index import Index
from arag_search.tokens import count_tokens
from arag_search.tools.base import ReadSet, ToolResult
from arag_search.tools.chunk_read import ChunkRead
from bench import BenchError
from bench.arguments import BenchParser
from bench.report.fingerprints import preset_fingerprints
from bench.report.rows import Figure, Row, Target, circumstances, show

PRESET = "logical_read"
HISTORY_TOKENS = 60_000
SHORT_HISTORY_TOKENS = 2_000
STEPS = 20
ROUNDS = 25
TARGET = Target("at most", 5.0)
_WORDS = 2_000  # of a passage, about as many tokens and half of what one result may hold


class TimedRead(ChunkRead):
    """chunk_read that adds up its own time."""

    seconds = 0.0

    def run(self, arguments: object, read_set: ReadSet | None = None) -> ToolResult:
        began = time.perf_counter()
        try:
            return super().run(arguments, read_set)
        finally:
            self.seconds += time.perf_counter() - began


class TimedModel(ScriptedModel):
    """A scripted model that reads one passage after another, and adds up its own time."""

    def __init__(self) -> None:
        super().__init__(_next_read)
        self.seconds = 0.0

    def reply(self, request: ModelRequest) -> ModelReply:
        began = time.perf_counter()
        try:
            return super().reply(request)
        finally:
            self.seconds += time.perf_counter() - began


def _next_read(request: ModelRequest) -> ModelReply:
    if not request.tools:
        return ModelReply("Answer: none\nExplanation: a bench.\nSources: p-0.1")
    number = sum(message.role == "tool" for message in request.messages)
    call = ToolCall(f"c{number}", "chunk_read", json.dumps({"chunk_ids": [f"p-{number}.1"]}))
    return ModelReply("The next passage may hold the name that is still missing.", (call,))


def passages(count: int) -> Index:
    """Build an index in memory of passages of about 2,000 tokens."""
    chunks: list[Chunk] = []
    for number in range(count):
        sentences = [f"Passage {number} says {at} of it here. " for at in range(_WORDS // 9)]
        ends = [len(sentences[0])]
        for sentence in sentences[1:]:
            ends.append(ends[-1] + len(sentence))
        name, ordinal = f"p-{number}", ordinal_of(0, number, 0)
        text = "".join(sentences)
        chunks.append(Chunk(f"{name}.1", name, name, text, 1, 1, ordinal, tuple(ends), {}))
    return Index(MemoryEngine(chunks), "memory")


def overhead_ms(index: Index, history_tokens: int, steps: int, rounds: int) -> list[float]:
    """Measure the milliseconds of a step that are neither the model's nor the tool's, by round."""
    saved = _history(index, history_tokens)
    loops = int(saved["loops"])
    overheads: list[float] = []
    for _ in range(rounds + 1):
        agent, read, model = _agent(index, loops + steps)
        state = State.from_json(saved)
        began = time.perf_counter()
        record = agent.resume(state)
        total = time.perf_counter() - began
        if record.loops != loops + steps or record.failure is not None:
            raise BenchError(f"A question took {record.loops} turns: {record.failure}.")
        overheads.append((total - read.seconds - model.seconds) * 1000 / steps)
    return overheads[1:]


def _history(index: Index, tokens: int) -> dict[str, Any]:
    """Return the first state with at least ``tokens`` tokens of history."""
    agent, _, _ = _agent(index, 1 + tokens // 1_000)
    state = agent.start("Which passage holds the name?")
    saved: list[dict[str, Any]] = []

    def keep(step: Step) -> None:
        if not saved and state.context_tokens >= tokens:
            saved.append(state.to_json())

    agent.resume(state, keep)
    return saved[0]


def _agent(index: Index, max_loops: int) -> tuple[Agent, TimedRead, TimedModel]:
    preset = load_preset(PRESET).model_copy(update={"max_loops": max_loops, "token_budget": 10**9})
    model = TimedModel()
    agent = Agent(index, preset, model)
    read = TimedRead(index, max_result_tokens=preset.max_result_tokens)
    agent.calls = CallRunner({"chunk_read": read}, guarded=True)
    return agent, read, model


def measure(rounds: int = ROUNDS, steps: int = STEPS) -> tuple[Figure, Index]:
    """Measure the overhead with a long and with a short history."""
    index = passages(HISTORY_TOKENS // 1_000 + steps)
    rows: list[Row] = []
    details: dict[str, Any] = {"steps": steps, "rounds": rounds}
    for tokens, target in ((HISTORY_TOKENS, TARGET), (SHORT_HISTORY_TOKENS, None)):
        overheads = overhead_ms(index, tokens, steps, rounds)
        what = f"a step from {tokens:,} tokens of history on"
        rows.append(
            Row(what, statistics.median(overheads), "ms", min(overheads), max(overheads), target)
        )
        details[what] = overheads
    details["tokens of a passage"] = count_tokens(next(iter(index.scan())).content)
    return Figure("agent_loop", tuple(rows), details), index


def main(arguments: Sequence[str]) -> int:
    """Measure a step with a long and with a short history, and return the exit code."""
    parser = BenchParser("agent_loop", __doc__)
    parser.add_rounds(ROUNDS)
    parser.add_results()
    return parser.run(arguments, _measured)


def _measured(options: argparse.Namespace, command: str) -> int:
    figure, index = measure(options.rounds)
    run = circumstances(command, index.manifest) | preset_fingerprints(load_preset(PRESET))
    show(options.json, [figure], run)
    return 0
