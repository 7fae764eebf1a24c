"""Queries compiled beforehand, for bare clients of Lucene and of OpenSearch.

This module alone knows how the project compiles: all others ask ``Index``.
"""

from __future__ import annotations

from collections.abc import Sequence

from arag_search import Index
from arag_search.engines.base import SearchRequest
from arag_search.engines.lucene.compile import compiled
from arag_search.engines.opensearch.compile import Dsl
from arag_search.engines.opensearch.reader import OpenSearchEngine
from arag_search.plan.clauses import ResolvedPlan
from arag_search.plan.lower import lower
from bench import BenchError

READER = "arag.Queries"
"""The Java class whose method ``read`` makes a query of Lucene's of what ``for_lucene`` returns."""
TOP_K = 5
"""The hits of a search, which a body for OpenSearch names."""


def for_lucene(index: Index, texts: Sequence[str], *, operators: bool = True) -> list[str]:
    """Return the compiled queries. Raises QueryError."""
    return [compiled(_plan(index, text, operators).operation)[0] for text in texts]


def for_opensearch(index: Index, texts: Sequence[str]) -> list[Dsl]:
    """Return the bodies that our engine sends for a search without text. Raises BenchError for an
    index that is not on a server."""
    engine = index.engine
    if not isinstance(engine, OpenSearchEngine):
        raise BenchError("The index is not on a server.", where=index.location)
    requests = [SearchRequest(_plan(index, text), TOP_K, with_text=False) for text in texts]
    return [engine.request_body(request)[0] for request in requests]


def _plan(index: Index, text: str, operators: bool = True) -> ResolvedPlan:
    query = index.parse(text, operators=operators)
    return ResolvedPlan(lower(query.tree, query.language))
