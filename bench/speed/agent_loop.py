"""What the agent loop costs beside model and tools: python -m bench agent_loop

A question is brought to a history of so many tokens and its state written out. In every round the
loop goes on from that state for some steps, whose time, less that of model and tools, is divided by
their number. The requests grow; what the loop does with them must not.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
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
from bench import RESULTS_FOLDER, BenchError
from bench.arguments import command_line
from bench.report.fingerprints import preset_fingerprints
from bench.report.rows import Figure, Row, Target, circumstances, table, write_results

RESULTS = RESULTS_FOLDER / "agent_loop.json"
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
    number = sum(one.role == "tool" for one in request.messages)
    call = ToolCall(f"c{number}", "chunk_read", json.dumps({"chunk_ids": [f"p-{number}.1"]}))
    return ModelReply("The next passage may hold the name that is still missing.", (call,))


def passages(count: int) -> Index:
    """An index in memory of passages of about 2,000 tokens."""
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
    """Milliseconds a step that are neither the model's nor the tool's, by round."""
    saved = _history(index, history_tokens)
    loops = int(saved["loops"])
    found: list[float] = []
    for _ in range(rounds + 1):
        agent, read, model = _agent(index, loops + steps)
        state = State.from_json(saved)
        began = time.perf_counter()
        record = agent.resume(state)
        total = time.perf_counter() - began
        if record.loops != loops + steps or record.failure is not None:
            raise BenchError(f"A question took {record.loops} turns: {record.failure}.")
        found.append((total - read.seconds - model.seconds) * 1000 / steps)
    return found[1:]


def _history(index: Index, tokens: int) -> dict[str, Any]:
    """The first state with at least so many tokens of history."""
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
    """The overhead with a long and with a short history."""
    index = passages(HISTORY_TOKENS // 1_000 + steps)
    rows: list[Row] = []
    details: dict[str, Any] = {"steps": steps, "rounds": rounds}
    for tokens, target in ((HISTORY_TOKENS, TARGET), (SHORT_HISTORY_TOKENS, None)):
        found = overhead_ms(index, tokens, steps, rounds)
        what = f"a step from {tokens:,} tokens of history on"
        rows.append(Row(what, statistics.median(found), "ms", min(found), max(found), target))
        details[what] = found
    details["tokens of a passage"] = count_tokens(next(iter(index.scan())).content)
    return Figure("agent_loop", tuple(rows), details), index


def main(arguments: Sequence[str]) -> int:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(
        prog="python -m bench agent_loop",
        description="Measure what the agent loop costs beside model and tools.",
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--json", type=Path, default=RESULTS, help="file of results")
    given = parser.parse_args(arguments)
    figure, index = measure(given.rounds)
    run = circumstances(command_line("agent_loop", arguments), index.manifest)
    run |= preset_fingerprints(load_preset(PRESET))
    write_results(given.json, [figure], run)
    print(table([figure]))
    return 0
