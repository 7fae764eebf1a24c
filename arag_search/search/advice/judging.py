"""Which passages of a page meet a condition, judged on the texts that they carry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from arag_search.engines.hits import Hit
from arag_search.plan.clauses import Clause
from arag_search.plan.matching import Pattern, Words, patterns_of
from arag_search.query.field_types import MetadataType, Storage, columns
from arag_search.query.fields import CONTENT, DOC_ID, TITLE, searched_fields
from arag_search.search.reading.occurrences import AnalysedTexts, Sentences


class Judge:
    """The judge of which hits meet a condition, by the texts and the metadata that they carry.

    ``columns``: the column and the type of each metadata field.
    ``texts``: the analysed texts, which the snippets of the search share.
    """

    def __init__(self, metadata: Mapping[str, MetadataType]) -> None:
        self.columns = columns(metadata)
        self.texts = AnalysedTexts()

    def meeting(self, hits: Sequence[Hit], conditions: Sequence[Clause]) -> list[set[str]]:
        """Return for each condition the ids of the hits that match it.

        O(length of their texts x (1 + conditions)).
        """
        passages = [_Passage(hit, self) for hit in hits] if conditions else []
        return [
            {passage.hit.id for passage in _meeting(condition, passages)}
            for condition in conditions
        ]


def _meeting(condition: Clause, passages: list[_Passage]) -> list[_Passage]:
    """Return the passages that match a condition. PREFERs and DEMOTEs in it do not count."""
    match condition.kind:
        case "all":
            for part in condition.having("wanted"):
                passages = _meeting(part, passages)
            for part in condition.having("excluded"):
                excluded = _meeting(part, passages)
                passages = [passage for passage in passages if passage not in excluded]
            return passages
        case "any":
            left = passages
            for part in condition.parts:
                met = _meeting(part, left)
                left = [passage for passage in left if passage not in met]
            return [passage for passage in passages if passage not in left]
        case "lookup":
            lookup = condition.lookup
            return [p for p in passages if lookup is not None and lookup.matches(p.hit)]
        case "value" | "range":
            return [passage for passage in passages if passage.has_value(condition)]
        case _:
            names, patterns = searched_fields(condition.field), patterns_of(condition)
            tried = [(name, pattern) for name in names for pattern in patterns]
            return [passage for passage in passages if passage.matches(tried)]


class _Passage:
    """The texts and the metadata of a hit."""

    def __init__(self, hit: Hit, judge: Judge) -> None:
        self.hit = hit
        self._columns = judge.columns
        heading, content = judge.texts.of(hit)
        self.texts: dict[str, Words | Sentences] = {TITLE: heading, CONTENT: content}

    def matches(self, tried: Sequence[tuple[str, Pattern]]) -> bool:
        """Return whether the text of a field matches its pattern, for any of the pairs."""
        return any(self.texts[name].match(pattern) for name, pattern in tried)

    def has_value(self, condition: Clause) -> bool:
        if (interval := condition.interval) is not None:
            values = self._values(interval.column, interval.storage)
            return any(interval.lower <= float(value) <= interval.upper for value in values)
        return condition.typed in self._values(condition.field or "", "term")

    def _values(self, field: str, storage: Storage) -> list[str | float]:
        """Return the values of a field that is stored so, as they are compared."""
        if field == DOC_ID:
            return [self.hit.doc_id] if storage == "term" else []
        name, kind = self._columns.get(field, (field, None))
        values = self.hit.metadata.get(name)
        if values is None or kind is None or kind.storage != storage:
            return []
        singles = values if isinstance(values, tuple) else (values,)
        return [kind.compared(value, f"field {field}") for value in singles]
