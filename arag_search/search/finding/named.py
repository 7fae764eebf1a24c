"""The documents that have names, and how many passages hold these names."""

from __future__ import annotations

from collections.abc import Mapping

from arag_search.engines.base import Deadline, Granularity, SearchRequest
from arag_search.engines.hits import Hit
from arag_search.errors import QueryTimeoutError
from arag_search.plan.clauses import ResolvedPlan, values_of
from arag_search.plan.lower import lower
from arag_search.query.fields import CONTENT, NAMES
from arag_search.query.filters import Data
from arag_search.query.names import names_of
from arag_search.query.tree import Phrase
from arag_search.search.state import IndexState

MAX_NAMES = 256
"""The maximum number of names that are looked up, and of documents that have them."""


def named(
    state: IndexState, names: Mapping[str, str], *, filter: str | Data | None = None
) -> dict[str, tuple[list[Hit], int]]:
    """Return which of these names documents in scope have (see ``query.names``). Each has the first
    passages of its documents, and the number of passages that hold the text of the name.

    ``names`` maps each name to that text; an empty text is not counted, and counts stop at
    MAX_TOTAL + 1. It takes one request, unless the engine knows no name, and a second one if a text
    is to be counted. The result is empty if more than MAX_NAMES documents have these names, or if
    it takes too long. Raises QueryError for the filter.
    """
    engine, asked = state.engine, dict(list(names.items())[:MAX_NAMES])
    scope, _ = state.narrowed(filter)
    deadline = Deadline.after(state.search_timeout_s)
    documents: dict[str, list[Hit]] = {}
    try:
        if not (likely := engine.known(NAMES, tuple(asked))):
            return {}
        request = SearchRequest(
            values_of(NAMES, likely), MAX_NAMES + 1, scope=scope, deadline=deadline
        )
        page = engine.search(request)
        for hit in page.hits if len(page.hits) <= MAX_NAMES else ():
            for name in asked.keys() & names_of(hit.title, hit.doc_id):
                documents.setdefault(name, []).append(hit)
        counted = [name for name in documents if asked[name]]
        queries: list[tuple[ResolvedPlan, Granularity]] = [
            (ResolvedPlan(lower(Phrase(asked[name], 0, CONTENT))), "chunk") for name in counted
        ]
        counts = engine.counts(queries, scope, deadline) if queries else []
    except QueryTimeoutError:
        return {}
    of_texts = dict(zip(counted, counts, strict=True))
    return {name: (hits, of_texts.get(name, 0)) for name, hits in documents.items()}
