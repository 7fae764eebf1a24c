"""From the passages that hold the evidence of a hop to the texts that show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from arag_search.agent.answers import normalise
from arag_search.corpus import Chunk
from bench.gold_chain.chain import Evidence


def evidence_of(answer: str, published: Sequence[Chunk], searched: Mapping[str, Chunk]) -> Evidence:
    """What shows a hop in an index: of each passage that holds it the sentences with the answer, or
    the text of the published passage.

    ``published`` are the passages that hold it as they were published, ``searched`` those of the
    index by their ids: the same, or packed ones. A text that was cut in two is shown by none.
    """
    texts = dict.fromkeys(text for one in published for text in telling(one, answer))
    shown = {
        id: tuple(text for text in texts if text in one.content) for id, one in searched.items()
    }
    return {id: held for id, held in shown.items() if held}


def telling(chunk: Chunk, answer: str) -> tuple[str, ...]:
    """The sentences of a passage that hold an answer, or its whole text where no single one does.

    The answer is held where it stands as whole words, after normalisation.
    """
    wanted = f" {normalise(answer)} "
    sentences = [one.strip() for one in chunk.sentences()]
    held = tuple(one for one in sentences if wanted in f" {normalise(one)} ")
    return held or (chunk.content.strip(),)
