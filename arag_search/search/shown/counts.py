"""Documents with the numbers of their matches, like ``grep -c``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from arag_search.engines.base import (
    MAX_QUICK_VALUES,
    Page,
    SearchEngine,
    SearchRequest,
)
from arag_search.engines.hits import Hit
from arag_search.plan.clauses import joined, values_of
from arag_search.query.fields import DOC_ID
from arag_search.search.shown.form import Entry, Form, Listing, by_document
from arag_search.search.shown.writing import header_line


class Counts(Form):
    """The documents in the order of their best passages: counts would rank long documents first.

    All numbers are exact. They take one call of the engine besides the page, and one more if more
    than MAX_QUICK_VALUES documents match.
    """

    __slots__ = ()

    def fetch(self, engine: SearchEngine, request: SearchRequest, page: Page) -> Listing:
        """See Form. The passages of the page are the documents."""
        if not page.count:
            return Listing(request, page)
        asked = by_document(request, MAX_QUICK_VALUES)
        counted = engine.field_values(asked)
        ids = [hit.doc_id for hit in page.hits]
        matches = dict(counted.fields[0].frequent)
        if not matches.keys() >= set(ids):
            within = replace(asked, scope=joined(asked.scope, values_of(DOC_ID, ids)))
            matches = dict(engine.field_values(within).fields[0].frequent)
        documents = counted.fields[0].distinct
        page = replace(page.with_count(counted.chunks), passages=documents)
        return Listing(request, page, [matches[id] or 0 for id in ids])

    def entries(self, hits: Sequence[Hit], first_match: Callable[[str, str], int]) -> list[Entry]:
        """See Form. The id is that of the best passage."""
        del first_match
        return [
            Entry(hit, f"{header_line(hit.id, hit.title, hit.part, 1)}: {hit.matches:,}")
            for hit in hits
        ]
