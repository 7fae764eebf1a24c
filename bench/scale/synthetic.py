"""Synthetic corpora of any size: words by Zipf's law, with a vocabulary that never ends.

Passages have 100 words, and four of them in a row share a title, as Wikipedia is cut for KILT. Word
ranks follow a power law with a knee. Frequent words follow one slope; words beyond the knee follow
a steeper slope that never ends, so that the vocabulary grows by Heaps' law. Pairs of words that
stay together give phrases, and the words of an article recur in it. The passages of a corpus are
the first ones of every larger corpus.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from arag_search.corpus import Chunk, ordinal_of
from arag_search.system.extras import missing_extra

SEED = 1750
GENERATOR = 2
"""The version of the generator: increase it when the passages of the seed change. Figures of
another version are of another corpus."""

# The distribution of words, fitted to the 2WikiMultiHopQA corpus. Frequency falls as rank to the
# power of -HEAD up to rank KNEE, beyond that of -TAIL.
HEAD, KNEE, TAIL = 0.964, 5000, 1.384
WORDS = 100
TOPICAL = 0.03
"""The probability of a word to be one of its article."""
PAIRED = 0.74
"""The probability of a word to be a follower of the word before it, most often the first one."""
MOST = 0.013
"""The probability of a word to be the most frequent of all words."""
SENTENCE, SPREAD = 21.0, 0.5
"""The median length of sentences in words, and the standard deviation of its logarithm."""

PASSAGES_OF_TITLE = 4
_BLOCK = 1000  # passages that are made at once
_TOPIC_WORDS = 8
_FOLLOWERS, _MAX_FOLLOWERS = 30, 64
_SYLLABLES = [
    first + vowel + last
    for vowel in "aeiou"
    for last in "nrslt"
    for first in "bcdfghjklmnprstvwxyz"
]
_MAX_RANK = 10**12

# The area under the law up to the knee, and beyond it.
_AT_KNEE = (KNEE ** (1 - HEAD) - 1) / (1 - HEAD)
_BEYOND = KNEE ** (1 - HEAD) / (TAIL - 1)


@dataclass(frozen=True, slots=True)
class Passage:
    """One passage; its text is its sentences with a blank between them."""

    number: int
    title: str
    sentences: tuple[str, ...]

    @property
    def text(self) -> str:
        return " ".join(self.sentences)

    def chunk(self) -> Chunk:
        """Return the chunk that a build makes of the passage, with its generated sentences."""
        ends: list[int] = []
        for sentence in self.sentences:
            ends.append((ends[-1] if ends else 0) + len(sentence) + 1)
        ends[-1] -= 1
        name = str(self.number)
        ordinal = ordinal_of(0, self.number, 0)
        return Chunk(f"{name}.1", name, self.title, self.text, 1, 1, ordinal, tuple(ends), {})


def passages(count: int, *, first: int = 0) -> Iterator[Passage]:
    """Generate ``count`` passages of the corpus, from number ``first`` on."""
    end = first + count
    for block in range(first // _BLOCK, math.ceil(end / _BLOCK)):
        start = block * _BLOCK
        yield from _block(block, range(max(0, first - start), min(_BLOCK, end - start)))


def sample(count: int, size: int) -> list[Passage]:
    """Return ``size`` of the first ``count`` passages, spread over the corpus; all of a small
    one."""
    blocks = math.ceil(count / _BLOCK)
    looked_at = min(blocks, 20)
    per_block = math.ceil(size / looked_at)
    drawn: list[Passage] = []
    for place in range(looked_at):
        block = place * blocks // looked_at
        made = min(_BLOCK, count - block * _BLOCK)
        drawn += _block(block, range(0, made, max(1, made // per_block))[:per_block])
    return drawn[:size]


def write(count: int, path: Path, *, first: int = 0) -> None:
    """Write ``count`` passages as JSON lines of documents."""
    with path.open("wb") as file:
        for passage in passages(count, first=first):
            line = {"id": str(passage.number), "title": passage.title, "text": passage.text}
            file.write(orjson.dumps(line) + b"\n")


@functools.lru_cache(maxsize=200_000)
def word_of(rank: int) -> str:
    """Return the word of a rank from 0: distinct for each rank, and shorter for frequent ranks."""
    word = ""
    while True:
        rank, syllable = divmod(rank, len(_SYLLABLES))
        word += _SYLLABLES[syllable]
        if not rank:
            return word
        rank -= 1


def _ranks(numbers: Any) -> Any:
    """Return ranks from 0 by the law for numbers between 0 and 1, in an array of their shape."""
    np = numpy()
    area = numbers * (_AT_KNEE + _BEYOND)
    low = (1 + np.minimum(area, _AT_KNEE) * (1 - HEAD)) ** (1 / (1 - HEAD))
    rest = 1 - np.maximum(area - _AT_KNEE, 0) / _BEYOND
    high = KNEE * np.maximum(rest, 1e-15) ** (-1 / (TAIL - 1))
    ranks = np.where(area < _AT_KNEE, low, high)
    return np.minimum(ranks, _MAX_RANK).astype(np.int64) - 1


def _block(block: int, rows: range) -> list[Passage]:
    """Generate these passages of a block."""
    np = numpy()
    random = np.random.default_rng([SEED, block])
    ranks = _ranks(random.random((_BLOCK, WORDS)))
    # The words of an article are none of the most frequent ones.
    head = _AT_KNEE / (_AT_KNEE + _BEYOND)
    drawn = random.random((_BLOCK // PASSAGES_OF_TITLE, _TOPIC_WORDS))
    topics = np.repeat(_ranks(head / 2 + (1 - head / 2) * drawn), PASSAGES_OF_TITLE, axis=0)
    chosen = np.take_along_axis(topics, random.integers(_TOPIC_WORDS, size=ranks.shape), axis=1)
    ranks = np.where(random.random(ranks.shape) < TOPICAL, chosen, ranks)
    followed = random.random((_BLOCK, WORDS - 1)) < PAIRED
    # Of the followers the first comes about twice as often as the second, and so on.
    which = np.exp(random.random(followed.shape) * math.log(_FOLLOWERS)).astype(np.int64)
    for place in range(1, WORDS):
        pairs = ranks[:, place - 1] * _MAX_FOLLOWERS + which[:, place - 1]
        ranks[:, place] = np.where(followed[:, place - 1], _ranks(_mixed(pairs)), ranks[:, place])
    ranks = np.where(random.random(ranks.shape) < MOST, 0, ranks)
    drawn = random.lognormal(math.log(SENTENCE), SPREAD, (_BLOCK, WORDS // 3))
    lengths = np.maximum(np.rint(drawn), 3).astype(int)
    first = block * _BLOCK
    return [
        _passage(first + row, topics[row, :2].tolist(), ranks[row].tolist(), lengths[row].tolist())
        for row in rows
    ]


def _mixed(numbers: Any) -> Any:
    """Hash integers to numbers between 0 and 1 that look random."""
    np = numpy()
    value = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((value ^ (value >> np.uint64(31))) >> np.uint64(11)) / float(1 << 53)


def _passage(
    number: int, title: Sequence[int], ranks: Sequence[int], lengths: Sequence[int]
) -> Passage:
    words = [word_of(rank) for rank in ranks]
    sentences: list[str] = []
    start = 0
    for length in lengths:
        end = start + length
        if len(words) - end < 3:  # no sentence of a word or two at the end
            end = len(words)
        sentences.append(" ".join(words[start:end]).capitalize() + ".")
        start = end
        if start == len(words):
            break
    name = " ".join(word.capitalize() for word in map(word_of, title))
    return Passage(number, name, tuple(sentences))


def numpy() -> Any:
    """Import the library, which comes with the extra ``bench``. Raise MissingExtraError."""
    try:
        import numpy
    except ImportError as error:
        raise missing_extra("bench", "numpy") from error
    return numpy
