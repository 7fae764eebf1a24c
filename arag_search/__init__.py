"""Search that language models drive with logical queries, over an inverted index.

    import arag_search

    with arag_search.open_index("my-index", filter={"lang": "en"}) as index:
        result = index.logical_search('"antonio vivaldi" AND librett*')
        print(result.hits[0].title, result.hits[0].snippet)

Names are loaded when they are first used, so that importing the package stays cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from arag_search.corpus import Chunk, Document
    from arag_search.engines.hits import Hit
    from arag_search.errors import AragError
    from arag_search.query.filters import quote
    from arag_search.query.problems import QueryError
    from arag_search.query.reading import parse
    from arag_search.search.index import Index
    from arag_search.search.opening import open_index
    from arag_search.search.results import SearchResult

__all__ = [
    "AragError",
    "Chunk",
    "Document",
    "Hit",
    "Index",
    "QueryError",
    "SearchResult",
    "open_index",
    "parse",
    "quote",
]

_HOMES = {
    "AragError": "errors",
    "Chunk": "corpus",
    "Document": "corpus",
    "Hit": "engines.hits",
    "Index": "search.index",
    "QueryError": "query.problems",
    "SearchResult": "search.results",
    "open_index": "search.opening",
    "parse": "query.reading",
    "quote": "query.filters",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
