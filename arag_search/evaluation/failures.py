"""Classify wrong answers into our own mechanical categories, as far as records show the reason.

A wrong answer gets the first category that holds, in the order of FAILURES. A-RAG's categories
are different: they are a model's verdict on the whole trajectory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

from arag_search.agent.record import Record
from arag_search.evaluation.evidence import Sighting, sightings_by_passage, sightings_by_title
from arag_search.evaluation.resolution import EvidencePiece
from arag_search.questions.question import Question

Failure = Literal[
    "no answer", "not measured", "read not used", "budget", "shown not read", "never shown"
]

FAILURES: dict[Failure, str] = {
    "no answer": "the question failed, or has no record",
    "not measured": "the question names no evidence",
    "read not used": "the text that counts of all evidence was shown, and the answer is wrong",
    "budget": "the answer was forced before it all was",
    "shown not read": "all passages were in results, of some the text that counts was not",
    "never shown": "the passage of some evidence was in no result",
}


def failure_of(
    question: Question, record: Record | None, sets: Sequence[Sequence[EvidencePiece]] | None = None
) -> Failure:
    """Return the category of a wrong answer. ``sets`` are the pieces of evidence in the index that
    was searched; without them, passages are identified by their titles. Of several sets of
    evidence, the one of which most was read counts.
    """
    if record is None or record.status == "failed":
        return "no answer"
    if sets is None:
        met = sightings_by_title(question, record)
    else:
        met = sightings_by_passage(sets, record)
    if not met:
        return "not measured"
    best = max(met, key=_progress)
    if all(sighting.visible is not None for sighting in best):
        return "read not used"
    if record.status == "forced":
        return "budget"
    return (
        "shown not read" if all(sighting.shown is not None for sighting in best) else "never shown"
    )


def failure_counts(failures: Iterable[Failure]) -> dict[Failure, int]:
    """Return how often each category occurs, in the order of FAILURES, including zeros."""
    counts = Counter(failures)
    return {name: counts[name] for name in FAILURES}


def _progress(sightings: Sequence[Sighting]) -> tuple[float, float]:
    read = sum(sighting.visible is not None for sighting in sightings)
    shown = sum(sighting.shown is not None for sighting in sightings)
    return read / len(sightings), shown / len(sightings)
