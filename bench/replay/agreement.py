"""Agreement of our BM25 with that of other libraries, with the same words, k1 and b.

Our side searches an index whose passages have no separate title: the words of title and text are
one field, as in the other libraries. Where the first hits differ, the reason is determined: equal
scores in another order, which depends on the processor; the length of a passage, which Lucene
rounds to a byte and bm25s does not; or a word with an apostrophe, which ours finds in both its
spellings. A difference without a reason means that a side is wrong, or has a rule that is not known
here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from arag_search.query.spellings import spellings_of
from arag_search.search.index import Index
from bench.quality.question_words import words_query
from bench.replay.peers import Scored
from bench.report.rows import Row, Target
from tests.support.oracle.field import kept_length

TOP = 10

_NEAR = 1e-5
"""Scores with a smaller relative difference count as equal, because all sides compute in 32
bits."""

SAME, TIES, LENGTHS, UNKNOWN = "same", "ties", "lengths in a byte", "unknown"
APART = "apostrophes"


@dataclass(frozen=True, slots=True)
class Counting:
    """The arithmetic of a side: whether it keeps the lengths of passages in a byte, finds an
    apostrophe in both spellings, and how far its scores are rounded."""

    byte_lengths: bool
    both_apostrophes: bool = False
    rounding: float = 0.0


OURS = Counting(byte_lengths=True, both_apostrophes=True)
BM25S = Counting(byte_lengths=False)
PYSERINI = Counting(byte_lengths=True, rounding=1e-4)
"""Pyserini returns scores of four digits, less a millionth for each hit tied with an earlier
one."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement of one peer. ``queries`` counts those with a hit on either side, ``reasons`` by
    reason. ``overlap`` is the mean share of the first ten ids that both have, whichever of equal
    scores the other side shows, ``examples`` are queries without a reason.

    The split into SAME and TIES depends on the processor: float sums that differ in their last
    bits order equal scores. Their sum does not."""

    queries: int
    overlap: float
    reasons: Mapping[str, int]
    examples: Sequence[str]

    def rows(self, peer: str) -> list[Row]:
        """Return the rows of the table: shares of queries."""
        shares = [
            Row(f"{peer}: top {TOP} {what}", self.reasons.get(what, 0) / self.queries, "")
            for what in (SAME, TIES, LENGTHS, APART)
        ]
        unknown = self.reasons.get(UNKNOWN, 0)
        agreeing = self.reasons.get(SAME, 0) + self.reasons.get(TIES, 0)
        return [
            Row(f"{peer}: mean overlap of the top {TOP}", self.overlap, ""),
            Row(f"{peer}: top {TOP} same but for ties", agreeing / self.queries, ""),
            *shares,
            Row(f"{peer}: differences without a reason", unknown, "", target=Target("at most", 0)),
        ]


def ours(index: Index, queries: Sequence[Sequence[str]]) -> list[Scored]:
    """Search for each query as alternatives, and return its first hits with ids of documents."""
    hits: list[Scored] = []
    for words in queries:
        result = index.logical_search(
            words_query(" ".join(words)), top_k=TOP, operators=False, snippets=False, feedback=False
        )
        hits.append([(hit.doc_id, hit.score) for hit in result.hits])
    return hits


class Bm25:
    """BM25 by its formula, in plain Python over tokenised passages, which explains other sides."""

    def __init__(self, passages: Mapping[str, Sequence[str]], k1: float, b: float) -> None:
        self._counts = {name: Counter(words) for name, words in passages.items()}
        self._lengths = {name: len(words) for name, words in passages.items()}
        self._mean = sum(self._lengths.values()) / len(passages)
        self._holding = Counter(word for counts in self._counts.values() for word in counts)
        self._k1, self._b = k1, b

    def score(self, name: str, words: Sequence[str], counting: Counting) -> float:
        """Score a passage for alternatives; the better of two spellings counts."""
        length = self._lengths[name]
        taken = kept_length(length) if counting.byte_lengths else length
        norm = self._k1 * (1 - self._b + self._b * taken / self._mean)
        return sum(
            max(self._of_word(name, spelling, norm) for spelling in _spellings(word, counting))
            for word in words
        )

    def _of_word(self, name: str, word: str, norm: float) -> float:
        times, holding = self._counts[name][word], self._holding[word]
        idf = math.log(1 + (len(self._counts) - holding + 0.5) / (holding + 0.5))
        return idf * times / (times + norm)


def compared(
    queries: Sequence[Sequence[str]],
    here: Sequence[Scored],
    there: Sequence[Scored],
    formula: Bm25,
    counting: Counting,
) -> Agreement:
    """Compare the hits of both sides. ``counting`` is that of the other side, ``formula`` is over
    the same passages."""
    reasons: Counter[str] = Counter()
    overlaps: list[float] = []
    examples: list[str] = []
    for words, our_hits, other in zip(queries, here, there, strict=True):
        if not our_hits and not other:
            continue
        aligned = _aligned(words, our_hits, other, formula, counting)
        reason = _reason(words, our_hits, other, aligned, formula)
        reasons[reason] += 1
        ids, others = {name for name, _ in our_hits}, set(aligned or [name for name, _ in other])
        overlaps.append(len(ids & others) / max(len(ids), len(others)))
        if reason == UNKNOWN:
            examples.append(" ".join(words))
    mean = sum(overlaps) / len(overlaps) if overlaps else 0.0
    return Agreement(max(len(overlaps), 1), mean, reasons, examples[:10])


def _aligned(
    words: Sequence[str], our_hits: Scored, other: Scored, formula: Bm25, counting: Counting
) -> list[str] | None:
    """Return the ids of the other side with equal scores in our order, also at the end, where not
    all of them are shown; None if the formula does not explain what that side shows."""
    names = {name for name, _ in (*our_hits, *other)}
    if not _explained(words, other, names, formula, counting):
        return None
    scores = {name: formula.score(name, words, counting) for name in names}
    places = {name: place for place, (name, _) in enumerate(our_hits)}
    ranked = sorted(names, key=lambda name: (-scores[name], name))
    groups: list[list[str]] = []
    for name in ranked:
        if groups and _near(scores[groups[-1][-1]], scores[name], counting):
            groups[-1].append(name)
        else:
            groups.append([name])
    in_our_order = [
        name
        for group in groups
        for name in sorted(group, key=lambda name: places.get(name, len(our_hits)))
    ]
    return in_our_order[: len(other)]


def _reason(
    words: Sequence[str], our_hits: Scored, other: Scored, aligned: list[str] | None, formula: Bm25
) -> str:
    """Return why the hits differ; ``aligned`` is the other side as ``_aligned`` gives it."""
    ours_ids, other_ids = [name for name, _ in our_hits], [name for name, _ in other]
    if ours_ids == other_ids:
        return SAME
    names = {*ours_ids, *other_ids}
    if aligned is None or not _explained(words, our_hits, names, formula, OURS):
        return UNKNOWN
    if aligned == ours_ids:
        return TIES
    return APART if any(len(_spellings(word, OURS)) > 1 for word in words) else LENGTHS


def _explained(
    words: Sequence[str],
    hits: Scored,
    names: Iterable[str],
    formula: Bm25,
    counting: Counting,
) -> bool:
    """Return whether the scores follow from the formula, in its order, and none of ``names``
    outside the hits has a better score."""
    scores = {name: formula.score(name, words, counting) for name in names}
    ranked = [scores[name] for name, _ in hits]
    last = ranked[-1] if len(hits) == TOP else 0.0
    in_order = all(
        above >= below or _near(above, below, counting) for above, below in pairwise(ranked)
    )
    none_missing = all(
        score <= last or _near(score, last, counting)
        for name, score in scores.items()
        if name not in {hit for hit, _ in hits}
    )
    right = all(
        _near(score, shown, counting) for score, (_, shown) in zip(ranked, hits, strict=True)
    )
    return in_order and none_missing and right


def _near(score: float, other: float, counting: Counting) -> bool:
    return math.isclose(score, other, rel_tol=_NEAR, abs_tol=counting.rounding)


def _spellings(word: str, counting: Counting) -> Sequence[str]:
    if not counting.both_apostrophes:
        return (word,)
    return [spelling[0] for spelling in spellings_of(word)]
