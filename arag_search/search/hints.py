"""Advice on queries that took too long, and on those that rank by very frequent words alone."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager

from arag_search.engines.base import (
    Deadline,
    Granularity,
    Matching,
    SearchEngine,
    SearchRequest,
)
from arag_search.errors import QueryTimeoutError
from arag_search.plan.clauses import Clause, ResolvedPlan, leaves
from arag_search.query.problems import shortened

KEYWORD_NARROWING: Mapping[Matching, str] = {
    "token": "Give fewer keywords, and shorter phrases.",
    "substring": "Use token matching: substring matching reads every passage.",
}
HYBRID_NARROWING = "Write fewer words, and rarer ones."

_LONG_PHRASE_WORDS = 4


@contextmanager
def advising_on_timeout(
    deadline: Deadline | None, location: str, advice: Callable[[], str]
) -> Generator[None, None, None]:
    """Complete a QueryTimeoutError raised within: add the limit, the index, and advice."""
    try:
        yield
    except QueryTimeoutError as error:
        if deadline is None:
            raise
        complete = deadline.exceeded()
        complete.where = location
        complete.do = advice()
        raise complete from error


def narrowing(query: Clause) -> str:
    """Return advice that names the costliest clause: a loose phrase, a long one, or a prefix."""
    all_leaves = list(leaves(query))
    phrases = [leaf for leaf in all_leaves if leaf.kind == "phrase"]
    prefixes = [leaf for leaf in all_leaves if leaf.kind == "prefix"]
    loose = [phrase for phrase in phrases if phrase.slop]
    costliest = max(loose or phrases, key=_words, default=None)
    if costliest is not None and costliest.slop:
        return (
            f"Shorten the loose phrase {shortened(str(costliest))}, lower its ~, or write its rare "
            "words with AND."
        )
    if costliest is not None and _words(costliest) > _LONG_PHRASE_WORDS:
        return f"Shorten the phrase {shortened(str(costliest))}, or write its rare words with AND."
    if prefixes:
        shortest = min(prefixes, key=lambda prefix: len(prefix.typed))
        return f"Write a longer prefix than {shortened(str(shortest))}, or whole words."
    return "Write fewer clauses, leave out the most frequent words, or join with AND a rare word."


def _words(phrase: Clause) -> int:
    return len(phrase.words[0])


# The note on queries that rank by very frequent words alone, such as ``the OR of``


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
        self._known: dict[tuple[str, str | None, Granularity], bool] = {}

    def note(
        self, texts: Sequence[Clause], granularity: Granularity, deadline: Deadline | None
    ) -> str:
        """Return the note if every word that a query ranks by is very frequent, else "".

        ``texts`` are its text leaves that are wanted. A query that ranks by phrases, prefixes or
        metadata has none. The longest word is counted first, so that an ordinary query of short
        words costs one count, and none when repeated.
        """
        words = [leaf for leaf in texts if leaf.kind == "word" and _is_short(leaf)]
        if not words or len(words) < len(texts) or self._units(granularity) < MIN_UNITS:
            return ""
        words.sort(key=lambda word: -len(str(word)))
        try:
            if not all(self._is_frequent(word, granularity, deadline) for word in words):
                return ""
        except QueryTimeoutError:  # the search itself was in time
            return ""
        return NOTE.format(unit="sentences" if granularity == "sentence" else "passages")

    def _is_frequent(
        self, word: Clause, granularity: Granularity, deadline: Deadline | None
    ) -> bool:
        key = word.typed.lower(), word.field, granularity
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
