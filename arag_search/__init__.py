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
    from arag_search.agent.conversation import Conversation
    from arag_search.agent.loop import Agent
    from arag_search.agent.models.choose import choose_model
    from arag_search.corpus import Chunk, Document
    from arag_search.engines.hits import Hit
    from arag_search.errors import AragError
    from arag_search.query.filters import quote
    from arag_search.query.problems import QueryError
    from arag_search.query.reading import parse
    from arag_search.search.index import Index
    from arag_search.search.results import SearchResult
    from arag_search.tools.preset_files import load_preset
    from arag_search.tools.toolbox import Toolbox
    from arag_search.vectors.encoders.choose import open_encoder
    from index_jobs import build_index
    from index_jobs.updates.opening import open_index

__all__ = [
    "Agent",
    "AragError",
    "Chunk",
    "Conversation",
    "Document",
    "Hit",
    "Index",
    "QueryError",
    "SearchResult",
    "Toolbox",
    "build_index",
    "choose_model",
    "load_preset",
    "open_encoder",
    "open_index",
    "parse",
    "quote",
]

_HOMES = {
    "Agent": "arag_search.agent.loop",
    "AragError": "arag_search.errors",
    "Chunk": "arag_search.corpus",
    "Conversation": "arag_search.agent.conversation",
    "Document": "arag_search.corpus",
    "Hit": "arag_search.engines.hits",
    "Index": "arag_search.search.index",
    "QueryError": "arag_search.query.problems",
    "SearchResult": "arag_search.search.results",
    "Toolbox": "arag_search.tools.toolbox",
    "build_index": "index_jobs",
    "choose_model": "arag_search.agent.models.choose",
    "load_preset": "arag_search.tools.preset_files",
    "open_encoder": "arag_search.vectors.encoders.choose",
    "open_index": "index_jobs.updates.opening",
    "parse": "arag_search.query.reading",
    "quote": "arag_search.query.filters",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
