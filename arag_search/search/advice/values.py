"""Values of a field that a metadata clause may have meant, where the field lacks the value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches

from arag_search.corpus import nfc
from arag_search.engines.base import (
    MAX_QUICK_VALUES,
    MAX_TOTAL,
    FieldsPage,
    FieldsRequest,
    FieldValues,
    SearchRequest,
    ValueCount,
)
from arag_search.plan.clauses import (
    Clause,
    value_of,
    wanted_leaves,
)
from arag_search.query.fields import DOC_ID
from arag_search.search.advice.told import MissingValue, quoted_value
from arag_search.search.counting.fields import bound_text

MAX_FIELDS = 4
"""The maximum number of clauses whose values are looked up."""
_MAX_SHOWN = 3
_MAX_COMPARED_CHARACTERS = 64
_LEAST_RATIO = 0.7


def case_variants(query: Clause) -> list[Clause]:
    """Return the keyword clauses of a query in other cases, and with other slashes at their ends.
    The cases are lower, upper, and capitals at the beginning of each word or of the value. There
    are at most seven for each of MAX_FIELDS clauses."""
    clauses = [leaf for leaf in wanted_leaves(query) if leaf.kind == "value"]
    variants: list[Clause] = []
    for clause in list(dict.fromkeys(clauses))[:MAX_FIELDS]:
        value, field = clause.typed, clause.field or ""
        cases = [value.lower(), value.upper(), value.title(), value.capitalize()]
        cases += [value.strip("/"), f"/{value}", f"{value}/"]
        texts = dict.fromkeys(map(nfc, cases))
        variants += [value_of(field, text) for text in texts if text not in ("", value)]
    return variants


def values_request(clauses: Sequence[Clause], request: SearchRequest) -> FieldsRequest | None:
    """Return the request for the most frequent values of the fields of clauses without a match,
    which are at most MAX_FIELDS; None without any."""
    names = tuple(dict.fromkeys(clause.field for clause in clauses if clause.field))
    if not names:
        return None
    return FieldsRequest(
        names, MAX_QUICK_VALUES, request.scope, quick=True, deadline=request.deadline
    )


def missing_values(
    clauses: Sequence[Clause], variants: Sequence[tuple[Clause, int]], page: FieldsPage | None
) -> tuple[MissingValue, ...]:
    """Return the values that there are, for clauses whose value no passage has.

    A value is compared with the most frequent ones, which are on the ``page``, and with the
    ``variants`` that match. These are clauses of ``case_variants`` with their counts of chunks. A
    clause whose value is there after all is left out.
    """
    fields = {} if page is None else {field.name: field for field in page.fields}
    for variant, chunks in variants:
        if (field := fields.get(variant.field or "")) is not None:
            fields[field.name] = _with_variant(field, variant.typed, chunks)
    missing = (_missing(clause, fields[clause.field or ""]) for clause in clauses)
    return tuple(value for value in missing if value is not None)


def _with_variant(field: FieldValues, value: str, chunks: int) -> FieldValues:
    """Return the values of a field, with a value added that may be too rare to be among them."""
    if any(count.value == value for count in field.frequent):
        return field
    rare = ValueCount(value, chunks if chunks <= MAX_TOTAL else None)
    return replace(field, frequent=(*field.frequent, rare))


def _missing(clause: Clause, field: FieldValues) -> MissingValue | None:
    text, name, interval = clause.text, field.name, clause.interval
    if interval is None:
        if any(count.value == clause.typed for count in field.frequent):
            return None
        near = tuple(nearest_values(clause.typed, field.frequent))
        is_near = bool(near)
        if not near and name != DOC_ID:
            near = field.frequent[:_MAX_SHOWN]
        wanted, folded = quoted_value(clause.typed), _folded(clause.typed)
        same = [count.value for count in field.frequent if folded == _folded(count.value)]
        meant = same[0] if len(same) == 1 and folded else ""
        return MissingValue(text, name, wanted, field.chunks, near, is_near, meant=meant)
    condition = text.removeprefix(f"{name}:")
    lacking = f"in {condition}" if condition[0] in "[{" else condition
    ends = (bound_text(end, interval.kind) for end in (field.least, field.greatest))
    return MissingValue(text, name, lacking, field.chunks, (), False, *ends)


def nearest_values(wanted: str, counts: Sequence[ValueCount]) -> list[ValueCount]:
    """Return up to three values like the wanted one.

    First come values that differ only in case or in slashes at the ends. Then come values that
    begin with the wanted one, or are its beginning; last, values that differ in few letters.

    ``counts`` come with the most frequent value first, which orders equal candidates. The time is
    linear in their number; only values of at most 64 characters are compared by letters.
    """
    folded = _folded(wanted)
    by_text: dict[str, list[ValueCount]] = {}
    for count in counts:
        by_text.setdefault(_folded(count.value), []).append(count)
    beginnings = [
        text
        for text in by_text
        if text and folded and (text.startswith(folded) or folded.startswith(text))
    ]
    comparable = [text for text in by_text if len(text) <= _MAX_COMPARED_CHARACTERS]
    close: list[str] = []
    if len(folded) <= _MAX_COMPARED_CHARACTERS:
        close = get_close_matches(folded, comparable, _MAX_SHOWN, _LEAST_RATIO)
    same = [folded] if folded in by_text else []
    ordered = dict.fromkeys([*same, *beginnings, *map(str, close)])
    return [count for text in ordered for count in by_text[text]][:_MAX_SHOWN]


def _folded(value: str) -> str:
    return value.casefold().strip("/")
