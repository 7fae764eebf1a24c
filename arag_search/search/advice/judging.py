"""Which passages of a page meet a condition, judged on the texts that they carry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from arag_search.engines.base import Hit
from arag_search.plan.algebra import Interval, Operation, Values
from arag_search.plan.clauses import Clause
from arag_search.plan.matching import Pattern, Words, patterns_of
from arag_search.query import analysis
from arag_search.query.field_types import FIELD_TYPES, MetadataType, Storage
from arag_search.query.fields import CONTENT, DOC_ID, TITLE, searched_fields
from arag_search.query.forms import is_code


class Judge:
    """Hits, which carry their text, and whose words are counted once for all conditions."""

    def __init__(self, hits: Sequence[Hit], metadata: Mapping[str, MetadataType]) -> None:
        self._hits = hits
        self._metadata = metadata
        self._passages: list[_Passage] = []

    def meeting(self, conditions: Sequence[Clause]) -> list[set[str]]:
        """Return for each condition the ids of the hits that match it.

        O(length of their texts x (1 + conditions)), less where texts lack the words of conditions.
        """
        if conditions and not self._passages:
            self._passages = [_Passage(hit, self._metadata) for hit in self._hits]
        pairs = list(zip(self._hits, self._passages, strict=False))
        return [
            {hit.id for hit, passage in pairs if passage.meets(condition)}
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

    def meets(self, condition: Clause) -> bool:
        """Return whether the hit matches; what is preferred or demoted does not decide that."""
        match condition.kind:
            case "all":
                return all(map(self.meets, condition.having("wanted"))) and not any(
                    map(self.meets, condition.having("excluded"))
                )
            case "any":
                return any(map(self.meets, condition.parts))
            case "lookup":
                return condition.lookup is not None and condition.lookup.matches(self._hit)
            case "value" | "range":
                return self._has_value(condition.operation)
            case _:
                names, patterns = searched_fields(condition.field), patterns_of(condition)
                return any(self._matches(name, pattern) for name in names for pattern in patterns)

    def _has_value(self, operation: Operation) -> bool:
        match operation:
            case Values():
                return not set(operation.values).isdisjoint(self._values(operation.field, "term"))
            case Interval():
                values = self._values(operation.field, operation.storage)
                return any(operation.lower <= float(value) <= operation.upper for value in values)
            case _:
                return False

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
