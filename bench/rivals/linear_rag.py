"""LinearRAG (Zhuang et al., 2025), as we read it: a graph of entities and passages that no language
model builds, and one request a question.

Known: entities are recognised (spaCy), and they, sentences and passages are embedded. Each entity
of the question stands for the nearest entity of the corpus by cosine. In up to n rounds an active
entity passes its score x cosine(question, sentence) to the entities of its best unread sentences,
above a threshold. A passage weighs ratio x its scaled dense score + log(1 + the sum over its active
entities of score x log(1 + count) / round). One personalised PageRank over entities and passages
starts from these weights; its first passages are shown. Without an entity: dense retrieval.

Chosen: entities are runs of capitalised words, and titles. The encoder and the vectors are the
index's. An entity keeps the best score of the round that reached it, and seeds are of round 1.
Dense scores are scaled from 0 to 1. PageRank starts from entities by their scores, and from
passages by ``share`` of their weight, or all passages together would hide the entities. An edge
weighs the count. The values of all settings are chosen too.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pydantic import Field

from arag_search.agent.models.base import ModelReply
from arag_search.agent.models.offline import capitalised_spans
from arag_search.agent.state import State
from arag_search.search.index import Index
from arag_search.tools.replies.parts import ShownPassage
from arag_search.vectors.base import VectorUnit
from bench.rivals.answerer import DENSE, SENTENCES, Answerer, Settings, searched
from bench.rivals.entity_graph import EntityGraph, Weights

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


class LinearRag(Answerer):
    """A search over a graph, and an answer from the passages that it found."""

    searches = (DENSE, SENTENCES)
    roles = ("linear_rag_answer",)
    settings_type = LinearRagSettings

    @classmethod
    def build(cls, index: Index, settings: Settings, model: str, folder: Path) -> EntityGraph:
        return EntityGraph.of(index, folder)

    def answer(self, state: State) -> ModelReply:
        passages = self._passages(state)
        return self.say(state, self.roles[-1], passages, question=state.question)

    def _passages(self, state: State) -> list[ShownPassage]:
        """Return the passages that are shown, as the step of a search."""
        began, graph, settings = time.perf_counter(), self.built, self.settings
        question = searched(state.question, state)
        names = list(dict.fromkeys(capitalised_spans(question)))
        if not names or not graph.names:
            return self.nearest(state, question)
        vectors, encoder = (opened := self.index.open_vectors()).vectors, opened.encoder
        asked = encoder.encode_queries([question])

        def cosines(unit: VectorUnit, ordinals: Sequence[int]) -> Weights:
            """Return the cosine of each text with the question, 0 if it is not found."""
            nearest = vectors.nearest(unit, asked, len(ordinals))[0]
            score_of = {text.ordinal: text.score for text in nearest}
            return np.array([score_of.get(ordinal, 0.0) for ordinal in ordinals])

        through = cosines("sentence", graph.sentences)
        bounds = (settings.rounds, settings.sentences, settings.threshold)
        active = graph.activated(graph.nearest(encoder.encode(names)), through, *bounds)
        weights = graph.weights(active, cosines("passage", graph.passages), settings.ratio)
        ranks = graph.page_rank(active, weights * settings.share, settings.damping)
        best = np.argsort(-ranks, kind="stable")[: settings.passages]
        scores = {graph.names[entity]: round(of.score, 3) for entity, of in active.items()}
        arguments = {"query": question, "entities": scores, "top_k": settings.passages}
        shown = dict.fromkeys(graph.ids[at] for at in best)
        return self.show(state, SEARCH, arguments, shown, began)
