"""A pattern beside a word against the word alone, by the number of passages that the word has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from arag_search.corpus import Chunk
from arag_search.query import analysis
from arag_search.search.index import Index, open_index
from arag_search.search.patterns import MAX_VERIFIED
from bench.report.rounds import Side, interleaved, timed
from bench.report.rows import Figure, Row
from bench.speed.bare import without_query_cache
from bench.speed.keyword import MAX_BUILD_S, build_copies
from bench.workbench import Workbench, say

COPIES = 17
"""Copies of the corpus of 2WikiMultiHopQA are 104,023 passages."""
SIZES = (20, 200, 2_000, MAX_VERIFIED)
PATTERN = r"/\b[A-Z]\w+ed (?:by|in) [A-Z]/"
SEARCHES = 3


def measure(bench: Workbench, rounds: int, *, times: int = COPIES) -> Figure:
    """Measure searches for words of several frequencies, alone and with a pattern."""
    words = _words(bench.chunks, times)
    rows: list[Row] = []
    with bench.room() as room, without_query_cache():
        build_copies(bench, times, room, MAX_BUILD_S)
        with open_index(room / "index", search_timeout_s=None) as index:
            for word, passages in words.items():
                say(f"patterns: {word}, in {passages:,} passages")
                rows += _rows(index, word, passages, rounds)
    details = {"pattern": PATTERN, "measured_on": "copies of the corpus, not a corpus"}
    return Figure("patterns", tuple(rows), details)


def _words(chunks: Sequence[Chunk], times: int) -> dict[str, int]:
    """Return for each size the word whose passages are nearest to it, and not more."""
    counts: Counter[str] = Counter()
    for chunk in chunks:
        counts.update(set(analysis.terms(f"{chunk.title} {chunk.content}")))
    by_word = {word: times * count for word, count in sorted(counts.items())}
    fitting = {
        max((word for word in by_word if by_word[word] <= size), key=by_word.__getitem__)
        for size in SIZES
    }
    return {word: by_word[word] for word in sorted(fitting, key=by_word.__getitem__)}


def _rows(index: Index, word: str, passages: int, rounds: int) -> list[Row]:
    def side(query: str) -> Side:
        search = lambda: [index.logical_search(query) for _ in range(SEARCHES)]  # noqa: E731
        return lambda: timed(search)

    sides = {"pattern": side(f'"={word}" AND {PATTERN}'), "word": side(f'"={word}"')}
    timings = interleaved(sides, rounds, warm_up=1)
    milliseconds = timings.median_s("pattern") / SEARCHES * 1000
    return [
        Row.of_ratio(
            f"{passages:,} passages: time to the word alone", timings.ratio("pattern", "word")
        ),
        Row(f"{passages:,} passages: with the pattern", milliseconds, "ms/search"),
    ]
