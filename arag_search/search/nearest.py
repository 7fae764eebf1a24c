"""Values of a field that a metadata clause may have meant, where the field lacks the value."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from arag_search.corpus import nfc, split_at
from arag_search.engines.base import (
    MAX_QUICK_VALUES,
    MAX_TOTAL,
    FieldsPage,
    FieldsRequest,
    FieldValues,
    Hit,
    SearchRequest,
    ValueCount,
)
from arag_search.plan.algebra import Interval
from arag_search.plan.clauses import (
    Clause,
    all_of,
    condition_of,
    value_of,
    wanted,
    wanted_leaves,
)
from arag_search.query.field_types import DATE, NUMBER, MetadataType
from arag_search.query.fields import DOC_ID
from arag_search.query.printing import quoted
from arag_search.search.fields import bound_text
from arag_search.search.judging import meeting
from arag_search.system.progress import counted

MAX_FIELDS = 4
"""The maximum number of clauses whose values are looked up."""
_MAX_SHOWN = 3
_MAX_COMPARED_CHARACTERS = 64
_MAX_SHOWN_CHARACTERS = 80
_LEAST_RATIO = 0.7
_CONTROL = re.compile(r"[\s\x00-\x1f\x7f]+")

ValueReader = Callable[[FieldsRequest], FieldsPage]


@dataclass(frozen=True, slots=True)
class MissingValue:
    """A metadata clause that no passage in scope satisfies, and the values that there are.

    ``passages`` is the number of passages with any value of the field. ``near`` are values of a
    keyword field that resemble the wanted value, or the most frequent ones if none does, as
    ``resembling`` says. ``least`` and ``greatest`` are those of a number or date.
    """

    clause: str
    field: str
    wanted: str
    passages: int
    near: tuple[ValueCount, ...] = ()
    resembling: bool = False
    least: str | None = None
    greatest: str | None = None

    def __str__(self) -> str:
        if not self.passages:
            return f"no passage has a value of {self.field}"
        missing = f"{self.field} has no value {self.wanted}"
        if self.near:
            near = ", ".join(map(value_text, self.near))
            return f"{missing}; {'nearest' if self.resembling else 'most frequent'}: {near}"
        if self.least is None:
            return missing
        if self.least == self.greatest:
            return f"{missing}; only value: {self.least}"
        return f"{missing}; values: {self.least} to {self.greatest}"

    def to_dict(self) -> dict[str, Any]:
        """Return the clause and the values in types of JSON, with the ``text`` in words."""
        return {
            "clause": self.clause,
            "field": self.field,
            "text": str(self),
            "nearest": values_json(self.near if self.resembling else ()),
            "least": self.least,
            "greatest": self.greatest,
        }


def values_json(counts: Sequence[ValueCount]) -> list[dict[str, Any]]:
    """Return values of a keyword field and their numbers of passages in types of JSON."""
    return [{"value": count.value, "passages": count.chunks} for count in counts]


def value_text(count: ValueCount) -> str:
    """Return a value in quotes, on one line and shortened, with its number of passages."""
    shown = _quoted(count.value)
    if count.chunks is None:
        return shown
    return f"{shown} ({counted(count.chunks, 'passage')})"


def case_variants(query: Clause) -> list[Clause]:
    """Return the keyword clauses of a query in other cases: lower, upper, and capitals at the
    beginnings of words or of the value. They are at most four for each of MAX_FIELDS clauses."""
    clauses = [leaf for leaf in wanted_leaves(query) if leaf.kind == "value"]
    variants: list[Clause] = []
    for clause in list(dict.fromkeys(clauses))[:MAX_FIELDS]:
        value, field = clause.typed, clause.field or ""
        cases = (value.lower(), value.upper(), value.title(), value.capitalize())
        texts = dict.fromkeys(nfc(case) for case in cases)
        variants += [value_of(field, text) for text in texts if text != value]
    return variants


def missing_values(
    clauses: Sequence[Clause],
    variants: Sequence[tuple[Clause, int]],
    read: ValueReader,
) -> tuple[MissingValue, ...]:
    """Return what is there instead of the values of clauses without a match, of at most MAX_FIELDS.

    ``read`` is called once, for the MAX_QUICK_VALUES most frequent values of each field; values
    are compared only with these, and with the ``variants`` (of ``case_variants``) that match, which
    come with their counts of chunks. A clause whose value is there after all is left out.
    """
    clauses = list(dict.fromkeys(clauses))[:MAX_FIELDS]
    if not clauses:
        return ()
    names = tuple(dict.fromkeys(clause.field for clause in clauses if clause.field))
    page = read(FieldsRequest(names, MAX_QUICK_VALUES, quick=True))
    fields = {field.name: field for field in page.fields}
    for variant, chunks in variants:
        if (field := fields.get(variant.field or "")) is not None:
            fields[field.name] = _with_variant(field, variant.typed, chunks)
    missing = (_missing(clause, fields[clause.field or ""]) for clause in clauses)
    return tuple(value for value in missing if value is not None)


def _with_variant(field: FieldValues, value: str, chunks: int) -> FieldValues:
    """Return the values of a field with one that may be too rare to be among them."""
    if any(count.value == value for count in field.frequent):
        return field
    rare = ValueCount(value, chunks if chunks <= MAX_TOTAL else None)
    return replace(field, frequent=(*field.frequent, rare))


def _missing(clause: Clause, field: FieldValues) -> MissingValue | None:
    text, name, interval = clause.text, field.name, clause.operation
    if not isinstance(interval, Interval):
        if any(count.value == clause.typed for count in field.frequent):
            return None
        near = tuple(nearest_values(clause.typed, field.frequent))
        is_near = bool(near)
        if not near and name != DOC_ID:
            near = field.frequent[:_MAX_SHOWN]
        return MissingValue(text, name, _quoted(clause.typed), field.chunks, near, is_near)
    condition = text.removeprefix(f"{name}:")
    lacking = f"in {condition}" if condition[0] in "[{" else condition
    kind = NUMBER if interval.storage == "double" else DATE
    ends = (bound_text(end, kind.name) for end in (field.least, field.greatest))
    return MissingValue(text, name, lacking, field.chunks, (), False, *ends)


def nearest_values(wanted: str, counts: Sequence[ValueCount]) -> list[ValueCount]:
    """Return up to three values like the wanted one: first those that differ by case alone, then
    those that begin with it or that it begins with, then those that differ by few letters.

    ``counts`` come with the most frequent value first, which orders equal candidates. The time is
    linear in their number; only values of at most 64 characters are compared by letters.
    """
    folded = wanted.casefold()
    by_text: dict[str, list[ValueCount]] = {}
    for count in counts:
        by_text.setdefault(count.value.casefold(), []).append(count)
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


def _quoted(value: str) -> str:
    line = _CONTROL.sub(" ", value)
    if len(line) > _MAX_SHOWN_CHARACTERS:
        line = f"{line[: _MAX_SHOWN_CHARACTERS - 3]}..."
    return quoted(line)


# What PREFER and DEMOTE did to the passages shown: which were lowered, and preferences unmet
#
# The texts of the hits are judged here, so that no engine is asked again.


def lowered_by(
    query: Clause, hits: Sequence[Hit], metadata: Mapping[str, MetadataType]
) -> dict[str, tuple[str, ...]]:
    """Return by id the DEMOTEs that lowered each hit, as written; the hits carry their text.

    At sentence granularity, those that every matching sentence of the hit meets.
    """
    lowered: dict[str, tuple[str, ...]] = {}
    demotions = list(_demotions(query, ()))
    sentences = {hit.id: _sentences(hit) for hit in hits} if demotions else {}
    judged = [sentence for parts in sentences.values() for sentence in parts]
    judgements = meeting([condition for _, condition in demotions], judged, metadata)
    for (demote, _), met in zip(demotions, judgements, strict=True):
        for id, parts in sentences.items():
            if all(part.id in met for part in parts):
                lowered[id] = (*lowered.get(id, ()), str(demote))
    return lowered


def unmet_preferences(
    request: SearchRequest, hits: Sequence[Hit], metadata: Mapping[str, MetadataType]
) -> list[tuple[Clause, Clause]]:
    """Return the PREFERs of the whole query that no hit meets, each with the query for the passages
    found that meet it: a PREFER raises what meets it, so that usually none does."""
    query = request.query.root
    if query.kind != "all" or request.granularity == "sentence":
        return []
    condition, preferred = condition_of(query), query.having("preferred")
    judgements = meeting(preferred, hits, metadata)
    return [
        (prefer, all_of([condition, condition_of(wanted(prefer))]))
        for prefer, met in zip(preferred, judgements, strict=True)
        if not met
    ]


def _demotions(group: Clause, conditions: tuple[Clause, ...]) -> list[tuple[Clause, Clause]]:
    """Return the DEMOTEs in a group, each with what a hit meets that it lowers; ``conditions`` are
    the group and those around it, without the whole query, which every hit meets."""
    pairs: list[tuple[Clause, Clause]] = []
    for part in group.parts:
        if part.parts and part.role in ("wanted", "preferred"):
            pairs += _demotions(part, (*conditions, condition_of(wanted(part))))
    demoted = group.having("demoted")
    return [*pairs, *((part, all_of([*conditions, wanted(part)])) for part in demoted)]


def _sentences(hit: Hit) -> list[Hit]:
    """Return the matching sentences of a hit as hits of their own; the hit itself without any."""
    if not hit.matched_sentences:
        return [hit]
    texts = split_at(hit.content or "", hit.sentence_ends)
    return [
        hit._replace(id=f"{hit.id} {number}", content=texts[number], sentence_ends=())
        for number in hit.matched_sentences
    ]
