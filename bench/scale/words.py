"""Statistics of the words of a real corpus and of the synthetic one.

    python -m bench words
    python -m bench words --data FOLDER --json words.json

They are Zipf's slope, Heaps' exponent, lengths and pairs; `python -m bench scale` compares them
before it measures.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

from arag_search.corpus import Chunk
from arag_search.errors import AragError
from arag_search.query import analysis
from bench.arguments import BenchParser
from bench.data import corpus_in
from bench.report.rows import Figure, Row, circumstances, show
from bench.scale import synthetic


def main(arguments: Sequence[str]) -> int:
    """Count the words of both corpora and return the exit code."""
    parser = BenchParser("words", __doc__)
    parser.add_data()
    parser.add_results()
    return parser.run(arguments, _counted)


def _counted(options: argparse.Namespace, command: str) -> int:
    figure = counted(corpus_in(options.data))
    show(options.json, [figure], circumstances(command, seed=synthetic.SEED))
    return 0


def counted(corpus: Path) -> Figure:
    """Return every statistic of both corpora."""
    both = compared(corpus)
    rows = [
        Row(f"{which}: {name}", statistic[which], "")
        for which in ("real", "synthetic")
        for name, statistic in both.items()
    ]
    unlike = [name for name, statistic in both.items() if not statistic["alike"]]
    return Figure("words", tuple(rows), {"corpus": corpus.parent.name, "unlike": unlike})


# Statistics of the words of a corpus: Zipf's slope, Heaps' exponent, lengths, pairs


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


_ALIKE = 0.1
"""A synthetic corpus resembles the real one if no statistic differs by more than this share."""


def compared(real: Path) -> dict[str, Any]:
    """Compare the words of a real corpus with those of as many synthetic passages of the same
    length."""
    from index_jobs.build.options import DEFAULT_CHUNK_TOKENS
    from index_jobs.cutting.chunking import cut
    from index_jobs.sources.metadata import MetadataReader
    from index_jobs.sources.opening import open_source
    from index_jobs.sources.records import Fields

    chunks: list[Chunk] = []
    for number, document in open_source(str(real), None, Fields(), MetadataReader({})).documents():
        if isinstance(document, AragError):
            raise document
        chunks += cut(document, shard=0, number=number, chunk_tokens=DEFAULT_CHUNK_TOKENS)[0]
    theirs = word_statistics(chunks)
    shape = replace(synthetic.USUAL, words=round(theirs["words of a passage"]))
    made = synthetic.passages(len(chunks), shape=shape)
    ours = word_statistics([passage.chunk() for passage in made])
    return {
        name: {
            "real": value,
            "synthetic": ours[name],
            "alike": abs(ours[name] / value - 1) <= _ALIKE,
        }
        for name, value in theirs.items()
    }
