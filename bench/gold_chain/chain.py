"""The chain of facts behind a question: the searcher's knowledge of each hop, and its evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arag_search.agent.wording import normalise
from arag_search.corpus import Chunk

Evidence = Mapping[str, tuple[str, ...]]
"""Passage id -> texts; the evidence is shown when one of them is shown of that passage. The
sentences that hold the object, or the whole passage where no single one does. Empty where no
passage is known to hold it."""


@dataclass(frozen=True, slots=True)
class Link:
    """A hop: the known name, the relation in question, and the evidence, of which the searcher only
    knows whether it was shown."""

    name: str
    relation: str
    evidence: Evidence


Chain = tuple[Link, ...]
"""The hops of a question, in order."""


def evidence_of(answer: str, passages: Sequence[Chunk]) -> Evidence:
    """Return the texts that show a hop in the passages that hold it. They are the sentences with
    the answer, or the whole text of a passage without such a sentence."""
    texts = dict.fromkeys(text for chunk in passages for text in telling(chunk, answer))
    return {chunk.id: tuple(text for text in texts if text in chunk.content) for chunk in passages}


def telling(chunk: Chunk, answer: str) -> tuple[str, ...]:
    """Return the sentences of a passage that hold an answer, or its whole text if no single one
    does.

    A sentence holds the answer if it contains it as whole words, after normalisation.
    """
    wanted = f" {normalise(answer)} "
    sentences = [sentence.strip() for sentence in chunk.sentences()]
    holding = tuple(sentence for sentence in sentences if wanted in f" {normalise(sentence)} ")
    return holding or (chunk.content.strip(),)
