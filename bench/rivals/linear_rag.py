"""LinearRAG (Zhuang et al., 2025), as we read it: a graph of entities and passages that no language
model builds, and one request a question.

Known: entities are recognised (spaCy), and they, sentences and passages are embedded. Each entity
of the question stands for the nearest entity of the corpus by cosine. In up to n rounds an active
entity passes its score x cosine(question, sentence) to the entities of its best unread sentences,
above a threshold. A passage weighs ratio x its scaled dense score + log(1 + the sum over its active
entities of score x log(1 + count) / round). One personalised PageRank over entities and passages
starts from these weights; its first passages are shown. Without an entity: dense retrieval.

Chosen: entities are runs of capitalised words, and titles; the encoder and the vectors of the
index; an entity keeps the best score of the round that reached it, and seeds are of round 1; dense
scores are scaled from 0 to 1; PageRank starts from entities by their scores, and from passages by
``share`` of their weight, or all passages together would hide the entities; an edge weighs the
count; the values of all settings.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import Field

from arag_search.agent.models.base import ModelReply
from arag_search.agent.models.offline import capitalised_spans
from arag_search.agent.state import State
from arag_search.search.index import Index
from arag_search.tools.reply_text import ShownPassage
from arag_search.vectors.base import FloatArray, VectorUnit
from bench.rivals.answerer import DENSE, SENTENCES, Answerer, Built, Settings, built_once, searched
from bench.rivals.entity_graph import (
    Entities,
    Weights,
    activated,
    entities_of,
    nearest_entities,
    page_rank,
    passage_weights,
)

SEARCH = "graph_search"


class LinearRagSettings(Settings):
    """``sentences`` are those through which an entity passes its score in a round; ``damping`` is
    the share of PageRank that follows edges."""

    rounds: int = Field(3, ge=1, le=10)
    threshold: float = Field(0.5, ge=0, le=1)
    sentences: int = Field(1, ge=1, le=20)
    ratio: float = Field(1.5, ge=0)
    share: float = Field(0.05, gt=0, le=1)
    damping: float = Field(0.5, gt=0, lt=1)


@dataclass(frozen=True)
class Graph(Built):
    """The entities of a corpus, and their vectors."""

    entities: Entities
    vectors: FloatArray


class LinearRag(Answerer[LinearRagSettings, Graph]):
    """A search over a graph, and an answer from the passages that it found."""

    searches = (DENSE, SENTENCES)
    roles = ("linear_rag_answer",)
    settings_type = LinearRagSettings

    @classmethod
    def build(cls, index: Index, settings: Settings, model: str, folder: Path) -> Graph:
        """Encode the entities of an index with the encoder of its vectors; see Answerer."""
        file = folder / "entities.npy"

        def build() -> tuple[int, int]:
            np.save(file, index.open_vectors().encoder.encode(entities_of(index).names))
            return 0, 0

        building = built_once(folder, build)
        return Graph(entities_of(index), np.load(file), building=building)

    @classmethod
    def usual_calls(cls, settings: LinearRagSettings) -> Iterator[tuple[str, int]]:
        """See Answerer."""
        yield cls.roles[-1], settings.passages

    def answer(self, state: State) -> ModelReply:
        """See Answerer."""
        passages = self._passages(state)
        return self.reply(state, self.roles[-1], passages, question=state.question)

    def _passages(self, state: State) -> list[ShownPassage]:
        """Return the passages that are shown, as the step of a search."""
        began, entities, settings = time.perf_counter(), self.built.entities, self.settings
        question = searched(state.question, state)
        names = list(dict.fromkeys(capitalised_spans(question)))
        if not names or not entities.names:
            return self.nearest(state, question)
        opened = self.index.open_vectors()
        seeds = nearest_entities(opened.encoder.encode(names), self.built.vectors)
        asked = opened.encoder.encode_queries([question])

        def cosines(unit: VectorUnit, ordinals: Sequence[int]) -> Weights:
            """Return the cosine of each text with the question, 0 for one that is not found."""
            nearest = opened.vectors.nearest(unit, asked, len(ordinals))[0]
            score_of = {text.ordinal: text.score for text in nearest}
            return np.array([score_of.get(ordinal, 0.0) for ordinal in ordinals])

        active = activated(
            seeds, entities, cosines("sentence", entities.sentences),
            settings.rounds, settings.sentences, settings.threshold,
        )  # fmt: skip
        dense = cosines("passage", entities.passages)
        weights = passage_weights(active, entities.edges, dense, settings.ratio)
        ranks = page_rank(active, weights * settings.share, entities, settings.damping)
        best = np.argsort(-ranks, kind="stable")[: settings.passages]
        scores = {entities.names[entity]: round(of.score, 3) for entity, of in active.items()}
        arguments = {"query": question, "entities": scores, "top_k": settings.passages}
        found_ids = dict.fromkeys(entities.ids[at] for at in best)
        return self.show(state, SEARCH, arguments, found_ids, began)
