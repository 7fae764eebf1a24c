"""The reading of a step's query, shown only if it agrees with the reply of the step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from arag_search.agent.record import Step
from arag_search.errors import ArgumentError
from arag_search.evaluation.trajectories import arguments_of
from arag_search.plan.clauses import Clause, wanted_leaves
from arag_search.plan.lower import lower
from arag_search.query import analysis
from arag_search.query.fields import Schema
from arag_search.query.printing import quoted
from arag_search.query.problems import Problem, QueryError
from arag_search.query.reading import Operator, parse
from arag_search.query.tree import Phrase
from arag_search.search.finding.by_vectors import words_query
from arag_search.tools.passages.search import is_as_written
from arag_search.tools.registry import TOOLS
from arag_search.tools.replies.parts import parts_of
from arag_search.viewer.pieces import Piece, pieces


@dataclass(frozen=True, slots=True)
class Reading:
    """A query as it was understood.

    ``typed``: the query as text, the value of its ``argument``.
    ``pieces``: what makes up its canonical text; none if it was refused, or if the reply reads it
    differently.
    ``leaves``: its clauses.
    ``problems``: the reasons of a refusal.
    ``mended``: the corrected query.
    """

    typed: str
    argument: str = "query"
    pieces: tuple[Piece, ...] = ()
    leaves: tuple[Clause, ...] = ()
    problems: tuple[Problem, ...] = ()
    mended: str | None = None


def reading_of(step: Step, schema: Schema) -> Reading | None:
    """Return the reading of the query of a step; None if it has no query that its tool could
    read."""
    arguments = arguments_of(step)
    tool = TOOLS.get(step.tool_name)
    form = tool.query_form if tool is not None else None
    if form == "keywords":
        keywords = _texts(arguments.get("keywords"))
        return keywords_reading(keywords) if keywords else None
    query = arguments.get("query")
    if not isinstance(query, str):
        return None
    if form == "logical":
        return _logical(query, operator_in(arguments), step, schema)
    if form == "words":
        plan, _ = words_query(query)
        return Reading(query, leaves=_text_leaves(plan))
    return Reading(query)


def _logical(query: str, default_operator: Operator, step: Step, schema: Schema) -> Reading:
    """Parse with all operators, with the papers' operators, and with none. The preset decides, and
    the reply shows above its passages which of them applied."""
    above = parts_of(step.tool_output, step.passages).above
    for operators, as_written in ((True, False), (True, True), (False, False)):
        try:
            parsed = parse(
                query,
                schema,
                default_operator=default_operator,
                operators=operators,
                as_written=as_written,
            )
        except QueryError as error:
            if step.status == "error" and step.tool_output.startswith(str(error)):
                return Reading(query, problems=error.problems, mended=error.mended)
            continue
        is_echoed = " for " in above.partition("\n")[0]
        is_same = is_as_written(query, parsed.text) and above and not is_echoed
        is_read = is_same or parsed.text in above
        if step.status != "error" and is_read:
            made = tuple(pieces(parsed.text))
            return Reading(
                query, pieces=made, leaves=_text_leaves(lower(parsed.tree, parsed.language))
            )
    return Reading(query)


def _text_leaves(plan: Clause | None) -> tuple[Clause, ...]:
    if plan is None:
        return ()
    return tuple(leaf for leaf in wanted_leaves(plan) if not leaf.is_metadata)


def _texts(value: object) -> list[str]:
    """Return the list if it holds only texts, else an empty list."""
    items = cast(list[object], value) if isinstance(value, list) else []
    texts = [item for item in items if isinstance(item, str)]
    return texts if len(texts) == len(items) else []


def operator_in(arguments: Mapping[str, object]) -> Operator:
    """Return what a space in the query of a call means."""
    return "AND" if arguments.get("default_operator") == "AND" else "OR"


def keywords_reading(keywords: Sequence[str]) -> Reading:
    """Read each keyword as a phrase."""
    leaves: list[Clause] = []
    for keyword in keywords:
        try:
            if analysis.terms(keyword):
                leaves.append(lower(Phrase(keyword)))
        except ArgumentError:  # half a character, which no text holds
            continue
    spaced = [
        piece
        for keyword in keywords
        for piece in (Piece("blank", " "), Piece("phrase", quoted(keyword)))
    ]
    shown = tuple(spaced[1:])
    typed = "".join(piece.text for piece in shown)
    return Reading(typed, "keywords", pieces=shown, leaves=tuple(leaves))
