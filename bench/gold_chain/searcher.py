"""A searcher at one interface: the policy calls the tools that a model would call."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from arag_search.agent.loop import Agent
from arag_search.agent.toolbox import tools_of
from arag_search.search.asked import Keywords, Meaning
from arag_search.search.asked import Search as LogicalQuery
from arag_search.search.index import Index
from arag_search.search.results import SearchResult
from arag_search.search.shown.writing import shown_title
from arag_search.tokens import count_tokens
from arag_search.tools.base import ReadSet
from arag_search.tools.preset import DEFAULT_RESULT_TOKENS, FULL_TEXT_RESULT_TOKENS, Preset
from arag_search.tools.reply_text import offers_more, passages_at
from arag_search.vectors.opening import OpenVectors
from bench import BenchError
from bench.gold_chain.chain import Chain
from bench.gold_chain.model import GoldChainModel
from bench.gold_chain.policy import (
    Call,
    HopOutcome,
    Reply,
    ReplyLevel,
    Setting,
    Shown,
    walk,
)
from bench.gold_chain.queries import Interface, Search

_NO_LIMIT = 1_000


@dataclass(frozen=True, slots=True)
class Traced:
    """A call in the form of the agent's records."""

    tool: str
    arguments: dict[str, Any]
    ids: tuple[str, ...]
    retrieved_tokens: int


@dataclass(slots=True)
class _Answered:
    """A result of a call."""

    reply: Reply
    ids: tuple[str, ...]
    retrieved_tokens: int


class RememberedIndex(Index):
    """A cache of the searches of another index, which stays open."""

    def __init__(self, index: Index) -> None:
        super().__init__(index.engine, index.location, index.scope)
        self._found: dict[object, SearchResult] = {}
        self._index = index

    def close(self) -> None:
        """Clear the cache; the other index is not closed."""
        self._found.clear()

    def open_vectors(self) -> OpenVectors:
        """See Index."""
        return self._index.open_vectors()

    def search(self, asked: LogicalQuery | Keywords | Meaning) -> SearchResult:
        """Search, or return what the same search has found."""
        if asked not in self._found:
            self._found[asked] = self._index.search(asked)
        return self._found[asked]


class Searcher:
    """Walks chains at one interface, with one kind of reply.

    The results are those of the tools themselves; searches of the index are remembered. Not safe
    for several threads.
    """

    def __init__(self, index: Index, interface: Interface, reply: ReplyLevel) -> None:
        self.interface = interface
        self.reply: ReplyLevel = reply
        self.preset = preset_of(interface, reply)
        self._real = index
        self._index = RememberedIndex(index)
        self._tools = tools_of(self.preset, self._index)
        self._texts: dict[str, str] = {}

    def walk(self, chain: Chain, setting: Setting) -> tuple[HopOutcome, ...]:
        """Walk a chain and return the outcomes of its hops. ``setting`` is of this interface and
        reply."""
        return self._walked(chain, setting, None)

    def audit(self, chain: Chain, setting: Setting) -> None:
        """Walk a chain through the agent, with its own tools, and compare every step. Raises
        BenchError if one differs."""
        ours: list[Traced] = []
        self._walked(chain, setting, ours)
        model = GoldChainModel({chain.question_id: chain}, setting)
        record = Agent(self._real, self.preset, model).ask(chain.question, chain.question_id)
        theirs = [
            Traced(step.tool_name, step.tool_input, step.hit_ids, step.retrieved_tokens)
            for step in record.trajectory
        ]
        if record.status != "answered" or ours != theirs:
            at = next(
                (n for n, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]),
                min(len(ours), len(theirs)),
            )
            raise BenchError(
                f"The agent walks another way from step {at + 1} on: "
                f"{theirs[at : at + 1] or record.failure or record.status}, not "
                f"{ours[at : at + 1] or 'the end'}.",
                where=f"question {chain.question_id}, {setting}",
            )

    def _walked(
        self, chain: Chain, setting: Setting, trace: list[Traced] | None
    ) -> tuple[HopOutcome, ...]:
        """Walk a chain; every call is added to ``trace`` if there is one."""
        read_set = ReadSet()
        steps = walk(chain, setting)
        try:
            call = next(steps)
            while True:
                kept = self._answer(call, read_set)
                if trace is not None:
                    made = call.tool, call.arguments
                    trace.append(Traced(*made, kept.ids, kept.retrieved_tokens))
                call = steps.send(kept.reply)
        except StopIteration as end:
            return end.value

    def _answer(self, call: Call, read_set: ReadSet) -> _Answered:
        """Answer a call, given what was shown before, and add what the answer shows to that."""
        result = self._tools[call.tool].run(call.arguments, read_set)
        spans = [span for span in result.passages if span.left_out != "same"]
        shown = tuple(
            Shown(
                passage.id,
                count_tokens(shown_title(passage.title)) + count_tokens(passage.text),
                passage.text,
            )
            for passage in passages_at(result.text, spans)
        )
        counted = sum(passage.tokens for passage in shown)
        if counted != result.retrieved_tokens:
            raise BenchError(
                f"A reply cannot be read: {counted}, and the tool says {result.retrieved_tokens}.",
                where=f"{call.tool} {call.arguments}",
            )
        is_refused = result.status == "error"
        reply = Reply(shown, offers_more(result.text), is_refused, result.result_tokens)
        return _Answered(self._slim(reply), result.ids, result.retrieved_tokens)

    def _slim(self, reply: Reply) -> Reply:
        """Return the reply with texts that are shared with earlier replies."""
        shown = tuple(
            replace(passage, text=self._texts.setdefault(passage.text, passage.text))
            for passage in reply.shown
        )
        return replace(reply, shown=shown)


def preset_of(interface: Interface, reply: ReplyLevel) -> Preset:
    """Return the preset of the agent: the same replies for all interfaces."""
    full = reply != "snippets"
    tool = Search(interface, "").tool
    return Preset.model_validate(
        {
            "name": f"gold chain, {interface}, {reply}",
            "description": "",
            "tools": (tool,) if full else (tool, "chunk_read"),
            "prompt": "arag",
            "plan_first": False,
            "max_loops": _NO_LIMIT,
            "token_budget": 1_000_000_000,
            "loop_guards": False,
            "max_result_tokens": FULL_TEXT_RESULT_TOKENS if full else DEFAULT_RESULT_TOKENS,
            "full_text": full,
            "operators": interface != "no operators",
            "tool_description": "full",
            "matching": "token",
            "given": "none",
        }
    )
