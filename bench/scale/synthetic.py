"""Synthetic corpora of any size: words by Zipf's law, with a vocabulary that never ends.

Passages have 100 words, and four of them in a row share a title, as Wikipedia is cut for KILT. Word
ranks follow a power law with a knee: frequent words follow one slope, those beyond the knee a
steeper one that never ends, so that the vocabulary grows by Heaps' law. Pairs of words that stay
together give phrases, and the words of an article recur in it. The passages of a corpus are the
first ones of every larger corpus of the same seed.
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
"""The version of the generator: increase it when the passages of a seed change. Figures of another
version are of another corpus."""

PASSAGES_OF_TITLE = 4
_BLOCK = 1000  # passages that are made at once
_TOPIC_WORDS = 8
_FOLLOWERS = 30
_MAX_FOLLOWERS = 64
_CONSONANTS = "bcdfghjklmnprstvwxyz"
_VOWELS = "aeiou"
_SYLLABLES = [
    first + vowel + last for vowel in _VOWELS for last in "nrslt" for first in _CONSONANTS
]
_KEPT_WORDS = 200_000
_MAX_RANK = 10**12


@dataclass(frozen=True, slots=True)
class Shape:
    """The distribution of the words; the defaults were fitted to the 2WikiMultiHopQA corpus.

    Frequency falls as rank to the power of -``head`` up to rank ``knee``, beyond that of -``tail``
    (above 1). With probability ``topical`` a word is one of its article, with ``paired`` one of
    those that often follow the word before it, the first of them most often, and with ``most`` the
    most frequent of all words. The median length of sentences is ``sentence`` words, and ``spread``
    is the standard deviation of its logarithm. A passage has ``words`` words.
    """

    head: float = 0.964
    knee: int = 5000
    tail: float = 1.384
    topical: float = 0.03
    paired: float = 0.74
    most: float = 0.013
    sentence: float = 21.0
    spread: float = 0.5
    words: int = 100


USUAL = Shape()


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


def passages(
    count: int, *, first: int = 0, seed: int = SEED, shape: Shape = USUAL
) -> Iterator[Passage]:
    """Generate ``count`` passages of the corpus of this seed, from number ``first`` on."""
    end = first + count
    for block in range(first // _BLOCK, math.ceil(end / _BLOCK)):
        start = block * _BLOCK
        rows = range(max(0, first - start), min(_BLOCK, end - start))
        yield from _block(block, rows, seed, shape)


def sample(count: int, size: int, *, seed: int = SEED, shape: Shape = USUAL) -> list[Passage]:
    """Return ``size`` of the first ``count`` passages, spread over the corpus; all of a small
    one."""
    blocks = math.ceil(count / _BLOCK)
    looked_at = min(blocks, 20)
    per_block = math.ceil(size / looked_at)
    drawn: list[Passage] = []
    for place in range(looked_at):
        block = place * blocks // looked_at
        made = min(_BLOCK, count - block * _BLOCK)
        rows = range(0, made, max(1, made // per_block))[:per_block]
        drawn += _block(block, rows, seed, shape)
    return drawn[:size]


def write(count: int, path: Path, *, first: int = 0, seed: int = SEED) -> int:
    """Write ``count`` passages as JSON lines of documents, and return their bytes."""
    with path.open("wb") as file:
        for passage in passages(count, first=first, seed=seed):
            line = {"id": str(passage.number), "title": passage.title, "text": passage.text}
            file.write(orjson.dumps(line) + b"\n")
        return file.tell()


@functools.lru_cache(maxsize=_KEPT_WORDS)
def word_of(rank: int) -> str:
    """Return the word of a rank from 0: distinct for each rank, and shorter for frequent ranks."""
    word = ""
    while True:
        rank, syllable = divmod(rank, len(_SYLLABLES))
        word += _SYLLABLES[syllable]
        if not rank:
            return word
        rank -= 1


class _Law:
    """Ranks from numbers between 0 and 1, by the power law of a shape."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        knee, head = shape.knee, shape.head
        self._at_knee = math.log(knee) if head == 1 else (knee ** (1 - head) - 1) / (1 - head)
        self._beyond = knee ** (1 - head) / (shape.tail - 1)

    @property
    def head_share(self) -> float:
        """The share of all words that are of a rank below the knee."""
        return self._at_knee / (self._at_knee + self._beyond)

    def ranks(self, numbers: Any) -> Any:
        """Return ranks from 0, in an array of the same shape."""
        np = numpy()
        shape = self._shape
        area = numbers * (self._at_knee + self._beyond)
        inside = np.minimum(area, self._at_knee)
        if shape.head == 1:
            low = np.exp(inside)
        else:
            low = (1 + inside * (1 - shape.head)) ** (1 / (1 - shape.head))
        rest = 1 - np.maximum(area - self._at_knee, 0) / self._beyond
        high = shape.knee * np.maximum(rest, 1e-15) ** (-1 / (shape.tail - 1))
        ranks = np.where(area < self._at_knee, low, high)
        return np.minimum(ranks, _MAX_RANK).astype(np.int64) - 1


def _block(block: int, rows: range, seed: int, shape: Shape) -> list[Passage]:
    """Generate these passages of a block."""
    np = numpy()
    random = np.random.default_rng([seed, block])
    law = _Law(shape)
    ranks = law.ranks(random.random((_BLOCK, shape.words)))
    # The words of an article are none of the most frequent ones.
    rare = law.head_share / 2 + (1 - law.head_share / 2) * random.random(
        (_BLOCK // PASSAGES_OF_TITLE, _TOPIC_WORDS)
    )
    topics = np.repeat(law.ranks(rare), PASSAGES_OF_TITLE, axis=0)
    chosen = np.take_along_axis(topics, random.integers(_TOPIC_WORDS, size=ranks.shape), axis=1)
    ranks = np.where(random.random(ranks.shape) < shape.topical, chosen, ranks)
    followed = random.random((_BLOCK, shape.words - 1)) < shape.paired
    # Of the followers the first comes about twice as often as the second, and so on.
    which = np.exp(random.random(followed.shape) * math.log(_FOLLOWERS)).astype(np.int64)
    for place in range(1, shape.words):
        pairs = ranks[:, place - 1] * _MAX_FOLLOWERS + which[:, place - 1]
        follower = law.ranks(_mixed(pairs))
        ranks[:, place] = np.where(followed[:, place - 1], follower, ranks[:, place])
    ranks = np.where(random.random(ranks.shape) < shape.most, 0, ranks)
    lengths = np.maximum(
        np.rint(
            random.lognormal(math.log(shape.sentence), shape.spread, (_BLOCK, shape.words // 3))
        ),
        3,
    ).astype(int)
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
