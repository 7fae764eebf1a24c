"""Which passages of a page meet a condition, judged on the texts that they carry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from arag_search.engines.base import Hit
from arag_search.query import analysis
from arag_search.query.field_types import FIELD_TYPES, MetadataType, Storage
from arag_search.query.fields import CONTENT, DOC_ID, TITLE
from arag_search.query.forms import is_code
from arag_search.query.matching import Pattern, Words, matches_regex, patterns_of
from arag_search.query.tree import (
    And,
    DateRange,
    Fuzzy,
    KeywordEquals,
    Node,
    NumberRange,
    Or,
    Phrase,
    Prefix,
    Regex,
    Term,
)


def meeting(
    conditions: Sequence[Node], hits: Sequence[Hit], metadata: Mapping[str, MetadataType]
) -> list[set[str]]:
    """Return for each condition the ids of the hits, which carry their text, that match it.

    O(length of their texts x (1 + conditions)), less where texts lack the words of conditions.
    """
    passages = [_Passage(hit, metadata) for hit in hits] if conditions else []
    return [
        {hit.id for hit, passage in zip(hits, passages, strict=True) if passage.meets(condition)}
        for condition in conditions
    ]


class _Passage:
    """The texts and the metadata of a hit."""

    def __init__(self, hit: Hit, metadata: Mapping[str, MetadataType]) -> None:
        self._hit = hit
        self._metadata = metadata
        texts = {TITLE: hit.heading, CONTENT: hit.content or ""}
        code = is_code(hit.doc_id)
        self._texts = {name: Words(text, code) for name, text in texts.items()}
        self._low = {name: analysis.fold(text) for name, text in texts.items()}

    def meets(self, condition: Node) -> bool:
        """Return whether the hit matches; what is preferred or demoted does not decide that."""
        match condition:
            case Term() | Phrase() | Prefix() | Fuzzy():
                names = (condition.field,) if condition.field else self._texts
                patterns = patterns_of(condition)
                return any(self._matches(name, pattern) for name in names for pattern in patterns)
            case Regex():
                return matches_regex(condition, self._hit.title, self._hit.content or "")
            case KeywordEquals():
                return condition.value in self._values(condition.field, "term")
            case NumberRange():
                values = self._values(condition.field, "double")
                return any(_is_within(condition, float(value)) for value in values)
            case DateRange():
                first, end = condition.first_ms, condition.end_ms
                moments = map(float, self._values(condition.field, "long"))
                return any(
                    (first is None or first <= moment) and (end is None or moment < end)
                    for moment in moments
                )
            case And():
                return all(map(self.meets, condition.positive)) and not any(
                    self.meets(excluded.child) for excluded in condition.excluded
                )
            case Or():
                return any(map(self.meets, condition.children))
            case _:
                assert_never(condition)

    def _matches(self, name: str, pattern: Pattern) -> bool:
        """Return whether a text matches. It is analysed only if it has the words of a spelling,
        perhaps within other words."""
        low = self._low[name]
        is_literal = not pattern.language and not pattern.edits
        if is_literal and not any(all(map(low.__contains__, words)) for words in pattern.spellings):
            return False
        return self._texts[name].match(pattern)

    def _values(self, field: str, storage: Storage) -> list[str | float]:
        """Return the values of a field that is stored so, as they are compared."""
        if field == DOC_ID:
            return [self._hit.doc_id] if storage == "term" else []
        values, kind = self._hit.metadata.get(field), FIELD_TYPES.get(self._metadata.get(field, ""))
        if values is None or kind is None or kind.storage != storage:
            return []
        singles = values if isinstance(values, tuple) else (values,)
        return [kind.compared(value, f"field {field}") for value in singles]


def _is_within(node: NumberRange, number: float) -> bool:
    is_above = (
        node.lower is None or node.lower < number or (node.include_lower and number == node.lower)
    )
    return is_above and (
        node.upper is None or number < node.upper or (node.include_upper and number == node.upper)
    )
