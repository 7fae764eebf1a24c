"""Copies of a corpus, for comparisons that only need more text.

They are no corpus: document frequencies grow with the number of copies, and no new words appear.
Figures say that they are of copies.
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
        """The text that a scan reads: title and text, because keyword_search counts both."""
        return f"{self.title}\n{self.text}"


def copies(chunks: Sequence[Chunk], times: int, seed: int = SEED) -> Iterator[Copy]:
    """Yield all chunks ``times`` times: first as they are, then with other ids and shuffled
    sentences. The copies are the same for the same seed."""
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
    """Write passages as JSON lines of documents, and return their number."""
    count = 0
    with path.open("wb") as file:
        for passage in passages:
            line = {"id": passage.id, "title": passage.title, "text": passage.text}
            file.write(orjson.dumps(line) + b"\n")
            count += 1
    return count
