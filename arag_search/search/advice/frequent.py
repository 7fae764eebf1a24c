"""The note on queries that rank by very frequent words alone, such as ``the OR of``."""

from __future__ import annotations

from collections.abc import Sequence

from arag_search.engines.base import Deadline, Granularity, Page, SearchEngine, SearchRequest
from arag_search.errors import QueryTimeoutError
from arag_search.plan.clauses import Clause, ResolvedPlan, wanted_leaves
from arag_search.search.advice.questions import Subject

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
        self._known: dict[tuple[str, str | None, str, Granularity], bool] = {}

    def notes(self, subject: Subject, page: Page) -> list[str]:
        """Return the note if every word that a query ranks by is very frequent.

        A query that ranks by phrases, prefixes or metadata has none. The longest word is counted
        first, so that an ordinary query of short words costs one count, and none when repeated.
        """
        if not page.hits or subject.asked.form.is_list:
            return []
        request = subject.request
        texts = [leaf for leaf in wanted_leaves(subject.query) if leaf.is_text]
        is_about_words = texts and all(leaf.kind == "word" and _is_short(leaf) for leaf in texts)
        unit = request.granularity
        if not is_about_words or self._units(unit) < MIN_UNITS:
            return []
        try:
            is_noted = self.are_frequent(texts, unit, request.deadline)
        except QueryTimeoutError:  # the search itself was in time
            return []
        return [NOTE.format(unit=subject.asked.unit)] if is_noted else []

    def are_frequent(
        self, words: Sequence[Clause], granularity: Granularity, deadline: Deadline | None
    ) -> bool:
        """Return whether each of the words is in more than half of all passages, or sentences.
        Raises QueryTimeoutError."""
        longest_first = sorted(words, key=lambda word: -len(word.text))
        return all(self._is_frequent(word, granularity, deadline) for word in longest_first)

    def _is_frequent(
        self, word: Clause, granularity: Granularity, deadline: Deadline | None
    ) -> bool:
        key = word.typed.lower(), word.field, word.language, granularity
        known = self._known.get(key)
        if known is None:
            request = SearchRequest(
                ResolvedPlan(word),
                top_k=1,
                granularity=granularity,
                with_text=False,
                deadline=deadline,
            )
            known = 2 * self._engine.search(request).count > self._units(granularity)
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known[key] = known
        return known

    def _units(self, granularity: Granularity) -> int:
        manifest = self._engine.manifest
        return manifest.sentences if granularity == "sentence" else manifest.chunks


def _is_short(word: Clause) -> bool:
    """Return whether a word is short and not split."""
    tokens = word.words[0]
    return len(tokens) == 1 and len(tokens[0]) <= MAX_CHARACTERS
