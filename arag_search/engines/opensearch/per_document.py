"""The first places of a search of which at most some belong to the same document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from arag_search.corpus import chunk_ordinal
from arag_search.engines.opensearch import schema
from arag_search.engines.opensearch.answers import score_of
from arag_search.query.fields import DOC_ID

MAX_WINDOW = 10_000
"""``max_result_window`` of the indexes: the greatest ``from + size``."""


class ShownPlace(NamedTuple):
    """A chunk, or the chunk of a sentence, at its place in the order of a search. ``chunk_id`` is
    that of a sentence, else empty."""

    doc_id: str
    chunk_id: str
    ordinal: int
    score: float


def place_of(hit: Mapping[str, Any]) -> ShownPlace:
    """Return the place of a hit without its document."""
    fields = hit["fields"]
    chunk_id = fields.get(schema.CHUNK_ID, [""])[0]
    ordinal = chunk_ordinal(int(hit["sort"][-1]))
    return ShownPlace(fields[DOC_ID][0], chunk_id, ordinal, score_of(hit))


class Scan:
    """The places of a search that were kept, in order, and the count of all its matches.

    ``full`` are the documents that have ``most`` places.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.places: list[ShownPlace] = []
        self.full: set[str] = set()
        self.count = 0
        self.count_is_exact = True
        self._kept: dict[str, int] = {}

    def add(self, place: ShownPlace) -> None:
        """Keep the place unless its document has enough."""
        kept = self._kept.get(place.doc_id, 0)
        if kept == self.most:
            return
        self.places.append(place)
        self._kept[place.doc_id] = kept + 1
        if kept + 1 == self.most:
            self.full.add(place.doc_id)

    def unfinished(self) -> int:
        """Return the number of kept places of documents that may have further ones."""
        return len(self.places) - self.most * len(self.full)
