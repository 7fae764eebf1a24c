"""Vectors of sentences with and without the title of their passage, and what their cosines tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from arag_search.evaluation.bootstrap import LEVEL, SEED, Interval, intervals, resampled_means
from arag_search.evaluation.text_match import evidence_recall
from arag_search.questions.files import Question
from arag_search.search.index import Index, open_index
from bench.report.rows import Figure, Row
from bench.workbench import say
from index_jobs.embedding.job import embed_index
from index_jobs.embedding.plan import EmbedOptions

NAME = "titles"
PLAIN = "plain"
CUTS = (1, 5, 20)
MEASURES = tuple(f"recall@{cut}" for cut in CUTS)


@dataclass(frozen=True, slots=True)
class Nearest:
    """The results of one question: its recall at each cut, the greatest cosine, and whether the
    nearest passage is evidence."""

    recall: tuple[float, ...]
    cosine: float
    is_evidence: bool


def both_ways(
    name: str, plain: Path, titled: Path, questions: Sequence[Question], encoder: str
) -> dict[str, list[Nearest]]:
    """Search for questions by vectors of sentences as they are, in an index, and of sentences below
    the title of their passage, in a folder of their own. Vectors that exist are kept."""
    embed_index(plain, encoder, EmbedOptions(sentence_titles=False))
    answers: dict[str, list[Nearest]] = {}
    with open_index(plain, search_timeout_s=None) as index:
        answers[PLAIN] = _nearest(name, index, questions)
    options = EmbedOptions(vectors=titled, units=("sentence",), sentence_titles=True)
    embed_index(plain, encoder, options)
    with open_index(plain, vectors=titled, search_timeout_s=None) as index:
        answers["with titles"] = _nearest(name, index, questions)
    return answers


def _nearest(name: str, index: Index, questions: Sequence[Question]) -> list[Nearest]:
    say(f"{name}: sentences, {len(questions)} questions")
    index.encode_queries([question.text for question in questions])
    answers: list[Nearest] = []
    for question in questions:
        hits = index.semantic_search(question.text, top_k=max(CUTS)).hits
        titles = [hit.title for hit in hits]
        recall = tuple(evidence_recall(question, titles[:cut]) or 0.0 for cut in CUTS)
        answers.append(Nearest(recall, hits[0].score if hits else 0.0, recall[0] > 0))
    return answers


def figure(
    sets: Mapping[str, Mapping[str, Sequence[Nearest]]], made_of: Mapping[str, Any]
) -> Figure:
    """Return the recall of both ways, their differences with intervals, and how well the greatest
    cosine predicts whether the nearest passage is evidence. ``made_of`` identifies index, vectors
    and questions of each data set."""
    rows: list[Row] = []
    for name, ways in sets.items():
        values = [
            [*before.recall, *(b - a for a, b in zip(before.recall, after.recall, strict=True))]
            for before, after in zip(ways[PLAIN], ways["with titles"], strict=True)
        ]
        whats = [f"{PLAIN}, {measure}" for measure in MEASURES]
        whats += [f"with titles - {PLAIN}, {measure}" for measure in MEASURES]
        for what, interval in zip(whats, _intervals(name, values), strict=True):
            rows.append(Row(f"{name}: {what}", interval.value, "", interval.low, interval.high))
    development, test = _halves([near for ways in sets.values() for near in ways[PLAIN]])
    threshold = best_threshold(development)
    marked = [near for near in test if near.cosine < threshold]
    misses = [near for near in test if not near.is_evidence]
    right = sum(not near.is_evidence for near in marked)
    rows += [
        Row("greatest cosine: AUC for evidence, all sets", auc([*development, *test]), ""),
        Row("weak hits: threshold of the development half", threshold, ""),
        Row("weak hits of the test half that are no evidence", right / max(len(marked), 1), ""),
        Row("hits of the test half that are no evidence", len(misses) / max(len(test), 1), ""),
        Row("misses of the test half that are marked", right / max(len(misses), 1), ""),
    ]
    return Figure(NAME, tuple(rows), {"sets": made_of})


def auc(answers: Sequence[Nearest]) -> float:
    """Return the probability that a hit that is evidence has a greater cosine than one that is
    not; 0.5 if there are not both. O(n^2)."""
    hits = [near.cosine for near in answers if near.is_evidence]
    others = [near.cosine for near in answers if not near.is_evidence]
    if not hits or not others:
        return 0.5
    wins = sum((hit > other) + 0.5 * (hit == other) for hit in hits for other in others)
    return wins / (len(hits) * len(others))


def best_threshold(answers: Sequence[Nearest]) -> float:
    """Return the cosine below which marking hits as weak is right most often beyond chance (the
    greatest sum of sensitivity and specificity)."""
    hits = [near.cosine for near in answers if near.is_evidence]
    others = [near.cosine for near in answers if not near.is_evidence]

    def gain(threshold: float) -> float:
        caught = sum(cosine < threshold for cosine in others) / max(len(others), 1)
        lost = sum(cosine < threshold for cosine in hits) / max(len(hits), 1)
        return caught - lost

    return max((near.cosine for near in answers), key=gain, default=0.0)


def _halves(answers: Sequence[Nearest]) -> tuple[list[Nearest], list[Nearest]]:
    """Return a development and a test half, drawn by the seed."""
    order = list(answers)
    Random(f"{SEED} halves").shuffle(order)
    return order[: len(order) // 2], order[len(order) // 2 :]


def _intervals(name: str, values: Sequence[Sequence[float]]) -> list[Interval]:
    import numpy as np

    table = np.array(values, np.float64)
    means = resampled_means(table, [None] * len(table), f"{NAME} {name}")
    return intervals(list(map(float, table.mean(0))), means, [LEVEL] * table.shape[1])
