"""A searcher at one interface: the policy calls the tools that a model would call."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from arag_search.agent.loop import Agent
from arag_search.agent.presets import DEFAULT_PRESET, Preset, load_preset
from arag_search.agent.toolbox import tools_of
from arag_search.search.index import Index
from arag_search.tokens import count_tokens
from arag_search.tools.base import (
    DEFAULT_RESULT_TOKENS,
    FULL_TEXT_RESULT_TOKENS,
    ReadSet,
    ToolResult,
)
from arag_search.tools.rendering import shown_title
from arag_search.tools.reply_text import offers_more, passages_at
from bench import BenchError
from bench.gold_chain.chain import Chain
from bench.gold_chain.model import GoldChainModel
from bench.gold_chain.policy import (
    PASSAGES_A_SEARCH,
    Call,
    HopOutcome,
    ReadCall,
    Reply,
    ReplyLevel,
    Setting,
    Shown,
    walk,
)
from bench.gold_chain.queries import Interface, Search
from bench.gold_chain.remembered import RememberedIndex
from bench.gold_chain.replies import reply_of

_NO_LIMIT = 1_000


@dataclass(frozen=True, slots=True)
class Traced:
    """A call in the form of the agent's records."""

    tool: str
    arguments: dict[str, Any]
    ids: tuple[str, ...]
    retrieved_tokens: int


@dataclass(slots=True)
class _Kept:
    """A result of a call after some of its passages had been shown, with the ids that it adds to
    those shown and read."""

    reply: Reply
    ids: tuple[str, ...]
    retrieved_tokens: int
    shown: frozenset[str]
    read: frozenset[str]


@dataclass(slots=True)
class _Answers:
    """The results of one call. ``passages`` are the ids of all passages that it finds."""

    passages: frozenset[str]
    kept: dict[frozenset[str], _Kept] = field(default_factory=dict[frozenset[str], _Kept])


class Searcher:
    """Walks chains at one interface, with one kind of reply.

    Each call is made once for each set of passages that were shown before; the result is the
    tool's own text. With ``our_replies``, which depend on every sentence that was shown, each call
    is made anew. Not safe for several threads.
    """

    def __init__(
        self, index: Index, interface: Interface, reply: ReplyLevel, *, our_replies: bool = False
    ) -> None:
        self.interface = interface
        self.reply: ReplyLevel = reply
        self.our_replies = our_replies
        self.preset = preset_of(interface, reply, our_replies=our_replies)
        depth = 0 if reply == "snippets" else 2 * PASSAGES_A_SEARCH
        self._real = index
        self._index = RememberedIndex(index, depth=depth)
        self._tools = tools_of(self.preset, self._index)
        self._answers: dict[Call, _Answers] = {}
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

    def _answer(self, call: Call, read_set: ReadSet) -> _Kept:
        """Answer a call, given what was shown before, and add what the answer shows to that."""
        if self.our_replies:
            return self._made_anew(call, read_set)
        before = read_set.shown | read_set.read
        answers = self._answers.get(call)
        kept = answers.kept.get(answers.passages & before) if answers is not None else None
        if kept is None:
            kept, passages = self._made(call, read_set)
            answers = self._answers.setdefault(call, _Answers(passages))
            answers.kept[passages & before] = kept
        read_set.shown |= kept.shown
        read_set.read |= kept.read
        return kept

    def _made_anew(self, call: Call, read_set: ReadSet) -> _Kept:
        """Call the tool with what was shown before."""
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
            raise _unread(call, counted, result.retrieved_tokens)
        is_refused = result.status == "error"
        reply = Reply(shown, offers_more(result.text), is_refused, result.result_tokens)
        return _Kept(
            self._slim(reply), result.ids, result.retrieved_tokens, frozenset(), frozenset()
        )

    def _made(self, call: Call, read_set: ReadSet) -> tuple[_Kept, frozenset[str]]:
        """Call the tool, and return its result with the ids of all passages that it found."""
        after = ReadSet({}, set(read_set.read), set(read_set.shown))
        self._index.latest = ()
        result = self._tools[call.tool].run(call.arguments, after)
        ids = {call.chunk_id} if isinstance(call, ReadCall) else set(self._index.latest)
        reply = reply_of(call, result.text, result.ids)
        self._check(call, reply, result)
        return (
            _Kept(
                self._slim(reply),
                result.ids,
                result.retrieved_tokens,
                frozenset(after.shown - read_set.shown),
                frozenset(after.read - read_set.read),
            ),
            frozenset(ids),
        )

    def _slim(self, reply: Reply) -> Reply:
        """Return the reply with texts that are shared with earlier replies."""
        shown = tuple(
            replace(passage, text=self._texts.setdefault(passage.text, passage.text))
            for passage in reply.shown
        )
        return replace(reply, shown=shown)

    def _check(self, call: Call, reply: Reply, result: ToolResult) -> None:
        """Raise BenchError if the text was not read as the tool counted it."""
        counted = (result.ids, result.retrieved_tokens, result.status == "error")
        read = (
            tuple(passage.id for passage in reply.shown),
            sum(passage.tokens for passage in reply.shown),
            reply.refused,
        )
        if counted != read:
            raise _unread(call, read, counted)


def _unread(call: Call, read: object, counted: object) -> BenchError:
    """Return the error for a reply whose text was not read as its tool counted it."""
    return BenchError(
        f"A reply cannot be read: {read}, and the tool says {counted}.",
        where=f"{call.tool} {call.arguments}",
    )


def preset_of(interface: Interface, reply: ReplyLevel, *, our_replies: bool = False) -> Preset:
    """Return the preset of the agent. Text shown before is suppressed for all interfaces alike.
    The policy is for the replies of papers; ``our_replies`` are those of logical_read."""
    ours = load_preset(DEFAULT_PRESET)
    full = reply != "snippets"
    tool = Search(interface, "").tool
    return Preset.model_validate(
        {
            "name": f"gold chain, {interface}, {reply}{', our replies' if our_replies else ''}",
            "description": "",
            "tools": (tool,) if full else (tool, "chunk_read"),
            "prompt": "arag",
            "plan_first": False,
            "max_loops": _NO_LIMIT,
            "token_budget": 1_000_000_000,
            "loop_guards": False,
            "max_result_tokens": FULL_TEXT_RESULT_TOKENS if full else DEFAULT_RESULT_TOKENS,
            "full_text": full,
            "suppress_shown": True,
            "operators": interface != "no operators",
            "tool_description": "full",
            "matching": "token",
            "vectors": "passage",
            "given_passages": 0,
            "reproduces": None if our_replies else "LogicalRAG",
            "whole_up_to_tokens": ours.whole_up_to_tokens if our_replies else 0,
            "relax": our_replies,
        }
    )
