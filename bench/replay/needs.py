"""Recorded calls that a reply before them makes needless, by a rule that no model decides.

A call after the first of its question went for one of these, and is met if the replies to the calls
before it, made again, hold it:

- evidence: the pieces of evidence whose passages it read, or that its recorded reply was the first
  to name or to show. They are met if the text of each that holds the answer of its hop is visible.
- text: what a read showed that read no evidence. It is met if all of it is visible.
- more: a search that showed no new evidence asked whether there is more. It is met if a count was
  stated of a part that it shares a word or phrase with, and each passage that its recorded reply
  showed is visible or matches a part whose count was stated.

A call that is met is not made again. The other calls of the question are made, and cost what their
new replies cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any, cast

from arag_search.agent.record import Record, Step
from arag_search.evaluation.evidence import sightings_by_passage
from arag_search.evaluation.resolution import EvidencePiece
from arag_search.query.problems import QueryError
from arag_search.query.tree import positive_leaves
from arag_search.search.index import Index
from arag_search.tools.base import ReadSet, Tool
from arag_search.tools.marked import checksum
from arag_search.tools.references import Searches
from arag_search.tools.registry import READ_TOOLS
from arag_search.tools.reply_text import read_spans
from bench.report.rows import Figure, Row, Target

Pieces = Sequence[Sequence[EvidencePiece]]


@dataclass(frozen=True, slots=True)
class LaterCall:
    """A recorded call after the first of its question, with what it went for, and whether the new
    replies before it hold that, and the recorded ones did."""

    question: int
    call: int
    tool: str
    went_for: str
    met: bool
    met_as_recorded: bool


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens of the tool replies of a question: as recorded; of the calls that are not met; and of
    all searches again, with the reads that are not met."""

    question: int
    recorded: int
    new: int
    all_searches: int


def judged(
    number: int, record: Record, sets: Pieces, index: Index, tools: Mapping[str, Tool]
) -> tuple[list[LaterCall], Spent]:
    """Make the calls of a question again, and return those after the first and the tokens spent."""
    calls: list[LaterCall] = []
    asked = _Asked(record, sets, index, tools)  # everything but the reads that are met
    unmet = _Asked(record, sets, index, tools)
    for at, step in enumerate(record.trajectory):
        went_for, is_met, was_met = asked.need(at)
        if at:
            calls.append(LaterCall(number, at + 1, step.tool_name, went_for, is_met, was_met))
        if not (is_met and step.is_read):
            asked.make(step)
        if not (is_met and at):
            unmet.make(step)
    recorded = sum(step.result_tokens for step in record.trajectory)
    return calls, Spent(number, recorded, unmet.tokens, asked.tokens)


