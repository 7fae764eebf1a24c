"""A graph of the entities of a corpus, runs of capitalised words and titles, and the steps of
LinearRAG over it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from arag_search.agent.models.offline import capitalised_spans
from arag_search.search.index import Index
from arag_search.vectors.base import FloatArray

Numbers = NDArray[np.int64]
Weights = NDArray[np.float64]

_MAX_TURNS = 100
_CHANGE = 1e-9
_IN_BRACKETS = re.compile(r"\s*\([^)]*\)")


@dataclass(frozen=True)
class Entities:
    """The entities of a corpus by name. Entities, sentences and passages are numbers, from 0.

    ``ids`` and ``passages`` are ids and ordinals of passages, ``sentences`` ordinals of sentences.
    ``mentions`` are the entities in each sentence, ``edges`` rows of an entity, a passage, and how
    often the one is in the other.
    """

    names: Sequence[str]
    ids: Sequence[str]
    passages: Sequence[int]
    sentences: Sequence[int]
    mentions: Sequence[Sequence[int]]
    edges: Numbers

    @cached_property
    def sentences_of(self) -> Mapping[int, Sequence[int]]:
        """The sentences of each entity."""
        places: dict[int, list[int]] = {}
        for sentence, entities in enumerate(self.mentions):
            for entity in entities:
                places.setdefault(entity, []).append(sentence)
        return places


def entities_of(index: Index) -> Entities:
    """Read the entities of all passages. A title belongs to the first sentence, without what it has
    in brackets; names that differ in case alone are one entity."""
    number_of: dict[str, int] = {}
    names: list[str] = []
    ids: list[str] = []
    passages: list[int] = []
    sentences: list[int] = []
    mentions: list[list[int]] = []
    edges: list[tuple[int, int, int]] = []
    for chunk in index.scan():
        counts: Counter[int] = Counter()
        for at, sentence in enumerate(chunk.sentences()):
            spans = capitalised_spans(sentence)
            if at == 0 and (title := _IN_BRACKETS.sub("", chunk.title).strip()):
                spans.append(title)
            for span in spans:
                if number_of.setdefault(span.casefold(), len(names)) == len(names):
                    names.append(span)
            inside = [number_of[span.casefold()] for span in spans]
            counts.update(inside)
            mentions.append(sorted(set(inside)))
            sentences.append(chunk.ordinal + at)
        edges += [(entity, len(ids), count) for entity, count in sorted(counts.items())]
        ids.append(chunk.id)
        passages.append(chunk.ordinal)
    rows = np.array(edges, np.int64).reshape(-1, 3)
    return Entities(names, ids, passages, sentences, mentions, rows)


# The steps of LinearRAG


class Active(NamedTuple):
    """The score of an active entity, and the round in which it was reached, from 1."""

    score: float
    round: int


def nearest_entities(asked: FloatArray, vectors: FloatArray) -> dict[int, Active]:
    """Return the nearest entity of each of those of the question, with its cosine."""
    seeds: dict[int, Active] = {}
    for row in asked @ vectors.T:
        entity = int(row.argmax())
        seeds[entity] = max(seeds.get(entity, Active(0, 1)), Active(float(row[entity]), 1))
    return seeds


def activated(
    seeds: Mapping[int, Active], entities: Entities, cosines: Weights,
    rounds: int, best_sentences: int, threshold: float,
) -> dict[int, Active]:  # fmt: skip
    """Return the seeds and the entities that they reach, by sentences that are read once each."""
    active, front = dict(seeds), dict(seeds)
    read: set[int] = set()
    for number in range(2, rounds + 2):
        reached: dict[int, Active] = {}
        for entity, (score, _) in front.items():
            unread = [at for at in entities.sentences_of.get(entity, ()) if at not in read]
            best = sorted(unread, key=lambda at: (-cosines[at], at))[:best_sentences]
            read.update(best)
            for sentence in best:
                passed = score * float(cosines[sentence])
                if passed > threshold:
                    for other in {*entities.mentions[sentence]} - active.keys():
                        before = reached.get(other, Active(0, number))
                        reached[other] = max(before, Active(passed, number))
        active |= reached
        front = reached
    return active


def passage_weights(
    active: Mapping[int, Active], edges: Numbers, dense: Weights, ratio: float
) -> Weights:
    """Return the weight of each passage, by its dense score and its active entities."""
    sums = np.zeros(len(dense))
    for entity, passage, count in edges[np.isin(edges[:, 0], list(active))].tolist():
        score, number = active[entity]
        sums[passage] += score * math.log1p(count) / number
    return ratio * (dense - dense.min()) / (np.ptp(dense) or 1.0) + np.log1p(sums)


def page_rank(
    active: Mapping[int, Active], weights: Weights, entities: Entities, damping: float
) -> Weights:
    """Return the rank of each passage by a PageRank that starts from entities by their scores and
    from passages by their weights, and follows edges by their counts, both ways."""
    start = np.concatenate((np.zeros(first := len(entities.names)), weights))
    start[list(active)] = [of.score for of in active.values()]
    start /= start.sum() or 1.0
    ends = (entities.edges[:, 0], entities.edges[:, 1] + first)
    sources, targets = np.concatenate(ends), np.concatenate(ends[::-1])
    counts = np.tile(entities.edges[:, 2], 2).astype(np.float64)
    shares = counts / np.bincount(sources, counts, len(start))[sources]
    ranks = start
    for _ in range(_MAX_TURNS):
        along = damping * np.bincount(targets, shares * ranks[sources], len(start))
        before, ranks = ranks, along + (1 - along.sum()) * start
        if np.abs(ranks - before).sum() < _CHANGE:
            break
    return ranks[first:]
