"""The note on queries that rank by very frequent words alone, such as ``the OR of``."""

from __future__ import annotations

from dataclasses import replace

from arag_search.engines.base import Deadline, Granularity, SearchEngine, SearchRequest
from arag_search.errors import QueryTimeoutError
from arag_search.query.tree import Node, Term, TextLeaf, positive_leaves

NOTE = "only very frequent words rank here, each in more than half of all {unit}: add a rarer one."
MAX_CHARACTERS = 5
"""Longer words are not looked up: function words are short, and a count costs a round trip."""
MIN_UNITS = 50
"""In a smaller index, half of the passages have the words of its subject."""
_MAX_KNOWN = 1_000


class FrequentWords:
    """What is known of the words of an index: whether more than half of its passages have them.

    A word is counted once, in the whole index whatever its scope, because that is what BM25 ranks
    by. The counts of all engines are exact, and so is the note. Safe to use from several threads.
    """

    def __init__(self, engine: SearchEngine) -> None:
        self._engine = engine
        self._known: dict[tuple[str, Granularity], bool] = {}

    def note(self, query: Node, granularity: Granularity, deadline: Deadline | None) -> str:
        """Return the note if every word that the query ranks by is very frequent, else "".

        A query that ranks by phrases, prefixes or metadata has none. The longest word is counted
        first, so that an ordinary query of short words costs one count, and none when repeated.
        """
        texts = [leaf for leaf in positive_leaves(query) if isinstance(leaf, TextLeaf)]
        words = [leaf for leaf in texts if isinstance(leaf, Term) and _is_short(leaf)]
        if not words or len(words) < len(texts) or self._units(granularity) < MIN_UNITS:
            return ""
        words.sort(key=lambda word: -len(str(word)))
        try:
            if not all(self._is_frequent(word, granularity, deadline) for word in words):
                return ""
        except QueryTimeoutError:  # the search itself was in time
            return ""
        return NOTE.format(unit="sentences" if granularity == "sentence" else "passages")

    def _is_frequent(self, word: Term, granularity: Granularity, deadline: Deadline | None) -> bool:
        word = replace(word, weight=1.0, possessives=False)
        key = str(word).lower(), granularity
        known = self._known.get(key)
        if known is None:
            request = SearchRequest(
                word, top_k=1, granularity=granularity, with_text=False, deadline=deadline
            )
            known = 2 * self._engine.search(request).count > self._units(granularity)
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known[key] = known
        return known

    def _units(self, granularity: Granularity) -> int:
        manifest = self._engine.manifest
        return manifest.sentences if granularity == "sentence" else manifest.chunks


def _is_short(word: Term) -> bool:
    """Return whether a word is short and not split."""
    tokens = word.spellings[0]
    return len(tokens) == 1 and len(tokens[0]) <= MAX_CHARACTERS