class _Asked:
    """The calls of one question made again so far: what their replies have shown and stated."""

    def __init__(
        self, record: Record, sets: Pieces, index: Index, tools: Mapping[str, Tool]
    ) -> None:
        steps = tuple(map(_with_passages, record.trajectory))
        self._record = record = replace(record, trajectory=steps)
        self._index, self._tools = index, tools
        self._read_set, self._steps = ReadSet(searches=Searches()), list[Step]()
        self._stated: set[str] = set()
        pieces = sets[0] if sets else ()
        self._pieces = list(zip(pieces, sightings_by_passage([pieces], record)[0], strict=True))
        self.tokens = 0

    def make(self, step: Step) -> None:
        """Make a call."""
        result = self._tools[step.tool_name].run(step.tool_input, self._read_set)
        self.tokens += result.result_tokens
        shown = replace(step, tool_output=result.text, hit_ids=result.ids, passages=result.passages)
        self._steps.append(shown)
        if not step.is_read:
            self._note_counts(step, result.text)

    def _note_counts(self, step: Step, reply: str) -> None:
        """Note the parts whose counts a reply states."""
        given = {name: value for name, value in step.tool_input.items() if name != "per_document"}
        try:
            result = self._index.logical_search(**given, relax=True, branches=True)
        except QueryError:
            return
        if "\nAlone: " not in reply:
            return
        parts = (
            result.branches if result.total else result.feedback.alone if result.feedback else ()
        )
        self._stated.update(part.clause for part in parts if not part.excluded)

    def need(self, at: int) -> tuple[str, bool, bool]:
        """Return what a call went for, whether the new replies so far hold it, and whether the
        recorded ones did."""
        step = self._record.trajectory[at]
        given = cast("dict[str, Any]", step.tool_input)
        read: set[str] = set(given["chunk_ids"]) if step.is_read else set()
        pieces: list[EvidencePiece] = []
        before = True
        for piece, first in self._pieces:
            if read.intersection(piece.chunk_ids) if read else at in (first.shown, first.visible):
                pieces.append(piece)
                before &= first.visible is not None and first.visible < at
        if pieces:
            replies = replace(self._record, trajectory=tuple(self._steps))
            seen = sightings_by_passage([pieces], replies)[0]
            return "evidence", all(sighting.visible is not None for sighting in seen), before
        if not read:
            return "more", self._is_counted(step), False
        texts = [(chunk.id, chunk.sentences()) for chunk in self._index.read(list(read)) if chunk]
        seen = self._read_set.seen
        is_met = all(
            checksum(text) in seen.get(id, ()) for id, sentences in texts for text in sentences
        )
        return "text", is_met, False

    def _is_counted(self, step: Step) -> bool:
        try:
            tree = self._index.parse(step.tool_input["query"]).tree
        except QueryError:
            return False
        own = {str(leaf) for leaf in positive_leaves(tree)}
        shared = [part for part in self._stated if own.intersection(_leaves(self._index, part))]
        known = {span.id for made in self._steps for span in made.passages}
        known.update(*(_ids(self._index, part) for part in self._stated))
        shown = {span.id for span in step.passages}
        return bool(shared) and shown <= known


def _with_passages(step: Step) -> Step:
    """Return a step with its passages, which older records leave to their text."""
    spans = step.passages or read_spans(step.tool_output, of_read=step.is_read)
    return replace(step, passages=spans)


@cache
def _leaves(index: Index, query: str) -> frozenset[str]:
    return frozenset(map(str, positive_leaves(index.parse(query).tree)))


@cache
def _ids(index: Index, query: str) -> frozenset[str]:
    """Return the ids of the passages that a query matches, of the first 1,000."""
    result = index.logical_search(query, top_k=1_000, snippets=False, feedback=False)
    return frozenset(hit.id for hit in result.hits)


def figure(name: str, calls: Sequence[LaterCall], spent: Sequence[Spent]) -> Figure:
    """Return the figure of a run: how many later calls are met, what that costs, and each call."""
    rows: list[Row] = []
    for what, those in (
        ("reads", [call for call in calls if call.tool in READ_TOOLS]),
        ("searches", [call for call in calls if call.tool not in READ_TOOLS]),
    ):
        rows += [
            Row(f"{what} met, of {len(those)}", sum(call.met for call in those), ""),
            Row(f"{what} met as recorded", sum(call.met_as_recorded for call in those), ""),
        ]
    recorded = sum(tokens.recorded for tokens in spent)
    rows += [
        Row("tokens of replies, as recorded", recorded, ""),
        Row(
            "tokens of replies to calls that are not met",
            sum(tokens.new for tokens in spent),
            "",
            target=Target("at most", recorded),
        ),
        Row("with all searches made again", sum(tokens.all_searches for tokens in spent), ""),
        Row(
            f"questions that cost more than recorded, of {len(spent)}",
            sum(tokens.new > tokens.recorded for tokens in spent),
            "",
            target=Target("at most", 0),
        ),
    ]
    details = {"calls": list(map(asdict, calls)), "tokens": list(map(asdict, spent))}
    return Figure(name, tuple(rows), details)
