"""The searches that may find a set: each interface with the words of a need alone. The query that
has its structure too is the ceiling of logic. A document is one passage here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from arag_search.agent.models.offline import one_query
from arag_search.evaluation.interfaces import content_words, words_query
from arag_search.search.asked import MAX_TOP_K, Hybrid, Keywords, Meaning, Search
from bench.sets.needs import Need

PAGE = 20
PAGES, CAP_TOKENS = MAX_TOP_K // PAGE, 100_000
"""Calls and tokens of a set that is not whole after so many pages of PAGE documents."""
KNOWN, BROKEN = "known query", "broken@10"
BY_VECTORS = {"vectors", "hybrid"}

_ALL: Mapping[str, Any] = {"top_k": MAX_TOP_K, "snippets": False}
LINES: Mapping[str, Callable[[Need], Search | Keywords | Meaning]] = {
    "words": lambda need: Search(words_query(need.text), operators=False, **_ALL),
    "keyword_search": lambda need: Keywords(content_words(need.text), **_ALL),
    "rules": lambda need: Search(one_query(need.text), feedback=False, **_ALL),
    "vectors": lambda need: Meaning(need.text, **_ALL),
    "hybrid": lambda need: Hybrid(need.text, vectors="sentence", **_ALL),
    KNOWN: lambda need: Search(need.query, feedback=False, **_ALL),
}


def values(hits: Sequence[str], need: Need, tokens: Mapping[str, int]) -> dict[str, float]:
    """Return the values of a ranking, of all of it as a set, and of the best of its beginnings as a
    set ("best"). Return also the pages until the set is whole ("held"); then no more are read."""
    relevant = len(need.relevant)
    is_relevant = np.array([0, *(id in need.relevant for id in hits)])
    counts = np.cumsum(is_relevant)
    f1 = 2 * counts / (np.arange(len(counts)) + relevant)
    gains = 1 / np.log2(np.arange(10) + 2)
    held = bool(counts[-1] == relevant)
    pages = -(-int(np.argmax(counts)) // PAGE) if held else PAGES
    read = sum(tokens[id] for id in hits[: pages * PAGE]) if held else CAP_TOKENS
    return {
        "R@10": counts[:11][-1] / relevant,
        "R@100": counts[:101][-1] / relevant,
        "nDCG@10": gains[: len(hits)] @ is_relevant[1:11] / gains[:relevant].sum(),
        BROKEN: sum(id in need.excluded for id in hits[:10]) / 10,
        "F1": f1[-1],
        "exact": f1[-1] == 1,
        "best F1": f1.max(),
        "best exact": f1.max() == 1,
        "held": held,
        "calls": pages,
        "tokens": min(read, CAP_TOKENS),
    }
