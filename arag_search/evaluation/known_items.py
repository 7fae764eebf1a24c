"""Known-item needs, drawn from a corpus. A need is the words of a sentence by which a reader might
remember its passage (Azzopardi, de Rijke and Balog 2007 simulate such queries).

The rarest words of the sentence are left out, since they alone would find the passage. The next
words are in alphabetical order, so that no phrase of the text is left.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

from arag_search.agent.models.offline import STOP_WORDS
from arag_search.corpus import Chunk
from arag_search.query import analysis
from arag_search.questions.question import Question
from arag_search.search.index import Index

NEEDS = 50
FORGOTTEN, WORDS = 2, 3
_FEWEST = 8
"""Sentences with fewer different words are left out."""
_LONGEST = 40
_SPARE = 4  # passages that are drawn for each need, since some have no such sentence


def known_items(index: Index, count: int = NEEDS, seed: int = 0) -> list[Question]:
    """Return at most ``count`` needs, from passages drawn by ``seed``. A need has the id of the
    passage to find. The corpus is read once."""
    chance = random.Random(seed)
    needs: list[Question] = []
    for chunk in _drawn(index.scan(), _SPARE * count, chance):
        sentences = [words for text in chunk.sentences() if (words := _words(text))]
        if sentences and len(needs) < count:
            counted = index.words(*chance.choice(sentences))
            rare = sorted(counted, key=lambda word: (word.passages, word.word))[
                FORGOTTEN : FORGOTTEN + WORDS
            ]
            needs.append(Question(chunk.id, " ".join(sorted(word.word for word in rare)), ()))
    return needs


def _drawn(chunks: Iterable[Chunk], count: int, chance: random.Random) -> list[Chunk]:
    """Draw chunks from a stream of unknown length (Vitter 1985, algorithm R), in random order."""
    drawn: list[Chunk] = []
    for number, chunk in enumerate(chunks):
        if number < count:
            drawn.append(chunk)
        elif (place := chance.randrange(number + 1)) < count:
            drawn[place] = chunk
    chance.shuffle(drawn)
    return drawn


def _words(sentence: str) -> list[str]:
    words = dict.fromkeys(
        word for word in analysis.terms(sentence) if word.isalpha() and word not in STOP_WORDS
    )
    return list(words)[:_LONGEST] if len(words) >= _FEWEST else []
