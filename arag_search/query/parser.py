"""Query text -> tree, or every problem at once, with the query to write instead."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

from arag_search.query import problems
from arag_search.query.fields import ANY_SCHEMA, Schema
from arag_search.query.groups import Operator
from arag_search.query.problems import EndOfReadingError, Problem, QueryError
from arag_search.query.reader import read
from arag_search.query.tree import Node, Scope, TextLeaf, leaves, render, scores


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query as it was understood. ``understood`` is its canonical text."""

    tree: Node
    understood: str
    notes: tuple[str, ...]


def parse(
    text: str,
    schema: Schema = ANY_SCHEMA,
    *,
    default_operator: Operator = "OR",
    operators: bool = True,
    limits: bool = True,
) -> ParsedQuery:
    """Parse a query.

    ``default_operator`` is what a space means. ``operators`` False refuses AND, OR, NOT, - and !
    (a space is then OR). ``limits`` False lifts all limits but a depth of 100 parentheses and
    100,000 words in all spellings. Raises QueryError with every problem (the first 2,000), never
    anything else, whatever the text; one of more than 4,000 characters gets no corrected query.
    """
    if not operators:
        default_operator = "OR"
    reading = read(text, schema, default_operator, operators, limits)
    found = reading.findings
    tree = reading.tree
    if reading.exclusions:
        with suppress(EndOfReadingError):
            found.refuse(*reading.place, problems.ONLY_NOTS, mended=False)
    if found.problems or tree is None:
        mended = None
        if tree is not None and found.mendable and len(text) <= problems.MAX_MENDED:
            mended = _verified(render(tree, operators), schema, default_operator, operators, limits)
        ordered = sorted(found.problems, key=lambda problem: problem.column)
        raise QueryError(text, tuple(ordered), mended)
    if not scores(tree):
        found.note(problems.NOTE_UNRANKED)
    return ParsedQuery(tree, render(tree, operators), tuple(found.notes))


def parse_scope(text: str, schema: Schema) -> Scope:
    """Parse a filter: metadata clauses only, NOTs alone allowed, no limits but depth.

    Raises QueryError.
    """
    schema = replace(schema, metadata_only=True)
    reading = read(text, schema, "AND", True, False)
    if reading.findings.problems:
        ordered = sorted(reading.findings.problems, key=lambda problem: problem.column)
        raise QueryError(text, tuple(ordered), None)
    tree = reading.tree
    nodes = [*reading.exclusions, *([tree] if tree is not None else [])]
    searched = [leaf for node in nodes for leaf in leaves(node) if isinstance(leaf, TextLeaf)]
    if searched:
        message = problems.TEXT_IN_SCOPE.format(fields=schema.describe())
        raise QueryError(text, (Problem(1, problems.shortened(str(searched[0])), message),), None)
    include = () if tree is None else (tree,)
    return Scope(include, tuple(node.child for node in reading.exclusions))


def parse_filter(text: str, schema: Schema) -> Scope:
    """As ``parse_scope``; the error says that it is the filter where the problems are."""
    try:
        return parse_scope(text, schema)
    except QueryError as error:
        error.where = "the filter"
        raise


def _verified(
    text: str, schema: Schema, default_operator: Operator, operators: bool, limits: bool
) -> str | None:
    """The mended query, if it is one."""
    again = read(text, schema, default_operator, operators, limits)
    return None if again.findings.problems or again.tree is None else text
