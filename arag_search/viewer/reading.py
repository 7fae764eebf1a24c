"""How the query of a step was read, told only where the reply of the step says the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from arag_search.agent.record import Step
from arag_search.errors import ArgumentError
from arag_search.evaluation.trajectories import arguments_of
from arag_search.query import analysis
from arag_search.query.fields import Schema
from arag_search.query.parser import Operator, parse
from arag_search.query.pieces import Piece, pieces
from arag_search.query.printing import quoted
from arag_search.query.problems import Problem, QueryError
from arag_search.query.tree import Node, Phrase, TextLeaf, positive_leaves
from arag_search.search.by_vectors import words_query
from arag_search.tools.registry import TOOLS
from arag_search.tools.reply_text import parts_of


@dataclass(frozen=True, slots=True)
class Reading:
    """A query as it was understood.

    ``typed`` is what was asked for, as text, and ``argument`` where that stood. ``pieces`` are of
    its canonical text, none where it was refused or what the reply says of it is something else.
    ``leaves`` are what it looks for. ``problems`` are why it was refused, ``mended`` is what was to
    be written instead.
    """

    typed: str
    argument: str = "query"
    pieces: tuple[Piece, ...] = ()
    leaves: tuple[TextLeaf, ...] = ()
    problems: tuple[Problem, ...] = ()
    mended: str | None = None


def reading_of(step: Step, schema: Schema) -> Reading | None:
    """The query of a step; None where it has none, or nothing that its tool could read."""
    given = arguments_of(step)
    tool = TOOLS.get(step.tool_name)
    form = tool.query_form if tool is not None else None
    if form == "keywords":
        keywords = _texts(given.get("keywords"))
        return _keywords(keywords) if keywords else None
    query = given.get("query")
    if not isinstance(query, str):
        return None
    if form == "logical":
        return _logical(
            query, "AND" if given.get("default_operator") == "AND" else "OR", step, schema
        )
    if form == "words":
        tree, _ = words_query(query)
        return Reading(query, leaves=_text_leaves(tree))
    return Reading(query)


def _logical(query: str, default_operator: Operator, step: Step, schema: Schema) -> Reading:
    """Parsed with and without operators, which the preset decides: the reply tells above its
    passages which it was."""
    above = parts_of(step.tool_output, step.spans()).above
    for operators in (True, False):
        try:
            parsed = parse(query, schema, default_operator=default_operator, operators=operators)
        except QueryError as error:
            if step.status == "error" and step.tool_output.startswith(str(error)):
                return Reading(query, problems=error.problems, mended=error.mended)
            continue
        if step.status != "error" and parsed.understood in above:
            made = tuple(pieces(parsed.understood))
            return Reading(query, pieces=made, leaves=_text_leaves(parsed.tree))
    return Reading(query)


def _text_leaves(tree: Node | None) -> tuple[TextLeaf, ...]:
    if tree is None:
        return ()
    return tuple(leaf for leaf in positive_leaves(tree) if isinstance(leaf, TextLeaf))


def _texts(value: object) -> list[str]:
    """The texts in a list of nothing else; none where it is something else."""
    found = cast(list[object], value) if isinstance(value, list) else []
    texts = [one for one in found if isinstance(one, str)]
    return texts if len(texts) == len(found) else []


def _keywords(keywords: Sequence[str]) -> Reading:
    """Each keyword is looked for as a phrase."""
    leaves: list[TextLeaf] = []
    for one in keywords:
        try:
            if analysis.terms(one):
                leaves.append(Phrase(one))
        except ArgumentError:  # half a character, which no text holds
            continue
    spaced = [
        piece for one in keywords for piece in (Piece("blank", " "), Piece("phrase", quoted(one)))
    ]
    shown = tuple(spaced[1:])
    typed = "".join(one.text for one in shown)
    return Reading(typed, "keywords", pieces=shown, leaves=tuple(leaves))
