"""The chain of facts behind a question: the searcher's knowledge of each hop, and its evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arag_search.agent.answers import normalise
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


@dataclass(frozen=True, slots=True)
class Chain:
    """The hops of a question, in order."""

    question_id: str
    question: str
    links: tuple[Link, ...]


def evidence_of(answer: str, published: Sequence[Chunk], searched: Mapping[str, Chunk]) -> Evidence:
    """Return the texts that show a hop in an index: the sentences with the answer of each passage
    that holds it, or the whole text of the published passage.

    ``published`` are the passages that hold the evidence, as published; ``searched`` are those of
    the index by id: the same or packed passages. No passage shows a text that was cut in two.
    """
    texts = dict.fromkeys(text for passage in published for text in telling(passage, answer))
    shown = {
        id: tuple(text for text in texts if text in chunk.content) for id, chunk in searched.items()
    }
    return {id: holding for id, holding in shown.items() if holding}


def telling(chunk: Chunk, answer: str) -> tuple[str, ...]:
    """Return the sentences of a passage that hold an answer, or its whole text if no single one
    does.

    A sentence holds the answer if it contains it as whole words, after normalisation.
    """
    wanted = f" {normalise(answer)} "
    sentences = [sentence.strip() for sentence in chunk.sentences()]
    holding = tuple(sentence for sentence in sentences if wanted in f" {normalise(sentence)} ")
    return holding or (chunk.content.strip(),)
