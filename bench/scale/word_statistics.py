"""Statistics of the words of a corpus: Zipf's slope, Heaps' exponent, lengths, pairs."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from random import Random

from arag_search.corpus import Chunk
from arag_search.query import analysis

ZIPF_RANKS = (10, 3000)
HEAPS_SHARE = 0.05
"""Zipf's slope is measured between these ranks; Heaps' exponent from this share of the words on."""

_SEED = 1762
_POINTS = 40
_PAIRS = 2000


def line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Fit a line to points by least squares, and return its slope and its height at 0."""
    x, y = zip(*points, strict=True)
    fit = statistics.linear_regression(x, y)
    return fit.slope, fit.intercept


def word_statistics(chunks: Sequence[Chunk]) -> Mapping[str, float]:
    """Compute the statistics by name, of at least some thousand words."""
    frequency: Counter[str] = Counter()
    seen: set[str] = set()
    growth: list[tuple[int, int]] = []
    count = 0
    texts = [analysis.terms(chunk.content) for chunk in chunks]
    for terms in texts:
        frequency.update(terms)
        seen.update(terms)
        count += len(terms)
        growth.append((count, len(seen)))
    ordered = [times for _, times in frequency.most_common()]
    sentences = sum(len(chunk.sentence_ends) for chunk in chunks)
    return {
        "words of a passage": count / len(chunks),
        "words of a sentence": count / sentences,
        "characters of a word": sum(len(t) * n for t, n in frequency.items()) / count,
        "Zipf slope": -_zipf(ordered),
        "Heaps exponent": _heaps(growth),
        "share of the most frequent word": ordered[0] / count,
        "passages with a word of a passage": _median_share(texts),
        "passages with a pair of a passage": _pairs(texts),
    }


def _zipf(ordered: Sequence[int]) -> float:
    low, high = ZIPF_RANKS[0], min(ZIPF_RANKS[1], len(ordered))
    ranks = {round(low * (high / low) ** (step / _POINTS)) for step in range(_POINTS + 1)}
    return line([(math.log(rank), math.log(ordered[rank - 1])) for rank in sorted(ranks)])[0]


def _heaps(growth: Sequence[tuple[int, int]]) -> float:
    first = max(1, round(len(growth) * HEAPS_SHARE))
    ratio = len(growth) / first
    places = {round(first * ratio ** (step / _POINTS)) for step in range(_POINTS + 1)}
    points = [growth[place - 1] for place in sorted(places)]
    return line([(math.log(words), math.log(different)) for words, different in points])[0]


def _median_share(texts: Sequence[Sequence[str]]) -> float:
    """Return the median document frequency, as a share, of words drawn from passages."""
    frequency: Counter[str] = Counter()
    for terms in texts:
        frequency.update(set(terms))
    random = Random(_SEED)
    drawn = [random.choice(random.choice(texts)) for _ in range(_PAIRS)]
    return statistics.median(frequency[term] for term in drawn) / len(texts)


def _pairs(texts: Sequence[Sequence[str]]) -> float:
    """Return the mean document frequency, as a share, of pairs of neighbours drawn from
    passages."""
    frequency: Counter[tuple[str, str]] = Counter()
    for terms in texts:
        frequency.update(set(pairwise(terms)))
    random = Random(_SEED)
    drawn: list[tuple[str, str]] = []
    long = [terms for terms in texts if len(terms) > 1]
    for _ in range(_PAIRS):
        terms = random.choice(long)
        at = random.randrange(len(terms) - 1)
        drawn.append((terms[at], terms[at + 1]))
    return statistics.geometric_mean(frequency[pair] for pair in drawn) / len(texts)
