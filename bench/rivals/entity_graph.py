"""A graph of the entities of a corpus, runs of capitalised words and titles, and the steps of
LinearRAG over it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from arag_search.agent.models.offline import capitalised_spans
from arag_search.search.index import Index
from arag_search.vectors.base import FloatArray
from bench.rivals.answerer import Built
from bench.workbench import Building, built_once

Weights = NDArray[np.float64]

_IN_BRACKETS = re.compile(r"\s*\([^)]*\)")
_MAX_TURNS = 100
_CHANGE = 1e-9


class Active(NamedTuple):
    """The score of an active entity, and the round in which it was reached, from 1."""

    score: float
    round: int


@dataclass(frozen=True)
class EntityGraph(Built):
    """The entities of a corpus by name. Entities, sentences and passages are numbers, from 0.

    ``ids`` and ``passages`` are ids and ordinals of passages, ``sentences`` ordinals of sentences.
    ``mentions`` are the entities in each sentence, ``edges`` rows of an entity, a passage, and how
    often the one is in the other. ``vectors`` are the vectors of the names.
    """

    names: Sequence[str]
    ids: Sequence[str]
    passages: Sequence[int]
    sentences: Sequence[int]
    mentions: Sequence[Sequence[int]]
    edges: NDArray[np.int64]
    vectors: FloatArray
    building: Building | None = None

    @staticmethod
    def of(index: Index, folder: Path) -> EntityGraph:
        """Read the entities of all passages, and encode those whose vectors the folder has not. A
        title belongs to the first sentence, without what it has in brackets; names that differ in
        case alone are one entity."""
        number_of: dict[str, int] = {}
        names: list[str] = []
        mentions: list[list[int]] = []
        edges: list[tuple[int, int, int]] = []
        chunks = list(index.scan())
        for passage, chunk in enumerate(chunks):
            counts: Counter[int] = Counter()
            for at, sentence in enumerate(chunk.sentences()):
                spans = capitalised_spans(sentence)
                if at == 0 and (title := _IN_BRACKETS.sub("", chunk.title).strip()):
                    spans.append(title)
                for span in spans:
                    if number_of.setdefault(span.casefold(), len(names)) == len(names):
                        names.append(span)
                mentions.append([number_of[span.casefold()] for span in spans])
                counts.update(mentions[-1])
            edges += [(entity, passage, count) for entity, count in sorted(counts.items())]
        passages = [chunk.ordinal for chunk in chunks]
        sentences = [of.ordinal + at for of in chunks for at in range(len(of.sentence_ends))]
        vectors = folder / "entities.npy"

        def encode() -> tuple[int, int]:
            np.save(vectors, index.open_vectors().encoder.encode(names))
            return 0, 0

        building = built_once(folder, encode)
        rows = np.array(edges, np.int64).reshape(-1, 3)
        ids = [chunk.id for chunk in chunks]
        return EntityGraph(
            names, ids, passages, sentences, mentions, rows, np.load(vectors), building
        )

    @cached_property
    def sentences_of(self) -> Mapping[int, Sequence[int]]:
        """The sentences of each entity."""
        places: dict[int, list[int]] = {}
        for sentence, entities in enumerate(self.mentions):
            for entity in set(entities):
                places.setdefault(entity, []).append(sentence)
        return places

    def nearest(self, asked: FloatArray) -> dict[int, Active]:
        """Return the nearest entity of each entity of the question, with its cosine."""
        seeds: dict[int, Active] = {}
        for row in asked @ self.vectors.T:
            entity = int(row.argmax())
            seeds[entity] = max(seeds.get(entity, Active(0, 1)), Active(float(row[entity]), 1))
        return seeds

    def activated(
        self, seeds: Mapping[int, Active], cosines: Weights, rounds: int, best: int, least: float
    ) -> dict[int, Active]:
        """Return the seeds, and the entities that they reach in so many ``rounds`` with scores
        above ``least``. A round goes through so many ``best`` sentences of each, which are read
        once."""
        active, front = dict(seeds), dict(seeds)
        read: set[int] = set()
        for number in range(2, rounds + 2):
            reached: dict[int, Active] = {}
            for entity, (score, _) in front.items():
                unread = [at for at in self.sentences_of.get(entity, ()) if at not in read]
                for sentence in sorted(unread, key=lambda at: (-cosines[at], at))[:best]:
                    read.add(sentence)
                    passed = Active(score * float(cosines[sentence]), number)
                    if passed.score > least:
                        for other in {*self.mentions[sentence]} - active.keys():
                            reached[other] = max(reached.get(other, passed), passed)
            active |= reached
            front = reached
        return active

    def weights(self, active: Mapping[int, Active], dense: Weights, ratio: float) -> Weights:
        """Return the weight of each passage, by its dense score and its active entities."""
        sums = np.zeros(len(dense))
        for entity, passage, count in self.edges[np.isin(self.edges[:, 0], list(active))].tolist():
            score, number = active[entity]
            sums[passage] += score * math.log1p(count) / number
        return ratio * (dense - dense.min()) / (np.ptp(dense) or 1.0) + np.log1p(sums)

    def page_rank(self, active: Mapping[int, Active], weights: Weights, damping: float) -> Weights:
        """Return the rank of each passage by a PageRank. It starts from entities by their scores
        and from passages by their weights, and follows edges by their counts, both ways."""
        start = np.concatenate((np.zeros(first := len(self.names)), weights))
        start[list(active)] = [of.score for of in active.values()]
        start /= start.sum() or 1.0
        ends = (self.edges[:, 0], self.edges[:, 1] + first)
        sources, targets = np.concatenate(ends), np.concatenate(ends[::-1])
        counts = np.tile(self.edges[:, 2], 2)
        shares = counts / np.bincount(sources, counts, len(start))[sources]
        ranks = start
        for _ in range(_MAX_TURNS):
            along = damping * np.bincount(targets, shares * ranks[sources], len(start))
            before, ranks = ranks, along + (1 - along.sum()) * start
            if np.abs(ranks - before).sum() < _CHANGE:
                break
        return ranks[first:]
