"""The context of a conversation: a warning when it grows long, and what summarize removes from it
(AgenticRAG, section 3.4).

The model's texts and the arguments of its calls stay, because they are its reasoning. All messages
stay, because calls and results must pair up. Only the content of results is removed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from arag_search.agent.models.base import Message
from arag_search.agent.record import ContextEvent, ContextEventKind, Step
from arag_search.agent.state import State
from arag_search.tokens import count_tokens
from arag_search.tools.replies.spans import names
from arag_search.tools.replies.writing import shown_title
from arag_search.tools.tool import ToolResult

SUMMARIZE = "summarize"
NOTE = "Note: the conversation has "
"""The beginning of the line that warns of a long conversation."""
WARNING_SHARE = 0.9
"""The share of the maximum at which a line warns."""
KEPT_SHARE = 0.5
"""The share of the maximum that kept content may take."""
REPLY_RESERVE = 4_000
"""The tokens that are kept free for the next reply of the model."""
_MAX_NAMED_TOKENS = 400
_MAX_FALLBACK = 8


class _ShownStep(NamedTuple):
    """The result of a step: the step, the number of its message, and the references in it."""

    step: Step
    message: int
    references: tuple[str, ...]


class Context:
    """The bounds of a conversation with document tools. At ``max_tokens``, summarize is forced;
    ``schema_tokens`` are sent with every request."""

    def __init__(self, max_tokens: int, schema_tokens: int) -> None:
        self.max_tokens = max_tokens
        self.schema_tokens = schema_tokens

    def tokens(self, state: State) -> int:
        """Return the tokens of the next request."""
        return state.context_tokens + self.schema_tokens

    def is_full(self, state: State) -> bool:
        """Return whether summarize must be called before the next request, so that the reply has
        room."""
        return self.tokens(state) + REPLY_RESERVE >= self.max_tokens

    def warned(self, state: State, result: ToolResult) -> ToolResult:
        """Return the last result of a turn, with a warning line if the conversation has become
        long. The model is warned once until something is removed, and not if summarize is demanded
        anyway."""
        tokens = self.tokens(state) + result.tokens
        is_long = tokens >= WARNING_SHARE * self.max_tokens
        is_full = tokens + REPLY_RESERVE >= self.max_tokens
        if state.context_warned or not is_long or is_full:
            return result
        state.context_warned = True
        self._note(state, "warning", tokens, tokens)
        text = (
            f"{result.text}\n{NOTE}{tokens:,} of {self.max_tokens:,} tokens. Call summarize now "
            "with what you know and the references to keep, or answer."
        )
        return replace(result, text=text)

    def summarized(self, state: State, result: ToolResult, kind: ContextEventKind) -> ToolResult:
        """Remove what a call of summarize does not keep; return its result with what was done."""
        assert result.kept is not None
        before = self.tokens(state)
        kept = list(dict.fromkeys(result.kept))
        removed = [
            *(id for shown in _shown_steps(state) for id in _removed_from(state, shown, kept)),
            *self._remove_windows(state, kept),
        ]
        after = self.tokens(state)
        state.context_warned = False
        state.read_set.calls.clear()
        self._note(state, kind, before, after, kept, removed)
        text = _reply(state, kept, before, after)
        return replace(result, text=text)

    def exhausted(self, state: State) -> None:
        """Record that the kept content leaves no room, so that the answer is forced."""
        tokens = self.tokens(state)
        self._note(state, "exhausted", tokens, tokens)

    def fallback(self, state: State) -> list[str]:
        """Return the references to keep if the model names none. References that it opened last
        come first, then references that were shown last, as many as fit."""
        results = [shown for shown in _shown_steps(state) if shown.references]
        reads = [shown for shown in results if shown.step.is_read]
        room = KEPT_SHARE * self.max_tokens
        kept: dict[str, None] = {}
        for shown in [*reversed(reads), *reversed(results)]:
            room -= shown.step.result_tokens
            if room < 0 or len(kept) >= _MAX_FALLBACK:
                break
            kept.update(dict.fromkeys(shown.references[:_MAX_FALLBACK]))
        return list(kept)[:_MAX_FALLBACK]

    def _remove_windows(self, state: State, kept: Iterable[str]) -> list[str]:
        """Remove the oldest windows of kept references while the kept content exceeds its share;
        return the references. O(messages)."""
        limit = KEPT_SHARE * self.max_tokens
        results = [
            shown for shown in _shown_steps(state) if set(shown.references).intersection(kept)
        ]
        total = sum(count_tokens(state.messages[shown.message].content) for shown in results)
        removed: list[str] = []
        for shown in sorted(results, key=lambda shown: not shown.step.is_read):
            if total <= limit:
                break
            before = count_tokens(state.messages[shown.message].content)
            removed += _removed_from(state, shown)
            total -= before - count_tokens(state.messages[shown.message].content)
        return removed

    def _note(
        self,
        state: State,
        kind: ContextEventKind,
        before: int,
        after: int,
        kept: Sequence[str] = (),
        removed: Sequence[str] = (),
    ) -> None:
        step, gone = len(state.steps), tuple(dict.fromkeys(removed))
        state.context.append(ContextEvent(step, kind, before, after, tuple(kept), gone))


def _shown_steps(state: State) -> list[_ShownStep]:
    return [
        _ShownStep(step, at, tuple(part.reference for part in step.references))
        for step, at in zip(state.steps, state.messages_of_steps, strict=True)
        if step.references and at >= 0
    ]


def _removed_from(state: State, shown: _ShownStep, kept: Collection[str] = ()) -> list[str]:
    """Remove what a result says of all references but those in ``kept``, and return the references
    that had not been removed before."""
    gone = state.removed.setdefault(shown.step.step, set())
    new = [id for id in shown.references if id not in kept and id not in gone]
    if not new:
        return []
    gone.update(new)
    old = state.messages[shown.message]
    text = _without(shown.step, gone)
    state.replace(shown.message, Message(old.role, text, (), old.tool_call_id))
    passages = [
        id for part in shown.step.references if part.reference in new for id in part.passages
    ]
    state.read_set.forget(passages, new)
    return new


def _without(step: Step, gone: Collection[str]) -> str:
    if step.is_read:
        shown = step.references[0].reference
        lines = [span.lines for span in step.passages if span.lines is not None]
        which = f" lines {lines[0][0]}-{lines[-1][1]}" if lines else ""
        return f"Removed by summarize: {step.tool_name} [{shown}]{which}."
    spans = [span for span in step.passages if span.reference is not None]
    blocks = [
        (reference or "", step.tool_output[shown[0].start : shown[-1].end])
        for reference, group in groupby(spans, key=lambda span: span.reference)
        for shown in [list(group)]
    ]
    head = step.tool_output[: spans[0].start].rstrip("\n") if spans else ""
    named = names([f"[{id}]" for id in gone], _MAX_NAMED_TOKENS, "{}")
    count = "1 result" if len(gone) == 1 else f"{len(gone)} results"
    kept = [text for reference, text in blocks if reference not in gone]
    return "\n".join([*([head] if head else []), *kept, f"{count} removed: {named}."])


def _reply(state: State, kept: Sequence[str], before: int, after: int) -> str:
    named: list[str] = []
    for id in kept:
        reference = state.read_set.references.known[id]
        windows = [w.name for w in state.read_set.windows if w.reference == id]
        lines = f" (lines {', '.join(windows)})" if windows else ""
        named.append(f"[{id}] {shown_title(reference.title)}".rstrip() + lines)
    text = f"Freed {before - after:,} of {before:,} tokens."
    if named:
        text += f" Kept: {', '.join(named)}."
    return f"{text} The others can be opened again by their ids."
