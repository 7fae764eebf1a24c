"""Filters, written as text or as data -> the conditions that they hold.

    {"owner": ["ann", "everyone"], "year": {"gte": 2020}, "not": {"draft": True}}

A value in data is a value, whatever signs it holds, so it can come from a user. Data becomes the
same tree as the text that says it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import chain
from typing import cast

from arag_search.errors import ArgumentError
from arag_search.query.analysis import checked_text
from arag_search.query.field_types import scalar_text
from arag_search.query.fields import DOC_ID, FieldRef, Schema
from arag_search.query.grammar import Options
from arag_search.query.limits import MAX_DEPTH
from arag_search.query.operators import NOT
from arag_search.query.printing import quoted
from arag_search.query.problems import Problem, ProblemKind, QueryError, shortened
from arag_search.query.reading import error_of, findings_of
from arag_search.query.tree import (
    KeywordEquals,
    MetadataLeaf,
    Modifier,
    Node,
    Range,
    all_of,
    any_of,
    leaves,
)
from arag_search.system.arguments import checked

Data = Mapping[str, object]
"""A filter as data: fields with a value, a list of values of which one must hold, or bounds."""

_NO_DOCUMENT = KeywordEquals(DOC_ID, "an empty list")
NOTHING = all_of(_NO_DOCUMENT, Modifier(NOT, _NO_DOCUMENT))
"""A condition that no document meets, which stands for an empty list of values."""
_FORM = '{"FIELD": VALUE, "FIELD": [VALUE, ...], "FIELD": {"gte": VALUE}, "not": {...}}'


@checked
def quote(value: str) -> str:
    """Return a value in quotes for a filter or query, such as ``f"owner:{quote(user)}"``.

    No value can end the quotes, and none is read as a comparison or range. Raises ArgumentError for
    a lone surrogate.
    """
    text = quoted(checked_text(value))
    return f'"\\{text[1:]}' if text[1] in "<>[{" else text


def filter_text(filter: str | Data) -> str:
    """Return a filter as text: data as JSON, which later changes of the data do not reach. Raises
    ArgumentError for what JSON cannot hold."""
    if isinstance(filter, str):
        return filter
    import orjson

    try:
        return orjson.dumps(filter, _plain, orjson.OPT_SERIALIZE_NUMPY).decode()
    except TypeError as error:
        raise ArgumentError(
            f"The filter is no data: {error}.",
            where="the filter",
            allowed=_FORM,
            do="Write values as text, numbers, booleans and dates, or as lists of them.",
        ) from error


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(cast(Mapping[object, object], value))
    if isinstance(value, AbstractSet):
        return sorted(cast(AbstractSet[object], value), key=str)
    raise TypeError(f"{type(value).__name__} is no type of a value")


def parse_filter(filter: str | Data, schema: Schema) -> tuple[Node | Modifier, ...]:
    """Parse a filter, all of whose parts must match: metadata clauses only, NOTs alone allowed, no
    limits but depth. Text that begins with { is data as JSON.

    Raises QueryError, which says that the filter is at fault, and what ``filter_text`` raises.
    """
    text = filter_text(filter)
    try:
        is_data = text.lstrip().startswith("{")
        return _parts_of_data(text, schema) if is_data else _parts_of_text(text, schema)
    except QueryError as error:
        error.where = "the filter"
        raise


def _parts_of_text(text: str, schema: Schema) -> tuple[Node | Modifier, ...]:
    options = Options(replace(schema, metadata_only=True), "AND", limits=False, ranked=False)
    findings, tree = findings_of(text, options)
    nodes = tree if isinstance(tree, tuple) else (tree,) if tree else ()
    clauses = chain.from_iterable(map(leaves, nodes))
    leaf = next((leaf for leaf in clauses if not isinstance(leaf, MetadataLeaf)), None)
    if leaf and not findings.problems:
        values = {"fields": options.schema.describe()}
        kind = ProblemKind.TEXT_IN_SCOPE
        findings.problems.append(Problem.of(leaf.start + 1, str(leaf), kind, **values))
    if findings.problems:
        corrected = str(tree) if isinstance(tree, Node) and leaf is None else None
        raise error_of(findings, corrected, options)
    return nodes


# Data


def _parts_of_data(text: str, schema: Schema) -> tuple[Node | Modifier, ...]:
    reader = _Reader(schema)
    parts: list[Node | Modifier] = []
    try:
        parts = reader.parts(json.loads(text, object_pairs_hook=_once))
    except (ValueError, RecursionError) as error:
        reader.reject(text, ArgumentError(f"it is not JSON ({error})."))
    if reader.problems:
        refused = QueryError(text, tuple(reader.problems), None)
        refused.do = f"Write {_FORM}."
        raise refused
    return tuple(parts) if set(map(type, parts)) == {Modifier} else (all_of(*parts),)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    data = dict(pairs)
    if len(data) < len(pairs):
        raise ValueError("a key is given twice")
    return data


class _Reader:
    """A reader of the conditions of data, with the problems that they have."""

    def __init__(self, schema: Schema) -> None:
        self.schema = replace(schema, metadata_only=True)
        self.problems: list[Problem] = []

    def reject(self, piece: str, error: ArgumentError) -> None:
        """Record a problem with a piece of the data."""
        self.problems.append(Problem.of_error(0, piece, error))

    def parts(self, data: Data, path: str = "") -> list[Node | Modifier]:
        """Return the conditions of a mapping, whose keys come after a ``path`` of outer ones."""
        if not data:
            empty = ArgumentError("it is empty.", do="Write a condition in it, or leave it out.")
            self.reject(path or "{}", empty)
        parts: list[Node | Modifier] = []
        for name, given in data.items():
            place = f"{path}.{name}" if path else name
            try:
                is_not = name == "not"
                parts += self._negated(given, place) if is_not else [self._clause(name, given)]
            except ArgumentError as error:
                self.reject(place, error)
        return parts

    def _negated(self, given: object, path: str) -> list[Node | Modifier]:
        """Return the condition that not all given ones hold. A single negated one loses its NOT."""
        if not isinstance(given, dict) or path.count(".") >= MAX_DEPTH:
            allowed = f'"not": {{"FIELD": VALUE}}, at most {MAX_DEPTH} deep'
            what = f"{_shown(cast(object, given))} is no mapping of conditions."
            raise ArgumentError(what, allowed=allowed)
        parts = self.parts(cast(Data, given), path)
        if len(parts) == 1 and isinstance(parts[0], Modifier):
            return [parts[0].child]
        return [Modifier(NOT, all_of(*parts))] if parts else []

    def _clause(self, name: str, given: object) -> Node:
        kind = self.schema.kind(name)
        if kind is None or kind == "text":
            what = "searches text" if kind else "is no field"
            raise ArgumentError(f"it {what}.", allowed=self.schema.describe())
        field = FieldRef(name, kind)
        if isinstance(given, dict) and field.type.is_ordered:
            return _between(field, cast(Data, given))
        values = cast(list[object], given if isinstance(given, list) else [given])
        return any_of(*[_equals(field, value) for value in values]) if values else NOTHING


def _equals(field: FieldRef, given: object) -> MetadataLeaf:
    text = _value(field, given)
    if field.type.is_ordered:
        return Range(field.name, field.type.name, text, text)
    return KeywordEquals(field.name, text)


def _between(field: FieldRef, bounds: Data) -> Range:
    lower, upper = (bounds.keys() & names for names in ({"gte", "gt"}, {"lte", "lt"}))
    if not bounds or len(lower) > 1 or len(upper) > 1 or bounds.keys() - lower - upper:
        raise ArgumentError(
            f"{_shown(bounds)} is no range.",
            allowed="gte or gt for the lower bound, lte or lt for the upper one",
        )
    texts = {name: _value(field, given) for name, given in bounds.items()}
    low, high = (texts[next(iter(names))] if names else None for names in (lower, upper))
    return Range(field.name, field.type.name, low, high, "gt" not in lower, "lt" not in upper)


def _value(field: FieldRef, given: object) -> str:
    """Return the text of a value of a field. Raises ArgumentError if it has another type."""
    kind, allowed = field.type, field.type.in_data
    if type(given) in kind.given:
        try:
            read = kind.read(given)
            return "" if read is None else scalar_text(read)
        except ValueError as error:
            allowed = str(error)
    raise ArgumentError(f"{_shown(given)} is no value of a {kind.name} field.", allowed=allowed)


def _shown(given: object) -> str:
    return shortened(json.dumps(given, ensure_ascii=False))
