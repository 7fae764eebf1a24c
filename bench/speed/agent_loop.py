"""Time of a step of the agent loop without its model and tools.

    python -m bench agent_loop

The agent first works on a question until its history has a number of tokens, and its state is
saved. In every round the loop resumes from that state for a number of steps. The time of a round,
less that of model and tools, is divided by the number of steps. Requests grow from step to step;
the overhead of the loop must not.
"""

from __future__ import annotations

import argparse
import functools
import json
import statistics
import time
from collections.abc import Sequence
from typing import Any, cast

from arag_search.agent.calls import CallRunner
from arag_search.agent.loop import Agent
from arag_search.agent.models.base import ModelReply, ModelRequest, ToolCall
from arag_search.agent.models.scripted import ScriptedModel
from arag_search.agent.presets import changed_preset, load_preset
from arag_search.agent.record import Step
from arag_search.agent.state import State
from arag_search.corpus import Chunk, ordinal_of
from arag_search.search.index import Index
from arag_search.tokens import count_tokens
from arag_search.tools.base import ReadSet, Tool, ToolResult
from arag_search.tools.chunk_read import ChunkRead
from arag_search.tools.open_lines import OpenLines
from bench import BenchError
from bench.arguments import BenchParser
from bench.report.fingerprints import preset_fingerprints
from bench.report.rows import Figure, Row, Target, circumstances, show
from tests.support.oracle.engine import MemoryEngine

PRESET = "logical_read"
DOCUMENT_PRESET = "agentic_rag"
DOCUMENT_HISTORY_TOKENS = 120_000
HISTORY_TOKENS = 60_000
SHORT_HISTORY_TOKENS = 2_000
STEPS = 20
ROUNDS = 25
TARGET = Target("at most", 5.0)
_WORDS = 2_000  # of a passage, about as many tokens and half of what one result may hold


class TimedTool(Tool):
    """A tool that adds up its own time."""

    seconds = 0.0

    def run(self, arguments: object, read_set: ReadSet | None = None) -> ToolResult:
        began = time.perf_counter()
        try:
            return super().run(arguments, read_set)
        finally:
            self.seconds += time.perf_counter() - began


class TimedRead(TimedTool, ChunkRead):
    """chunk_read that adds up its own time."""


class TimedOpen(TimedTool, OpenLines):
    """open that adds up its own time."""


class TimedModel(ScriptedModel):
    """A scripted model that reads one passage or document after another, and adds up its own
    time."""

    def __init__(self, tool: str) -> None:
        super().__init__(functools.partial(_next_read, tool))
        self.seconds = 0.0

    def reply(self, request: ModelRequest) -> ModelReply:
        began = time.perf_counter()
        try:
            return super().reply(request)
        finally:
            self.seconds += time.perf_counter() - began


def _next_read(tool: str, request: ModelRequest) -> ModelReply:
    if not request.tools:
        return ModelReply("Answer: none\nExplanation: a bench.\nSources: p-0.1")
    number = sum(message.role == "tool" for message in request.messages)
    arguments: dict[str, object] = {"chunk_ids": [f"p-{number}.1"]}
    if tool == "open":
        arguments = {"reference_id": f"turn0search{number}"}
    call = ToolCall(f"c{number}", tool, json.dumps(arguments))
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


def overhead_ms(
    index: Index, history_tokens: int, steps: int, rounds: int, preset: str = PRESET
) -> list[float]:
    """Measure the milliseconds of a step that are neither the model's nor the tool's, by round."""
    saved = _history(index, history_tokens, preset)
    loops = int(saved["loops"])
    overheads: list[float] = []
    for _ in range(rounds + 1):
        agent, read, model = _agent(index, loops + steps, preset)
        state = State.from_json(saved)
        began = time.perf_counter()
        record = agent.resume(state)
        total = time.perf_counter() - began
        if record.loops != loops + steps or record.failure is not None:
            raise BenchError(f"A question took {record.loops} turns: {record.failure}.")
        overheads.append((total - read.seconds - model.seconds) * 1000 / steps)
    return overheads[1:]


def _history(index: Index, tokens: int, preset: str) -> dict[str, Any]:
    """Return the first state with at least ``tokens`` tokens of history."""
    agent, _, _ = _agent(index, 1 + tokens // 1_000, preset)
    state = agent.start("Which passage holds the name?")
    for number in range(index.manifest.documents):
        state.read_set.references.of_document(f"p-{number}", "", 0)
    saved: list[dict[str, Any]] = []

    def keep(step: Step) -> None:
        if not saved and state.context_tokens >= tokens:
            saved.append(state.to_json())

    agent.resume(state, keep)
    return saved[0]


def _agent(index: Index, max_loops: int, name: str) -> tuple[Agent, TimedTool, TimedModel]:
    changes: dict[str, object] = {"max_loops": max_loops, "token_budget": 10**9}
    if name == DOCUMENT_PRESET:
        changes["documents"] = {"context_threshold": 10**9}
    preset = changed_preset(load_preset(name), changes, "bench")
    kind: type[TimedTool] = TimedOpen if preset.uses_documents else TimedRead
    model = TimedModel(kind.name)
    agent = Agent(index, preset, model)
    read = cast(TimedTool, kind.of(index, preset))
    agent.calls = CallRunner({kind.name: read}, guarded=True)
    return agent, read, model


def measure(rounds: int = ROUNDS, steps: int = STEPS) -> tuple[Figure, Index]:
    """Measure the overhead with a long and with a short history."""
    index = passages(DOCUMENT_HISTORY_TOKENS // 1_000 + steps)
    rows: list[Row] = []
    details: dict[str, Any] = {"steps": steps, "rounds": rounds}
    for preset, tokens, target in (
        (PRESET, HISTORY_TOKENS, TARGET),
        (PRESET, SHORT_HISTORY_TOKENS, None),
        (DOCUMENT_PRESET, DOCUMENT_HISTORY_TOKENS, TARGET),
    ):
        overheads = overhead_ms(index, tokens, steps, rounds, preset)
        of_documents = ", documents" if preset == DOCUMENT_PRESET else ""
        what = f"a step from {tokens:,} tokens of history on{of_documents}"
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
