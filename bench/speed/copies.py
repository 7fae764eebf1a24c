"""Copies of a corpus, for the one comparison that needs nothing but more text to look at.

They are no corpus: document frequencies grow with the number of copies and no new word comes. What
is measured on them is said to be measured on copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import orjson

from arag_search.corpus import Chunk

SEED = 1741


@dataclass(frozen=True, slots=True)
class Copy:
    """A passage of a copy."""

    id: str
    title: str
    text: str

    @property
    def searched(self) -> str:
        """All that a scan looks at: title and text, as keyword_search counts in both."""
        return f"{self.title}\n{self.text}"


def copies(chunks: Sequence[Chunk], times: int, seed: int = SEED) -> Iterator[Copy]:
    """All chunks, ``times`` times, streamed: first as they are, then with other ids and their
    sentences shuffled. The same ones for the same seed."""
    random = Random(seed)
    for number in range(times):
        for chunk in chunks:
            text = chunk.content
            if number:
                sentences = [sentence.strip() for sentence in chunk.sentences()]
                random.shuffle(sentences)
                text = " ".join(sentences)
            yield Copy(f"{chunk.id}-{number}", chunk.title, text)


def write(passages: Iterator[Copy], path: Path) -> int:
    """Write passages as JSON lines of documents; their number."""
    count = 0
    with path.open("wb") as file:
        for passage in passages:
            line = {"id": passage.id, "title": passage.title, "text": passage.text}
            file.write(orjson.dumps(line) + b"\n")
            count += 1
    return count
